"""Several lowerings or runs side by side, joined on what their nodes come from in the exported graph.

Each node of a lowered graph carries the exported nodes that it comes from. Two nodes belong to the same row
if they share one; so a fused or delegated node stands beside the several nodes that another lowering left
apart.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from torch.fx import Node

from workbench import display, provenance
from workbench.errors import WorkbenchError
from workbench.lowering import Lowering, Run

__all__ = ["CHANGED", "MATCHED", "Cell", "Comparison", "Row", "compare", "error"]

MATCHED, CHANGED = "matched", "changed"


@dataclass
class Cell:
    """What one side has in one row.

    Attributes:
        nodes: Its nodes, in topological order.
        milliseconds: Median time of one execution; None where it was not measured.
        value: What the last of the nodes wrote, where the run recorded it.
    """

    nodes: list[Node] = field(default_factory=list)
    milliseconds: float | None = None
    value: torch.Tensor | None = None

    @property
    def operators(self) -> tuple[str, ...]:
        """The nodes' operators."""
        return tuple(_operator(node) for node in self.nodes)

    @property
    def shape(self) -> str:
        """Dtype and sizes of what the last node writes."""
        return _shape(self.nodes[-1].meta.get("val")) if self.nodes else ""

    @property
    def nbytes(self) -> int:
        """Bytes that the nodes write."""
        return sum(_nbytes(node.meta.get("val")) for node in self.nodes)


@dataclass(frozen=True)
class Row:
    """Nodes that come from the same exported nodes.

    Attributes:
        origins: Names of the exported nodes.
        source: `file:line`, or empty.
        module: Path of the module, or empty.
        status: `matched`, `changed`, or `only in NAME, ...`.
        cells: By the number of a side what it has; no entry where it has nothing.
    """

    origins: frozenset[str]
    source: str
    module: str
    status: str
    cells: Mapping[int, Cell]


class Comparison(display.Shown):
    """The result of `compare`.

    Attributes:
        names: What the sides are called, the reference first.
        sides: What was compared, in the same order.
        method: The method.
        rows: Groups of nodes that come from the same exported nodes, in the order of the reference.
        table: The same as a table.
            Columns: status (`matched`, `changed`, `only in NAME, ...`), source, module, then for each side
            its nodes, operators and bytes (and ms where it was run), and for each side but the first the
            deltas to the first: `Δ bytes`, `Δ ms`, and where both recorded values `SQNR dB` and `max error`.
    """

    def __init__(
        self, names: Sequence[str], sides: Sequence[Lowering | Run], method: str = "forward"
    ) -> None:
        known = [_Side(side, method) for side in sides]
        self.names = tuple(names)
        self.sides = tuple(sides)
        self.method = method
        self.rows = tuple(_rows(self.names, known))
        ran = [side.ran for side in known]
        self.table = pd.DataFrame([_record(self.names, ran, row) for row in self.rows])

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as one HTML file; errors as of `Lowering.to_html`."""
        display.save_report(self, path)

    def summary(self) -> pd.DataFrame:
        """One row per side: nodes, bytes written, milliseconds, and how many rows it matches or has alone."""
        rows = []
        for name in self.names:
            present = self.table[self.table[f"{name}: nodes"] != ""]
            time = f"{name}: ms"
            rows.append(
                {
                    "side": name,
                    "rows": len(present),
                    "matched": int((present["status"] == MATCHED).sum()),
                    "changed": int((present["status"] == CHANGED).sum()),
                    "only here": int((present["status"] == f"only in {name}").sum()),
                    "bytes": int(self.table[f"{name}: bytes"].sum()),
                    "ms": float(self.table[time].sum()) if time in self.table else None,
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        title = f"<Comparison of {', '.join(self.names)}: {len(self.table)} rows>"
        return f"{title}\n{self.summary().to_string(index=False)}"

    def _static_html(self) -> str:
        summary = str(self.summary().to_html(index=False, border=0))
        return summary + str(self.table.to_html(index=False, border=0, max_rows=60, na_rep=""))


def compare(
    *sides: Lowering | Run, names: Sequence[str] | None = None, method: str = "forward"
) -> Comparison:
    """Put lowerings or runs side by side.

    Args:
        *sides: At least two, of the same model; the first is the reference. A run adds times, and values
            where it recorded them.
        names: What to call them; by default "a", "b", ...
        method: The method to compare.

    Raises:
        WorkbenchError: Fewer than two sides, names that don't fit, or a side without the method.
    """
    if len(sides) < 2:
        raise WorkbenchError("a comparison needs at least two lowerings or runs", found=str(len(sides)))
    called = list(names) if names is not None else [_letter(index) for index in range(len(sides))]
    if len(called) != len(sides) or len(set(called)) != len(called):
        raise WorkbenchError("each side needs a name of its own", found=", ".join(called))
    return Comparison(called, sides, method)


class _Side:
    """The nodes of one lowering by what they come from, with what a run says about them."""

    def __init__(self, side: Lowering | Run, method: str) -> None:
        self.lowering = side.lowering if isinstance(side, Run) else side
        if method not in self.lowering.lowered.methods:
            raise WorkbenchError(
                f"a side has no method '{method}'", expected=", ".join(self.lowering.lowered.methods)
            )
        program = self.lowering.lowered._programs[method]
        sources = provenance.source_map(program)
        # Names, not numbers: the exported graphs of two sides may count differently.
        self.names = {source.handle: source.name for source in sources if source.target != source.name}
        self.sources = {source.name: source for source in sources}
        self.ran = isinstance(side, Run)
        self.entries: list[tuple[frozenset[str], Node]] = []
        for node in provenance.nodes_of(program.graph_module):
            if node.op == "call_function" and _operator(node) != "getitem":
                origins = self.origins(provenance.handles(node))
                self.entries.append((origins or frozenset((f"{id(self)}:{node.name}",)), node))
        self.events = list(side.events_of(method)) if isinstance(side, Run) else []

    def origins(self, handles: Iterable[int]) -> frozenset[str]:
        return frozenset(self.names[handle] for handle in handles if handle in self.names)


class _Groups:
    """Disjoint sets of exported nodes."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        root = name
        while (parent := self._parent.setdefault(root, root)) != root:
            root = parent
        while self._parent[name] != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def join(self, names: frozenset[str]) -> str:
        first, *others = (self.find(name) for name in names)
        for other in others:
            self._parent[self.find(other)] = self.find(first)
        return self.find(first)


