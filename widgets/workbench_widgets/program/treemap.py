"""Rectangles whose areas are bytes, as square as can be.

Bruls, Huizing, van Wijk: "Squarified Treemaps" (2000). The browser's half, `treemap.ts`, does the same.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["squarify"]

Box = tuple[float, float, float, float]


def squarify(sizes: Sequence[float], box: Box) -> list[Box]:
    """Divide a rectangle.

    Args:
        sizes: Positive, in descending order.
        box: x, y, width, height.

    Returns:
        A rectangle for each size; their areas are in the sizes' proportion and fill the box.
    """
    found: list[Box] = []
    x, y, width, height = box
    left = sum(sizes)
    start = 0
    while start < len(sizes):
        scale = width * height / left if left else 0.0
        side = min(width, height)
        end, total = start + 1, sizes[start]
        while end < len(sizes):
            more = total + sizes[end]
            row = sizes[start:end]
            if _worst((*row, sizes[end]), more, side, scale) > _worst(row, total, side, scale):
                break
            end, total = end + 1, more
        thick = total * scale / side if side else 0.0
        along = 0.0
        for size in sizes[start:end]:
            long = size * scale / thick if thick else 0.0
            if width >= height:
                found.append((x, y + along, thick, long))
            else:
                found.append((x + along, y, long, thick))
            along += long
        if width >= height:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick
        left -= total
        start = end
    return found


def _worst(row: Sequence[float], total: float, side: float, scale: float) -> float:
    """The ratio of the sides of the longest rectangle of a row along a side."""
    if not side or not scale:
        return 0.0
    thick = total * scale / side
    lengths = [size * scale / thick for size in (max(row), min(row))]
    return max(max(long / thick, thick / long) if long else float("inf") for long in lengths)
