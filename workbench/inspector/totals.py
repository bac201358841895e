"""Events added up while a run goes on: what each instruction took in each execution.

The sums are those of the Inspector's tables: an instruction that an execution runs several times (in a loop)
counts with its sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.inspector.trace import EVENT_DTYPE, EventBatch, Kind

__all__ = ["RowKey", "Statistics", "Totals", "Update"]

Doubles: TypeAlias = npt.NDArray[np.float64]
_MASK32 = (1 << 32) - 1
_TEXT, _NUMBER, _NAME = 1, 2, 3


class RowKey(NamedTuple):
    """What a row stands for.

    Attributes:
        chain: Index of the chain.
        instruction: Index of the instruction in it.
        identifier: The backend's identifier of something inside a delegate; None for the instruction itself.
        name: The event's name: operator, backend, or kind of instruction.
    """

    chain: int
    instruction: int
    identifier: int | str | None
    name: str


@dataclass(frozen=True)
class Update:
    """What one batch added.

    Attributes:
        executions: Numbers of the executions that became complete.
        durations: How long each took, ms.
        times: Time of each row in each of them, ms, [executions, rows]; NaN where the row did not run.
        grown: Whether there are rows that were not there before.
    """

    executions: npt.NDArray[np.int64]
    durations: Doubles
    times: Doubles
    grown: bool


@dataclass
class Statistics:
    """One number a row, of all executions; times in ms, NaN for a row that never ran.

    Attributes:
        count: In how many executions it ran.
        calls: How often it ran, altogether.
        sum: All times added.
        min: Shortest time of an execution.
        max: Longest.
        last: Time of the last execution in which it ran.
    """

    count: Doubles = field(default_factory=lambda: np.zeros(0))
    calls: Doubles = field(default_factory=lambda: np.zeros(0))
    sum: Doubles = field(default_factory=lambda: np.zeros(0))
    min: Doubles = field(default_factory=lambda: np.zeros(0))
    max: Doubles = field(default_factory=lambda: np.zeros(0))
    last: Doubles = field(default_factory=lambda: np.zeros(0))

    def grow(self, rows: int) -> None:
        """Make room for so many rows."""
        more = rows - len(self.count)
        if more <= 0:
            return
        for name in ("count", "calls", "sum"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(more)))
        for name in ("min", "max", "last"):
            setattr(self, name, np.append(getattr(self, name), np.full(more, np.nan)))

    def add(self, times: Doubles, calls: Doubles) -> None:
        """Take in executions: times and calls, [executions, rows]."""
        ran = calls > 0
        self.grow(times.shape[1])
        self.count += ran.sum(0)
        self.calls += calls.sum(0)
        self.sum += np.where(ran, times, 0).sum(0)
        self.min = np.fmin(self.min, np.where(ran, times, np.inf).min(0, initial=np.inf))
        self.max = np.fmax(self.max, np.where(ran, times, -np.inf).max(0, initial=-np.inf))
        never = self.count == 0
        self.min[never] = self.max[never] = np.nan
        some = np.flatnonzero(ran.any(0))
        latest = len(times) - 1 - np.argmax(ran[::-1, some], axis=0)
        self.last[some] = times[latest, some]


class Totals:
    """Adds up the events of a run, batch by batch.

    Only complete executions count: events of one that is under way wait for its end.

    Attributes:
        keys: The rows, in the order in which they first ran.
        statistics: Their numbers.
        executions: How many executions are complete.
        busy: Milliseconds of all executions, added.
    """

    def __init__(self) -> None:
        self.keys: list[RowKey] = []
        self.statistics = Statistics()
        self.executions = 0
        self.busy = 0.0
        self._rows: dict[int, int] = {}
        self._sorted: tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]] = (
            np.zeros(0, np.uint64),
            np.zeros(0, np.int64),
        )
        self._broken = False
        self._waiting: npt.NDArray[Any] = np.empty(0, EVENT_DTYPE)

    def skip(self) -> None:
        """Events are missing before the next batch: the execution that they cut in two does not count."""
        self._waiting = np.empty(0, EVENT_DTYPE)
        self._broken = True

    def add(self, batch: EventBatch) -> Update:
        """Take in the next events of the trace."""
        events = batch.events
        if self._broken:
            ends = np.flatnonzero(events["kind"] == Kind.EXECUTE)
            events = events[ends[0] + 1 :] if len(ends) else events[:0]
            self._broken = not len(ends)
        if len(self._waiting):
            events = np.concatenate([self._waiting, events])
        ends = np.flatnonzero(events["kind"] == Kind.EXECUTE)
        if not len(ends):
            self._waiting = events
            empty = np.zeros(0)
            return Update(np.zeros(0, np.int64), empty, np.zeros((0, len(self.keys))), False)
        self._waiting = events[ends[-1] + 1 :].copy()
        whole = events[ends]
        events = events[: ends[-1] + 1]
        events = events[(events["kind"] == Kind.INSTRUCTION) | (events["kind"] == Kind.DELEGATE)]
        before = len(self.keys)
        rows = self.rows_of(events, batch)
        durations = _ms(whole)
        # A full ring may have lost the end of an execution: its other events belong to none then.
        numbers = whole["execution"]
        place = np.searchsorted(numbers, events["execution"])
        keep = numbers[np.minimum(place, len(whole) - 1)] == events["execution"]
        flat = place[keep] * len(self.keys) + rows[keep]
        shape = (len(whole), len(self.keys))
        size = shape[0] * shape[1]
        calls: Any = np.bincount(flat, minlength=size).astype(np.float64).reshape(shape)
        times: Any = np.bincount(flat, weights=_ms(events)[keep], minlength=size).reshape(shape)
        self.statistics.add(times, calls)
        self.executions += len(whole)
        self.busy += float(durations.sum())
        times[calls == 0] = np.nan
        return Update(whole["execution"].astype(np.int64), durations, times, len(self.keys) > before)

    def rows_of(self, events: npt.NDArray[Any], batch: EventBatch) -> npt.NDArray[np.int64]:
        """The row of each event of an instruction or of a delegate's inside; new rows are added."""
        codes = _codes(events)
        known, rows = self._sorted
        place = np.searchsorted(known, codes)
        if not len(known) or not np.array_equal(known[np.minimum(place, len(known) - 1)], codes):
            self._learn(codes, events, batch)
            known, rows = self._sorted
            place = np.searchsorted(known, codes)
        return rows[place] if len(rows) else np.zeros(0, np.int64)

    def _learn(self, codes: npt.NDArray[np.uint64], events: npt.NDArray[Any], batch: EventBatch) -> None:
        _, first = np.unique(codes, return_index=True)
        for index in np.sort(first):
            code = int(codes[index])
            if code not in self._rows:
                self._rows[code] = len(self.keys)
                self.keys.append(_key(events[index], batch))
        order = sorted(self._rows)
        self._sorted = (
            np.array(order, np.uint64),
            np.array([self._rows[code] for code in order], np.int64),
        )


