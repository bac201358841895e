"""Events of runs that went the same way, put together: what the tables of the Inspector are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from workbench.errors import TraceError
from workbench.inspector.names import DELEGATE_EVENT, FRAMEWORK_EVENTS, OVERHEAD_EVENT
from workbench.inspector.symbols import MethodSymbols, Node
from workbench.serialize.etdump import (
    AllocationEvent,
    DebugEvent,
    ProfileEvent,
    RunBlock,
    TensorRef,
    Value,
    read_tensor,
)

__all__ = ["Event", "EventBlock", "PerfData", "TimeScale", "scale_factor"]

_MASK32 = 2**32 - 1

DelegateScale: TypeAlias = Callable[[int | str, float], float]


class TimeScale(Enum):
    """A unit of time."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    CYCLES = "cycles"


_PER_SECOND = {
    TimeScale.NS: 1e9,
    TimeScale.US: 1e6,
    TimeScale.MS: 1e3,
    TimeScale.S: 1.0,
    TimeScale.CYCLES: 1.0,
}


def scale_factor(source: TimeScale, target: TimeScale) -> float:
    """How many units of the source make one of the target.

    Raises:
        TraceError: Cycles can't be made time, nor time cycles.
    """
    if (source is TimeScale.CYCLES) != (target is TimeScale.CYCLES):
        raise TraceError(
            "cycles and time can't be converted",
            expected="both or none in cycles",
            found=f"{source}, {target}",
        )
    return _PER_SECOND[source] / _PER_SECOND[target]


@dataclass(frozen=True, slots=True)
class PerfData:
    """The durations of one event, one a run, in the target's unit of time."""

    raw: list[float]

    @property
    def p10(self) -> float:
        """10th percentile, linearly interpolated."""
        return self._percentile(10)

    @property
    def p50(self) -> float:
        """Median."""
        return self._percentile(50)

    @property
    def p90(self) -> float:
        """90th percentile, linearly interpolated."""
        return self._percentile(90)

    def _percentile(self, percent: int) -> float:
        # Of a handful of numbers: numpy takes fifty times as long, and tables have three for each event.
        ordered = sorted(self.raw)
        below, rest = divmod((len(ordered) - 1) * percent, 100)
        above = min(below + 1, len(ordered) - 1)
        return float(ordered[below] + (ordered[above] - ordered[below]) * rest / 100)

    @property
    def avg(self) -> float:
        """Arithmetic mean."""
        return float(np.mean(self.raw))

    @property
    def min(self) -> float:
        """Shortest."""
        return min(self.raw)

    @property
    def max(self) -> float:
        """Longest."""
        return max(self.raw)


