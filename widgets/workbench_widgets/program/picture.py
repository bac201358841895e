"""The program where no script runs: a treemap of its bytes, and a table of its parts and operators."""

from __future__ import annotations

import html
from collections.abc import Sequence

from workbench_widgets.context import Context
from workbench_widgets.program.contract import ProgramDocument
from workbench_widgets.program.document import program_document
from workbench_widgets.program.treemap import Box, squarify
from workbench_widgets.view import Picture

__all__ = ["COLORS", "picture"]

_WIDTH, _HEIGHT, _LEAST, _ROWS = 760, 320, 3.0, 25
# Okabe and Ito's palette for all kinds of colour vision, by kind of the part.
COLORS = {
    "flatbuffer": "#56b4e9",
    "section": "#56b4e9",
    "constant": "#0072b2",
    "state": "#cc79a7",
    "delegate": "#e69f00",
    "data": "#009e73",
    "padding": "#999999",
}


def picture(context: Context) -> Picture:
    """SVG and tables."""
    document = program_document(context, "")
    parents = set(document.part_parent.tolist())
    rows = [row for row in range(len(document.part_kind)) if row not in parents]
    rows.sort(key=lambda row: -document.part_bytes[row])
    parts = [
        (
            document.part_name[row],
            document.part_kind[row],
            f"{int(document.part_bytes[row]):,}",
            document.part_detail[row],
        )
        for row in rows[:_ROWS]
    ]
    operators = [
        (
            document.operator_name[row],
            f"{document.operator_calls[row]:,}",
            f"{int(document.operator_constant_bytes[row]):,}",
        )
        for row in range(min(len(document.operator_name), _ROWS))
    ]
    saved = f"; {document.saved:,} bytes are stored more than once" if document.saved else ""
    title = f"{document.size:,} bytes{saved}"
    head, second = ("part", "kind", "bytes", "detail"), ("operator", "calls", "bytes of constants")
    body = (
        f"<div><p>{html.escape(title)}</p>{_svg(document)}"
        f"<details><summary>{len(rows):,} parts, the largest first</summary>{_table(head, parts)}</details>"
        f"<details><summary>{len(document.operator_name):,} operators</summary>{_table(second, operators)}"
        "</details></div>"
    )
    return Picture(body, "\n".join([title, *_lines([head, *parts]), "", *_lines([second, *operators])]))


def _svg(document: ProgramDocument) -> str:
    children: dict[int, list[int]] = {}
    for row, parent in enumerate(document.part_parent.tolist()):
        children.setdefault(parent, []).append(row)
    drawn: list[str] = []

    def place(row: int, box: Box) -> None:
        members = sorted(children.get(row, ()), key=lambda item: -document.part_bytes[item])
        members = [item for item in members if document.part_bytes[item] > 0]
        if not members or min(box[2:]) < _LEAST:
            drawn.append(_cell(document, row, box))
            return
        inner = box if row == 0 else _shrunk(box)
        sizes = [float(document.part_bytes[item]) for item in members]
        for item, part in zip(members, squarify(sizes, inner), strict=True):
            place(item, part)

    place(0, (0.0, 0.0, float(_WIDTH), float(_HEIGHT)))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="11">'
        f"<title>Bytes by part of the file</title>{''.join(drawn)}</svg>"
    )


def _shrunk(box: Box) -> Box:
    x, y, width, height = box
    return (x + 1, y + 1, max(width - 2, 0.0), max(height - 2, 0.0))


def _cell(document: ProgramDocument, row: int, box: Box) -> str:
    x, y, width, height = box
    if min(width, height) < 0.3:
        return ""
    name = html.escape(document.part_name[row])
    color = COLORS.get(document.part_kind[row], "#999999")
    label = f"{name}: {int(document.part_bytes[row]):,} bytes {html.escape(document.part_detail[row])}"
    text = ""
    letters = int((width - 8) / 6.5)
    if height > 16 and letters > 3:
        whole = document.part_name[row]
        # Of a dotted name the end tells it apart.
        cut = f"…{whole[1 - letters :]}" if "." in whole else f"{whole[: letters - 1]}…"
        shown = name if len(whole) <= letters else html.escape(cut)
        text = f'<text x="{x + 4:.1f}" y="{y + 13:.1f}" fill="#000">{shown}</text>'
    return (
        f'<g><title>{label}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{color}" fill-opacity="0.75" stroke="#fff" stroke-width="0.8"/>{text}</g>'
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    names = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]
