"""Operators that read or write at indices that are data."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import ALL, FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _indices(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _embedding(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(10, 33), torch.tensor([[1, 9, 0], [4, 4, 2]])), label="matrix of indices")
    yield Sample((make(10, 4), torch.tensor([3, 0], dtype=torch.int32)), label="32-bit indices")
    yield Sample((make(10, 4), torch.tensor(3)), label="one index")


def _index(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(5, 6, 7), [_indices(0, 4, 2)]), label="first dimension")
    yield Sample((make(5, 6, 7), [None, _indices(0, 5, -1)]), label="second dimension")
    yield Sample((make(5, 6, 7), [_indices(0, 1), _indices(2, 3)]), label="two adjacent dimensions")
    yield Sample((make(5, 6, 7), [_indices(0, 1), None, _indices(2, 3)]), label="two separate dimensions")
    yield Sample((make(5, 6), [_indices(0, 1).reshape(2, 1), _indices(2, 3)]), label="broadcast indices")


def _index_select(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for dim in (0, 1, -1):
        yield Sample((make(5, 6, 7), dim, _indices(0, 4, 2, 2)), label=f"dim {dim}")


def _gather(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 5), 1, torch.tensor([[0, 4], [1, 1], [2, 0]])), label="columns")
    yield Sample((make(4, 5), 0, torch.tensor([[0, 3, 2, 1, 0]])), label="rows")


def _scatter(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 5), 1, torch.tensor([[0, 4], [1, 2], [2, 0]]), make(3, 2)), label="columns")


def _scatter_value(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 5), 1, torch.tensor([[0, 4], [1, 2], [2, 0]]), 1), label="a number")


def _scatter_add(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 5), 1, torch.tensor([[0, 0], [1, 1], [2, 0]]), make(3, 2)), label="repeated")


def _index_put(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(5, 6), [_indices(0, 2)], make(2, 6)), label="rows")
    yield Sample((make(5, 6), [None, _indices(0, 2)], make(5, 2)), label="columns")
    yield Sample((make(5, 6), [_indices(0, 0)], make(2, 6), True), label="accumulate")


def _select_scatter(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 5), make(5), 0, 2), label="a row")


def _slice_scatter(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(6, 5), make(2, 5), 0, 1, 5, 2), label="every other row")


def _triangle(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for diagonal in (0, 1, -2):
        yield Sample((make(3, 5, 4), diagonal), label=f"diagonal {diagonal}")


ENTRIES = [
    OperatorEntry(
        aten.embedding.default, "embedding", "(v, d), (*i) -> (*i, d)", ALL, _embedding, exact=True
    ),
    OperatorEntry(
        aten.index.Tensor,
        "index",
        "(*s), [(*i)?] -> s with indexed dims replaced by i",
        ALL,
        _index,
        exact=True,
    ),
    OperatorEntry(
        aten.index_select.default,
        "index",
        "(*s), dim, (n) -> s with s[dim] = n",
        ALL,
        _index_select,
        exact=True,
    ),
    OperatorEntry(aten.gather.default, "index", "(*s), dim, (*i) -> (*i)", ALL, _gather, exact=True),
    OperatorEntry(aten.scatter.src, "index", "(*s), dim, (*i), (*i) -> (*s)", ALL, _scatter, exact=True),
    OperatorEntry(
        aten.scatter.value, "index", "(*s), dim, (*i), number -> (*s)", ALL, _scatter_value, exact=True
    ),
    OperatorEntry(aten.scatter_add.default, "index", "(*s), dim, (*i), (*i) -> (*s)", FLOATS, _scatter_add),
    OperatorEntry(aten.index_put.default, "index", "(*s), [(*i)?], (*v) -> (*s)", FLOATS, _index_put),
    OperatorEntry(
        aten.select_scatter.default,
        "index",
        "(*s), (*s without dim) -> (*s)",
        ALL,
        _select_scatter,
        exact=True,
    ),
    OperatorEntry(
        aten.slice_scatter.default, "index", "(*s), slice of s -> (*s)", ALL, _slice_scatter, exact=True
    ),
    OperatorEntry(aten.tril.default, "index", "(*s, m, n) -> (*s, m, n)", ALL, _triangle, exact=True),
    OperatorEntry(aten.triu.default, "index", "(*s, m, n) -> (*s, m, n)", ALL, _triangle, exact=True),
]
