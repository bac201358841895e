"""The numbers of a run: per row over all executions, and of whole executions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.inspector import EventBatch, Trace
from workbench.inspector.totals import RowKey, Statistics, Totals
from workbench.inspector.trace import Kind

__all__ = ["History", "Measured", "complete", "measure", "percentiles"]

_HISTORY = 4000

Doubles = npt.NDArray[np.float64]


class History:
    """The durations of all executions, however many."""

    def __init__(self) -> None:
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._durations: list[Doubles] = []

    def add(self, numbers: npt.NDArray[np.int64], durations: Doubles) -> None:
        """Take in executions, in order."""
        if len(numbers):
            self._numbers.append(numbers)
            self._durations.append(durations)

    @property
    def all(self) -> tuple[npt.NDArray[np.int64], Doubles]:
        """Numbers and durations, ms."""
        if not self._numbers:
            return np.zeros(0, np.int64), np.zeros(0)
        if len(self._numbers) > 1:
            self._numbers = [np.concatenate(self._numbers)]
            self._durations = [np.concatenate(self._durations)]
        return self._numbers[0], self._durations[0]

    def shown(self, most: int = _HISTORY) -> tuple[npt.NDArray[np.int64], Doubles]:
        """At most so many of them: of each stretch the slowest, which must not get lost, and the median."""
        numbers, durations = self.all
        if len(numbers) <= most:
            return numbers, durations
        stretch = -(-2 * len(numbers) // most)
        kept: set[int] = set()
        for start in range(0, len(numbers), stretch):
            part = durations[start : start + stretch]
            kept.add(start + int(part.argmax()))
            kept.add(start + int(np.argpartition(part, len(part) // 2)[len(part) // 2]))
        order = np.array(sorted(kept))
        return numbers[order], durations[order]


@dataclass
class Measured:
    """What a trace says.

    Attributes:
        keys: The rows.
        statistics: Over all executions.
        p10, median, p90: Of the executions whose events are kept; NaN for a row that is not among them.
        executions: How many are complete.
        kept: How many percentiles are of.
        history: Their durations.
    """

    keys: list[RowKey] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    p10: Doubles = field(default_factory=lambda: np.zeros(0))
    median: Doubles = field(default_factory=lambda: np.zeros(0))
    p90: Doubles = field(default_factory=lambda: np.zeros(0))
    executions: int = 0
    kept: int = 0
    history: History = field(default_factory=History)


def complete(trace: Trace) -> EventBatch:
    """The kept events, without the execution whose beginning was forgotten."""
    batch = trace.batch()
    if not trace.forgotten or not len(batch):
        return batch
    ends = np.flatnonzero(batch.events["kind"] == Kind.EXECUTE)
    start = int(ends[0]) + 1 if len(ends) else len(batch)
    return EventBatch(batch.events[start:], batch.names, batch.end)


def measure(trace: Trace | None, seen: Totals | None = None, history: History | None = None) -> Measured:
    """The numbers of a trace.

    Args:
        trace: The trace.
        seen: What was added up while the run went on, of which the trace may have forgotten a part.
        history: The same of whole executions.
    """
    if trace is None:
        return Measured()
    kept = Totals()
    update = kept.add(complete(trace))
    if history is None:
        history = History()
        history.add(update.executions, update.durations)
    whole = kept if seen is None else seen
    place = {key: row for row, key in enumerate(kept.keys)}
    order = np.array([place.get(key, -1) for key in whole.keys], np.int64)
    p10, median, p90 = (
        np.where(order >= 0, np.append(column, np.nan)[order], np.nan)
        for column in percentiles(update.times, (10, 50, 90))
    )
    return Measured(
        whole.keys, whole.statistics, p10, median, p90, whole.executions, kept.executions, history
    )


def percentiles(times: Doubles, wanted: tuple[float, ...]) -> list[Doubles]:
    """Percentiles of each column, linearly interpolated, NaN left out."""
    rows = times.shape[1] if times.ndim == 2 else 0
    if not len(times):
        return [np.full(rows, np.nan) for _ in wanted]
    found: Any = np.percentile(times, wanted, axis=0)
    for row in np.flatnonzero(np.isnan(times).any(0)):
        column = times[:, row]
        column = column[~np.isnan(column)]
        found[:, row] = np.percentile(column, wanted) if len(column) else np.nan
    return list(found)
