"""Small static pictures as SVG text, readable on light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["bars"]

_ROW, _LABEL, _WIDTH, _MOST = 20, 260, 760, 16


def bars(values: Sequence[tuple[str, int]], *, unit: str) -> str:
    """Horizontal bars with label and value; what is beyond the first rows is summed up in the last.

    Args:
        values: Label and value >= 0, in the order in which they are drawn.
        unit: Written behind each value.
    """
    shown = list(values[:_MOST])
    rest = values[_MOST:]
    if rest:
        shown.append((f"{len(rest)} others", sum(value for _, value in rest)))
    largest = max((value for _, value in shown), default=0) or 1
    room = _WIDTH - _LABEL - 120
    lines = []
    for row, (label, value) in enumerate(shown):
        top = row * _ROW
        width = max(1, round(room * value / largest)) if value else 0
        name = html.escape(label if len(label) <= 38 else label[:37] + "…")
        lines.append(
            f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end" fill="currentColor">{name}</text>'
            f'<rect x="{_LABEL}" y="{top + 3}" width="{width}" height="{_ROW - 6}" rx="2" fill="#3b7dd8"/>'
            f'<text x="{_LABEL + width + 6}" y="{top + 14}" fill="currentColor">{value:,} {unit}</text>'
        )
    height = max(1, len(shown)) * _ROW
    total = sum(value for _, value in values)
    title = f"{len(values)} rows, {total:,} {unit} in all"
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    style = 'role="img" font-family="sans-serif" font-size="12"'
    body = f"<title>{title}</title>" + "".join(lines)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{body}</svg>'
