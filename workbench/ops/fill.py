"""Tensors made of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import ALL, REALS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _full(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample(([2, 3], 1), {"dtype": dtype}, "matrix")
    yield Sample(([], 0), {"dtype": dtype}, "scalar")


def _full_like(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 3), 1), label="matrix")


def _arange(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((0, 7, 1), {"dtype": dtype}, "up")
    yield Sample((9, 1, -2), {"dtype": dtype}, "down")


def _scalar_tensor(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((1,), {"dtype": dtype}, "number")


ENTRIES = [
    OperatorEntry(aten.full.default, "fill", "sizes s, number -> (*s)", ALL, _full, exact=True),
    OperatorEntry(aten.full_like.default, "fill", "(*s), number -> (*s)", ALL, _full_like, exact=True),
    OperatorEntry(
        aten.arange.start_step,
        "fill",
        "start, end, step -> (ceil((end - start) / step))",
        REALS,
        _arange,
        exact=True,
    ),
    OperatorEntry(aten.scalar_tensor.default, "fill", "number -> ()", ALL, _scalar_tensor, exact=True),
]
