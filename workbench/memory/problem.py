"""The problem that a planner solves: buffers with lifetimes, of which those alive at once may not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Buffer", "Problem", "align"]


@dataclass(slots=True)
class Buffer:
    """Memory that one tensor, and all views of it, use.

    Attributes:
        name: What messages call it.
        nbytes: Its size, in bytes.
        first: The first moment at which it is in use.
        last: The last one, included.
        arena: Where it goes, from 1.
        pin: An offset that the user chose; None leaves it to the planner.
        handles: Source handles of the tensor.
    """

    name: str
    nbytes: int
    first: int
    last: int
    arena: int = 1
    pin: int | None = None
    handles: frozenset[int] = frozenset()


class Problem:
    """The buffers of one arena, in the form that planners need.

    Args:
        buffers: The buffers; sizes are rounded up to the alignment.
        alignment: Of every offset, in bytes.

    Attributes:
        sizes: Rounded sizes.
        first: First moments.
        last: Last moments, included.
        pins: By index, offsets that are given.
    """

    def __init__(self, buffers: Sequence[Buffer], alignment: int = 16) -> None:
        self.buffers = buffers
        self.alignment = alignment
        self.sizes = [align(item.nbytes, alignment) for item in buffers]
        self.first = [item.first for item in buffers]
        self.last = [item.last for item in buffers]
        self.pins = {index: item.pin for index, item in enumerate(buffers) if item.pin is not None}

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def load(self) -> list[tuple[int, int]]:
        """Moments at which what is alive changes upwards, each with the bytes that are alive then."""
        changes: dict[int, int] = {}
        for size, first, last in zip(self.sizes, self.first, self.last, strict=True):
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
        alive = 0
        found = []
        for moment in sorted(changes):
            alive += changes[moment]
            found.append((moment, alive))
        return found

    @cached_property
    def lower_bound(self) -> int:
        """Bytes that are alive at once at the worst moment; no plan takes less. Pins can force more."""
        pinned = (offset + self.sizes[index] for index, offset in self.pins.items())
        return max(max((alive for _, alive in self.load), default=0), max(pinned, default=0))

    @cached_property
    def neighbors(self) -> list[list[int]]:
        """For each buffer those that are in use at a common moment, itself not among them.

        O(n log n) plus the number of pairs.
        """
        order = sorted(range(len(self)), key=lambda i: (self.first[i], i))
        found: list[list[int]] = [[] for _ in order]
        alive: list[int] = []
        last = self.last
        for index in order:
            if not self.sizes[index]:
                continue
            start = self.first[index]
            alive = [other for other in alive if last[other] >= start]
            own = found[index]
            for other in alive:
                own.append(other)
                found[other].append(index)
            alive.append(index)
        return found

    def peak(self, offsets: Sequence[int]) -> int:
        """Bytes that a plan takes."""
        return max((o + s for o, s in zip(offsets, self.sizes, strict=True) if s), default=0)


def align(value: int, alignment: int) -> int:
    """The next multiple of a power of two."""
    return (value + alignment - 1) & -alignment
