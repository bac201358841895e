"""Matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_SIZES = ((1, 1, 1), (1, 64, 10), (5, 7, 3), (17, 33, 65), (64, 64, 64), (3, 0, 2))


def _mm(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for m, k, n in _SIZES:
        yield Sample((make(m, k), make(k, n)), label=f"{m} x {k} x {n}")


def _bmm(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for m, k, n in _SIZES:
        yield Sample((make(3, m, k), make(3, k, n)), label=f"3 of {m} x {k} x {n}")


def _addmm(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for m, k, n in _SIZES:
        yield Sample((make(n), make(m, k), make(k, n)), label=f"{m} x {k} x {n}")
    yield Sample((make(5, 3), make(5, 7), make(7, 3)), {"beta": 0.5, "alpha": 2}, "alpha and beta")
    yield Sample((make(5, 1), make(5, 7), make(7, 3)), label="column bias")


ENTRIES = [
    OperatorEntry(aten.mm.default, "matmul", "(m, k), (k, n) -> (m, n)", FLOATS, _mm),
    OperatorEntry(aten.bmm.default, "matmul", "(b, m, k), (b, k, n) -> (b, m, n)", FLOATS, _bmm),
    OperatorEntry(aten.addmm.default, "matmul", "(*c), (m, k), (k, n) -> (m, n)", FLOATS, _addmm),
]
