"""All but a fixed share of the values that were seen."""

from __future__ import annotations

from typing import Any, ClassVar

from workbench.errors import QuantizationError
from workbench.quantization.observers.base import Observer

__all__ = ["Percentile"]


class Percentile(Observer):
    """Represents the values between two percentiles.

    Args:
        percentile: The upper one, above 50 and at most 100; the lower one lies as far from 0.
        **options: As of `Observer`.

    Raises:
        QuantizationError: The percentile is out of range.
    """

    kind: ClassVar[str] = "percentile"

    def __init__(self, percentile: float = 99.99, **options: Any) -> None:
        super().__init__(**options)
        if not 50 < percentile <= 100 or self.counts is None:
            raise QuantizationError(
                "the percentile is out of range" if self.counts is not None else "percentiles need counts",
                expected="above 50, at most 100, with histogram=True",
                found=str(percentile),
            )
        self.percentile = percentile

    def range(self) -> tuple[float, float]:
        """The two percentiles, within what was seen."""
        assert self.counts is not None
        share = self.percentile / 100
        low = max(self.counts.quantile(1 - share), self.min_val)
        high = min(self.counts.quantile(share), self.max_val)
        return min(low, self.max_val), max(high, self.min_val)
