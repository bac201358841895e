"""Placing buffers one after the other, each into the best gap that those placed before leave."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import MemoryPlanError
from workbench.memory.problem import Problem

__all__ = ["place"]


def place(
    problem: Problem, order: Iterable[int], *, best_fit: bool = True, stop: int | None = None
) -> list[int] | None:
    """Place all buffers in an order.

    Pinned buffers are placed first, whatever the order.

    Args:
        problem: The buffers.
        order: Indices of all buffers.
        best_fit: Take the smallest gap that is large enough; otherwise the lowest.
        stop: Give up as soon as the plan takes this many bytes or more.

    Returns:
        An offset for each buffer; None if it was given up.

    Raises:
        MemoryPlanError: Two pins contradict each other.
    """
    sizes, neighbors, pins = problem.sizes, problem.neighbors, problem.pins
    offsets = [-1] * len(problem)
    if pins:
        _check_pins(problem)
        for index, offset in pins.items():
            offsets[index] = offset
    for index in order:
        if offsets[index] >= 0:
            continue
        size = sizes[index]
        if not size:
            offsets[index] = 0
            continue
        taken = [(offsets[other], other) for other in neighbors[index] if offsets[other] >= 0]
        taken.sort()
        end = 0
        chosen = -1
        smallest = 1 << 62
        for offset, other in taken:
            gap = offset - end
            if gap >= size and gap < smallest:
                chosen, smallest = end, gap
                if not best_fit or gap == size:
                    break
            bottom = offset + sizes[other]
            if bottom > end:
                end = bottom
        if chosen < 0:
            chosen = end
        if stop is not None and chosen + size >= stop:
            return None
        offsets[index] = chosen
    return offsets


def _check_pins(problem: Problem) -> None:
    for index, offset in problem.pins.items():
        name = problem.buffers[index].name
        if offset < 0 or offset % problem.alignment:
            raise MemoryPlanError(
                f"`{name}` is pinned to an offset that is no multiple of the alignment",
                stage="plan",
                node=name,
                expected=f"a multiple of {problem.alignment}",
                found=str(offset),
            )
        for other in problem.neighbors[index]:
            rival = problem.pins.get(other)
            if (
                rival is None
                or offset + problem.sizes[index] <= rival
                or rival + problem.sizes[other] <= offset
            ):
                continue
            raise MemoryPlanError(
                f"`{name}` and `{problem.buffers[other].name}`, in use at once, have pins that overlap",
                stage="plan",
                node=name,
                found=f"bytes {offset} to {offset + problem.sizes[index]} and "
                f"{rival} to {rival + problem.sizes[other]}",
                hint="move one of the pins",
            )
