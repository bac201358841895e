"""The partition where no script runs: operators in program order as a ribbon, and tables."""

from __future__ import annotations

import html
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from workbench_widgets.context import Context
from workbench_widgets.partition.contract import PartitionDocument, PartitionState
from workbench_widgets.partition.document import partition_document, state_document
from workbench_widgets.view import Picture

__all__ = ["picture"]

_WIDTH, _HEIGHT, _ROWS = 760, 26, 20
# Okabe and Ito's palette, in the order of `common/palette.ts`.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")


def picture(context: Context) -> Picture:
    """Ribbon and tables of all methods."""
    documents = [(partition_document(context, m), state_document(context, m)) for m in context.methods]
    body = "".join(part for document, state in documents for part in _method(document, state))
    return Picture(f"<div>{body}</div>", "\n".join(line for _, state in documents for line in _lines(state)))


def _summary(state: PartitionState) -> str:
    cost = state.cost
    return (
        f"{state.method}: {cost.delegated:,} of {state.operators:,} operators in {cost.partitions:,} "
        f"partitions, {int(cost.crossing_bytes):,} bytes cross their borders in each execution"
    )


def _method(document: PartitionDocument, state: PartitionState) -> Iterator[str]:
    yield f"<p>{html.escape(_summary(state))}</p>"
    yield _ribbon(document, state)
    tags = [
        (t.name, t.backend, f"{t.nodes:,}", f"{int(t.input_bytes):,}", f"{int(t.output_bytes):,}",
         f"{int(t.constant_bytes):,}")
        for t in state.tags
    ]  # fmt: skip
    yield _table(
        f"{len(tags):,} partitions",
        ("partition", "backend", "operators", "bytes in", "bytes out", "bytes of constants"),
        tags,
    )
    reasons = Counter(zip(state.reason_by, state.reason, state.eligible_if, strict=True)).most_common()
    yield _table(
        f"{len(set(state.reason_row.tolist())):,} operators were left behind",
        ("operators", "by", "why", "eligible if"),
        [(f"{count:,}", *reason) for reason, count in reasons],
    )


def _ribbon(document: PartitionDocument, state: PartitionState) -> str:
    """Operators in program order; those in a row with one tag as one rectangle."""
    tags = [tag for tag, one in zip(state.tag.tolist(), document.operator.tolist(), strict=True) if one]
    across = _WIDTH / max(len(tags), 1)
    at = 0
    parts = []
    for tag, run in itertools.groupby(tags):
        width = len(list(run))
        if tag >= 0:
            known = state.tags[tag]
            parts.append(
                f'<rect x="{at * across:.1f}" y="0" width="{max(width * across, 0.5):.1f}" height="{_HEIGHT}"'
                f' fill="{_COLORS[known.color % len(_COLORS)]}">'
                f"<title>{html.escape(known.name)}</title></rect>"
            )
        at += width
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}"'
        f' style="max-width:100%" role="img" aria-label="{html.escape(_summary(state), quote=True)}">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" fill-opacity="0.12"/>'
        f"{''.join(parts)}</svg>"
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    if not rows:
        return f"<p>{html.escape(title)}</p>"
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows[:_ROWS]]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    names = "".join(f"<th>{name}</th>" for name in head)
    rest = f"<p>and {len(rows) - _ROWS:,} more</p>" if len(rows) > _ROWS else ""
    return (
        f"<details><summary>{html.escape(title)}</summary>"
        f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{rest}</details>"
    )


def _lines(state: PartitionState) -> Iterator[str]:
    yield _summary(state)
    for tag in state.tags[:_ROWS]:
        yield f"  {tag.name} ({tag.backend}): {tag.nodes:,} operators, {int(tag.input_bytes):,} bytes in"
    if len(state.tags) > _ROWS:
        yield f"  and {len(state.tags) - _ROWS:,} more"
