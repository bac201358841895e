"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_RULE = "(n, c, h, w) -> (n, c, *(size + 2 pad - dilation (k - 1) - 1) / stride + 1), floor or ceil"


def _maximum(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 5, 9, 11), [2, 2]), label="window 2")
    yield Sample((make(2, 5, 9, 11), [3, 3], [2, 2], [1, 1]), label="stride 2, padding 1")
    yield Sample((make(2, 5, 9, 11), [3, 2], [2, 1], [1, 0], [2, 1]), label="dilation")
    yield Sample((make(2, 5, 9, 11), [2, 2], [2, 2], [0, 0], [1, 1], True), label="ceil mode")
    yield Sample((make(2, 5, 8, 8, channels_last=True), [2, 2]), label="channels-last")


def _average(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 5, 9, 11), [2, 2]), label="window 2")
    yield Sample((make(2, 5, 9, 11), [3, 3], [2, 2], [1, 1]), label="padding counted")
    yield Sample((make(2, 5, 9, 11), [3, 3], [2, 2], [1, 1], False, False), label="padding not counted")
    yield Sample((make(2, 5, 9, 11), [2, 2], [2, 2], [0, 0], True), label="ceil mode")
    yield Sample((make(2, 5, 9, 11), [2, 2], [2, 2], [0, 0], False, True, 3), label="divisor")


def _adaptive(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for size in ([1, 1], [3, 5], [9, 11]):
        yield Sample((make(2, 5, 9, 11), size), label=f"to {size}")


ENTRIES = [
    OperatorEntry(aten.max_pool2d_with_indices.default, "pooling", _RULE, FLOATS, _maximum, exact=True),
    OperatorEntry(aten.avg_pool2d.default, "pooling", _RULE, FLOATS, _average),
    OperatorEntry(
        aten._adaptive_avg_pool2d.default,
        "pooling",
        "(n, c, h, w), (a, b) -> (n, c, a, b)",
        FLOATS,
        _adaptive,
    ),
]
