"""Numbers for what can be removed from a graph, and which of it can only be removed together.

Each index of each dimension of each tensor is one *element*. An operator ties elements (channel 3 of a
convolution's output, row 3 of its weight, entry 3 of its bias) and fixes others (a softmax needs all indices
of its dimension). Elements that are tied, directly or through others, form a *unit*: it is removed as a whole
or not at all. The idea of removing dependent parts together is that of Fang et al., "DepGraph: Towards Any
Structural Pruning" (CVPR 2023); here the dependencies are between single indices, so that concatenation,
splitting, flattening and heads need no case of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Axes", "Elements", "Ids", "Reason"]

Ids = npt.NDArray[np.int64]
_NO_IDS: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Axes:
    """The elements of one tensor.

    Attributes:
        dims: For each dimension the numbers of its elements; None where its size is a symbol.
    """

    dims: tuple[Ids | None, ...]

    def __len__(self) -> int:
        return len(self.dims)

    def __getitem__(self, dim: int) -> Ids:
        """The elements of a dimension, which may be counted from the end; none of a symbolic one."""
        found = self.dims[dim]
        return _NO_IDS if found is None else found

    def size(self, dim: int) -> int | None:
        """The size of a dimension; None where it is a symbol."""
        found = self.dims[dim]
        return None if found is None else len(found)


@dataclass(frozen=True)
class Reason:
    """Why elements stay.

    Attributes:
        node: The node that needs all of them.
        text: In words.
        chosen: They could go if another dimension of the same reshape stayed.
    """

    node: str
    text: str
    chosen: bool = False


class Elements:
    """All elements of a program, what ties them, and what fixes them."""

    def __init__(self) -> None:
        self._count = 0
        self._left: list[Ids] = []
        self._right: list[Ids] = []
        self._fixed: list[tuple[Ids, int]] = []
        self.reasons: list[Reason] = []

    def new(self, sizes: Sequence[int | None]) -> Axes:
        """Elements for a tensor of these sizes; None stands for a symbolic size."""
        dims: list[Ids | None] = []
        for size in sizes:
            if size is None:
                dims.append(None)
                continue
            dims.append(np.arange(self._count, self._count + size, dtype=np.int64))
            self._count += size
        return Axes(tuple(dims))

    def tie(self, left: Ids, right: Ids) -> None:
        """Tie elements pairwise; the two have the same length, or one of them has length 1."""
        if len(left) and len(right):
            first, second = np.broadcast_arrays(left, right)
            self._left.append(first.ravel())
            self._right.append(second.ravel())

    def fix(self, ids: Ids, reason: Reason) -> None:
        """Let elements stay."""
        if len(ids):
            self._fixed.append((ids, len(self.reasons)))
            self.reasons.append(reason)

    def solve(self) -> tuple[Ids, npt.NDArray[np.int64]]:
        """The unit of each element, and why each unit stays.

        Returns:
            By element the number of its unit (that of its first element), and by number of a unit the index
            of the reason for which it stays, or -1 for a unit that can be removed. Reasons that were not
            chosen come before those that were.
        """
        units = np.arange(self._count, dtype=np.int64)
        if self._left:
            _join(units, np.concatenate(self._left), np.concatenate(self._right))
        why = np.full(self._count, -1, dtype=np.int64)
        for chosen in (True, False):
            for ids, reason in reversed(self._fixed):
                if self.reasons[reason].chosen is chosen:
                    why[units[ids]] = reason
        return units, why


def _join(units: Ids, left: Ids, right: Ids) -> None:
    """Give all elements that are tied the least number among them: hooking and pointer jumping."""
    while True:
        first, second = units[left], units[right]
        apart = first != second
        if not apart.any():
            return
        left, right, first, second = left[apart], right[apart], first[apart], second[apart]
        np.minimum.at(units, np.maximum(first, second), np.minimum(first, second))
        while True:
            jumped = units[units]
            if np.array_equal(jumped, units):
                break
            units[:] = jumped
