"""What stands in for the profile where no script runs: the most expensive rows as bars, and a table."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from workbench_widgets.context import Context
from workbench_widgets.profile.contract import ProfileDocument
from workbench_widgets.profile.session import ProfileState
from workbench_widgets.view import Picture

__all__ = ["picture"]

_ROW, _LABEL, _WIDTH, _BARS, _TABLE = 20, 250, 760, 15, 60
_BLUE = "#3b7dd8"


def picture(context: Context) -> Picture:
    """The profile of the run, or why there is none."""
    document = context.state(ProfileState).document(context.about("profile").method)
    if not document.executions:
        goes_on = context.run is not None and context.run.running
        state = "still running; show it again when it has ended" if goes_on else "nothing was measured yet"
        text = f"{document.method}: {state}"
        return Picture(f"<p>{html.escape(text)}</p>", text)
    order = [int(row) for row in np.argsort(-np.nan_to_num(document.median)) if document.parent[row] < 0]
    title = _title(document)
    body = (
        f"<p><b>{html.escape(title)}</b></p>{_bars(document, order[:_BARS])}"
        f"<details><summary>{len(order)} instructions</summary>{_table(document, order[:_TABLE])}</details>"
    )
    return Picture(f"<div>{body}</div>", f"{title}\n{_text(document, order[:_BARS])}")


def ms(value: float | None) -> str:
    """A time as people read it."""
    if value is None or math.isnan(value):
        return "-"
    for factor, unit in ((1e-3, "s"), (1.0, "ms"), (1e3, "µs")):
        if abs(value * factor) >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.0f} ns"


def _title(document: ProfileDocument) -> str:
    times = "execution" if document.executions == 1 else "executions"
    spread = f" (p10 {ms(document.total_p10)}, p90 {ms(document.total_p90)})"
    return (
        f"{document.method}: {ms(document.total_median)}, median of {document.executions:,} {times}"
        f"{spread if document.executions > 1 else ''}"
    )


def _bars(document: ProfileDocument, rows: Sequence[int]) -> str:
    largest = max((float(document.p90[row]) for row in rows if not math.isnan(document.p90[row])), default=1)
    room = (_WIDTH - _LABEL - 110) / (largest or 1)
    whole = document.total_median or 1.0
    lines = []
    for place, row in enumerate(rows):
        top, median = place * _ROW, float(document.median[row])
        if math.isnan(median):
            continue
        low, high = _LABEL + room * float(document.p10[row]), _LABEL + room * float(document.p90[row])
        name = f"{document.name[row]} {document.operator[row].removeprefix('aten::').split('.')[0]}"
        name = name if len(name) <= 38 else name[:37] + "…"
        middle = top + _ROW / 2
        lines.append(
            f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end" fill="currentColor">{html.escape(name)}'
            f'</text><rect x="{_LABEL}" y="{top + 3}" width="{max(room * median, 1):.1f}" height="{_ROW - 6}"'
            f' rx="2" fill="{_BLUE}"/>'
            f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {top + 6}v8M{high:.1f} {top + 6}v8"'
            f' stroke="currentColor" fill="none"/>'
            f'<text x="{max(high, _LABEL + room * median) + 6:.1f}" y="{top + 14}" fill="currentColor">'
            f"{ms(median)}, {100 * median / whole:.1f} %</text>"
        )
    height = max(len(rows), 1) * _ROW
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    label = html.escape(f"{_title(document)}; the most expensive instructions, with p10 to p90")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">'
        f"<title>{label}</title>{''.join(lines)}</svg>"
    )


def _table(document: ProfileDocument, rows: Sequence[int]) -> str:
    heads = ("name", "operator", "backend", "module", "source", "median", "p10", "p90", "share")
    whole = document.total_median or 1.0
    lines = ["<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for row in rows:
        cells = [str(getattr(document, name)[row]) for name in heads[:5]]
        cells += [ms(float(getattr(document, name)[row])) for name in ("median", "p10", "p90")]
        cells.append(f"{100 * float(document.median[row]) / whole:.1f} %")
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _text(document: ProfileDocument, rows: Sequence[int]) -> str:
    median = document.median
    lines = (f"{ms(float(median[row])):>10}  {document.name[row]}  {document.operator[row]}" for row in rows)
    return "\n".join(lines)
