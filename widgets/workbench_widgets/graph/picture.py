"""The graph where no script runs: its modules and how they are connected, as SVG, with a table."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench import svg
from workbench.errors import DisplayError
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.graph.document import graph_document
from workbench_widgets.graph.rows import HIDDEN
from workbench_widgets.layout import Layout, layout
from workbench_widgets.view import Picture

__all__ = ["picture"]

_BOXES, _ROWS = 36, 30
_HEIGHT, _CHARACTER, _WIDEST = 36, 6.4, 250
_TIMES = "\N{MULTIPLICATION SIGN}"
_FONT = 'font-family="sans-serif" font-size="12"'


def picture(context: Context) -> Picture:
    """Modules and table of all methods."""
    documents = [graph_document(context, f"{_stage(context)}/{method}") for method in context.methods]
    body = "".join(part for document in documents for part in _method(document))
    return Picture(
        f"<div>{body}</div>", "\n".join(line for document in documents for line in _lines(document))
    )


def _stage(context: Context) -> str:
    """The stage that is shown; of a run its program."""
    return context.shown if context.shown in context.stages and context.shown != "run" else context.stages[0]


def _method(document: GraphDocument) -> Iterator[str]:
    yield f"<p>{html.escape(_summary(document))}</p>"
    try:
        yield _drawing(document)
    except DisplayError:
        # The engine is not built: how often each operator is called says something, too.
        yield svg.bars(_operators(document), unit="calls")
    head = ("node", "operator", "shape", "type", "attributes", "module", "source")
    columns = (document.name, document.op, document.shape, document.dtype, document.attributes)
    rows = [
        (
            *(column[row] for column in columns),
            document.module_path[int(document.module[row])],
            document.source[row],
        )
        for row in range(min(_ROWS, len(document.name)))
    ]
    yield _table(f"{len(document.name):,} nodes", head, rows, len(document.name) - len(rows))


def _summary(document: GraphDocument) -> str:
    calls = sum(count for _, count in _operators(document))
    return f"{document.method}, {document.stage}: {calls:,} calls, {len(document.src):,} edges"


def _operators(document: GraphDocument) -> list[tuple[str, int]]:
    wanted = {
        code for code, kind in enumerate(document.kind.values) if kind in ("call", "delegate", "control")
    }
    counts = Counter(
        document.op.values[op]
        for op, kind in zip(document.op.codes.tolist(), document.kind.codes.tolist(), strict=True)
        if kind in wanted
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _lines(document: GraphDocument) -> Iterator[str]:
    yield _summary(document)
    operators = _operators(document)
    for op, count in operators[:12]:
        yield f"  {count:>6,}  {op}"
    if len(operators) > 12:
        yield f"          and {len(operators) - 12} more operators"


# ---- the drawing -------------------------------------------------------------------------------------------


@dataclass
class _Box:
    """A node, a closed module, or several equal ones in a row.

    Attributes:
        first: Its first row, by which boxes are ordered.
        title: First line.
        detail: Second line.
        module: Row of the first module; -1 for a node.
        times: How many modules it stands for.
    """

    first: int
    title: str
    detail: str
    module: int = -1
    times: int = 1


@dataclass
class _Cut:
    """What is drawn of a document: as many levels of modules as there is room for."""

    document: GraphDocument
    boxes: list[_Box] = field(default_factory=list)
    of: dict[int, int] = field(default_factory=dict)  # item (node, or nodes + module) -> box

    def __post_init__(self) -> None:
        document = self.document
        self.nodes = len(document.name)
        hidden = {code for code, kind in enumerate(document.kind.values) if kind in HIDDEN}
        self.visible = np.array([code not in hidden for code in document.kind.codes.tolist()], bool)
        self.parts: list[list[int]] = [[] for _ in document.module_name]
        self.first = np.full(self.nodes + len(document.module_name), self.nodes, np.int64)
        for row in np.nonzero(self.visible)[0].tolist():
            self.first[row] = row
            self._hold(int(document.module[row]), row)
        for module in range(len(document.module_name) - 1, 0, -1):
            if self.parts[module]:
                self._hold(int(document.module_parent[module]), self.nodes + module)
        for parts in self.parts:
            parts.sort(key=lambda item: int(self.first[item]))
        self._choose()

    def _hold(self, module: int, item: int) -> None:
        self.parts[module].append(item)
        self.first[self.nodes + module] = min(self.first[self.nodes + module], self.first[item])

    def _choose(self) -> None:
        shown = self._runs(self.parts[0])
        while True:
            opened = []
            for run in shown:
                inner = self._inside(run)
                opened += [run] if inner is None else inner
            if len(opened) > _BOXES or (len(opened) == len(shown) and opened == shown):
                break
            shown = opened
        shown.sort(key=lambda run: int(self.first[run[0]]))
        for run in shown[: 4 * _BOXES]:
            for item in run:
                self.of[item] = len(self.boxes)
            self.boxes.append(self._box(run))

    def _inside(self, run: list[int]) -> list[list[int]] | None:
        """The parts of a module that stands alone."""
        if len(run) > 1 or run[0] < self.nodes:
            return None
        return self._runs(self.parts[run[0] - self.nodes])

    def _runs(self, items: list[int]) -> list[list[int]]:
        """Equal modules in a row together."""
        runs: list[list[int]] = []
        for item in items:
            last = runs[-1][-1] if runs else -1
            if item >= self.nodes and last >= self.nodes and self._hash(item) == self._hash(last):
                runs[-1].append(item)
            else:
                runs.append([item])
        return runs

    def _hash(self, item: int) -> int:
        return int(self.document.module_hash[item - self.nodes])

    def _box(self, run: list[int]) -> _Box:
        document, item = self.document, run[0]
        first = int(self.first[item])
        if item < self.nodes:
            op = document.op[item]
            named = document.kind[item] in ("placeholder", "output")
            parts = op.replace("::", ".").split(".")
            title = document.name[item] if named else parts[1] if len(parts) > 1 else op
            return _Box(first, title, f"{document.dtype[item]} {document.shape[item]}".strip())
        module = item - self.nodes
        kind = document.module_type[module].rpartition(".")[2] or document.module_kind[module]
        title = document.module_name[module]
        if len(run) > 1:
            return _Box(
                first,
                f"{title} … {document.module_name[run[-1] - self.nodes]}",
                f"{_TIMES}{len(run)} {kind}",
                module,
                len(run),
            )
        return _Box(first, title, kind, module)

    def box_of(self, row: int) -> int:
        """The box that a node is in; -1 where none is drawn."""
        if row in self.of:
            return self.of[row]
        module = int(self.document.module[row])
        while module >= 0:
            if self.nodes + module in self.of:
                return self.of[self.nodes + module]
            module = int(self.document.module_parent[module])
        return -1

    def edges(self) -> Counter[tuple[int, int]]:
        """How many edges run between two boxes."""
        counts: Counter[tuple[int, int]] = Counter()
        for src, dst in zip(self.document.src.tolist(), self.document.dst.tolist(), strict=True):
            if self.visible[src]:
                ends = self.box_of(src), self.box_of(dst)
                if ends[0] != ends[1] and min(ends) >= 0:
                    counts[ends] += 1
        return counts


def _drawing(document: GraphDocument) -> str:
    cut = _Cut(document)
    width = [min(_WIDEST, 24 + _CHARACTER * max(len(box.title), len(box.detail), 6)) for box in cut.boxes]
    edges = cut.edges()
    ends = list(edges)
    placed = layout(
        width,
        [_HEIGHT] * len(width),
        [src for src, _ in ends],
        [dst for _, dst in ends],
        [min(edges[end], 1000) for end in ends],
        gap_y=28,
    )
    lines = "".join(_line(placed, number, edges[end]) for number, end in enumerate(ends))
    boxes = "".join(_rectangle(placed, number, box, width[number]) for number, box in enumerate(cut.boxes))
    title = html.escape(_summary(document), quote=True)
    size = f'viewBox="0 0 {placed.width:.0f} {placed.height:.0f}" width="{placed.width:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="max-width:100%" role="img"'
        f' aria-label="{title}" {_FONT} fill="none" stroke="currentColor">{lines}{boxes}</svg>'
    )


def _line(placed: Layout, number: int, count: int) -> str:
    points = placed.line(number)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist())
    (x, y), before = points[-1].tolist(), points[-2].tolist()
    sign = -1 if y >= before[1] else 1
    head = f"{x - 3:.1f},{y + 6 * sign:.1f} {x:.1f},{y:.1f} {x + 3:.1f},{y + 6 * sign:.1f}"
    label = ""
    if count > 1:
        middle = (points[0] + points[1]) / 2
        label = (
            f'<text x="{middle[0] + 4:.1f}" y="{middle[1] + 4:.1f}" font-size="10" stroke="none"'
            f' fill="currentColor">{_TIMES}{count}</text>'
        )
    thick = min(4.0, 1 + 0.5 * np.log2(count))
    return (
        f'<polyline points="{path}" stroke-opacity="0.55" stroke-width="{thick:.1f}"/>'
        f'<polyline points="{head}" stroke-opacity="0.55"/>{label}'
    )


def _rectangle(placed: Layout, number: int, box: _Box, width: float) -> str:
    x, y = float(placed.x[number]), float(placed.y[number])
    room = int((width - 16) / _CHARACTER)
    behind = "".join(
        f'<rect x="{x + shift:.1f}" y="{y + shift:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="5"/>'
        for shift in ((5, 2.5) if box.times > 1 else ())
    )
    weight = "600" if box.module >= 0 else "400"
    fill = "0.12" if box.module >= 0 else "0.04"
    shown = html.escape(f"{box.title}: {box.detail}")
    return (
        f'{behind}<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="5"'
        f' fill="currentColor" fill-opacity="{fill}"><title>{shown}</title></rect>'
        f'<text x="{x + 8:.1f}" y="{y + 15:.1f}" font-weight="{weight}" stroke="none" fill="currentColor">'
        f"{html.escape(_cut(box.title, room))}</text>"
        f'<text x="{x + 8:.1f}" y="{y + 29:.1f}" font-size="10.5" stroke="none" fill="currentColor"'
        f' fill-opacity="0.75">{html.escape(_cut(box.detail, room))}</text>'
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> str:
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{name}</th>" for name in head)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return (
        f"<details><summary>{html.escape(title)}</summary>"
        f"<table><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>{rest}</details>"
    )
