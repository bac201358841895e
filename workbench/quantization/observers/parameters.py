"""From ranges to scales and zero points: `q = clamp(round(x / scale) + zero_point, quant_min, quant_max)`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["affine", "error_of_ranges", "symmetric"]

Array = Any  # numpy arrays of any number type


def affine(
    low: Array, high: Array, quant_min: int, quant_max: int, eps: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scales (float32 values) and zero points (int64) with which [low, high] and zero are represented.

    Args:
        low: Lower ends, (c,).
        high: Upper ends, (c,).
        quant_min: Smallest number.
        quant_max: Largest number.
        eps: Smallest scale.
    """
    lower = np.minimum(np.asarray(low, np.float64), 0.0)
    upper = np.maximum(np.asarray(high, np.float64), 0.0)
    scale = np.maximum((upper - lower) / (quant_max - quant_min), eps).astype(np.float32).astype(np.float64)
    zero = np.rint(quant_min - lower / scale)
    return scale, np.clip(zero, quant_min, quant_max).astype(np.int64)


def symmetric(
    low: Array, high: Array, quant_min: int, quant_max: int, eps: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """As `affine` with zero points that stand for zero: 0, or the middle of an unsigned range."""
    most = np.maximum(np.abs(np.asarray(low, np.float64)), np.abs(np.asarray(high, np.float64)))
    scale = np.maximum(most / ((quant_max - quant_min) / 2), eps).astype(np.float32).astype(np.float64)
    zero = 0 if quant_min < 0 else (quant_min + quant_max + 1) // 2
    return scale, np.full(scale.shape, zero, np.int64)


def error_of_ranges(
    centers: np.ndarray[Any, Any],
    counts: np.ndarray[Any, Any],
    scale: np.ndarray[Any, Any],
    zero: np.ndarray[Any, Any],
    limits: tuple[int, int],
) -> np.ndarray[Any, Any]:
    """The summed squared error of a histogram under several choices of scale and zero point, (k,)."""
    inverse = (1.0 / scale)[:, None].astype(np.float32)
    zeros = zero[:, None].astype(np.float32)
    numbers = centers[None, :].astype(np.float32) * inverse
    np.rint(numbers, out=numbers)
    np.clip(numbers, limits[0] - zeros, limits[1] - zeros, out=numbers)
    numbers *= scale[:, None].astype(np.float32)
    numbers -= centers[None, :].astype(np.float32)
    np.square(numbers, out=numbers)
    found: np.ndarray[Any, Any] = numbers.astype(np.float64) @ counts.astype(np.float64)
    return found
