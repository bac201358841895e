"""When memory is in use: from the instructions that name it, and the loops around them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["lifetimes"]

K = TypeVar("K", bound=Hashable)


def lifetimes(
    uses: Iterable[Iterable[K]],
    *,
    at_start: Iterable[K] = (),
    at_end: Iterable[K] = (),
    always: Iterable[K] = (),
    loops: Sequence[tuple[int, int]] = (),
) -> dict[K, tuple[int, int]]:
    """First and last moment at which memory is in use.

    Moment 0 is when the inputs are given, moment `i + 1` that of instruction `i`, the last one when the
    results are read.

    Args:
        uses: For each instruction the memory that it reads or writes.
        at_start: Memory that holds inputs.
        at_end: Memory that holds results.
        always: Memory that keeps its content from one execution to the next.
        loops: First and last instruction of each loop, inner loops before outer ones.

    Returns:
        By memory, its first and last moment, both included.
    """
    first: dict[K, int] = {}
    last: dict[K, int] = {}
    for key in at_start:
        first[key] = last[key] = 0
    moment = 0
    for used in uses:
        moment += 1
        for key in used:
            if key not in first:
                first[key] = moment
            last[key] = moment
    end = moment + 1
    for key in at_end:
        first.setdefault(key, end)
        last[key] = end
    for key in always:
        first[key], last[key] = 0, end
    for start, stop in loops:
        _extend(first, last, start + 1, stop + 1)
    return {key: (first[key], last[key]) for key in first}


def _extend(first: dict[K, int], last: dict[K, int], start: int, stop: int) -> None:
    """What enters a loop is read again on the next turn, and what leaves it must survive all turns."""
    for key in first:
        begin, end = first[key], last[key]
        if begin > stop or end < start:
            continue
        if begin < start:
            last[key] = max(end, stop)
        if end > stop:
            first[key] = min(begin, start)
