"""Requests that come more than once, and the thread of the kernel that handles them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from workbench_widgets.messages import Answers, keep_reachable


def test_only_the_last_requests_are_known() -> None:
    answers = Answers()
    assert answers.take(1)
    assert not answers.take(1)
    assert answers.again(1) is None
    answers.given(1, ({"id": 1}, [b"x"]))
    assert answers.again(1) == ({"id": 1}, [b"x"])
    for number in range(2, 100):
        assert answers.take(number)
    assert answers.again(1) is None
    answers.given(1, ({"id": 1}, [b"late"]))
    assert answers.again(1) is None
    assert len(answers._known) == 64


def test_large_answers_are_not_kept() -> None:
    answers = Answers()
    answers.take(1)
    answers.given(1, ({"id": 1}, [bytes(2 << 20)]))
    assert answers.again(1) is None
    assert not answers.take(1), "but it is known that there was one"


def _comm(chosen: str | None, known: list[str]) -> Any:
    manager = SimpleNamespace(list_subshell=lambda: known)
    kernel = SimpleNamespace(shell_channel_thread=SimpleNamespace(manager=manager))
    return SimpleNamespace(kernel=kernel, _reply_subshell_for=lambda data, default: chosen or default)


def test_messages_for_a_thread_that_is_gone_go_to_the_main_one() -> None:
    for chosen, default, expected in [
        ("gone", None, None),
        ("there", None, "there"),
        (None, "there", "there"),
        (None, "gone", None),
        (None, None, None),
    ]:
        comm = _comm(chosen, ["there"])
        keep_reachable(comm)
        assert comm._reply_subshell_for({}, default) == expected


def test_other_kernels_are_left_alone() -> None:
    for comm in (
        SimpleNamespace(),
        SimpleNamespace(kernel=None),
        SimpleNamespace(kernel=SimpleNamespace(), _reply_subshell_for=None),
        SimpleNamespace(kernel=SimpleNamespace(shell_channel_thread=None)),
    ):
        before = dict(vars(comm))
        keep_reachable(comm)
        assert vars(comm) == before
