"""The quantization where no script runs: histograms of the observers that clip most, and tables."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from workbench_widgets.context import Context
from workbench_widgets.quantization.contract import (
    QuantizationAccuracy,
    QuantizationDocument,
    QuantizationObservers,
)
from workbench_widgets.quantization.document import quantization_document
from workbench_widgets.quantization.measure import accuracy_document
from workbench_widgets.view import Picture

__all__ = ["picture"]

_ROWS, _PICTURES = 40, 6
_WIDTH, _HEIGHT = 240, 64
# Okabe and Ito's blue and vermillion, as in `common/palette.ts`.
_INSIDE, _OUTSIDE = "#0072b2", "#d55e00"


def picture(context: Context) -> Picture:
    """Histograms and tables of all methods."""
    known = [(quantization_document(context, m), accuracy_document(context, m)) for m in context.methods]
    body = "".join(part for document, accuracy in known for part in _method(document, accuracy))
    return Picture(
        f"<div>{body}</div>",
        "\n".join(line for document, accuracy in known for line in _lines(document, accuracy)),
    )


def _summary(document: QuantizationDocument, accuracy: QuantizationAccuracy) -> str:
    states = list(document.state)
    fused = states.count("quantized, not fused")
    parts = [
        f"{states.count('quantized') + fused:,} of {len(states):,} operators are quantized by {document.by}"
    ]
    if fused:
        parts.append(f"{fused:,} of them are not fused by the backend")
    if document.samples:
        parts.append(f"{document.samples:,} calibration sample{'' if document.samples == 1 else 's'}")
    if accuracy.measured:
        parts.append(f"outputs {_db(accuracy.sqnr_db)} against floats")
    return f"{document.method}: {', '.join(parts)}"


def _db(value: float | None) -> str:
    if value is None or value == math.inf:
        return "exact"
    return "" if math.isnan(value) else f"{value:.1f} dB"


def _order(document: QuantizationDocument, accuracy: QuantizationAccuracy) -> list[int]:
    """Operators, the worst first: by their own error, where it was measured, else by what is clipped."""
    rows = range(len(document.node))
    if accuracy.measured:
        return sorted(rows, key=lambda row: (math.isnan(accuracy.own[row]), accuracy.own[row]))
    return sorted(rows, key=lambda row: -_clipped(document, row))


def _clipped(document: QuantizationDocument, row: int) -> float:
    observer = int(document.observer[row])
    value = float(document.observers.clipped[observer]) if observer >= 0 else 0.0
    return 0.0 if math.isnan(value) else value


def _method(document: QuantizationDocument, accuracy: QuantizationAccuracy) -> Iterator[str]:
    summary = _summary(document, accuracy)
    yield f"<p>{html.escape(summary)}</p>"
    observers = document.observers
    filled = [
        row for row in range(len(observers.name)) if observers.bins_start[row + 1] > observers.bins_start[row]
    ]
    clipped = np.nan_to_num(observers.clipped)
    filled.sort(key=lambda row: (-clipped[row], int(observers.constant[row])))
    figures = "".join(_figure(observers, row) for row in filled[:_PICTURES])
    if figures:
        yield f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div>'
    order = _order(document, accuracy)
    how = "the largest own error first" if accuracy.measured else "the largest clipped share first"
    yield _table(f"{len(order):,} operators, {how}", _HEAD, [_row(document, accuracy, row) for row in order])
    rows = [_observer_row(observers, row) for row in range(len(observers.name))]
    yield _table(f"{len(rows):,} observers", _OBSERVER_HEAD, rows)


_HEAD = (
    "operator",
    "state",
    "how or why",
    "observer",
    "scale",
    "zero point",
    "clipped",
    "SQNR",
    "own",
    "inherited",
)
_OBSERVER_HEAD = ("tensor", "observer", "spec", "min", "max", "scale", "zero point", "clipped")


def _row(document: QuantizationDocument, accuracy: QuantizationAccuracy, row: int) -> tuple[str, ...]:
    observers, at = document.observers, int(document.observer[row])
    why = document.how[row] or document.why[row]
    if document.backend_why[row]:
        why += f"; {document.backend_why[row]}"
    seen = ("", "", "", "") if at < 0 else (observers.kind[at], *_parameters(observers, at))
    measured = ("", "", "")
    if accuracy.measured:
        measured = (_db(accuracy.total[row]), _db(accuracy.own[row]), _db(accuracy.inherited[row]))
    return (document.node[row], document.state[row], why, *seen, *measured)


def _parameters(observers: QuantizationObservers, at: int) -> tuple[str, str, str]:
    scale = f"{observers.scale[at]:.4g}" if observers.scales[at] == 1 else f"{observers.scales[at]} scales"
    zero = str(observers.zero_point[at])
    if not observers.scales[at]:
        scale, zero = "at run time", ""
    return scale, zero, _share(float(observers.clipped[at]))


def _observer_row(observers: QuantizationObservers, at: int) -> tuple[str, ...]:
    ends = [
        f"{float(side[at]):.4g}" if not math.isnan(side[at]) else ""
        for side in (observers.min, observers.max)
    ]
    return (observers.name[at], observers.kind[at], observers.spec[at], *ends, *_parameters(observers, at))


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.3g} %"


def _figure(observers: QuantizationObservers, row: int) -> str:
    """A histogram with a logarithmic scale; what is clipped has another colour and is outlined."""
    start, end = int(observers.bins_start[row]), int(observers.bins_start[row + 1])
    counts = observers.counts[start:end]
    low, high = float(observers.bins_low[row]), float(observers.bins_high[row])
    kept = (float(observers.low[row]), float(observers.high[row]))
    left, right = min(low, kept[0]), max(high, kept[1])
    across = _WIDTH / max(right - left, 1e-30)
    top = math.log1p(float(counts.max()))
    width = (high - low) / len(counts)
    bars = []
    for place, count in enumerate(counts.tolist()):
        if not count:
            continue
        begin = low + place * width
        tall = _HEIGHT * math.log1p(count) / top
        outside = begin + width / 2 < kept[0] or begin + width / 2 > kept[1]
        look = (
            f'fill="{_OUTSIDE}" stroke="currentColor" stroke-width="0.5"' if outside else f'fill="{_INSIDE}"'
        )
        bars.append(
            f'<rect x="{(begin - left) * across:.1f}" y="{_HEIGHT - tall:.1f}" '
            f'width="{max(width * across, 0.5):.1f}" height="{tall:.1f}" {look}/>'
        )
    lines = "".join(
        f'<line x1="{(end - left) * across:.1f}" x2="{(end - left) * across:.1f}" y1="0" y2="{_HEIGHT}" '
        'stroke="currentColor" stroke-dasharray="3 2"/>'
        for end in kept
    )
    title = (
        f"{observers.name[row]}: {observers.min[row]:.3g} to {observers.max[row]:.3g} seen, {kept[0]:.3g} to "
        f"{kept[1]:.3g} represented, {_share(float(observers.clipped[row]))} clipped"
    )
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" style="max-width:100%" role="img" '
        f'aria-label="{html.escape(title, quote=True)}"><title>{html.escape(title)}</title>'
        f"{''.join(bars)}{lines}"
        f"</svg><figcaption><small>{html.escape(observers.name[row])}, "
        f"{_share(float(observers.clipped[row]))} clipped</small></figcaption></figure>"
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows[:_ROWS]]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    names = "".join(f"<th>{name}</th>" for name in head)
    rest = f"<p>and {len(rows) - _ROWS:,} more</p>" if len(rows) > _ROWS else ""
    return (
        f"<details><summary>{html.escape(title)}</summary>"
        f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{rest}</details>"
    )


def _lines(document: QuantizationDocument, accuracy: QuantizationAccuracy) -> Iterator[str]:
    yield _summary(document, accuracy)
    order = _order(document, accuracy)
    for row in order[:_ROWS]:
        cells = _row(document, accuracy, row)
        yield "  " + "  ".join(cell for cell in cells if cell)
    if len(order) > _ROWS:
        yield f"  and {len(order) - _ROWS:,} more"
