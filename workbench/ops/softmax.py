"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for dim in (-1, 0, 1):
        yield Sample((make(3, 5, 33, low=-8, high=8), dim, False), label=f"dim {dim}")
    yield Sample((make(1, 1), -1, False), label="one element")
    yield Sample((make(4, 7, low=80, high=90), -1, False), label="large values")


ENTRIES = [
    OperatorEntry(aten._softmax.default, "softmax", "(*s) -> (*s)", FLOATS, _draw),
    OperatorEntry(aten._log_softmax.default, "softmax", "(*s) -> (*s)", FLOATS, _draw),
]
