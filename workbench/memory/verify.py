"""The check of every plan, written without the planners' code: nothing alive at once may overlap.

A sweep over time keeps what is alive sorted by offset; a buffer that comes alive is compared with its two
neighbours in memory only. O(n log n) comparisons.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence

from workbench.errors import MemoryPlanError
from workbench.memory.problem import Buffer

__all__ = ["check_plan"]


def check_plan(buffers: Sequence[Buffer], offsets: Sequence[int], alignment: int, size: int) -> None:
    """Check the plan of one arena.

    Args:
        buffers: The buffers of the arena.
        offsets: Where each lies, in bytes.
        alignment: That each offset must have.
        size: Bytes of the arena.

    Raises:
        MemoryPlanError: Two buffers alive at once overlap, a buffer sticks out of the arena or is not
            aligned, or a pin was not honoured.
    """
    alive: list[tuple[int, int, int]] = []  # offset, end, index
    ending: list[tuple[int, tuple[int, int, int]]] = []
    for index in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        buffer, offset = buffers[index], offsets[index]
        _check_place(buffer, offset, alignment, size)
        if buffer.nbytes == 0:
            continue
        while ending and ending[0][0] < buffer.first:
            gone = heapq.heappop(ending)[1]
            del alive[bisect_left(alive, gone)]
        entry = (offset, offset + buffer.nbytes, index)
        position = bisect_left(alive, entry)
        for other in alive[max(0, position - 1) : position + 1]:
            if other[0] < entry[1] and offset < other[1]:
                raise _overlap(buffer, entry, buffers[other[2]], other)
        insort(alive, entry)
        heapq.heappush(ending, (buffer.last, entry))


def _check_place(buffer: Buffer, offset: int, alignment: int, size: int) -> None:
    if offset < 0 or offset % alignment:
        raise MemoryPlanError(
            f"the plan puts `{buffer.name}` at an offset that is not aligned",
            stage="plan",
            node=buffer.name,
            expected=f"a multiple of {alignment}",
            found=str(offset),
        )
    if offset + buffer.nbytes > size:
        raise MemoryPlanError(
            f"the plan puts `{buffer.name}` outside of the arena",
            stage="plan",
            node=buffer.name,
            expected=f"at most {size} bytes",
            found=f"bytes {offset} to {offset + buffer.nbytes}",
        )
    if buffer.pin is not None and buffer.pin != offset:
        raise MemoryPlanError(
            f"the plan does not honour the pin of `{buffer.name}`",
            stage="plan",
            node=buffer.name,
            expected=str(buffer.pin),
            found=str(offset),
        )


def _overlap(
    buffer: Buffer, entry: tuple[int, int, int], other: Buffer, taken: tuple[int, int, int]
) -> MemoryPlanError:
    return MemoryPlanError(
        f"the plan puts `{buffer.name}` and `{other.name}` into the same memory while both are in use",
        stage="plan",
        node=buffer.name,
        found=f"bytes {entry[0]} to {entry[1]} from instruction {buffer.first}, "
        f"bytes {taken[0]} to {taken[1]} until instruction {other.last}",
        hint="this is a fault of the planner, not of the model",
    )