def _rows(names: Sequence[str], sides: Sequence[_Side]) -> Iterator[Row]:
    groups = _Groups()
    for side in sides:
        for origins, _ in side.entries:
            groups.join(origins)
    rows: dict[str, dict[int, Cell]] = {}
    members: dict[str, set[str]] = {}
    for index, side in enumerate(sides):
        for origins, node in side.entries:
            root = groups.find(next(iter(origins)))
            rows.setdefault(root, {}).setdefault(index, Cell()).nodes.append(node)
            members.setdefault(root, set()).update(origins)
        for event in side.events:
            _add_event(event, side, groups, rows, index)
    for root, cells in rows.items():
        if root in members:
            yield _row(names, sides, members[root], cells)


def _add_event(
    event: Any, side: _Side, groups: _Groups, rows: Mapping[str, dict[int, Cell]], index: int
) -> None:
    """Add an event's time and values to the row of the nodes that it stands for."""
    origins = side.origins(handle for node in event.nodes for handle in node.source_handles)
    cell = rows.get(groups.find(min(origins)), {}).get(index) if origins else None
    if cell is None:
        return
    # What runs inside a delegate is part of the time of its call.
    if event.perf_data is not None and event.delegate_debug_identifier is None:
        cell.milliseconds = (cell.milliseconds or 0.0) + event.perf_data.p50
    tensors = [value for value in event.debug_data if isinstance(value, torch.Tensor)]
    if tensors:
        cell.value = tensors[-1]


def _row(names: Sequence[str], sides: Sequence[_Side], origins: set[str], cells: Mapping[int, Cell]) -> Row:
    known = [side.sources[name] for side in sides for name in sorted(origins) if name in side.sources]
    return Row(
        frozenset(origins),
        next((source.source for source in known if source.source), ""),
        next((source.module_path for source in known if source.module_path), ""),
        _status(names, cells),
        cells,
    )


def _record(names: Sequence[str], ran: Sequence[bool], row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {"status": row.status, "source": row.source, "module": row.module}
    for index, name in enumerate(names):
        cell = row.cells.get(index, Cell())
        record[f"{name}: nodes"] = ", ".join(node.name for node in cell.nodes)
        record[f"{name}: operators"] = ", ".join(cell.operators)
        record[f"{name}: bytes"] = cell.nbytes
        if ran[index]:
            record[f"{name}: ms"] = cell.milliseconds
    for index, name in enumerate(names[1:], start=1):
        record.update(_deltas(name, row.cells.get(0), row.cells.get(index), ran[0] and ran[index]))
    return record


def _status(names: Sequence[str], cells: Mapping[int, Cell]) -> str:
    if len(cells) < len(names):
        return "only in " + ", ".join(names[index] for index in sorted(cells))
    same = len({(cell.operators, cell.shape) for cell in cells.values()}) == 1
    return MATCHED if same else CHANGED


def _deltas(name: str, first: Cell | None, other: Cell | None, ran: bool) -> dict[str, Any]:
    nbytes, ms = f"{name}: Δ bytes", f"{name}: Δ ms"
    record: dict[str, Any] = {nbytes: None, **({ms: None} if ran else {})}
    if first is None or other is None:
        return record
    record[nbytes] = other.nbytes - first.nbytes
    if not ran:
        return record
    if first.milliseconds is not None and other.milliseconds is not None:
        record[ms] = other.milliseconds - first.milliseconds
    if first.value is not None and other.value is not None and first.value.shape == other.value.shape:
        record[f"{name}: SQNR dB"], record[f"{name}: max error"] = error(first.value, other.value)
    return record


def error(reference: torch.Tensor, value: torch.Tensor) -> tuple[float, float]:
    """Signal to noise ratio in dB (infinite where equal), and the largest absolute difference."""
    wanted, found = reference.double(), value.double()
    if not wanted.numel():
        return math.inf, 0.0
    noise = (found - wanted).square().mean().item()
    signal = wanted.square().mean().item()
    ratio = math.inf if noise == 0 else -math.inf if signal == 0 else 10 * math.log10(signal / noise)
    return ratio, (found - wanted).abs().max().item()


def _operator(node: Node) -> str:
    target = node.target
    return str(target) if hasattr(target, "_schema") else str(getattr(target, "__name__", target))


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value


def _shape(value: Any) -> str:
    return "; ".join(f"{tensor.dtype}{tuple(map(str, tensor.shape))}" for tensor in _tensors(value))


def _nbytes(value: Any) -> int:
    """Bytes of a result; symbolic sizes count with the size of the example input."""
    total = 0
    for tensor in _tensors(value):
        count = tensor.dtype.itemsize
        for size in tensor.shape:
            count *= size if isinstance(size, int) else int(size.node.hint or 1)
        total += count
    return total


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"s{index}"