@dataclass(slots=True)
class Event:
    """An operator's call, or something inside a delegate, or of the framework, over all runs of a block.

    Attributes:
        name: The event's name; inside delegates the identifier.
        perf_data: Its durations, or None where only values were recorded. An instruction that a run executes
            several times (in a loop) counts with its sum.
        op_types: The operators of the nodes that it stands for.
        delegate_debug_identifier: The backend's own identifier, or None.
        debug_handles: The debug handles of the nodes.
        num_outputs: How many results the instruction has.
        stack_traces: By node, the user's lines.
        module_hierarchy: By node, from a key per module to `(path, class)`, outermost first.
        is_delegated_op: Whether it ran inside a delegate.
        delegate_backend_name: The backend that is called, or whose inside it is.
        delegate_debug_metadatas: What the backend attached, one a run.
        debug_data: The values that were recorded in the first run of the block.
        start_time: When it began, one a run, in the source's unit of time.
        instruction: The instruction's index; -1 for none.
        calls: How often it happened in each run.
        nodes: The nodes.
    """

    name: str
    perf_data: PerfData | None = None
    op_types: list[str] = field(default_factory=list)
    delegate_debug_identifier: int | str | None = None
    debug_handles: tuple[int, ...] = ()
    num_outputs: int = 1
    stack_traces: dict[str, str | None] = field(default_factory=dict)
    module_hierarchy: dict[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    is_delegated_op: bool | None = None
    delegate_backend_name: str | None = None
    delegate_debug_metadatas: list[Any] = field(default_factory=list)
    debug_data: list[Any] = field(default_factory=list)
    start_time: list[int] = field(default_factory=list)
    instruction: int = -1
    calls: int = 1
    nodes: list[Node] = field(default_factory=list)

    def asdict(self, units: str = "") -> dict[str, Any]:
        """The columns of the event's row; `units` is appended to those of time."""
        perf = self.perf_data
        times = {
            f"{key}{units}": None if perf is None else getattr(perf, key)
            for key in ("p10", "p50", "p90", "avg", "min", "max")
        }
        return {
            "event_name": self.name,
            "raw": None if perf is None else perf.raw,
            **times,
            "op_types": self.op_types,
            "delegate_debug_identifier": self.delegate_debug_identifier,
            "stack_traces": self.stack_traces,
            "module_hierarchy": self.module_hierarchy,
            "is_delegated_op": self.is_delegated_op,
            "delegate_backend_name": self.delegate_backend_name,
            "debug_data": self.debug_data,
            "start_time": self.start_time,
        }

    def join(self, symbols: MethodSymbols) -> None:
        """Fill in what is known of the nodes that the event stands for."""
        if self.instruction < 0 or self.name in FRAMEWORK_EVENTS:
            return
        self.debug_handles = symbols.handles(self.instruction, self.delegate_debug_identifier)
        self.num_outputs = symbols.num_outs.get(self.instruction, 1)
        self.delegate_backend_name = symbols.backend(self.instruction)
        if self.name == DELEGATE_EVENT and self.instruction in symbols.num_outs:
            # The runtime can't tell a delegate's inputs from its outputs, which come last: it records both.
            self.debug_data = self.debug_data[-self.num_outputs :]
        self.nodes = symbols.resolve(self.debug_handles)
        self.op_types = [node.op for node in self.nodes]
        self.stack_traces = {node.name: node.stack_trace for node in self.nodes}
        self.module_hierarchy = {node.name: node.module_stack for node in self.nodes}


@dataclass(slots=True)
class EventBlock:
    """Runs that had the same events. Each way through control flow has a block of its own.

    Attributes:
        name: `Execute` for executions of `forward` (with the method's name behind it for others), `Default`
            for loading.
        events: In the order of the first run.
        runs: How many runs there were.
        source_time_scale: The unit of what was recorded.
        target_time_scale: The unit of `perf_data`.
        bundled_input_index: Which input of a bundled program was run, or None.
        run_output: What the method returned in the first run, if that was recorded.
    """

    name: str
    events: list[Event] = field(default_factory=list)
    runs: int = 0
    source_time_scale: TimeScale = TimeScale.NS
    target_time_scale: TimeScale = TimeScale.MS
    bundled_input_index: int | None = None
    run_output: list[Any] = field(default_factory=list)

    @property
    def method(self) -> str:
        """The name of the method that was executed."""
        return self.name.removeprefix("Execute").strip() or "forward"

    def to_dataframe(
        self, include_units: bool = False, include_delegate_debug_data: bool = False
    ) -> pd.DataFrame:
        """One row an event.

        Args:
            include_units: Name the unit in the headers of times.
            include_delegate_debug_data: Add what the backends attached to their events.
        """
        units = f" ({self.target_time_scale.value})" if include_units else ""
        rows = [{"event_block_name": self.name, **event.asdict(units)} for event in self.events]
        if include_delegate_debug_data:
            for row, event in zip(rows, self.events, strict=True):
                row["delegate_debug_metadata"] = event.delegate_debug_metadatas
        frame = pd.DataFrame(rows)
        for column in ("delegate_debug_identifier", "delegate_backend_name"):
            # As objects: pandas would turn the numbers among them into floats, and None into NaN.
            frame[column] = pd.Series([row[column] for row in rows], dtype=object)
        return frame


_Signature: TypeAlias = tuple[int, int, int | str | None, str]


@dataclass(slots=True)
class _Group:
    """One event in the making: all that was recorded under one signature."""

    durations: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    metadata: list[bytes] = field(default_factory=list)
    calls: int = 1


class BlockBuilder:
    """Puts the runs of a dump together.

    Args:
        source: The unit of what was recorded.
        target: The wanted unit.
        debug_buffer: The tensors of debug events, or None: they are left out.
        delegate_scale: Converts times inside delegates, given the identifier; by default as everywhere.
        metadata_parser: Makes what a backend attached readable.
    """

    def __init__(
        self,
        source: TimeScale,
        target: TimeScale,
        debug_buffer: bytes | None = None,
        delegate_scale: DelegateScale | None = None,
        metadata_parser: Callable[[list[bytes]], Any] | None = None,
    ) -> None:
        self._source, self._target = source, target
        self._factor = scale_factor(source, target)
        self._buffer = debug_buffer
        self._delegate_scale = delegate_scale
        self._metadata_parser = metadata_parser

    def build(self, runs: Iterable[RunBlock]) -> list[EventBlock]:
        """The blocks, in the order in which their first runs happened."""
        grouped: dict[tuple[Any, ...], list[tuple[RunBlock, dict[_Signature, list[ProfileEvent]]]]] = {}
        for run in runs:
            events: dict[_Signature, list[ProfileEvent]] = {}
            for event in run.events:
                if isinstance(event, ProfileEvent):
                    key = (event.chain, event.instruction, event.delegate_id, event.name)
                    known = events.get(key)
                    if known is None:
                        events[key] = [event]
                    else:
                        known.append(event)
            signature = (run.name, run.bundled_input_index, tuple(events))
            grouped.setdefault(signature, []).append((run, events))
        return [self._block(members) for members in grouped.values()]

    def _block(self, members: Sequence[tuple[RunBlock, dict[_Signature, list[ProfileEvent]]]]) -> EventBlock:
        first = members[0][0]
        data, outputs = self._values(first)
        events = []
        for signature in members[0][1]:
            chain, instruction, delegate_id, name = signature
            group = _Group(calls=len(members[0][1][signature]))
            for _, recorded in members:
                calls = recorded[signature]
                group.durations.append(sum(self._duration(call) for call in calls))
                group.starts.append(calls[0].start)
                group.metadata.extend(call.metadata for call in calls if call.metadata)
            values = [] if name == OVERHEAD_EVENT else data.pop((chain, instruction, delegate_id), [])
            events.append(self._event(signature, group, values))
        # Values whose time was not recorded are rows of their own: also those of a fused group's members.
        events.extend(
            Event(
                "" if delegate_id is None else str(delegate_id),
                instruction=instruction,
                delegate_debug_identifier=delegate_id,
                is_delegated_op=None if delegate_id is None else True,
                debug_data=values,
            )
            for (_, instruction, delegate_id), values in data.items()
        )
        index = first.bundled_input_index
        return EventBlock(
            name=first.name,
            events=events,
            runs=len(members),
            source_time_scale=self._source,
            target_time_scale=self._target,
            bundled_input_index=None if index == -1 else index,
            run_output=outputs,
        )

    def _event(self, signature: _Signature, group: _Group, values: list[Any]) -> Event:
        _, instruction, delegate_id, name = signature
        metadata: Any = group.metadata
        if metadata and self._metadata_parser is not None:
            metadata = self._metadata_parser(metadata)
        return Event(
            name=name if delegate_id is None else str(delegate_id),
            perf_data=PerfData(group.durations),
            delegate_debug_identifier=delegate_id,
            is_delegated_op=delegate_id is not None,
            delegate_debug_metadatas=metadata,
            debug_data=values,
            start_time=group.starts,
            instruction=instruction,
            calls=group.calls,
        )

    def _duration(self, event: ProfileEvent) -> float:
        start, end = event.start, event.end
        if event.delegate_id is not None and self._delegate_scale is not None:
            return self._delegate_scale(event.delegate_id, end) - self._delegate_scale(
                event.delegate_id, start
            )
        if end < start:
            # A counter of 32 bits that began anew, as small devices have.
            if max(start, end) > _MASK32:
                raise TraceError("an event ends before it starts", node=event.name, found=f"{start}, {end}")
            end += _MASK32 + 1
        return (end - start) / self._factor

    def _values(self, run: RunBlock) -> tuple[dict[tuple[int, int, int | str | None], list[Any]], list[Any]]:
        """The values of a run by what wrote them, and what the method returned."""
        by_writer: dict[tuple[int, int, int | str | None], list[Any]] = {}
        outputs: list[Any] = []
        for event in run.events:
            if isinstance(event, AllocationEvent | ProfileEvent):
                continue
            assert isinstance(event, DebugEvent)
            value = self._inflate(event.value)
            if event.value.is_output:
                outputs.append(value)
            else:
                by_writer.setdefault((event.chain, event.instruction, event.delegate_id), []).append(value)
        return by_writer, outputs

    def _inflate(self, value: Value) -> Any:
        payload = value.payload
        if isinstance(payload, TensorRef):
            return None if self._buffer is None else read_tensor(payload, self._buffer)
        if isinstance(payload, list):
            return [None if self._buffer is None else read_tensor(ref, self._buffer) for ref in payload]
        return payload
