from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench import runtime


def test_number_of_threads_is_that_of_the_processors_or_what_is_set() -> None:
    before = runtime.threads()
    assert before >= 1
    try:
        runtime.set_threads(3)
        assert runtime.threads() == 3
    finally:
        runtime.set_threads(before)


@pytest.mark.parametrize("count", [0, -1, 129])
def test_impossible_numbers_of_threads_are_refused(count: int) -> None:
    before = runtime.threads()
    with pytest.raises(ValueError, match=f"expected 1 to 128, found {count}"):
        runtime.set_threads(count)
    assert runtime.threads() == before


@pytest.mark.parametrize(("text", "expected"), [("2", 2), ("0", None), ("many", None), ("9999", 128)])
def test_environment_says_how_many_threads(text: str, expected: int | None) -> None:
    code = "from workbench import runtime; print(runtime.threads())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LOWERING_WORKBENCH_THREADS": text},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(found.stdout) == (len(os.sched_getaffinity(0)) if expected is None else expected)
