"""The tables of measurements, and the way things are timed."""

from __future__ import annotations

import time

import pytest

from benchmarks.measure import in_worker, median_seconds
from benchmarks.tables import table_of


def test_table_is_aligned_text_and_markdown() -> None:
    table = table_of(
        "Speed", ["network", "ms", "ratio"], [["mlp", 0.06349, 12.345], ["lstm", None, 1234.5]], "a note"
    )
    lines = table.text().splitlines()
    assert lines[0] == "Speed"
    assert lines[-1] == "a note"
    assert len({len(line) for line in lines[1:-1]}) == 1
    markdown = table.markdown().splitlines()
    assert markdown[2] == "| network | ms | ratio |"
    assert markdown[4] == "| mlp | 0.063 | 12.3 |"
    assert markdown[5] == "| lstm | - | 1234 |"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0.000"),
        (1.2345, "1.23"),
        (99.95, "100.0"),
        (0.00001, "1.0e-05"),
        (7, "7"),
        ("x", "x"),
    ],
)
def test_cells_have_three_digits(value: object, shown: str) -> None:
    assert table_of("", ["a"], [[value]]).rows[0][0] == shown


def test_median_is_that_of_the_timed_calls() -> None:
    calls = []

    def call() -> None:
        calls.append(None)
        time.sleep(0.05 if len(calls) % 10 == 0 else 0.001)

    assert 0.001 <= median_seconds(call, budget=0.1, least=5) < 0.02
    assert len(calls) >= 7


def test_failed_worker_says_why() -> None:
    assert "error" in in_worker("execution", "no_such_network", "/tmp", "0.1", "eager")
