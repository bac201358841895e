"""A histogram whose range grows with its data, without losing or smearing a count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

__all__ = ["Counts"]

BINS = 2048


class Counts:
    """Counts of values in equal bins.

    The width of a bin is a power of two and bins begin at its multiples, so that a wider range joins whole
    bins: the order in which data comes changes nothing, but for values on the very edge of a bin.

    Attributes:
        low: Where the first bin begins.
        width: Width of a bin, a power of two.
        counts: Values per bin, (2048,), int64.
    """

    def __init__(self) -> None:
        self.low = 0.0
        self.width = 0.0
        self.counts = np.zeros(BINS, np.int64)
        self._min, self._max = math.inf, -math.inf

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    @property
    def edges(self) -> np.ndarray[Any, Any]:
        """The ends of the bins, (2049,)."""
        return self.low + self.width * np.arange(BINS + 1)

    @property
    def centers(self) -> np.ndarray[Any, Any]:
        """The middles of the bins, (2048,)."""
        return self.low + self.width * (np.arange(BINS) + 0.5)

    def add(self, values: torch.Tensor, low: float, high: float) -> None:
        """Count values, all of which lie in [low, high] and are finite."""
        self._cover(low, high)
        # `histc` leaves out what lies outside, and puts the upper end into the last bin.
        top = self.low + self.width * BINS
        flat = values.detach().reshape(-1)
        if flat.dtype not in (torch.float32, torch.float64):
            flat = flat.float()
        found = torch.histc(flat, BINS, self.low, top).to(torch.int64).numpy()
        # Above 2^24 equal values a float32 counter would stand still.
        if flat.numel() > 1 << 24:
            found = np.zeros(BINS, np.int64)
            for part in torch.split(flat, 1 << 24):
                found += torch.histc(part, BINS, self.low, top).to(torch.int64).numpy()
        self.counts += found

    def _cover(self, low: float, high: float) -> None:
        """Widen the bins until [low, high] lies in them, with room for the rounding of their ends."""
        self._min, self._max = low, high = min(low, self._min), max(high, self._max)
        if self.width and self.low <= low and high < self.low + self.width * BINS:
            return
        span = max(high - low, abs(high) * 1e-6, abs(low) * 1e-6, 1e-30)
        width = max(self.width, 2.0 ** math.ceil(math.log2(span / (BINS - 2))))
        first = math.floor(low / width) * width
        if self.width:
            factor = round(width / self.width)
            offset = round((self.low - first) / self.width)
            used = np.flatnonzero(self.counts)
            moved = np.zeros(BINS, np.int64)
            np.add.at(moved, (used + offset) // factor, self.counts[used])
            self.counts = moved
        self.low, self.width = first, width

    def quantile(self, share: float) -> float:
        """The value below which this share of the counts lies, linear within a bin."""
        running = np.cumsum(self.counts)
        wanted = share * running[-1]
        index = int(np.searchsorted(running, wanted, side="left"))
        index = min(index, BINS - 1)
        before = running[index - 1] if index else 0
        inside = (wanted - before) / max(int(self.counts[index]), 1)
        return float(self.low + self.width * (index + min(max(inside, 0.0), 1.0)))

    def clipped(self, low: float, high: float) -> float:
        """The share of the values that lie outside [low, high], to the width of a bin."""
        total = self.total
        if not total:
            return 0.0
        outside = (self.edges[1:] <= low) | (self.edges[:-1] >= high)
        return float(self.counts[outside].sum() / total)

    def state(self) -> dict[str, Any]:
        """The content, for `restore`."""
        return {
            "low": self.low,
            "width": self.width,
            "min": self._min,
            "max": self._max,
            "counts": self.counts.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content that `state` gave."""
        self.low, self.width = float(state["low"]), float(state["width"])
        self._min, self._max = float(state["min"]), float(state["max"])
        self.counts = np.asarray(state["counts"], np.int64).copy()
