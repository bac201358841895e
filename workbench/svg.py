"""Small static pictures as SVG text, readable on light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Rectangle", "bars", "rectangles"]

_ROW, _LABEL, _WIDTH, _MOST = 20, 260, 760, 16

_HEIGHT, _MARGIN, _MOST_RECTANGLES = 260, 70, 1500
# Okabe and Ito's palette for all kinds of colour vision.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")


@dataclass(frozen=True)
class Rectangle:
    """Something that takes a range of bytes for a range of moments.

    Attributes:
        label: Shown when pointed at.
        first: First moment.
        last: Last moment, included.
        offset: First byte.
        nbytes: How many bytes.
        marked: Drawn with a border: it is alive at the peak.
    """

    label: str
    first: int
    last: int
    offset: int
    nbytes: int
    marked: bool = False


def rectangles(items: Sequence[Rectangle], *, size: int, title: str) -> str:
    """A memory plan: time from left to right, bytes from the bottom to the top.

    Args:
        items: What is drawn; of very many only the largest.
        size: Bytes of the whole arena.
        title: Stands above.
    """
    shown = sorted(items, key=lambda item: -item.nbytes)[:_MOST_RECTANGLES]
    moments = max((item.last for item in items), default=0) + 1
    across, up = (_WIDTH - _MARGIN - 10) / moments, (_HEIGHT - 40) / max(size, 1)
    base = _HEIGHT - 18
    parts = []
    for number, item in enumerate(sorted(shown, key=lambda item: (item.first, item.offset))):
        left, width = _MARGIN + item.first * across, max((item.last - item.first + 1) * across, 0.5)
        height = max(item.nbytes * up, 0.5)
        top = base - item.offset * up - height
        border = ' stroke="currentColor" stroke-width="1"' if item.marked else ""
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
            f' fill="{_COLOURS[number % len(_COLOURS)]}" fill-opacity="0.75"{border}>'
            f"<title>{html.escape(item.label)}</title></rect>"
        )
    left_over = f", the largest {len(shown)} of {len(items)} tensors" if len(shown) < len(items) else ""
    texts = (
        f'<text x="{_MARGIN}" y="12" fill="currentColor">{html.escape(title + left_over)}</text>'
        f'<text x="{_MARGIN - 6}" y="{base}" text-anchor="end" fill="currentColor">0</text>'
        f'<text x="{_MARGIN - 6}" y="32" text-anchor="end" fill="currentColor">{size:,}</text>'
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 4}" text-anchor="end" fill="currentColor">'
        f"instruction {moments - 1}</text>"
    )
    return _picture(_HEIGHT, title, texts + "".join(parts))


def _picture(height: int, title: str, body: str) -> str:
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    style = 'role="img" font-family="sans-serif" font-size="12"'
    head = f"<title>{html.escape(title)}</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{head}{body}</svg>'


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
    return _picture(height, title, "".join(lines))
