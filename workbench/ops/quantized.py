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


def _quantize_computed(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    scale, zero = make(1, low=0.02, high=0.03, dtype=torch.float64), torch.tensor([3])
    for target, low, high in _TARGETS[:2]:
        yield Sample((make(3, 33), scale, zero, low, high, target), label=f"to {target}")


def _dequantize_computed(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    scale, zero = make(1, low=0.02, high=0.03, dtype=torch.float64), torch.tensor([3])
    limits = torch.iinfo(dtype)
    yield Sample(
        (make(3, 33, low=-8, high=8), scale, zero, limits.min, limits.max, dtype), label="per tensor"
    )


def _rows(make: Make, *sizes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and zero points of rows."""
    scales = make(*sizes, 1, low=0.01, high=0.05, dtype=torch.float64)
    return scales, torch.full_like(scales, -3, dtype=torch.int64)


def _quantize_rows(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for sizes in ((4,), (2, 3)):
        yield Sample((make(*sizes, 33), *_rows(make, *sizes), -128, 127, torch.int8), label=f"{sizes} rows")


def _dequantize_rows(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for sizes in ((4,), (2, 3)):
        value = make(*sizes, 33, low=-8, high=8)
        yield Sample((value, *_rows(make, *sizes), -128, 127, dtype, torch.float32), label=f"{sizes} rows")


def _groups(make: Make, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and zero points of groups in rows of 64 columns."""
    scales = make(5, 64 // size, low=0.1, high=0.5, dtype=torch.float32)
    return scales, torch.ones_like(scales, dtype=torch.int32)


def _quantize_groups(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for size in (16, 64):
        yield Sample((make(5, 64), *_groups(make, size), -8, 7, torch.int8, size), label=f"groups of {size}")


def _dequantize_groups(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for size in (16, 64):
        scales, zeros = _groups(make, size)
        for zero in (zeros, None):
            args = (make(5, 64, low=-8, high=8), scales, zero, -8, 7, dtype, size, torch.float32)
            yield Sample(args, label=f"groups of {size}")


def _choose(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 33), -128, 127, 1e-6, torch.int8), label="both signs")
    yield Sample((make(3, 33, low=1, high=2), 0, 255, 1e-6, torch.uint8), label="positive, to uint8")
    yield Sample((make(2, 3) * 0, -128, 127, 1e-6, torch.int8), label="zeros")


def _choose_rows(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for sizes in ((4, 33), (2, 3, 5), (7,)):
        yield Sample((make(*sizes), torch.int8), label=str(sizes))
    yield Sample((make(2, 3) * 0, torch.int8), label="zeros")


_SAME = "(*s) -> (*s)"
_ROWS = "(*s, n), (*s, 1), (*s, 1) -> (*s, n)"
_GROUPED = "(m, n), (m, n / group), (m, n / group)? -> (m, n)"
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
    OperatorEntry(
        quantized.quantize_per_tensor.tensor,
        "quantized",
        _SAME,
        (torch.float32,),
        _quantize_computed,
        exact=True,
    ),
    OperatorEntry(
        quantized.dequantize_per_tensor.tensor,
        "quantized",
        _SAME,
        (torch.int8, torch.uint8),
        _dequantize_computed,
    ),
    OperatorEntry(
        quantized.quantize_per_token.default, "quantized", _ROWS, (torch.float32,), _quantize_rows, exact=True
    ),
    OperatorEntry(
        quantized.dequantize_per_token.default, "quantized", _ROWS, (torch.int8,), _dequantize_rows
    ),
    OperatorEntry(
        quantized.quantize_per_channel_group.default,
        "quantized",
        _GROUPED,
        (torch.float32,),
        _quantize_groups,
        exact=True,
    ),
    OperatorEntry(
        quantized.dequantize_per_channel_group.default,
        "quantized",
        _GROUPED,
        (torch.int8,),
        _dequantize_groups,
    ),
    OperatorEntry(
        quantized.choose_qparams.tensor, "quantized", "(*s) -> (1), (1)", (torch.float32,), _choose
    ),
    OperatorEntry(
        quantized.choose_qparams_symmetric.tensor,
        "quantized",
        "(*s) -> (1), (1)",
        (torch.float32,),
        _choose,
    ),
    OperatorEntry(
        quantized.choose_qparams_per_token_asymmetric.default,
        "quantized",
        "(*s, n) -> (*s, 1), (*s, 1)",
        (torch.float32,),
        _choose_rows,
    ),
]
