"""The documents of the profile view."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from workbench.errors import TraceError, WorkbenchError
from workbench.inspector import Inspector, Trace
from workbench.inspector.peaks import Peaks, known_peaks
from workbench.inspector.totals import RowKey, Totals
from workbench.inspector.trace import Kind
from workbench_widgets.columns import Strings
from workbench_widgets.contract import Failure
from workbench_widgets.profile.contract import MachinePeaks, ProfileDocument, TimelineDocument
from workbench_widgets.profile.measured import Measured, complete
from workbench_widgets.profile.rows import Row

__all__ = ["Before", "Outcome", "machine_peaks", "make_document", "make_timeline", "signatures"]

Doubles = npt.NDArray[np.float64]
State = Literal["none", "running", "done", "stopped", "failed"]


@dataclass
class Outcome:
    """What is known of a run beside its times."""

    run: int = 0
    state: State = "none"
    runtime: str = "native"
    elapsed: float = 0.0
    dropped: int = 0
    problem: Failure | None = None
    gaps: Gaps | None = None


@dataclass
class Gaps:
    """Recorded values against eager PyTorch: by instruction and identifier SQNR, error and largest value."""

    problem: str = ""
    found: dict[tuple[int, str | None], tuple[float, float, float]] = field(default_factory=dict)


@dataclass
class Before:
    """Medians of the run before, by what identifies a row also after another lowering."""

    rows: Mapping[Any, float] = field(default_factory=dict)
    median: float | None = None


def make_document(
    method: str, rows: Sequence[Row], measured: Measured, outcome: Outcome, before: Before
) -> ProfileDocument:
    """The profile of a method."""
    place = {key: index for index, key in enumerate(measured.keys)}
    order = np.array([place.get(row.key, -1) if row.key is not None else -1 for row in rows], np.int64)

    def column(values: Doubles, missing: float = math.nan) -> Doubles:
        return np.append(values, missing)[order] if len(rows) else np.zeros(0)

    statistics = measured.statistics
    count, calls, total = (column(v, 0.0) for v in (statistics.count, statistics.calls, statistics.sum))
    ran = np.maximum(count, 1)
    # Members of a fused group did run, but nobody can say when.
    fused = np.array([row.parent >= 0 and rows[row.parent].parent >= 0 for row in rows], bool)
    sqnr, error, reference = _gap_columns(rows, outcome.gaps)
    totals = _totals(measured)
    numbers, durations = measured.history.shown()
    starts = np.cumsum([0, *(len(row.handles) for row in rows)]).astype(np.int32)
    found = [before.rows.get(signature, math.nan) for signature in signatures(rows)]
    return ProfileDocument(
        method=method,
        run=outcome.run,
        state=outcome.state,
        runtime=outcome.runtime,
        executions=measured.executions,
        kept=measured.kept,
        elapsed=outcome.elapsed,
        dropped=outcome.dropped,
        problem=outcome.problem,
        values_problem=outcome.gaps.problem if outcome.gaps is not None else "",
        **{f"total_{name}": value for name, value in totals.items()},
        name=Strings(row.name for row in rows),
        operator=Strings(row.operator for row in rows),
        backend=Strings(row.backend for row in rows),
        module=Strings(row.module for row in rows),
        source=Strings(row.source for row in rows),
        shape=Strings(row.shape for row in rows),
        parent=np.array([row.parent for row in rows], np.int32),
        chain=np.array([row.chain for row in rows], np.int32),
        instruction=np.array([row.instruction for row in rows], np.int32),
        count=count,
        calls=np.where(fused, math.nan, calls / ran),
        mean=np.where(count > 0, total / ran, math.nan),
        median=column(measured.median),
        p10=column(measured.p10),
        p90=column(measured.p90),
        min=column(statistics.min),
        max=column(statistics.max),
        flops=np.array([row.flops for row in rows], np.float64),
        bytes=np.array([row.bytes for row in rows], np.float64),
        sqnr=sqnr,
        max_error=error,
        max_reference=reference,
        before=np.array(found, np.float64),
        before_median=before.median,
        handle_start=starts,
        handles=np.array([handle for row in rows for handle in row.handles], np.int32),
        history=durations.astype(np.float32),
        history_execution=numbers.astype(np.int32),
        peaks=machine_peaks(known_peaks()),
    )


def machine_peaks(peaks: Peaks | None) -> MachinePeaks | None:
    """What was measured, as it is sent."""
    return None if peaks is None else MachinePeaks(peaks.gflops, peaks.gbytes, peaks.cache_bytes)


def _totals(measured: Measured) -> dict[str, float | None]:
    _, durations = measured.history.all
    if not len(durations):
        return dict.fromkeys(("median", "mean", "p10", "p90", "min", "max"))
    p10, median, p90 = np.percentile(durations, (10, 50, 90))
    return {
        "median": float(median),
        "mean": float(durations.mean()),
        "p10": float(p10),
        "p90": float(p90),
        "min": float(durations.min()),
        "max": float(durations.max()),
    }


def signatures(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """What identifies each row also in another program of the same model: its origin and its turn."""
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for row in rows:
        stem = (row.handles, row.operator, row.parent >= 0) if row.handles else (row.operator, row.module)
        turn = seen[stem] = seen.get(stem, -1) + 1
        found.append((*stem, turn))
    return found


# ---- values ------------------------------------------------------------------------------------------------


def compare_values(trace: Trace, lowering: Any, method: str, inputs: Sequence[Any]) -> Gaps:
    """What the first execution wrote against eager PyTorch, node by node."""
    if lowering is None:
        return Gaps("A program from a file has no eager model to compare with.")
    if not trace.outputs:
        return Gaps("No values were recorded.")
    dump = trace.to_etdump(executions=[trace.outputs[0].execution])
    inspector = Inspector(dump, debug_buffer=trace.debug_buffer, program=lowering, edge=lowering.edge)
    try:
        table = inspector.compare_numerics(tuple(inputs), "SQNR", method=method).table
    except TraceError as error:
        return Gaps(error.message)
    gaps = Gaps()
    for entry in table.itertuples(index=False):
        identifier = entry.runtime_ops[0] if entry.inside else None
        key = (int(entry.instruction), identifier)
        sqnr, difference, largest = gaps.found.get(key, (math.inf, 0.0, 0.0))
        gaps.found[key] = (
            _worse(sqnr, entry.gap, min),
            _worse(difference, entry.max_abs_error, max),
            max(largest, entry.max_abs_reference),
        )
    return gaps


def _worse(known: float, new: float, choose: Any) -> float:
    """NaN (only one side is finite) is the worst."""
    return math.nan if math.isnan(known) or math.isnan(new) else float(choose(known, new))


def _gap_columns(rows: Sequence[Row], gaps: Gaps | None) -> tuple[Doubles, Doubles, Doubles]:
    columns = np.full((3, len(rows)), math.nan)
    for index, row in enumerate(rows):
        if gaps is None or row.chain != 0:
            continue
        identifier = None if row.identifier is None else str(row.identifier)
        found = gaps.found.get((row.instruction, identifier))
        if found is None:
            continue
        columns[:, index] = found
        above = row.parent
        while above >= 0:  # the call of a delegate is as wrong as the worst inside it
            call = columns[:, above]
            call[0] = np.fmin(call[0], found[0])
            call[1:] = np.fmax(call[1:], found[1:])
            above = rows[above].parent
    return columns[0], columns[1], columns[2]


# ---- one execution -----------------------------------------------------------------------------------------


def make_timeline(method: str, which: str, trace: Trace, rows: Sequence[Row], run: int) -> TimelineDocument:
    """One execution, event by event.

    Args:
        method: Name of the method.
        which: `fastest`, `median`, `slowest`, or the number of an execution.
        trace: What was recorded.
        rows: The rows of the profile.
        run: Its number.

    Raises:
        WorkbenchError: The execution is not kept.
    """
    batch = complete(trace)
    whole = batch.events[batch.events["kind"] == Kind.EXECUTE]
    durations = whole["end_ns"] - whole["start_ns"]
    chosen = whole[_choose(which, whole["execution"], durations)]
    number, begin = int(chosen["execution"]), int(chosen["start_ns"])
    events = batch.events
    kinds = (events["kind"] == Kind.INSTRUCTION) | (events["kind"] == Kind.DELEGATE)
    events = events[(events["execution"] == number) & kinds]
    events = events[np.argsort(events["start_ns"], kind="stable")]
    numbering = Totals()
    codes = numbering.rows_of(events, batch)
    place: dict[RowKey, int] = {row.key: index for index, row in enumerate(rows) if row.key is not None}
    row_of = np.array([place.get(key, -1) for key in numbering.keys], np.int32)
    return TimelineDocument(
        method=method,
        run=run,
        label=which,
        execution=number,
        duration=(int(chosen["end_ns"]) - begin) / 1e6,
        row=row_of[codes] if len(codes) else np.zeros(0, np.int32),
        start=(events["start_ns"].astype(np.int64) - begin) / 1e6,
        length=(events["end_ns"].astype(np.int64) - events["start_ns"].astype(np.int64)) / 1e6,
        inside=(events["kind"] == Kind.DELEGATE).astype(np.int32),
    )


def _choose(which: str, numbers: npt.NDArray[Any], durations: npt.NDArray[Any]) -> int:
    if len(numbers):
        order = np.argsort(durations, kind="stable")
        named = {"fastest": order[0], "median": order[(len(order) - 1) // 2], "slowest": order[-1]}
        if which in named:
            return int(named[which])
        if which.isdigit() and int(which) in numbers:
            return int(np.flatnonzero(numbers == int(which))[0])
    raise WorkbenchError(
        "the events of this execution are not kept",
        expected=f"fastest, median, slowest, or {numbers.min()} to {numbers.max()}"
        if len(numbers)
        else "a profiled run",
        found=which,
        hint="run again with fewer executions, or pick a later one",
    )
