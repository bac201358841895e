"""A comparison as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from workbench import provenance
from workbench.compare import CHANGED, MATCHED, Cell, Comparison, Row, error
from workbench.errors import WorkbenchError
from workbench.lowering import Lowering, Run
from workbench_widgets.columns import Strings
from workbench_widgets.compare.contract import CompareCells, CompareDocument, CompareSide
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.view import document

__all__ = [
    "compare_document",
    "compare_graph",
    "comparison_of",
    "first_documents",
    "lowering_of",
    "report_documents",
]

_STATUS = {MATCHED: 0, CHANGED: 1}


def comparison_of(context: Context) -> Comparison:
    """The comparison that a widget is about.

    Raises:
        WorkbenchError: It is about something else.
    """
    if context.comparison is None:
        raise WorkbenchError("this is no comparison", hint="show wb.compare(...)")
    return context.comparison


def compare_document(context: Context, key: str) -> CompareDocument:
    """A comparison, held against one side.

    Args:
        context: The subject.
        key: Number of the side that is the reference; the first where it is empty.

    Raises:
        WorkbenchError: There is no such side, or nothing to compare.
    """
    comparison = comparison_of(context)
    reference = _side_number(comparison, key or "0")
    lowerings = [lowering_of(side) for side in comparison.sides]
    known = [_handles(lowering, comparison.method) for lowering in lowerings]
    rows = comparison.rows
    own = [_row_handles(row, lowerings, known) for row in rows]
    start = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(handles) for handles in own], out=start[1:])
    return CompareDocument(
        method=comparison.method,
        reference=reference,
        sides=[_side(comparison, number, lowerings[number]) for number in range(len(lowerings))],
        cells=[
            _cells(rows, number, reference, _translation(lowerings, known, number))
            for number in range(len(lowerings))
        ],
        status=np.array([_STATUS.get(row.status, 2) for row in rows], np.uint8),
        present=np.array([sum(1 << number for number in row.cells) for row in rows], np.uint32),
        source=Strings(row.source for row in rows),
        module=Strings(row.module for row in rows),
        handle_start=start,
        handles=np.array([handle for handles in own for handle in handles], np.int32),
        can_add_peer=all(_kind(side) != "peer" for side in comparison.sides),
    )


def compare_graph(context: Context, key: str) -> GraphDocument:
    """The graph of one side.

    Args:
        context: The subject.
        key: `side/stage/method`, the side by its number.

    Raises:
        WorkbenchError: There is no such side, stage or method.
    """
    comparison = comparison_of(context)
    number, _, rest = key.partition("/")
    side = Context(lowering_of(comparison.sides[_side_number(comparison, number)]))
    try:
        made: GraphDocument = document(side, "graph", rest)
    finally:
        side.close()
    return made


def first_documents(context: Context) -> list[tuple[str, str]]:
    """What the view draws first: against the first side."""
    return [("compare", "0")]


def report_documents(context: Context) -> Iterator[tuple[str, str]]:
    """All that a report can show: against each side, and the graph of each."""
    comparison = comparison_of(context)
    for number in range(len(comparison.sides)):
        yield "compare", str(number)
        yield "compare.graph", f"{number}/lowered/{comparison.method}"


def _side_number(comparison: Comparison, text: str) -> int:
    if not text.isdecimal() or int(text) >= len(comparison.sides):
        raise WorkbenchError(
            "the comparison has no such side", expected=f"0 to {len(comparison.sides) - 1}", found=text
        )
    return int(text)


def lowering_of(side: Any) -> Lowering:
    """What a side is, or is a run of."""
    lowering: Lowering = side.lowering if isinstance(side, Run) else side
    return lowering


def _handles(lowering: Lowering, method: str) -> Mapping[str, int]:
    """Source handle by the name of the exported node."""
    sources = provenance.source_map(lowering.lowered._programs[method])
    return {source.name: source.handle for source in sources if source.target != source.name}


def _row_handles(row: Row, lowerings: Sequence[Lowering], known: Sequence[Mapping[str, int]]) -> list[int]:
    """The handles of a row as the first side counts: also those of nodes that only its relatives have."""
    found: set[int] = set()
    for lowering, names in zip(lowerings, known, strict=True):
        if lowering.selection is lowerings[0].selection:
            found.update(names[name] for name in row.origins if name in names)
    return sorted(found)


def _translation(
    lowerings: Sequence[Lowering], known: Sequence[Mapping[str, int]], number: int
) -> list[tuple[int, int]]:
    """Handles of a side that was captured by itself, beside the first side's for the same node."""
    if lowerings[number].selection is lowerings[0].selection:
        return []
    return [(handle, known[0].get(name, 0)) for name, handle in known[number].items()]


def _side(comparison: Comparison, number: int, lowering: Lowering) -> CompareSide:
    side = comparison.sides[number]
    rows = [row for row in comparison.rows if number in row.cells]
    cells = [row.cells[number] for row in rows]
    times = [cell.milliseconds for cell in cells if cell.milliseconds is not None]
    report = lowering.plan.report
    arenas = report.methods[comparison.method].size if comparison.method in report.methods else None
    return CompareSide(
        name=comparison.names[number],
        title=repr(side).splitlines()[0].strip("<>"),
        kind=_kind(side),
        rows=len(rows),
        matched=sum(row.status == MATCHED for row in rows),
        changed=sum(row.status == CHANGED for row in rows),
        only=sum(len(row.cells) == 1 for row in rows),
        nodes=sum(len(cell.nodes) for cell in cells),
        bytes=float(sum(cell.nbytes for cell in cells)),
        program_bytes=float(len(lowering.program.serialized.buffer)),
        arena_bytes=None if arenas is None else float(arenas),
        ms=sum(times) if times else None,
    )


def _kind(side: Any) -> Literal["lowering", "run", "peer"]:
    if not isinstance(side, Run):
        return "lowering"
    return "run" if getattr(side, "runtime", "native") == "native" else "peer"


def _cells(
    rows: Sequence[Row], number: int, reference: int, translation: Sequence[tuple[int, int]]
) -> CompareCells:
    cells = [row.cells.get(number, Cell()) for row in rows]
    errors = [_error(row, number, reference) for row in rows]
    return CompareCells(
        nodes=Strings(", ".join(node.name for node in cell.nodes) for cell in cells),
        operators=Strings(", ".join(cell.operators) for cell in cells),
        bytes=np.array([cell.nbytes for cell in cells], np.float64),
        ms=np.array([math.nan if cell.milliseconds is None else cell.milliseconds for cell in cells]),
        sqnr=np.array([sqnr for sqnr, _ in errors]),
        error=np.array([largest for _, largest in errors]),
        node=Strings(node.name for cell in cells for node in cell.nodes),
        node_row=np.repeat(np.arange(len(rows), dtype=np.int32), [len(cell.nodes) for cell in cells]),
        handle=np.array([handle for handle, _ in translation], np.int32),
        first_handle=np.array([first for _, first in translation], np.int32),
    )


def _error(row: Row, number: int, reference: int) -> tuple[float, float]:
    cell, wanted = row.cells.get(number), row.cells.get(reference)
    if number == reference or cell is None or wanted is None or cell.value is None or wanted.value is None:
        return math.nan, math.nan
    return error(wanted.value, cell.value) if cell.value.shape == wanted.value.shape else (math.nan, math.nan)
