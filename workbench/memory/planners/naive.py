"""Every buffer has memory of its own. The upper bound that other planners are measured against."""

from __future__ import annotations

from workbench.memory.problem import Problem

__all__ = ["plan"]


def plan(problem: Problem) -> list[int]:
    """One behind the other, around the pins. O(n log n)."""
    offsets = [0] * len(problem)
    fixed = sorted((offset, offset + problem.sizes[index]) for index, offset in problem.pins.items())
    end = 0
    for index, size in enumerate(problem.sizes):
        if index in problem.pins:
            offsets[index] = problem.pins[index]
            continue
        while fixed and fixed[0][0] < end + size:
            end = max(end, fixed.pop(0)[1])
        offsets[index] = end
        end += size
    return offsets
