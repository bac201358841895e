"""One selection: its state, its listeners, and what may be given to be selected."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.errors import SelectionError
from workbench.selection import Selection, resolve

GRAPHS = (
    ("forward", {"linear": frozenset({3}), "relu": frozenset({4})}),
    ("forward", {"addmm": frozenset({3}), "relu": frozenset({40})}),
    ("encode", {"mul": frozenset({9})}),
)


def named() -> Any:
    return iter(GRAPHS)


def test_callbacks_hear_of_real_changes_only() -> None:
    selection = Selection("forward")
    heard: list[frozenset[int]] = []
    selection.on_change(lambda changed: heard.append(changed.handles))
    selection.set([3, 4])
    selection.set((4, 3))
    selection.set({3, 4}, node=None, method="forward")
    selection.set([3, 4], node="relu")
    selection.clear()
    selection.clear()
    assert heard == [{3, 4}, {3, 4}, set()]
    assert selection.method == "forward"
    assert not selection


def test_removed_callback_hears_no_more() -> None:
    selection = Selection()
    heard: list[int] = []
    removers = [selection.on_change(lambda _, place=place: heard.append(place)) for place in range(3)]
    removers[1]()
    removers[1]()
    selection.set([1])
    assert heard == [0, 2]


def test_callback_removed_by_another_in_the_same_round_is_not_called() -> None:
    selection = Selection()
    heard: list[str] = []
    selection.on_change(lambda _: remove())
    remove = selection.on_change(lambda _: heard.append("second"))
    selection.set([1])
    assert heard == []


def test_failing_callback_does_not_stop_the_others() -> None:
    selection = Selection()
    heard: list[int] = []

    def fail(_: Selection) -> None:
        raise ValueError("first")

    selection.on_change(fail)
    selection.on_change(lambda changed: heard.extend(changed.handles))
    with pytest.raises(ValueError, match="first"):
        selection.set([7])
    assert heard == [7]
    assert selection.handles == {7}
    selection.on_change(lambda changed: heard.append(-1))
    with pytest.raises(ValueError, match="first"):
        selection.set([8])
    assert heard == [7, 8, -1]


def test_callback_may_change_the_selection() -> None:
    selection = Selection()
    heard: list[list[int]] = []

    def widen(changed: Selection) -> None:
        if len(changed.handles) == 1:
            changed.set([*changed.handles, 100])
            assert changed.handles >= {100}

    selection.on_change(widen)
    selection.on_change(lambda changed: heard.append(sorted(changed.handles)))
    selection.set([1])
    # Those that come later see the state as it is when they are called, and the last one at the end.
    assert heard[-1] == [1, 100]
    assert len(heard) == 2


def test_callbacks_that_never_settle_are_an_error() -> None:
    selection = Selection()
    remove = selection.on_change(lambda changed: changed.set([max(changed.handles) + 1]))
    with pytest.raises(SelectionError, match="keep changing"):
        selection.set([1])
    remove()
    heard: list[frozenset[int]] = []
    selection.on_change(lambda changed: heard.append(changed.handles))
    selection.set([2])
    assert heard == [{2}]


@pytest.mark.parametrize("handles", [[0], [-1], [True], [1.5], ["3"], 5, [None]])
def test_what_is_no_handle_is_refused_and_changes_nothing(handles: Any) -> None:
    selection = Selection()
    selection.set([2])
    with pytest.raises(SelectionError, match="handle"):
        selection.set(handles)
    assert selection.handles == {2}


def test_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(SelectionError, match="`node`"):
        Selection().set([1], node=3)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="listener"):
        Selection().on_change(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, (set(), None, None)),
        (3, ({3}, None, None)),
        (range(3, 5), ({3, 4}, None, None)),
        (np.array([3, 4], np.int32), ({3, 4}, None, None)),
        ({3, 4}, ({3, 4}, None, None)),
        ("addmm", ({3}, "addmm", "forward")),
        ("relu", ({4}, "relu", "forward")),  # the earliest graph that has the name
        ("mul", ({9}, "mul", "encode")),
        (["linear", "relu"], ({3, 4}, None, "forward")),
        (["linear", 7], ({3, 7}, None, "forward")),
    ],
)
def test_handles_and_names_are_resolved(value: Any, expected: Any) -> None:
    assert resolve(value, named) == expected


def test_rows_of_a_table_are_resolved() -> None:
    table = pd.DataFrame(
        {"method": ["forward"] * 3, "node": ["a", "b", "c"], "handles": [(1,), (2, 3), ()]}, index=[7, 8, 9]
    )
    assert resolve(table, named) == ({1, 2, 3}, None, "forward")
    assert resolve(table[table["node"] == "b"], named) == ({2, 3}, "b", "forward")
    assert resolve(table.loc[8], named) == ({2, 3}, "b", "forward")
    assert resolve(table.head(0), named) == (set(), None, None)


def test_selection_of_another_lowering_can_be_taken_over() -> None:
    other = Selection("encode")
    other.set([9], node="mul")
    assert resolve(other, named) == ({9}, "mul", "encode")


def test_unknown_name_names_the_nearest() -> None:
    with pytest.raises(SelectionError) as caught:
        resolve("lineer", named)
    assert "linear" in str(caught.value.hint)
    with pytest.raises(SelectionError, match="no stage has a node 'xyzzy'"):
        resolve(["linear", "xyzzy"], named)


def test_rows_without_handles_and_of_several_methods_are_refused() -> None:
    with pytest.raises(SelectionError, match="which nodes"):
        resolve(pd.DataFrame({"node": ["a"]}), named)
    mixed = pd.DataFrame({"method": ["forward", "encode"], "handles": [(1,), (2,)]})
    with pytest.raises(SelectionError, match="several methods"):
        resolve(mixed, named)
    with pytest.raises(SelectionError, match="several methods"):
        resolve(["linear", "mul"], named)


def test_module_needs_no_torch() -> None:
    code = (
        "import sys, workbench.selection; assert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
