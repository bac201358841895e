"""Padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import ALL, FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_RULE = "(*s), (before, after) from the last dim on -> (*(s + before + after))"


def _constant(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), [1, 2], 1), label="last dimension")
    yield Sample((make(2, 3, 4, 5), [1, 2, 0, 3], 0), label="two dimensions")
    yield Sample((make(3, 4), [-1, 2], 0), label="cropped")


def _two(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 3, 4, 5), [1, 2, 1, 0]), label="image")


def _one(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 3, 5), [1, 2]), label="sequence")


ENTRIES = [
    OperatorEntry(aten.constant_pad_nd.default, "pad", _RULE, ALL, _constant, exact=True),
    OperatorEntry(aten.reflection_pad1d.default, "pad", _RULE, FLOATS, _one, exact=True),
    OperatorEntry(aten.reflection_pad2d.default, "pad", _RULE, FLOATS, _two, exact=True),
    OperatorEntry(aten.replication_pad1d.default, "pad", _RULE, FLOATS, _one, exact=True),
    OperatorEntry(aten.replication_pad2d.default, "pad", _RULE, FLOATS, _two, exact=True),
]
