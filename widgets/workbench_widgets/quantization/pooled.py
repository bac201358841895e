"""Histograms and channels, brought to a number that can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BINS", "CHANNELS", "Channels", "Histogram", "channels_of", "histogram_of"]

Doubles = npt.NDArray[np.float64]

BINS, CHANNELS = 128, 2048


@dataclass(frozen=True)
class Histogram:
    """Counts of equal bins.

    Attributes:
        counts: By bin; empty where nothing was counted.
        low: Where the first bin begins.
        high: Where the last one ends.
    """

    counts: Doubles
    low: float
    high: float


@dataclass(frozen=True)
class Channels:
    """Extremes of each channel, or of runs of channels where there are very many.

    Attributes:
        low: The smallest number.
        high: The largest number.
        scale: The scale; the largest of a run.
        count: How many channels there are.
        worst: Place of the one that is served worst; -1 where there are none.
        why: In which way.
        own: They have scales of their own.
    """

    low: Doubles
    high: Doubles
    scale: Doubles
    count: int
    worst: int
    why: str
    own: bool


def histogram_of(report: Any) -> Histogram:
    """The histogram of an observer's report without empty ends, in at most 128 bins; no count is lost."""
    if report is None or report.counts is None or not np.any(report.counts):
        return Histogram(np.zeros(0), 0.0, 0.0)
    counts, edges = np.asarray(report.counts, np.float64), np.asarray(report.edges, np.float64)
    filled = np.flatnonzero(counts)
    first, last = int(filled[0]), int(filled[-1]) + 1
    factor = -(-(last - first) // BINS)
    width = (edges[-1] - edges[0]) / len(counts)
    held = counts[first:last]
    held = np.concatenate([held, np.zeros(-len(held) % factor)])
    pooled = held.reshape(-1, factor).sum(1)
    low = float(edges[first])
    return Histogram(pooled, low, low + float(width) * factor * len(pooled))


def channels_of(report: Any) -> Channels:
    """The channels of an observer's report, in at most 2048 entries, with the worst one."""
    none = np.zeros(0)
    if report is None or report.channel_min is None:
        return Channels(none, none, none, 0, -1, "", False)
    low, high = (
        np.asarray(item, np.float64).reshape(-1) for item in (report.channel_min, report.channel_max)
    )
    scales = np.asarray(report.scale, np.float64).reshape(-1)
    own = len(scales) == len(low) and len(scales) > 1
    scale = scales if own else np.full(len(low), scales[0] if len(scales) else np.nan)
    worst, why = _worst(low, high, scale, own)
    count = len(low)
    step = -(-count // CHANNELS)
    if step > 1:
        starts = np.arange(0, count, step)
        low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        scale, worst = np.maximum.reduceat(scale, starts), worst // step if worst >= 0 else worst
    return Channels(low, high, scale, count, worst, why, own)


def _worst(low: Doubles, high: Doubles, scale: Doubles, own: bool) -> tuple[int, str]:
    """With one scale for all, the channel with the fewest steps; with scales of their own, the widest one."""
    if own:
        place = int(np.argmax(scale))
        usual = float(np.median(scale))
        if usual <= 0 or scale[place] <= usual:
            return -1, ""
        return place, f"its scale is {scale[place] / usual:.3g} times the median of all"
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = (high - low) / scale
    # A channel of one value has nothing that could be lost in steps.
    steps = np.where(np.isfinite(steps) & (high > low), steps, np.inf)
    if len(steps) < 2 or not np.isfinite(steps).any():
        return -1, ""
    place = int(np.argmin(steps))
    return place, f"its values spread over {steps[place] + 1:.3g} integers"
