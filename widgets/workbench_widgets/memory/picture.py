"""The memory plan where no script runs: a picture for each arena, and a table."""

from __future__ import annotations

import html
from collections.abc import Iterator

import numpy as np

from workbench.svg import Rectangle, rectangles
from workbench_widgets.context import Context
from workbench_widgets.memory.contract import MemoryDocument
from workbench_widgets.memory.document import memory_document
from workbench_widgets.view import Picture

__all__ = ["picture"]

_ROWS = 30
_HEAD = ("tensor", "arena", "offset", "bytes", "first", "last", "at peak", "made by")


def picture(context: Context) -> Picture:
    """SVG and table of all methods."""
    documents = [memory_document(context, method) for method in context.methods]
    body = "".join(part for document in documents for part in _method(document))
    text = "\n".join(line for document in documents for line in _lines(document))
    return Picture(f"<div>{body}</div>", text)


def _method(document: MemoryDocument) -> Iterator[str]:
    for arena in document.arenas:
        items = [
            Rectangle(
                f"{document.name[row]}: {int(document.bytes[row]):,} bytes at {int(document.offset[row]):,}",
                int(document.first[row]),
                int(document.last[row]),
                int(document.offset[row]),
                int(document.bytes[row]),
                bool(document.at_peak[row]),
            )
            for row in np.flatnonzero(document.arena == arena.arena).tolist()
        ]
        title = (
            f"{document.method}, arena {arena.arena}: {arena.size:,} bytes, at least "
            f"{arena.lower_bound:,} needed, {arena.total:,} without sharing"
        )
        yield rectangles(items, size=arena.size, title=title)
    rows = _rows(document)
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    more = len(document.name) - len(rows)
    rest = f"<p>and {more:,} smaller ones</p>" if more else ""
    yield (
        f"<details><summary>{len(document.name):,} tensors, the largest first</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}</details>"
    )


def _rows(document: MemoryDocument) -> list[tuple[str, ...]]:
    largest = np.argsort(-document.bytes, kind="stable")[:_ROWS].tolist()
    return [
        (
            document.name[row],
            str(document.arena[row]),
            f"{int(document.offset[row]):,}",
            f"{int(document.bytes[row]):,}",
            str(document.first[row]),
            str(document.last[row]),
            "yes" if document.at_peak[row] else "",
            document.moment_name[int(document.producer[row])],
        )
        for row in largest
    ]


def _lines(document: MemoryDocument) -> Iterator[str]:
    for arena in document.arenas:
        yield (
            f"{document.method}, arena {arena.arena}: {arena.size:,} bytes, at least {arena.lower_bound:,} "
            f"needed, {arena.total:,} without sharing, {arena.tensors:,} tensors"
        )
    rows = [_HEAD, *_rows(document)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