def _ms(events: npt.NDArray[Any]) -> Doubles:
    durations: Doubles = (events["end_ns"] - events["start_ns"]).astype(np.float64) / 1e6
    return durations


def _codes(events: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """One integer for each different row: chain, instruction, and the identifier inside a delegate."""
    text, number = events["delegate_name"].astype(np.int64), events["delegate_id"].astype(np.int64)
    name = events["name"].astype(np.int64)
    inside = np.where(
        text >= 0, 4 * text + _TEXT, np.where(number != -1, 4 * number + _NUMBER, 4 * name + _NAME)
    )
    inside = np.where(events["kind"] == Kind.DELEGATE, inside, 4 * name)
    place = (events["chain"].astype(np.int64) << 20) + events["instruction"].astype(np.int64) + 1
    codes: npt.NDArray[np.uint64] = ((place << 32) + (inside & _MASK32)).astype(np.uint64)
    return codes


def _key(event: Any, batch: EventBatch) -> RowKey:
    name = batch.name(int(event["name"]))
    identifier: int | str | None = None
    if event["kind"] == Kind.DELEGATE:
        number = int(event["delegate_id"])
        identifier = batch.name(int(event["delegate_name"])) or (number if number != -1 else name)
    return RowKey(int(event["chain"]), int(event["instruction"]), identifier, name)
