"""Conversion between floats and affine quantized integers: `q = clamp(round(x / scale) + zero_point)`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators

from workbench.ops.entry import Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

quantized = torch.ops.quantized_decomposed
_TARGETS = ((torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int32, -(2**31), 2**31 - 1))


def _quantize(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for target, low, high in _TARGETS:
        yield Sample((make(3, 33), 0.02, 3, low, high, target), label=f"to {target}")


def _dequantize(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    limits = torch.iinfo(dtype)
    yield Sample((make(3, 33, low=-8, high=8), 0.02, 3, limits.min, limits.max, dtype), label="per tensor")


def _quantize_channels(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for axis, channels in ((0, 3), (1, 33)):
        scales = make(channels, low=0.01, high=0.1, dtype=torch.float64)
        zeros = torch.zeros(channels, dtype=torch.int64)
        yield Sample((make(3, 33), scales, zeros, axis, -128, 127, torch.int8), label=f"axis {axis}")


def _dequantize_channels(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for axis, channels in ((0, 3), (1, 33)):
        scales = make(channels, low=0.01, high=0.1, dtype=torch.float64)
        zeros = torch.zeros(channels, dtype=torch.int64)
        yield Sample((make(3, 33), scales, zeros, axis, -128, 127, dtype), label=f"axis {axis}")


_SAME = "(*s) -> (*s)"
_CHANNELS = "(*s), (s[axis]), (s[axis])?, axis -> (*s)"

ENTRIES = [
    OperatorEntry(
        quantized.quantize_per_tensor.default, "quantized", _SAME, (torch.float32,), _quantize, exact=True
    ),
    OperatorEntry(
        quantized.dequantize_per_tensor.default,
        "quantized",
        _SAME,
        (torch.int8, torch.uint8, torch.int32),
        _dequantize,
    ),
    OperatorEntry(
        quantized.quantize_per_channel.default,
        "quantized",
        _CHANNELS,
        (torch.float32,),
        _quantize_channels,
        exact=True,
    ),
    OperatorEntry(
        quantized.dequantize_per_channel.default, "quantized", _CHANNELS, (torch.int8,), _dequantize_channels
    ),
]
