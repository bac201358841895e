"""What the profile view draws, asks for and is sent.

Rows of a `ProfileDocument` are the instructions of a method in program order, each followed by what runs
inside it where it calls a delegate; what ran fused there is followed by its members. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench_widgets.columns import F32, F64, I32, Strings
from workbench_widgets.contract import Failure

__all__ = [
    "CALLS",
    "DOCUMENTS",
    "EVENTS",
    "ExportRequest",
    "ExportedFile",
    "MachinePeaks",
    "PeaksRequest",
    "ProfileBatch",
    "ProfileDocument",
    "ProfileEnded",
    "ProfileStarted",
    "StartRequest",
    "StopRequest",
    "TimelineDocument",
]


@dataclass(frozen=True)
class MachinePeaks:
    """What one core of this machine reaches at most.

    Attributes:
        gflops: 1e9 float32 operations a second, of a large matrix product.
        gbytes: 1e9 bytes a second to memory, beyond the caches.
        cache_bytes: The last-level cache.
    """

    gflops: float
    gbytes: float
    cache_bytes: int


@dataclass(frozen=True)
class ProfileDocument:
    """Where the time of a method goes.

    Attributes:
        method: Name of the method.
        run: Number of the run within the widget; 0 where nothing was measured.
        state: What the run is doing.
        runtime: Whose runtime ran it.
        executions: Complete executions.
        kept: Executions that medians and percentiles are of: the latest.
        elapsed: Seconds of the whole run.
        dropped: Events that were lost.
        problem: Why the run ended early; None if it did not.
        values_problem: Why recorded values could not be compared; empty where they were, or where none were
            asked for.
        total_median: Of an execution; None where nothing was measured. The same for the others.
        name: Node of the graph; of a delegate's call the first nodes inside; else what is known of it.
        operator: Operator, or backend of a delegate's call.
        backend: Backend that runs it; `runtime` for kernels.
        module: Path of the module; empty for the root.
        source: `file:line`; empty where unknown.
        shape: Element type and sizes of the result.
        parent: Row of the delegate's call, or of the fused group; -1 for an instruction.
        chain: Index of the instruction's chain.
        instruction: Its index in the chain.
        count: Executions in which the row ran.
        calls: How often it ran in each of them, on average; NaN for the member of a fused group.
        mean: Time in an execution, of all calls together; NaN for a row that never ran, as the next five.
        median: Of the kept executions, as `p10` and `p90`.
        p10: 10th percentile.
        p90: 90th percentile.
        min: Shortest.
        max: Longest.
        flops: Operations counted from shapes; NaN where unknown.
        bytes: Bytes that must be read and written at least; NaN where unknown.
        sqnr: Signal to noise against eager PyTorch, dB; NaN where no value was compared.
        max_error: Largest absolute difference.
        max_reference: Largest absolute value of eager's result.
        before: Median of the same row in the run before this one in the widget; NaN where there is none.
        before_median: Of an execution of that run.
        handle_start: First of the row's handles, with one entry more than rows.
        handles: Source handles, ascending for each row.
        history: Duration of executions, at most some thousands of them.
        history_execution: Their numbers, ascending.
        peaks: The machine's limits, if they were measured already.
    """

    method: str
    run: int
    state: Literal["none", "running", "done", "stopped", "failed"]
    runtime: str
    executions: int
    kept: int
    elapsed: float
    dropped: int
    problem: Failure | None
    values_problem: str
    total_median: float | None
    total_mean: float | None
    total_p10: float | None
    total_p90: float | None
    total_min: float | None
    total_max: float | None
    name: Strings
    operator: Strings
    backend: Strings
    module: Strings
    source: Strings
    shape: Strings
    parent: I32
    chain: I32
    instruction: I32
    count: F64
    calls: F64
    mean: F64
    median: F64
    p10: F64
    p90: F64
    min: F64
    max: F64
    flops: F64
    bytes: F64
    sqnr: F64
    max_error: F64
    max_reference: F64
    before: F64
    before_median: float | None
    handle_start: I32
    handles: I32
    history: F32
    history_execution: I32
    peaks: MachinePeaks | None


@dataclass(frozen=True)
class TimelineDocument:
    """One execution, event by event.

    Attributes:
        method: Name of the method.
        run: Number of the run.
        label: Why it was chosen: `fastest`, `median`, `slowest`, or the execution's number.
        execution: Its number, from 0.
        duration: Of the whole execution, ms.
        row: Row of the profile, for each event.
        start: When the event began, ms from the execution's start; ascending.
        length: How long it took, ms.
        inside: 1 for what ran inside a delegate, 0 for instructions.
    """

    method: str
    run: int
    label: str
    execution: int
    duration: float
    row: I32
    start: F64
    length: F64
    inside: I32


@dataclass(frozen=True)
class StartRequest:
    """Run a method and measure.

    Attributes:
        method: Name of the method.
        repeat: How many executions; 0 for as many as the time allows.
        seconds: How long at most; 0 for no limit.
        values: Compare what instructions write with eager PyTorch.
        runtime: `native` or `executorch`.
    """

    method: str
    repeat: int
    seconds: float
    values: bool
    runtime: Literal["native", "executorch"]


@dataclass(frozen=True)
class ProfileStarted:
    """A run has begun.

    Attributes:
        run: Its number.
        method: Name of the method.
        repeat: Wanted executions; 0 where only the time limits.
        seconds: Wanted seconds; 0 where only the executions do.
        streams: Whether events come while it runs.
    """

    run: int
    method: str
    repeat: int
    seconds: float
    streams: bool


@dataclass(frozen=True)
class StopRequest:
    """End the run after the execution that is under way."""

    method: str


@dataclass(frozen=True)
class ProfileBatch:
    """What a run has measured so far, and what is new.

    Attributes:
        run: Number of the run.
        executions: Complete executions.
        elapsed: Seconds since the start.
        dropped: Events that were lost.
        row: The row of the document that each entry is about.
        count: Executions in which it ran.
        sum: Milliseconds in all of them.
        min: In the fastest.
        max: In the slowest.
        last: In the last.
        sampled: How many of the new executions `samples` shows.
        samples: Times of `row` in them, one execution after the other; NaN where it did not run.
        first: Number of the first execution in `recent`.
        stride: How many executions each entry of `recent` stands for; the entry is their slowest.
        recent: Durations of the new executions.
    """

    run: int
    executions: int
    elapsed: float
    dropped: int
    row: I32
    count: F64
    sum: F64
    min: F64
    max: F64
    last: F64
    sampled: int
    samples: F32
    first: int
    stride: int
    recent: F32


@dataclass(frozen=True)
class ProfileEnded:
    """A run is over; the profile as measured."""

    run: int
    document: ProfileDocument


@dataclass(frozen=True)
class PeaksRequest:
    """Measure the machine.

    Attributes:
        again: Also if it was measured before.
    """

    again: bool


@dataclass(frozen=True)
class ExportRequest:
    """A file of the measurements.

    Attributes:
        method: Name of the method.
        format: `perfetto` (JSON), `csv` or `etdump`.
    """

    method: str
    format: Literal["perfetto", "csv", "etdump"]


@dataclass(frozen=True)
class ExportedFile:
    """A file to be saved.

    Attributes:
        name: Proposed name.
        mime: Its type.
        text: What is in it; empty where it is not text.
        base64: What is in it otherwise.
    """

    name: str
    mime: str
    text: str
    base64: str


DOCUMENTS = {"profile": ProfileDocument, "timeline": TimelineDocument}
CALLS = {
    "profile.start": (StartRequest, ProfileStarted),
    "profile.stop": (StopRequest, StopRequest),
    "profile.peaks": (PeaksRequest, MachinePeaks),
    "profile.export": (ExportRequest, ExportedFile),
}
EVENTS = {
    "profile.started": ProfileStarted,
    "profile.rows": ProfileDocument,
    "profile.batch": ProfileBatch,
    "profile.ended": ProfileEnded,
}
