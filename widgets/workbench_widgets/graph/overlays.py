"""Numbers for each node: bytes, arithmetic, what a run measured, and what other views know."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from workbench import provenance
from workbench.inspector import roofline
from workbench.inspector.names import FRAMEWORK_EVENTS, OVERHEAD_EVENT
from workbench.run import Run
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument, OverlayColumn, OverlayDocument
from workbench_widgets.graph.document import graph_document, rows_of, split_key
from workbench_widgets.view import all_views

__all__ = ["overlay_document"]

Doubles = npt.NDArray[np.float64]

_flops: WeakKeyDictionary[Any, dict[str, Doubles]] = WeakKeyDictionary()
_gaps: WeakKeyDictionary[Run, list[tuple[int, int, float]]] = WeakKeyDictionary()


def overlay_document(context: Context, key: str) -> OverlayDocument:
    """All numbers for one method at one stage.

    Args:
        context: The subject; with a run, its times and errors are among the numbers.
        key: `stage/method`.

    Raises:
        WorkbenchError: There is no such stage or method.
    """
    stage, method = split_key(context, key)
    document = graph_document(context, f"{stage}/{method}")
    columns: list[OverlayColumn] = []
    run = context.run
    # The instructions of another program are others.
    fits = run is not None and run.of is (context.lowering or context.opened) and run.method == method
    if fits and run is not None and run.trace is not None and not run.running:
        columns = list(_measured(context, document, run))
    for view in all_views().values():
        if view.overlays is not None:
            columns += view.overlays(context, document)
    return OverlayDocument(document.stage, method, [*columns, *_static(context, document)])


def _static(context: Context, document: GraphDocument) -> Iterable[OverlayColumn]:
    kinds = _mask(document, {"call", "delegate", "control"})
    weights = _mask(document, {"parameter", "buffer", "constant"})
    # The results of a call with several are its own; `getitem` only takes one out.
    kinds &= ~np.isin(document.op.codes, [i for i, op in enumerate(document.op.values) if op == "getitem"])
    yield OverlayColumn(
        "output_bytes", "Output bytes", "bytes", "sum", np.where(kinds, document.bytes, np.nan)
    )
    if weights.any():
        yield OverlayColumn(
            "weight_bytes", "Weight bytes", "bytes", "sum", np.where(weights, document.bytes, np.nan)
        )
    if document.stage != "program":
        yield OverlayColumn("flops", "Operations", "flops", "sum", _arithmetic(context, document))


def _mask(document: GraphDocument, wanted: set[str]) -> npt.NDArray[np.bool_]:
    codes = [code for code, kind in enumerate(document.kind.values) if kind in wanted]
    return np.isin(document.kind.codes, codes)


def _arithmetic(context: Context, document: GraphDocument) -> Doubles:
    stage = context.stage(document.stage)
    known = _flops.setdefault(stage, {})
    if document.method not in known:
        rows = rows_of(stage, document.method)
        counted = np.full(len(rows.nodes), np.nan)
        for row, node in enumerate(rows.nodes):
            if rows.kinds[row] == "call" and (work := roofline.work_of(node)) is not None:
                counted[row] = work.flops
        known[document.method] = counted
    return known[document.method]


# ---- what a run measured -----------------------------------------------------------------------------------


class _Finder:
    """Which rows an event of a run stands for."""

    def __init__(self, context: Context, document: GraphDocument) -> None:
        self.instructions: dict[int, list[int]] = {}
        self.debugs: dict[int, list[int]] = {}
        self.delegates: dict[int, int] = {}
        self.handles: dict[int, list[int]] = {}
        if document.stage == "program":
            for row, number in enumerate(document.instruction.tolist()):
                if number >= 0:
                    self.instructions[number] = [row]
            return
        rows = rows_of(context.stage(document.stage), document.method)
        for row, node in enumerate(rows.nodes):
            kind, debug = rows.kinds[row], node.meta.get("debug_handle")
            if kind == "delegate":
                for known in self._within(rows, row):
                    self.delegates[known] = row
            if kind in ("call", "control") and isinstance(debug, int):
                self.debugs.setdefault(debug, []).append(row)
            if kind == "call":
                for handle in document.handles[document.handle_start[row] : document.handle_start[row + 1]]:
                    self.handles.setdefault(int(handle), []).append(row)

    @staticmethod
    def _within(rows: Any, row: int) -> Iterable[int]:
        """Debug handles of what a delegate runs."""
        container = rows.modules[row]
        for other in range(row - 1, -1, -1):
            module = rows.modules[other]
            if rows.kinds[other] == "call" and not _below(rows.tree.parents, module, container):
                return
            debug = rows.nodes[other].meta.get("debug_handle")
            if isinstance(debug, int) and rows.kinds[other] == "call":
                yield debug

    def inner(self, event: Any) -> list[int]:
        """Rows of what ran inside a delegate."""
        return self._nodes(event) if not self.instructions else []

    def outer(self, event: Any) -> list[int]:
        """Rows of an instruction."""
        if self.instructions:
            return self.instructions.get(event.instruction, [])
        called = {self.delegates[debug] for debug in event.debug_handles if debug in self.delegates}
        return sorted(called) if called else self._nodes(event)

    def _nodes(self, event: Any) -> list[int]:
        found = [row for debug in event.debug_handles for row in self.debugs.get(debug, ())]
        if not found:
            handles = {handle for node in event.nodes for handle in node.source_handles}
            found = [row for handle in handles for row in self.handles.get(handle, ())]
        return sorted(set(found))


def _below(parents: list[int], module: int, container: int) -> bool:
    while module > container:
        module = parents[module]
    return module == container


def _measured(context: Context, document: GraphDocument, run: Run) -> Iterable[OverlayColumn]:
    find = _Finder(context, document)
    times = _times(find, len(document.name), run)
    if not np.isnan(times).all():
        yield OverlayColumn("time", "Time (median)", "ms", "sum", times)
        total = float(np.nansum(times)) or 1.0
        yield OverlayColumn("share", "Share of time", "share", "sum", times / total)
    errors = _errors(find, document, run)
    if errors is not None:
        yield OverlayColumn("sqnr", "Agreement with eager (SQNR)", "dB", "min", errors)


def _times(find: _Finder, count: int, run: Run) -> Doubles:
    """Milliseconds of each row; what stands for several rows counts evenly for them."""
    times = np.full(count, np.nan)

    def add(rows: list[int], ms: float) -> None:
        for row in rows:
            times[row] = (0.0 if math.isnan(times[row]) else times[row]) + ms / len(rows)

    inside: dict[int, float] = {}
    events = [
        (event, event.perf_data.p50) for event in run.events_of(run.method) if event.perf_data is not None
    ]
    for event, ms in events:
        if event.delegate_debug_identifier is not None and (rows := find.inner(event)):
            inside[event.instruction] = inside.get(event.instruction, 0.0) + ms
            add(rows, ms)
    for event, ms in events:
        framework = event.name == OVERHEAD_EVENT or event.name in FRAMEWORK_EVENTS
        if event.delegate_debug_identifier is None and event.instruction >= 0 and not framework:
            # The call of a delegate has what its inside does not account for.
            add(find.outer(event), max(0.0, ms - inside.get(event.instruction, 0.0)))
    return times


def _errors(find: _Finder, document: GraphDocument, run: Run) -> Doubles | None:
    """SQNR of each row in decibels, the worst of its results; None where no values were recorded."""
    gaps = _gaps.get(run)
    if gaps is None:
        gaps = _gaps[run] = _compare(run)
    if not gaps:
        return None
    handles = _handles_by_debug(run) if not find.instructions and not find.debugs else {}
    errors = np.full(len(document.name), np.nan)
    for debug, instruction, gap in gaps:
        if find.instructions:
            rows = find.instructions.get(instruction, [])
        elif find.debugs:
            rows = find.debugs.get(debug, [])
        else:
            rows = [row for handle in handles.get(debug, ()) for row in find.handles.get(handle, ())]
        for row in rows:
            errors[row] = gap if math.isnan(errors[row]) else min(errors[row], gap)
    return None if np.isnan(errors).all() else errors


def _handles_by_debug(run: Run) -> dict[int, frozenset[int]]:
    """From debug handles to source handles: exported nodes have no debug handles."""
    rows = rows_of(run.lowering.edge, run.method)
    return {
        node.meta["debug_handle"]: provenance.handles(node)
        for node in rows.nodes
        if isinstance(node.meta.get("debug_handle"), int)
    }


def _compare(run: Run) -> list[tuple[int, int, float]]:
    """Debug handle, instruction and SQNR of each recorded value; empty where that can't be told."""
    if not run.inputs or run._origin is None:
        return []
    recorded = any(event.debug_data for event in run.events_of(run.method))
    if not recorded:
        return []
    table = run.inspector.compare_numerics(tuple(run.inputs), "SQNR", method=run.method).table
    found = []
    for debugs, instruction, gap in zip(
        table["aot_debug_handle"], table["instruction"], table["gap"], strict=True
    ):
        first = debugs if isinstance(debugs, int) else next(iter(debugs), 0)
        found.append((int(first), int(instruction), float(gap)))
    return found
