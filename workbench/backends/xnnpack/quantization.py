"""How the integers of a value stand for numbers: `number = scale * (integer - zero_point)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = [
    "PerChannel",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "Quantization",
    "dequantized",
    "is_usable",
    "permuted",
    "rounded",
]


@dataclass(frozen=True)
class PerTensor:
    """One scale and zero point for all numbers."""

    scale: float
    zero_point: int = 0

    def __str__(self) -> str:
        return f"scale {self.scale:g}, zero point {self.zero_point}"


@dataclass(frozen=True, eq=False)
class PerChannel:
    """A scale for each index of one dimension; the zero points are 0.

    Attributes:
        scales: float32, (channels).
        axis: The dimension.
        bits: 8 or 4.
    """

    scales: torch.Tensor
    axis: int
    bits: int = 8

    def __str__(self) -> str:
        return f"{self.scales.numel()} scales along dimension {self.axis}, {self.bits} bits"


@dataclass(frozen=True, eq=False)
class PerGroup:
    """A scale for each group of neighbours in each row of a matrix of 4 bits; the zero points are 0.

    Attributes:
        scales: float32, (rows, groups).
        size: Numbers in a group.
        axis: The dimension of the rows.
    """

    scales: torch.Tensor
    size: int
    axis: int = 0

    def __str__(self) -> str:
        return f"{self.scales.numel()} scales of groups of {self.size}, 4 bits"


@dataclass(frozen=True)
class PerRow:
    """Scales and zero points found at run time, a pair for each index of the leading dimensions.

    Attributes:
        dims: Trailing dimensions that share a pair.
    """

    dims: int

    def __str__(self) -> str:
        return "scales found at run time"


Quantization = PerTensor | PerChannel | PerGroup | PerRow


def permuted(quantization: Quantization | None, order: Sequence[int]) -> Quantization | None:
    """The quantization of a value whose dimensions are put into another order."""
    if isinstance(quantization, PerChannel):
        return PerChannel(quantization.scales, list(order).index(quantization.axis), quantization.bits)
    if isinstance(quantization, PerGroup):
        return PerGroup(quantization.scales, quantization.size, list(order).index(quantization.axis))
    return quantization


def dequantized(integers: torch.Tensor, quantization: Quantization) -> torch.Tensor:
    """The numbers of a constant, in float32."""
    numbers = integers.float()
    if isinstance(quantization, PerTensor):
        return (numbers - quantization.zero_point) * quantization.scale
    if isinstance(quantization, PerChannel):
        spread = [1] * integers.dim()
        spread[quantization.axis] = -1
        return numbers * quantization.scales.reshape(spread)
    assert isinstance(quantization, PerGroup)
    scales = quantization.scales.repeat_interleave(quantization.size, 1)
    return numbers * (scales if quantization.axis == 0 else scales.t())


def rounded(numbers: torch.Tensor, scale: Any, zero_point: int, dtype: torch.dtype) -> torch.Tensor:
    """The integers that stand for numbers; half to even, saturated."""
    limits = torch.iinfo(dtype)
    integers: torch.Tensor = (numbers.double() / scale).round() + zero_point
    return integers.clamp(limits.min, limits.max).to(dtype)


def is_usable(scale: float) -> bool:
    """Whether a scale is one that the library takes: finite, normal, positive."""
    return math.isfinite(scale) and scale >= torch.finfo(torch.float32).smallest_normal
