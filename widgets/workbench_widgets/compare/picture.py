"""What stands in for the comparison where no script runs."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd

from workbench.compare import Comparison
from workbench_widgets.compare.document import comparison_of
from workbench_widgets.context import Context
from workbench_widgets.view import Picture

__all__ = ["picture"]

_WIDTH, _ROW, _LABEL, _VALUE = 760, 20, 260, 110
_MOST = 16
_SHOWN_ROWS = 60
# Okabe and Ito's vermilion and blue: more, and less than the reference.
_MORE, _LESS = "#d55e00", "#0072b2"


def picture(context: Context) -> Picture:
    """Totals, the largest differences as bars, and the table."""
    comparison = comparison_of(context)
    totals = comparison.summary()
    parts = [totals.to_html(index=False, border=0, na_rep="", float_format=lambda value: f"{value:,.3f}")]
    for name in comparison.names[1:]:
        timed = f"{name}: Δ ms" in comparison.table
        column, unit = (f"{name}: Δ ms", "ms") if timed else (f"{name}: Δ bytes", "bytes")
        parts.append(_bars(comparison, column, f"{name} against {comparison.names[0]}: Δ {unit}"))
    rows = comparison.table.to_html(index=False, border=0, max_rows=_SHOWN_ROWS, na_rep="")
    parts.append(f"<details><summary>{len(comparison.table)} rows</summary>{rows}</details>")
    return Picture(f"<div>{''.join(parts)}</div>", repr(comparison))


def _bars(comparison: Comparison, column: str, title: str) -> str:
    """The largest differences as bars to the left (less) and to the right (more)."""
    table = comparison.table
    if column not in table:
        return ""
    deltas = pd.to_numeric(table[column], errors="coerce").fillna(0.0)
    order = deltas.abs().sort_values(ascending=False, kind="stable")
    chosen = [index for index in order.index[:_MOST] if deltas[index] != 0]
    if not chosen:
        return f"<p>{html.escape(title)}: no difference</p>"
    labels = [_label(table.loc[index], comparison.names) for index in chosen]
    return _svg(title, labels, [float(deltas[index]) for index in chosen])


def _label(row: pd.Series, names: Sequence[str]) -> str:
    nodes = next((row[f"{name}: nodes"] for name in names if row[f"{name}: nodes"]), "")
    return nodes if len(nodes) <= 38 else nodes[:37] + "…"


def _svg(title: str, labels: Sequence[str], values: Sequence[float]) -> str:
    largest = max(abs(value) for value in values)
    half = (_WIDTH - _LABEL - 2 * _VALUE) / 2
    middle = _LABEL + _VALUE + half
    lines = [
        f'<text x="{middle}" y="14" text-anchor="middle" fill="currentColor">{html.escape(title)}</text>'
    ]
    for number, (label, value) in enumerate(zip(labels, values, strict=True), start=1):
        top = number * _ROW
        width = max(1.0, half * abs(value) / largest)
        left = middle if value > 0 else middle - width
        anchor, at = ("start", middle + width + 6) if value > 0 else ("end", middle - width - 6)
        text = f"{value:+,.0f}" if float(value).is_integer() else f"{value:+.3g}"
        lines.append(
            f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end" fill="currentColor">'
            f"{html.escape(label)}</text>"
            f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="{_ROW - 6}" rx="2" '
            f'fill="{_MORE if value > 0 else _LESS}"/>'
            f'<text x="{at:.1f}" y="{top + 14}" text-anchor="{anchor}" fill="currentColor">{text}</text>'
        )
    height = (len(labels) + 1) * _ROW + 4
    lines.append(
        f'<line x1="{middle}" x2="{middle}" y1="{_ROW}" y2="{height}" '
        'stroke="currentColor" stroke-opacity=".5"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="12">'
        f"<title>{html.escape(title)}</title>{''.join(lines)}</svg>"
    )
