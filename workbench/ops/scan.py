"""Running sums, and sorting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, REALS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _cumsum(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for dim in (0, 1, -1):
        yield Sample((make(3, 4, 5), dim), label=f"dim {dim}")


def _distinct(make: Make, *sizes: int, dtype: torch.dtype) -> torch.Tensor:
    # Indices of equal elements are not fixed, so there are none.
    count = int(torch.tensor(sizes).prod())
    order = make(count, dtype=torch.float64).argsort()
    return order.reshape(sizes).to(dtype)


def _topk(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((_distinct(make, 4, 9, dtype=dtype), 3), label="largest of the last dimension")
    yield Sample((_distinct(make, 9, 4, dtype=dtype), 2, 0, False), label="smallest of the first")


def _sort(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((_distinct(make, 4, 9, dtype=dtype),), label="ascending")
    yield Sample((_distinct(make, 9, 4, dtype=dtype), 0, True), label="descending")


ENTRIES = [
    OperatorEntry(aten.cumsum.default, "scan", "(*s), dim -> (*s)", REALS, _cumsum),
    OperatorEntry(
        aten.topk.default,
        "sort",
        "(*s), k, dim -> s with s[dim] = k, and indices",
        (*FLOATS, torch.int64),
        _topk,
        exact=True,
    ),
    OperatorEntry(
        aten.sort.default, "sort", "(*s), dim -> (*s), and indices", (*FLOATS, torch.int64), _sort, exact=True
    ),
]
