"""Running a program and looking at the run, whatever the program comes from and whichever runtime runs it."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch

from workbench import display, svg
from workbench.emit import ir
from workbench.errors import ExecutionError, TraceError
from workbench.inspector import Event, EventBatch, Inspector, LiveRun, Symbols, Trace
from workbench.peer import PeerMethod, PeerSession
from workbench.runtime import Method, Runtime, TraceSession
from workbench.selection import Selection, resolve

__all__ = ["Engine", "Run", "Runnable", "new_trace"]

Engine = Literal["native", "executorch"]


def new_trace(*, events: int = 1 << 16, values: bool = False, runtime: Engine = "native") -> Trace:
    """A trace that executions may write to.

    Args:
        events: Room for events of the native runtime that have not been collected yet.
        values: Record what each instruction wrote, too.
        runtime: Where the executions will be.
    """
    if runtime == "executorch":
        return Trace(PeerSession(values=values))
    return Trace(TraceSession(events=events, outputs=values))


class Runnable(display.Shown):
    """What has a program that can be run, and views with one selection."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._loaded: dict[tuple[Engine, str], Any] = {}

    def _source(self) -> str | bytes:
        """The program's path or bytes."""
        raise NotImplementedError

    def _program(self) -> ir.Program:
        """The program in memory."""
        raise NotImplementedError

    def _names(self) -> Iterable[tuple[str, Mapping[str, frozenset[int]]]]:
        """Handles by the names of nodes, as of `workbench.selection.resolve`."""
        return ()

    def _modules(self) -> Iterable[tuple[str, Mapping[str, frozenset[int]]]]:
        """The same by the paths of modules."""
        return ()

    def _origin(self) -> Callable[[], Any] | None:
        """What gives the lowering that a run of today has run, also tomorrow; None where there is none."""
        return None

    @property
    def selection(self) -> Selection:
        """What is selected, the same in all views.

        May be set to source handles, names of nodes of any stage, paths of modules, rows of a table with a
        column `handles`, or None. Lowerings made from one capture share their selection. In a program from a
        file, of whose nodes nothing is known, the handle of an instruction is its index plus one.

        Raises:
            SelectionError: On setting: there is no such node.
        """
        return self._selection

    @selection.setter
    def selection(self, value: Any) -> None:
        handles, node, method = resolve(value, self._names, self._modules)
        self._selection.set(handles, node=node, method=method)

    def to_html(self, path: str | os.PathLike[str], *, run: Run | None = None) -> None:
        """Write all views as one HTML file, which needs neither a kernel nor a network.

        Args:
            path: The file.
            run: A run whose measurements are shown.

        Raises:
            DisplayError: The widgets are not installed.
        """
        display.save_report(self, path, run=run)

    def load_method(self, name: str = "forward") -> Method:
        """The method in the native runtime, loaded once.

        Raises:
            ExecutionError: The runtime refuses the program, or there is no such method.
        """
        method = self._load("native", name)
        assert isinstance(method, Method)
        return method

    def _load(self, runtime: Engine, name: str) -> Any:
        key = (runtime, name)
        if key not in self._loaded:
            if runtime == "native":
                self._loaded[key] = Runtime.get().load_program(self._source()).load_method(name)
            else:
                self._loaded[key] = PeerMethod(self._source(), self._program(), name)
        return self._loaded[key]

    def run(
        self,
        *inputs: Any,
        method: str = "forward",
        profile: bool = False,
        values: bool = False,
        repeat: int = 1,
        background: bool = False,
        runtime: Engine = "native",
    ) -> Run:
        """Run a method.

        Args:
            *inputs: Tensors and numbers, as the model takes them.
            method: The method.
            profile: Record when each instruction ran.
            values: Record what each instruction wrote, too (implies `profile`; takes memory for every
                tensor).
            repeat: How often to run; times are given over all executions.
            background: Return at once; `events()` then streams what happens, `outputs` waits for the end.
            runtime: `"native"`, or `"executorch"` for ExecuTorch's own runtime, if that is installed.

        Raises:
            ExecutionError: The inputs don't fit the method, an operator failed, or there is no such runtime
                or no such backend in it.
            MissingKernelError: ExecuTorch's runtime has no kernel for an operator.
        """
        if repeat < 1:
            raise ExecutionError(
                "a method runs at least once", code="InvalidArgument", found=f"repeat={repeat}"
            )
        if runtime not in get_args(Engine):
            raise ExecutionError(
                "there is no such runtime",
                code="InvalidArgument",
                expected=" or ".join(get_args(Engine)),
                found=repr(runtime),
            )
        loaded = self._load(runtime, method)
        trace = new_trace(values=values, runtime=runtime) if profile or values else None
        if background:
            session = (trace or new_trace(runtime=runtime)).session
            live = LiveRun.start(loaded, list(inputs), repeat=repeat, session=session)
            recorded = None if trace is None else live.trace
            return Run(self, method, recorded, live=live, inputs=inputs, runtime=runtime)
        outputs = None
        for _ in range(repeat):
            outputs = loaded.execute(list(inputs), trace=trace)
            if trace is not None and runtime == "native":
                trace.collect()  # the ring must not fill up
        if trace is not None:
            trace.collect()
        return Run(self, method, trace, outputs=outputs, inputs=inputs, runtime=runtime)


