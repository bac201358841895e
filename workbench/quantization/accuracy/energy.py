"""Signal and noise, added up over samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Energy", "decibels", "squares"]


@dataclass
class Energy:
    """Sums of squares in double precision.

    Attributes:
        signal: Of the reference.
        noise: Of the difference.
    """

    signal: float = 0.0
    noise: float = 0.0

    def add(self, reference: Any, value: Any) -> None:
        """Add one tensor and its reference."""
        if not isinstance(reference, torch.Tensor) or not reference.is_floating_point():
            return
        self.signal += squares(reference)
        self.noise += 0.0 if value is reference else squares(reference - value)

    @property
    def db(self) -> float:
        """Signal to noise ratio in dB; infinite without noise."""
        return decibels(self.signal, self.noise)


def squares(tensor: torch.Tensor) -> float:
    """The sum of the squares, added up in double precision."""
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) ** 2


def decibels(signal: float, noise: float) -> float:
    """Their ratio in dB: infinite without noise, minus infinity without signal."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
