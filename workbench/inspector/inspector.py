"""The Inspector: a profile, joined with what lowering knew of the program."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import pandas as pd

from workbench.errors import TraceError
from workbench.inspector.events import (
    BlockBuilder,
    DelegateScale,
    Event,
    EventBlock,
    TimeScale,
    scale_factor,
)
from workbench.inspector.names import FRAMEWORK_EVENTS, OVERHEAD_EVENT
from workbench.inspector.numeric import Comparison, Distance, compare
from workbench.inspector.symbols import Symbols
from workbench.inspector.trace import Trace
from workbench.serialize.etdump import ETDump, read_etdump
from workbench.serialize.etrecord import ETRecord, parse_etrecord

__all__ = ["Inspector"]

_HIDDEN_COLUMNS = [
    "raw",
    "delegate_debug_identifier",
    "stack_traces",
    "module_hierarchy",
    "debug_data",
    "start_time",
]

PathLike = str | os.PathLike[str]


class Inspector:
    """Tables of a profile.

    The profile comes from a file (`etdump`), or from a trace of this process; what it is joined with, from an
    ETRecord or from the lowered program itself. Without either the events stand alone.

    Args:
        etdump: An ETDump: a path, its bytes, or an `ETDump`.
        etrecord: An ETRecord, or the path of one.
        debug_buffer: The recorded tensors: a path or their bytes.
        trace: A trace of this process, in place of `etdump` and `debug_buffer`.
        program: The `ExecutorchProgramManager` of the program that ran, in place of `etrecord`; or its
            `Symbols`.
        edge: What holds the edge programs before delegation (`exported_program(method)`): the reference
            for intermediate outputs of a delegated `program`.
        source_time_scale: The unit of the recorded times.
        target_time_scale: The unit of the tables.
        delegate_metadata_parser: Makes what backends attach to events readable.
        delegate_time_scale_converter: From identifier and recorded time inside a delegate to the target's
            unit.
        etdump_path: Another name of `etdump`, as are the next two.
        etdump_data: Bytes of an ETDump.
        debug_buffer_path: Another name of `debug_buffer`.

    Attributes:
        event_blocks: The events of all runs, put together.
        etdump: The profile as it was recorded.
        symbols: What is known of the program, or None.

    Raises:
        TraceError: Not exactly one profile is given, or units do not fit.
        SerializationError: A file is damaged.
    """

    def __init__(
        self,
        etdump: PathLike | bytes | ETDump | None = None,
        etrecord: PathLike | ETRecord | None = None,
        debug_buffer: PathLike | bytes | None = None,
        *,
        trace: Trace | None = None,
        program: Any = None,
        edge: Any = None,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        delegate_metadata_parser: Callable[[list[bytes]], Any] | None = None,
        delegate_time_scale_converter: DelegateScale | None = None,
        etdump_path: PathLike | None = None,
        etdump_data: bytes | None = None,
        debug_buffer_path: PathLike | None = None,
    ) -> None:
        profiles = [item for item in (etdump, etdump_path, etdump_data, trace) if item is not None]
        if len(profiles) != 1:
            raise TraceError(
                "the Inspector needs one profile", expected="etdump or trace", found=f"{len(profiles)} given"
            )
        tensors: bytes | None
        if trace is not None:
            self.etdump, tensors = _from_trace(trace)
        else:
            self.etdump = _load_etdump(profiles[0])  # type: ignore[arg-type]
            tensors = _load_buffer(debug_buffer if debug_buffer is not None else debug_buffer_path)
        self._source, self._target = TimeScale(source_time_scale), TimeScale(target_time_scale)
        self.etrecord = parse_etrecord(etrecord) if isinstance(etrecord, str | os.PathLike) else etrecord
        self.symbols = _symbols(self.etrecord, program, edge)
        builder = BlockBuilder(
            self._source, self._target, tensors, delegate_time_scale_converter, delegate_metadata_parser
        )
        self.event_blocks: list[EventBlock] = builder.build(self.etdump.blocks)
        for block in self.event_blocks:
            symbols = None if self.symbols is None else self.symbols.method(block.method)
            if symbols is not None and block.name.startswith("Execute"):
                for event in block.events:
                    event.join(symbols)

    def seconds(self, duration: float) -> float:
        """A duration of the tables in seconds.

        Raises:
            TraceError: The tables are in cycles.
        """
        return duration / scale_factor(self._target, TimeScale.S)

    def seconds_per_tick(self) -> float:
        """The recorded times' unit in seconds; cycles are taken for nanoseconds, for want of their rate."""
        if self._source is TimeScale.CYCLES:
            return 1e-9
        return 1 / scale_factor(self._source, TimeScale.S)

    def events(self) -> Iterable[tuple[EventBlock, Event]]:
        """All events with their blocks."""
        return ((block, event) for block in self.event_blocks for event in block.events)

    def to_dataframe(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> pd.DataFrame:
        """One row an event, all blocks.

        Args:
            include_units: Name the unit in the headers of times.
            include_delegate_debug_data: Add what the backends attached to their events.
        """
        frames = [
            block.to_dataframe(include_units, include_delegate_debug_data)
            for block in self.event_blocks
            if block.events
        ]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def table(self, include_units: bool = True) -> pd.DataFrame:
        """The columns that fit on a screen, without the rows that only repeat others.

        Where the program is known, with the module and the source line of what the event shows.
        """
        frame = self.to_dataframe(include_units)
        if frame.empty:
            return frame
        if self.symbols is not None:
            last = [event.nodes[-1] if event.nodes else None for _, event in self.events()]
            frame["module"] = ["" if node is None else node.module for node in last]
            frame["source"] = ["" if node is None else node.source or "" for node in last]
            frame["members"] = [[node.name for node in event.nodes] for _, event in self.events()]
        frame = frame[frame["event_name"] != OVERHEAD_EVENT].drop(columns=_HIDDEN_COLUMNS)
        return frame.reset_index(drop=True)

    def members(self, event_name: str | None = None) -> pd.DataFrame:
        """What stands in each group that ran as one: a fused kernel, or a delegate that does not tell more.

        Args:
            event_name: Only groups with this name; by default all.

        Returns:
            A row for each member: the group's block, name, instruction and median time, then the member's
            node, operator, shape, arithmetic operations, bytes that it would move by itself, its share of
            the group's operations, module and source line. Members whose work is unknown have none.
        """
        rows = []
        for block, event in self.events():
            if event.name == OVERHEAD_EVENT or len(event.nodes) < 2 or event_name not in (None, event.name):
                continue
            total = sum(node.work.flops for node in event.nodes if node.work is not None)
            for node in event.nodes:
                work = node.work
                rows.append(
                    {
                        "event_block_name": block.name,
                        "event_name": event.name,
                        "instruction": event.instruction,
                        "p50": None if event.perf_data is None else event.perf_data.p50,
                        "member": node.name,
                        "op": node.op,
                        "shapes": node.shapes,
                        "flops": None if work is None else work.flops,
                        "bytes": None if work is None else work.bytes_moved,
                        "share": None if work is None or not total else work.flops / total,
                        "module": node.module,
                        "source": node.source or "",
                    }
                )
        return pd.DataFrame(rows)

    def print_data_tabular(self, file: IO[str] | None = None, include_units: bool = True) -> None:
        """Show the table: in a notebook as HTML, else as text.

        Args:
            file: Where to print, by default the standard output.
            include_units: Name the unit in the headers of times.
        """
        table = self.table(include_units)
        if file is None and "IPython" in sys.modules:
            from IPython import get_ipython
            from IPython.display import display

            if get_ipython() is not None:
                display(table)  # type: ignore[no-untyped-call]
                return
        with pd.option_context("display.width", 220, "display.max_colwidth", 60):
            print(table.to_string(max_colwidth=60), file=file)

    def _repr_html_(self) -> str:
        return str(self.table().to_html())

    def save_data_to_tsv(self, file: PathLike | IO[str], include_units: bool = True) -> None:
        """Write the table, separated by tabs."""
        self.table(include_units).to_csv(file, sep="\t")

    def save_csv(self, file: PathLike | IO[str], include_units: bool = True) -> None:
        """Write the table as CSV."""
        self.table(include_units).to_csv(file, index=False)

    def save_perfetto(self, path: PathLike) -> None:
        """Write all runs as a timeline for ui.perfetto.dev or chrome://tracing."""
        from workbench.inspector.perfetto import write_timeline

        write_timeline(self, path)

    def find_total_for_module(self, module_name: str) -> float:
        """The mean time of all operators of a module, in the target's unit.

        What ran inside a delegate counts with the backend's own times where it tells which nodes they are,
        and else with the whole call.

        Args:
            module_name: The module's path, or a part of it.
        """
        total = 0.0
        for block in self.event_blocks:
            inside = {e.instruction for e in block.events if e.is_delegated_op and e.nodes}
            for event in block.events:
                if event.name == OVERHEAD_EVENT or event.name in FRAMEWORK_EVENTS or event.perf_data is None:
                    continue
                if not event.is_delegated_op and event.instruction in inside:
                    continue
                if any(_within(module_name, stack) for stack in event.module_hierarchy.values()):
                    total += event.perf_data.avg
        return total

    def calculate_numeric_gap(
        self,
        distance: Distance = "SQNR",
        reference_inputs: Any = None,
        *,
        method: str = "forward",
    ) -> pd.DataFrame:
        """How far each recorded value is from eager PyTorch's.

        Args:
            distance: `"SQNR"` (dB; also `"SNR"`), `"MSE"`, `"MAX_ERROR"`, `"L1"`, `"COSINE"`, or a
                function of the reference and the recorded value.
            reference_inputs: The inputs of the run; by default the ETRecord's representative inputs.
            method: The method.

        Returns:
            A row for each value, in program order. `attrs["unmatched"]` lists the nodes without a recorded
            value, with the reason.

        Raises:
            TraceError: Values, program or inputs are missing.
        """
        return self.compare_numerics(reference_inputs, distance, method=method).table

    def compare_numerics(
        self, reference_inputs: Any = None, distance: Distance = "SQNR", *, method: str = "forward"
    ) -> Comparison:
        """As `calculate_numeric_gap`, with the nodes that were left out."""
        symbols = None if self.symbols is None else self.symbols.method(method)
        if symbols is None or symbols.reference is None:
            raise TraceError(
                f"nothing is known of the method `{method}` to compare with",
                hint="give the Inspector the etrecord or the program",
            )
        if reference_inputs is None and self.etrecord is not None:
            inputs = self.etrecord.representative_inputs
            reference_inputs = inputs[0] if inputs else None
        if reference_inputs is None:
            raise TraceError("the inputs of the run are needed", hint="pass reference_inputs")
        block = next(
            (b for b in self.event_blocks if b.name.startswith("Execute") and b.method == method), None
        )
        if block is None or not any(event.debug_data for event in block.events):
            raise TraceError(
                "no intermediate outputs were recorded",
                hint="trace with outputs=True and give the debug buffer",
            )
        return compare(block.events, symbols.reference(), tuple(reference_inputs), distance)


def _within(name: str, stack: Any) -> bool:
    return any(name in key or name in path for key, (path, *_) in stack.items())


def _symbols(etrecord: ETRecord | None, program: Any, edge: Any) -> Symbols | None:
    if etrecord is not None and program is not None:
        raise TraceError("the program is given twice", expected="etrecord or program", found="both")
    if etrecord is not None:
        return Symbols.from_etrecord(etrecord)
    if program is None or isinstance(program, Symbols):
        return program
    return Symbols.from_manager(program, edge)


def _from_trace(trace: Trace) -> tuple[ETDump, bytes]:
    dump = trace.to_etdump()
    if trace.dropped:
        warnings.warn(
            f"{trace.dropped} events were dropped, for the ring was full: some runs are incomplete",
            stacklevel=4,
        )
    if trace.outputs_dropped:
        warnings.warn(
            f"{trace.outputs_dropped} intermediate outputs found no room in the debug buffer", stacklevel=4
        )
    return dump, trace.debug_buffer


def _load_etdump(source: PathLike | bytes | ETDump) -> ETDump:
    if isinstance(source, ETDump):
        return source
    return read_etdump(source if isinstance(source, bytes) else Path(source).read_bytes())


def _load_buffer(source: PathLike | bytes | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    return Path(source).read_bytes()
