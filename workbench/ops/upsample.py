"""Resampling of images."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_RULE = "(n, c, h, w), (a, b) -> (n, c, a, b)"


def _nearest(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 3, 4, 5), [8, 10], None), label="twice")
    yield Sample((make(2, 3, 4, 5), None, [1.5, 2.0]), label="by factors")


def _bilinear(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 3, 4, 5), [8, 10], False, None), label="twice")
    yield Sample((make(2, 3, 4, 5), [7, 3], True, None), label="aligned corners")
    yield Sample((make(2, 3, 4, 5), None, False, [1.5, 2.0]), label="by factors")


ENTRIES = [
    OperatorEntry(aten.upsample_nearest2d.vec, "upsample", _RULE, FLOATS, _nearest, exact=True),
    OperatorEntry(aten.upsample_bilinear2d.vec, "upsample", _RULE, FLOATS, _bilinear),
]
