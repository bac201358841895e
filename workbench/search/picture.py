"""The points of a search as a picture: bytes to the right, the metric upwards, the time in the size."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Dot", "Picture", "scatter"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760, 340, 80, 44, 16
# Okabe and Ito's colours, doubled by the shape of the mark.
_COLOURS = {"front": "#0072b2", "other": "#999999", "extra": "#d55e00"}


@dataclass(frozen=True)
class Dot:
    """One mark.

    Attributes:
        label: Shown when pointed at; beside marks of the front and extra ones also as text.
        bytes: Where it stands from left to right.
        metric: Where it stands upwards.
        milliseconds: How large it is; None for the smallest size.
        kind: `"front"` (a filled circle), `"other"` (an empty one), or `"extra"` (a diamond).
        named: The label stands beside it.
    """

    label: str
    bytes: int
    metric: float
    milliseconds: float | None = None
    kind: str = "other"
    named: bool = False


class Picture:
    """A picture that a notebook shows.

    Args:
        svg: The picture.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_html_(self) -> str:
        return self.svg


def scatter(dots: Sequence[Dot], *, metric: str = "metric") -> str:
    """The picture as SVG; readable on light and dark pages.

    Args:
        dots: What is drawn; later ones above earlier ones.
        metric: What the metric is called.
    """
    if not dots:
        return "<p>no points</p>"
    across = _Scale([dot.bytes for dot in dots], _LEFT, _WIDTH - 24)
    up = _Scale([dot.metric for dot in dots], _HEIGHT - _BOTTOM, _TOP)
    slowest = max((dot.milliseconds or 0.0 for dot in dots), default=0.0)
    parts = [*_axes(across, up, metric)]
    front = sorted((dot for dot in dots if dot.kind == "front"), key=lambda dot: dot.bytes)
    line = " ".join(f"{across(dot.bytes):.1f},{up(dot.metric):.1f}" for dot in front)
    parts.append(
        f'<polyline points="{line}" fill="none" stroke="{_COLOURS["front"]}" stroke-dasharray="4 3"/>'
    )
    ordered = sorted(dots, key=lambda dot: list(_COLOURS).index(dot.kind) != 1)
    parts += [_mark(dot, across(dot.bytes), up(dot.metric), slowest) for dot in ordered]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" font-family="sans-serif" '
        f'font-size="11" fill="currentColor"><title>{html.escape(metric)} and bytes of {len(dots)} candidates'
        f"</title>{''.join(parts)}</svg>"
    )


class _Scale:
    """From values to places, with some room at both ends."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = min(values), max(values)
        room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
        self.low, self.high, self._start, self._end = low - room, high + room, start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        """About five round values."""
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def _axes(across: _Scale, up: _Scale, metric: str) -> list[str]:
    floor = _HEIGHT - _BOTTOM
    parts = [f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - 24}" fill="none" stroke="currentColor"/>']
    for tick in across.ticks():
        parts.append(
            f'<text x="{across(tick):.1f}" y="{floor + 15}" text-anchor="middle">{tick / 1000:g}</text>'
        )
    for tick in up.ticks():
        parts.append(f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">kB of the program</text>')
    middle = (_TOP + floor) / 2
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{html.escape(metric)}</text>"
    )
    return parts


def _mark(dot: Dot, x: float, y: float, slowest: float) -> str:
    size = 4.0 + (8.0 * math.sqrt(dot.milliseconds / slowest) if dot.milliseconds and slowest else 0.0)
    colour = _COLOURS[dot.kind]
    time = "" if dot.milliseconds is None else f", {1000 * dot.milliseconds:.1f} µs"
    told = html.escape(f"{dot.label}: {dot.metric:.4g}, {dot.bytes:,} bytes{time}")
    if dot.kind == "extra":
        path = (
            f"M{x:.1f} {y - size:.1f}l{size:.1f} {size:.1f}l{-size:.1f} {size:.1f}l{-size:.1f} {-size:.1f}z"
        )
        shape = f'<path d="{path}" fill="{colour}" fill-opacity="0.8">'
        end = "</path>"
    else:
        fill = f'fill="{colour}" fill-opacity="0.7"' if dot.kind == "front" else 'fill="none"'
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" {fill} stroke="{colour}">'
        end = "</circle>"
    text = ""
    if dot.named:
        anchor, beside = ("end", x - size - 3) if x > _WIDTH * 0.7 else ("start", x + size + 3)
        text = (
            f'<text x="{beside:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{html.escape(dot.label)}</text>'
        )
    return f"{shape}<title>{told}</title>{end}{text}"