class Run(display.Shown):
    """One or several executions of a method.

    Attributes:
        of: What was run.
        method: The method's name.
        inputs: What it was run with; empty where that is not known.
        runtime: `"native"` or `"executorch"`.
        trace: What was recorded, or None where nothing was asked for.
    """

    def __init__(
        self,
        of: Runnable,
        method: str,
        trace: Trace | None,
        *,
        outputs: Any = None,
        live: LiveRun | None = None,
        inputs: tuple[Any, ...] = (),
        runtime: Engine = "native",
    ) -> None:
        self.of = of
        self.inputs = inputs
        self.runtime = runtime
        self._origin = of._origin()
        self.method = method
        self.trace = trace
        self._outputs = outputs
        self._live = live
        self._inspector: Inspector | None = None

    @property
    def running(self) -> bool:
        """Whether executions are still going on in the background."""
        return self._live is not None and self._live.running

    @property
    def outputs(self) -> Any:
        """The outputs of the last execution as a list; waits for it, and raises what it raised."""
        if self._live is not None:
            self._outputs = self._live.result()
        return self._outputs

    def cancel(self) -> None:
        """Ask a run in the background to end after the execution that is under way."""
        if self._live is not None:
            self._live.cancel()

    def events(self) -> Iterator[EventBatch]:
        """Batches of events as they happen, until the run ends.

        Raises:
            TraceError: Nothing was recorded.
            ExecutionError: An execution failed; raised behind its events.
        """
        trace = self._recorded()
        if self._live is not None:
            yield from self._live.events()
        elif len(trace):
            yield trace.batch()

    def _recorded(self) -> Trace:
        if self.trace is None:
            raise TraceError("nothing was recorded", hint="lowering.run(..., profile=True)")
        return self.trace

    @property
    def lowering(self) -> Any:
        """The lowering that was run, as it was then, if it has been updated since.

        Raises:
            TraceError: It was a program from a file, of whose lowering nothing is known.
        """
        if self._origin is None:
            raise TraceError("this run was of a program from a file", hint="compare runs of lowerings")
        return self._origin()

    @property
    def joined(self) -> bool:
        """Whether it is known what the instructions come from: they are those of a lowering."""
        return self._origin is not None

    @property
    def inspector(self) -> Inspector:
        """The trace joined with the program; waits for the end of the run.

        Raises:
            TraceError: Nothing was recorded.
        """
        trace = self._recorded()
        if self._live is not None:
            self._live.result()
        if self._inspector is None:
            symbols = None if self._origin is None else self._origin().symbols
            self._inspector = Inspector(trace=trace, program=symbols)
        return self._inspector

    @property
    def table(self) -> pd.DataFrame:
        """One row per instruction and per event inside a delegate, with times in milliseconds.

        Behind the Inspector's columns stand `module` and `source` (`file:line`) of the last node that a row
        stands for, empty where nothing is known, and `handles`, the source handles of all of them.
        """
        inspector = self.inspector
        events = [event for _, event in inspector.events()]
        last = [event.nodes[-1] if event.nodes else None for event in events]
        return inspector.to_dataframe().assign(
            module=["" if node is None else node.module for node in last],
            source=["" if node is None else node.source or "" for node in last],
            handles=[self._handles(event) for event in events],
        )

    def _handles(self, event: Any) -> tuple[int, ...]:
        if self._origin is None:
            return () if event.instruction < 0 else (event.instruction + 1,)
        return tuple(sorted({handle for node in event.nodes for handle in node.source_handles}))

    def events_of(self, method: str, symbols: Symbols | None = None) -> Iterator[Event]:
        """The Inspector's events of a method; none where nothing was recorded.

        Args:
            method: The method.
            symbols: Of a lowering that made this very program, for a run of a file.
        """
        if self.trace is None:
            return
        inspector = self.inspector
        if symbols is not None and inspector.symbols is not symbols:
            inspector = Inspector(trace=self.trace, program=symbols)
        for block in inspector.event_blocks:
            if block.name.startswith("Execute") and block.method == method:
                yield from block.events

    def summary(self) -> pd.DataFrame:
        """Where the time goes: one row per operator, the most expensive first.

        Columns: operator, calls (in one execution), ms (median of an execution, summed over the calls), % of
            all.
        """
        totals: dict[str, tuple[int, float]] = {}
        for event in self.events_of(self.method):
            inside = event.delegate_debug_identifier is not None
            if event.perf_data is None or inside or event.instruction < 0:
                continue
            name = event.name.removeprefix("native_call_")
            if event.delegate_backend_name:
                name = f"delegate {event.delegate_backend_name}"
            calls, ms = totals.get(name, (0, 0.0))
            totals[name] = (calls + event.calls, ms + event.perf_data.p50)
        whole = sum(ms for _, ms in totals.values()) or 1.0
        rows = [
            {"operator": name, "calls": calls, "ms": round(ms, 4), "%": round(100 * ms / whole, 1)}
            for name, (calls, ms) in sorted(totals.items(), key=lambda item: -item[1][1])
        ]
        return pd.DataFrame(rows, columns=["operator", "calls", "ms", "%"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace: `.json` for Perfetto and Chrome, any other suffix as ETDump.

        Raises:
            TraceError: Nothing was recorded.
        """
        if Path(path).suffix == ".json":
            self.inspector.save_perfetto(path)
        else:
            self._recorded().save(path)

    def __repr__(self) -> str:
        state = "running" if self.running else "done"
        recorded = "" if self.trace is None else f", {len(self.trace)} events"
        return f"<Run of {self.method}: {state}{recorded}>"

    def _static_html(self) -> str:
        title = html.escape(repr(self).strip("<>"))
        if self.running:
            return f"<div><p><b>{title}</b></p></div>"
        if self.trace is None:
            outputs = self.outputs if isinstance(self.outputs, list) else []
            items = "".join(f"<li><code>{html.escape(_described(item))}</code></li>" for item in outputs)
            return f"<div><p><b>{title}</b></p><ol>{items}</ol></div>"
        summary = self.summary()
        spent = zip(summary["operator"], summary["ms"], strict=True)
        times = [(name, round(1000 * ms)) for name, ms in spent]
        rows = str(summary.to_html(index=False, border=0))
        return (
            f"<div><p><b>{title}</b></p>{svg.bars(times, unit='µs')}"
            f"<details><summary>{len(summary)} operators</summary>{rows}</details></div>"
        )


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    return repr(value)
