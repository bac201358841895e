"""The range with the least squared error."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from workbench.errors import QuantizationError
from workbench.quantization.observers.base import Observer
from workbench.quantization.observers.parameters import affine, error_of_ranges, symmetric

__all__ = ["MeanSquaredError"]


class MeanSquaredError(Observer):
    """Represents the range whose quantization has the least squared error over the histogram.

    Both ends are shrunk together over a grid, then each on its own round the best; where a point of the grid
    is only as good as the whole range, the whole range stays.

    Args:
        steps: Points of each grid.
        smallest: The smallest share of the range that is tried.
        **options: As of `Observer`.
    """

    kind: ClassVar[str] = "mse"

    def __init__(self, steps: int = 48, smallest: float = 0.15, **options: Any) -> None:
        super().__init__(**options)
        if self.counts is None or steps < 2 or not 0 < smallest < 1:
            raise QuantizationError(
                "the search for the best range is set up wrongly",
                expected="steps >= 2, 0 < smallest < 1, histogram=True",
                found=f"steps={steps}, smallest={smallest}, histogram={self.counts is not None}",
            )
        self.steps, self.smallest = steps, smallest

    def range(self) -> tuple[float, float]:
        """The best range of the grids."""
        low, high = min(self.min_val, 0.0), max(self.max_val, 0.0)
        if low == high:
            return self.min_val, self.max_val
        grid = np.linspace(self.smallest, 1.0, self.steps)
        low, high = self._best(grid * low, grid * high)
        fine = np.linspace(0.7, 1.3, self.steps // 2 | 1)  # odd, so that it holds 1
        whole = min(self.min_val, 0.0), max(self.max_val, 0.0)
        if not self.symmetric:
            for _ in range(2):
                low, high = self._best(np.maximum(fine * low, whole[0]), np.full(fine.shape, high))
                low, high = self._best(np.full(fine.shape, low), np.minimum(fine * high, whole[1]))
        return low, high

    def _best(self, low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> tuple[float, float]:
        assert self.counts is not None
        used = np.flatnonzero(self.counts.counts)
        part = slice(int(used[0]), int(used[-1]) + 1)
        convert = symmetric if self.symmetric else affine
        scale, zero = convert(low, high, self.quant_min, self.quant_max, self.eps)
        errors = error_of_ranges(
            self.counts.centers[part],
            self.counts.counts[part],
            scale,
            zero,
            (self.quant_min, self.quant_max),
        )
        # The widest of those that are best up to rounding.
        near = np.flatnonzero(errors <= errors.min() * (1 + 1e-9))
        chosen = near[np.argmax((high - low)[near])]
        return float(low[chosen]), float(high[chosen])
