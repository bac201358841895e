"""A recorded trace: events and captured tensors, as they came from the native runtime."""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.inspector.names import CONTROL_EVENTS, DELEGATE_EVENT, EXECUTE_EVENT, KERNEL_PREFIX
from workbench.serialize.etdump import (
    DebugBuffer,
    DebugEvent,
    ETDump,
    ProfileEvent,
    RunBlock,
    TensorRef,
    Value,
    read_tensor,
    write_etdump,
)

__all__ = ["EVENT_DTYPE", "EventBatch", "Kind", "Output", "Trace"]

# One drained event; native_runtime/python/trace.cc packs the same fields. Times are nanoseconds of
# CLOCK_MONOTONIC; `name` and `delegate_name` are indices into the names, -1 for none; executions from 0.
EVENT_DTYPE = np.dtype(
    {
        "names": [
            "start_ns",
            "end_ns",
            "name",
            "delegate_name",
            "chain",
            "instruction",
            "delegate_id",
            "execution",
            "kind",
        ],
        "formats": ["<u8", "<u8", "<i4", "<i4", "<i4", "<i4", "<i4", "<u4", "u1"],
        "offsets": [0, 8, 16, 20, 24, 28, 32, 36, 40],
        "itemsize": 48,
    }
)


class Kind(IntEnum):
    """What an event is about (`EventKind` of native_runtime/core/trace.h)."""

    INSTRUCTION = 0
    DELEGATE = 1
    EXECUTE = 2
    LOAD = 3
    OUTPUT = 4


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that an instruction wrote.

    Attributes:
        instruction: The instruction's index in its chain.
        chain: The chain.
        execution: In which execution, counted from 0.
        index: Which output of the instruction.
        delegate_id: The identifier inside a delegate, or None.
        tensor: Where the bytes stand, in the order of memory that the runtime used.
    """

    instruction: int
    chain: int
    execution: int
    index: int
    delegate_id: int | str | None
    tensor: TensorRef


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that arrived together.

    Attributes:
        events: Array of `EVENT_DTYPE`.
        names: The text of each index in `name` and `delegate_name`.
        end: The position behind them in their trace.
    """

    events: npt.NDArray[Any]
    names: tuple[str, ...]
    end: int = 0

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Each event as its name and the record."""
        for event in self.events:
            yield self.name(int(event["name"])), event

    def name(self, index: int) -> str:
        """The text of a name index; empty for none."""
        return self.names[index] if 0 <= index < len(self.names) else ""

    def to_dataframe(self) -> pd.DataFrame:
        """One row an event; times in nanoseconds."""
        frame = pd.DataFrame({field: self.events[field] for field in EVENT_DTYPE.names or ()})
        for column in ("name", "delegate_name"):
            frame[column] = [self.name(index) for index in frame[column]]
        frame["kind"] = [Kind(kind).name.lower() for kind in frame["kind"]]
        frame["duration_ns"] = frame["end_ns"] - frame["start_ns"]
        return frame


class Trace:
    """Everything that was recorded with one session of the native runtime.

    Args:
        session: A `workbench.runtime.TraceSession`. `collect` takes from it what is new.
        limit: How many events to keep at least; beyond them the oldest are forgotten. None: all.
    """

    def __init__(self, session: Any, *, limit: int | None = None) -> None:
        self.session = session
        self._limit = limit
        self._chunks: list[npt.NDArray[Any]] = []
        self._ends: list[int] = []  # of each chunk, how many events there were up to its end
        self._forgotten = 0
        self._names: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def collect(self) -> int:
        """Take new events over from the native side; may be called while a method runs.

        Returns:
            How many there were.
        """
        with self._lock:
            packed = self.session.drain()
            if not packed:
                return 0
            events = np.frombuffer(packed, dtype=EVENT_DTYPE)
            self._chunks.append(events)
            self._ends.append(self._end() + len(events))
            self._forget()
            # Read after the events: each index in them has its text by now.
            self._names = tuple(self.session.names)
            return len(events)

    def batch(self, start: int = 0) -> EventBatch:
        """The collected events from a position on, counted from the first event ever."""
        with self._lock:
            # Only the chunks that are wanted are looked at: a long run has very many.
            first = bisect.bisect_right(self._ends, start)
            parts, ends, names = self._chunks[first:], self._ends[first:], self._names
        if not parts:
            return EventBatch(np.empty(0, EVENT_DTYPE), names, start)
        skipped = max(start - (ends[0] - len(parts[0])), 0)
        parts[0] = parts[0][skipped:]
        return EventBatch(np.concatenate(parts) if len(parts) > 1 else parts[0], names, ends[-1])

    def __len__(self) -> int:
        """How many events are kept."""
        with self._lock:
            return self._end() - self._forgotten

    @property
    def end(self) -> int:
        """The position behind the last event: how many were collected, forgotten ones included."""
        with self._lock:
            return self._end()

    @property
    def forgotten(self) -> int:
        """Events that were given up since there are more than the limit."""
        return self._forgotten

    def _end(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _forget(self) -> None:
        if self._limit is None:
            return
        gone = bisect.bisect_right(self._ends, self._end() - self._limit)
        # In large pieces, for each takes time in proportion to what stays.
        if gone > len(self._ends) // 4:
            self._forgotten = self._ends[gone - 1]
            del self._chunks[:gone], self._ends[:gone]

    @property
    def dropped(self) -> int:
        """Events that were lost since the ring was full."""
        return int(self.session.dropped)

    @property
    def outputs_dropped(self) -> int:
        """Captured tensors that found no room; `bytes_wanted` of the session says how much they need."""
        return int(self.session.outputs_dropped)

    @property
    def outputs(self) -> list[Output]:
        """The captured tensors, in the order in which they were written."""
        return [_output(entry) for entry in self.session.outputs()]

    @property
    def debug_buffer(self) -> bytes:
        """The bytes that `outputs` refer to."""
        return bytes(self.session.debug_buffer())

    def to_etdump(self, *, executions: Collection[int] | None = None) -> ETDump:
        """The trace as an ETDump: a block per execution, loading in a block of its own.

        Tensors refer to `debug_buffer`.

        Args:
            executions: Numbers of the executions to take, from 0; by default all.
        """
        self.collect()
        batch, outputs = self.batch(), self.outputs
        if executions is not None:
            chosen = np.isin(batch.events["execution"], list(executions))
            batch = EventBatch(batch.events[chosen], batch.names, batch.end)
            outputs = [output for output in outputs if output.execution in executions]
        return ETDump(list(_blocks(batch, outputs)))

    def save(self, path: str | os.PathLike[str], debug_buffer: str | os.PathLike[str] | None = None) -> None:
        """Write the ETDump as of `dense_etdump`, and the debug buffer if a path for it is given."""
        dump, data = self.dense_etdump()
        Path(path).write_bytes(write_etdump(dump))
        if debug_buffer is not None:
            Path(debug_buffer).write_bytes(data)

    def dense_etdump(self) -> tuple[ETDump, bytes]:
        """As `to_etdump`, with each tensor laid out contiguously, and the debug buffer that belongs to it.

        ExecuTorch's Inspector ignores strides.
        """
        dump, raw, dense = self.to_etdump(), self.debug_buffer, DebugBuffer()
        for block in dump.blocks:
            for i, event in enumerate(block.events):
                if isinstance(event, DebugEvent) and isinstance(event.value.payload, TensorRef):
                    ref = dense.add(read_tensor(event.value.payload, raw))
                    block.events[i] = DebugEvent(
                        event.name, Value(ref), event.chain, event.instruction, event.delegate_id
                    )
        return dump, dense.to_bytes()


def _output(entry: dict[str, Any]) -> Output:
    sizes, order = tuple(entry["sizes"]), tuple(entry["dim_order"])
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    delegate: int | str | None = entry["delegate_name"] or None
    if delegate is None and entry["delegate_id"] != -1:
        delegate = entry["delegate_id"]
    return Output(
        instruction=entry["instruction"],
        chain=entry["chain"],
        execution=entry["execution"],
        index=entry["index"],
        delegate_id=delegate,
        tensor=TensorRef(entry["dtype"], sizes, tuple(strides), entry["offset"]),
    )


def event_name(name: str, kind: int) -> str:
    """The name that ExecuTorch's runtime gives to the same event.

    A kernel is `native_call_<operator>`, whatever its namespace; what is neither a kernel nor one of the
    instructions of control flow is `DELEGATE_CALL`, for delegates are recorded under their backend's name.
    """
    if kind == Kind.EXECUTE:
        return EXECUTE_EVENT
    if kind == Kind.LOAD:
        return name or "Method::init"
    if kind == Kind.INSTRUCTION:
        _, separator, operator = name.partition("::")
        return KERNEL_PREFIX + operator if separator else CONTROL_EVENTS.get(name, DELEGATE_EVENT)
    return name


def _blocks(batch: EventBatch, outputs: list[Output]) -> Iterator[RunBlock]:
    load = RunBlock("Default")
    runs: dict[int, RunBlock] = {}
    captured: dict[tuple[int, int, int], list[Output]] = {}
    for output in outputs:
        captured.setdefault((output.execution, output.chain, output.instruction), []).append(output)
    names: dict[tuple[int, int], str] = {}
    # Lists of plain numbers: going through an array record by record takes ten times as long.
    columns = (batch.events[field].tolist() for field in EVENT_DTYPE.names or ())
    for start, end, name_index, text_index, chain, instruction, number, execution, kind in zip(
        *columns, strict=True
    ):
        name = batch.name(name_index)
        block = load if kind == Kind.LOAD else runs.get(execution)
        if block is None:
            block = runs[execution] = RunBlock("Execute")
        if kind == Kind.EXECUTE and name not in ("", "forward", "Method::execute"):
            block.name = f"Execute {name}"
        if kind == Kind.DELEGATE:
            delegate_id = batch.name(text_index) or (number if number != -1 else name)
            block.events.append(ProfileEvent("", start, end, chain, instruction, delegate_id))
            continue
        if captured and kind == Kind.INSTRUCTION:
            # As in ExecuTorch's dumps, what an instruction wrote stands before its time.
            block.events.extend(_logged(captured.pop((execution, chain, instruction), ())))
        shown = names.get((name_index, kind))
        if shown is None:
            shown = names[name_index, kind] = event_name(name, kind)
        block.events.append(ProfileEvent(shown, start, end, chain, instruction))
    for (execution, _, _), written in captured.items():  # whose instruction's event was dropped
        runs.setdefault(execution, RunBlock("Execute")).events.extend(_logged(written))
    if load.events:
        yield load
    yield from (runs[execution] for execution in sorted(runs))


def _logged(outputs: Iterable[Output]) -> Iterator[DebugEvent]:
    return (DebugEvent("", Value(o.tensor), o.chain, o.instruction, o.delegate_id) for o in outputs)
