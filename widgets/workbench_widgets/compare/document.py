"""A comparison as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from workbench.compare import CHANGED, MATCHED, Cell, Comparison, Row, error
from workbench.errors import WorkbenchError
from workbench.lowering import Run
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
    "report_documents",
    "subject_of",
]

# A bit of `CompareDocument.present` each, which scripts read as a signed number.
_MOST_SIDES = 31
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
        WorkbenchError: There is no such side, there are too many, or there is nothing to compare.
    """
    comparison = comparison_of(context)
    reference = _side_number(comparison, key or "0")
    if len(comparison.sides) > _MOST_SIDES:
        raise WorkbenchError(
            "these are too many sides to look at",
            expected=f"at most {_MOST_SIDES}",
            found=str(len(comparison.sides)),
            hint="the table has them all",
        )
    rows = comparison.rows
    start = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row.handles) for row in rows], out=start[1:])
    numbers = range(len(comparison.sides))
    return CompareDocument(
        method=comparison.method,
        reference=reference,
        sides=[_side(comparison, number) for number in numbers],
        cells=[_cells(comparison, number, reference) for number in numbers],
        status=np.array([_STATUS.get(row.status, 2) for row in rows], np.uint8),
        present=np.array([sum(1 << number for number in row.cells) for row in rows], np.uint32),
        source=Strings(row.source for row in rows),
        module=Strings(row.module for row in rows),
        handle_start=start,
        handles=np.array([handle for row in rows for handle in sorted(row.handles)], np.int32),
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
    side = Context(subject_of(comparison.sides[_side_number(comparison, number)]))
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
        yield "compare.graph", f"{number}/{_stage(comparison, number)}/{comparison.method}"


def _side_number(comparison: Comparison, text: str) -> int:
    if not text.isdecimal() or int(text) >= len(comparison.sides):
        raise WorkbenchError(
            "the comparison has no such side", expected=f"0 to {len(comparison.sides) - 1}", found=text
        )
    return int(text)


def subject_of(side: Any) -> Any:
    """The lowering or the program from a file that a side is, or is a run of."""
    if not isinstance(side, Run):
        return side
    return side.lowering if side.joined else side.of


def _stage(comparison: Comparison, number: int) -> str:
    """The stage whose nodes are compared."""
    return "program" if comparison.known[number].by_instruction else "lowered"


def _side(comparison: Comparison, number: int) -> CompareSide:
    side, known = comparison.sides[number], comparison.known[number]
    rows = [row for row in comparison.rows if number in row.cells]
    cells = [row.cells[number] for row in rows]
    times = [cell.milliseconds for cell in cells if cell.milliseconds is not None]
    return CompareSide(
        name=comparison.names[number],
        title=repr(side).splitlines()[0].strip("<>"),
        kind=_kind(side),
        stage=_stage(comparison, number),
        rows=len(rows),
        matched=sum(row.status == MATCHED for row in rows),
        changed=sum(row.status == CHANGED for row in rows),
        only=sum(len(row.cells) == 1 for row in rows),
        nodes=sum(len(cell.nodes) for cell in cells),
        bytes=float(sum(cell.nbytes for cell in cells)),
        program_bytes=float(known.program_bytes),
        arena_bytes=float(known.arena_bytes),
        ms=sum(times) if times else None,
    )


def _kind(side: Any) -> Literal["lowering", "run", "peer"]:
    if not isinstance(side, Run):
        return "lowering"
    return "run" if side.runtime == "native" else "peer"


def _translation(comparison: Comparison, number: int) -> list[tuple[int, int]]:
    """Handles of a side that counts by itself, beside the first side's for the same node."""
    first, own = comparison.known[0], comparison.known[number]
    if own.family is first.family:
        return []
    return [(handle, first.handles.get(name, 0)) for name, handle in own.handles.items()]


def _cells(comparison: Comparison, number: int, reference: int) -> CompareCells:
    rows = comparison.rows
    cells = [row.cells.get(number, Cell()) for row in rows]
    translation = _translation(comparison, number)
    errors = [_error(row, number, reference) for row in rows]
    return CompareCells(
        nodes=Strings(", ".join(node.name for node in cell.nodes) for cell in cells),
        operators=Strings(", ".join(cell.operators) for cell in cells),
        bytes=np.array([cell.nbytes for cell in cells], np.float64),
        ms=np.array([math.nan if cell.milliseconds is None else cell.milliseconds for cell in cells]),
        sqnr=np.array([sqnr for sqnr, _ in errors]),
        error=np.array([largest for _, largest in errors]),
        inside=Strings(_inside(cell) for cell in cells),
        node=Strings(node.name for cell in cells for node in cell.nodes),
        node_row=np.repeat(np.arange(len(rows), dtype=np.int32), [len(cell.nodes) for cell in cells]),
        handle=np.array([handle for handle, _ in translation], np.int32),
        first_handle=np.array([first for _, first in translation], np.int32),
    )


def _inside(cell: Cell) -> str:
    """What ran inside a delegate, a line each."""
    times = (
        item.name if item.milliseconds is None else f"{item.name}: {item.milliseconds:.3g} ms"
        for item in cell.inside
    )
    return "\n".join(times)


def _error(row: Row, number: int, reference: int) -> tuple[float, float]:
    cell, wanted = row.cells.get(number), row.cells.get(reference)
    if number == reference or cell is None or wanted is None or cell.value is None or wanted.value is None:
        return math.nan, math.nan
    return error(wanted.value, cell.value) if cell.value.shape == wanted.value.shape else (math.nan, math.nan)
