"""Averages of the extremes of the tensors that were seen."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from workbench.quantization.observers.base import Observer

__all__ = ["MovingAverage"]


class MovingAverage(Observer):
    """Represents the exponentially averaged extremes: a single odd sample moves the range a little only.

    Args:
        averaging_constant: Weight of the newest tensor, from 0 to 1.
        **options: As of `Observer`.
    """

    kind: ClassVar[str] = "moving_average"
    _STATE = (*Observer._STATE, "low", "high")

    def __init__(self, averaging_constant: float = 0.1, **options: Any) -> None:
        super().__init__(**options)
        self.averaging_constant = averaging_constant
        self.low: float | None = None
        self.high: float | None = None

    def observe(self, x: torch.Tensor, low: float, high: float) -> None:
        """Average the extremes."""
        if self.low is None or self.high is None:
            self.low, self.high = low, high
        else:
            self.low += self.averaging_constant * (low - self.low)
            self.high += self.averaging_constant * (high - self.high)

    def range(self) -> tuple[float, float]:
        """The averaged extremes."""
        assert self.low is not None and self.high is not None
        return self.low, self.high
