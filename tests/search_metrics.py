"""Metrics that workers import by name."""

from __future__ import annotations

import os
from typing import Any


def negative_error(outputs: list[Any], target: Any) -> float:
    """Minus the largest difference from the target."""
    return -float((outputs[0] - target).abs().max())


def refuses_numbers_of_eight_bits(outputs: list[Any], target: Any) -> float:
    """Raises for every program that does not answer as in floats."""
    import torch

    if not torch.allclose(outputs[0], target, rtol=1e-5, atol=1e-6):
        raise ValueError("these outputs are rounded")
    return 1.0


def square(value: int) -> int:
    """The square."""
    return value * value


def kills(value: int) -> int:
    """Ends the process for 2, and squares all else."""
    if value == 2:
        os._exit(7)
    return value * value
