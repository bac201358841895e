"""Several lowerings or runs side by side, joined on what their nodes come from in the exported graph.

Each node of a lowered graph carries the exported nodes that it comes from. Two nodes belong to the same row
if they share one; so a fused or delegated node stands beside the several nodes that another lowering left
apart. Programs from files, of whose nodes nothing is known, are joined by their instructions: they can be
compared with other runs of themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
import torch

from workbench import display
from workbench.errors import WorkbenchError
from workbench.join import Entry, Inside, Joined, Side, error, join
from workbench.run import Run, Runnable

__all__ = ["CHANGED", "MATCHED", "Cell", "Comparison", "Entry", "Inside", "Row", "Side", "compare", "error"]

MATCHED, CHANGED = "matched", "changed"

Comparable: TypeAlias = Runnable | Run


@dataclass(frozen=True)
class Cell:
    """What one side has in one row.

    Attributes:
        nodes: Its nodes, in topological order.
        milliseconds: Median time of one execution; None where it was not measured.
        value: What the last of the nodes wrote, where the run recorded it.
        inside: What ran inside a delegate, if its trace tells; its time is part of `milliseconds`.
    """

    nodes: Sequence[Entry] = ()
    milliseconds: float | None = None
    value: torch.Tensor | None = None
    inside: Sequence[Inside] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """The nodes' operators."""
        return tuple(node.operator for node in self.nodes)

    @property
    def shape(self) -> str:
        """Dtype and sizes of what the last node writes."""
        return self.nodes[-1].shape if self.nodes else ""

    @property
    def nbytes(self) -> int:
        """Bytes that the nodes write."""
        return sum(node.nbytes for node in self.nodes)

    @property
    def handles(self) -> frozenset[int]:
        """Source handles of the nodes, as this side counts them."""
        return frozenset().union(*(node.handles for node in self.nodes))


@dataclass(frozen=True)
class Row:
    """Nodes that come from the same exported nodes.

    Attributes:
        origins: Names of the exported nodes.
        handles: Their source handles, as the first side counts them; without those that it does not have.
        source: `file:line`, or empty.
        module: Path of the module, or empty.
        status: `matched`, `changed`, or `only in NAME, ...`.
        cells: By the number of a side what it has; no entry where it has nothing.
    """

    origins: frozenset[str]
    handles: frozenset[int]
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
        known: Of each side its nodes, source handles, sizes and events.
        rows: Groups of nodes that come from the same exported nodes, in the order of the reference.
        table: The same as a table.
            Columns: status (`matched`, `changed`, `only in NAME, ...`), source, module, handles (as the first
            side counts them; rows can be selected: `lowering.selection = comparison.table.head(3)`), then for
            each side its nodes, operators and bytes (and ms where it was run), and for each side but the
            first the deltas to the first: `Δ bytes`, `Δ ms`, and where both recorded values `SQNR dB` and
            `max error`.
    """

    def __init__(self, names: Sequence[str], sides: Sequence[Comparable], method: str = "forward") -> None:
        self.names = tuple(names)
        self.sides = tuple(sides)
        self.method = method
        joined = join(sides, method)
        self.known = tuple(joined.sides)
        self.rows = tuple(_rows(self.names, joined))
        self.table = pd.DataFrame(_columns(self.names, self.known, self.rows))

    @cached_property
    def inside(self) -> pd.DataFrame:
        """What ran inside delegates, where their traces tell.

        Columns: row (its number in `table`), side, event, ms (None where only values were recorded), handles
        (as the side counts).
        """
        found = [
            (number, self.names[side], item.name, item.milliseconds, tuple(sorted(item.handles)))
            for number, row in enumerate(self.rows)
            for side, cell in sorted(row.cells.items())
            for item in cell.inside
        ]
        return pd.DataFrame(found, columns=["row", "side", "event", "ms", "handles"])

    @cached_property
    def totals(self) -> pd.DataFrame:
        """One row per side, by its name, with all that can be added up, and its difference to the first.

        Columns: nodes, bytes (that the nodes write), arena bytes (planned), program bytes (of the file), ms
        (of one execution; of the rows that were measured), each of them again with `Δ`, and worst SQNR dB
        (the lowest of all rows; NaN where nothing was compared).
        """
        records = [
            {
                "nodes": sum(len(row.cells[index].nodes) for row in self.rows if index in row.cells),
                "bytes": sum(row.cells[index].nbytes for row in self.rows if index in row.cells),
                "arena bytes": side.arena_bytes,
                "program bytes": side.program_bytes,
                "ms": _total(self.table, f"{name}: ms"),
            }
            for index, (name, side) in enumerate(zip(self.names, self.known, strict=True))
        ]
        totals = pd.DataFrame(records, index=pd.Index(self.names, name="side"))
        for column in list(totals.columns):
            totals[f"Δ {column}"] = totals[column] - totals[column].iloc[0]
        ratios = [f"{name}: SQNR dB" for name in self.names]
        totals["worst SQNR dB"] = [
            float(self.table[ratio].min()) if ratio in self.table else np.nan for ratio in ratios
        ]
        return totals

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as one HTML file; errors as of `Lowering.to_html`."""
        display.save_report(self, path)

    def summary(self) -> pd.DataFrame:
        """One row per side: nodes, bytes written, milliseconds, and how many rows it matches or has alone."""
        rows = []
        for name in self.names:
            present = self.table[self.table[f"{name}: nodes"] != ""]
            rows.append(
                {
                    "side": name,
                    "rows": len(present),
                    "matched": int((present["status"] == MATCHED).sum()),
                    "changed": int((present["status"] == CHANGED).sum()),
                    "only here": int((present["status"] == f"only in {name}").sum()),
                    "bytes": int(self.table[f"{name}: bytes"].sum()),
                    "ms": _total(self.table, f"{name}: ms"),
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        title = f"<Comparison of {', '.join(self.names)}: {len(self.table)} rows>"
        return f"{title}\n{self.summary().to_string(index=False)}"

    def _static_html(self) -> str:
        summary = str(self.summary().to_html(index=False, border=0))
        return summary + str(self.table.to_html(index=False, border=0, max_rows=60, na_rep=""))


def compare(*sides: Comparable, names: Sequence[str] | None = None, method: str = "forward") -> Comparison:
    """Put lowerings or runs side by side.

    Args:
        *sides: At least two, of the same model; the first is the reference. A run adds times, and values
            where it recorded them. Programs from files and their runs are compared by instructions: all of
            them are of the same program, which may be that of a lowering beside them.
        names: What to call them; by default "a", "b", ...
        method: The method to compare.

    Raises:
        WorkbenchError: Fewer than two sides, names that don't fit, a side without the method, or programs
            from files of which nothing says how they belong together.
    """
    if len(sides) < 2:
        raise WorkbenchError("a comparison needs at least two lowerings or runs", found=str(len(sides)))
    called = list(names) if names is not None else [_letter(index) for index in range(len(sides))]
    if len(called) != len(sides) or len(set(called)) != len(called):
        raise WorkbenchError("each side needs a name of its own", found=", ".join(called))
    return Comparison(called, sides, method)


def _rows(names: Sequence[str], joined: Joined) -> list[Row]:
    first = joined.sides[0]
    relatives = [side for side in joined.sides if side.family is first.family]
    handles = {name: handle for side in reversed(relatives) for name, handle in side.handles.items()}
    sources = {name: source for side in reversed(joined.sides) for name, source in side.sources.items()}
    rows = []
    for group in joined.groups:
        cells = {
            index: Cell(part.nodes, part.milliseconds, part.value, tuple(part.inside))
            for index, part in group.parts.items()
        }
        known = [sources[name] for name in sorted(group.origins) if name in sources]
        rows.append(
            Row(
                origins=frozenset(group.origins),
                handles=frozenset(handles[name] for name in group.origins if name in handles),
                source=next((source.source for source in known if source.source), ""),
                module=next((source.module_path for source in known if source.module_path), ""),
                status=_status(names, cells),
                cells=cells,
            )
        )
    return rows


def _columns(names: Sequence[str], sides: Sequence[Side], rows: Sequence[Row]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {
        "status": [row.status for row in rows],
        "source": [row.source for row in rows],
        "module": [row.module for row in rows],
        "handles": [tuple(sorted(row.handles)) for row in rows],
    }
    nothing = Cell()
    cells = [[row.cells.get(index, nothing) for row in rows] for index in range(len(names))]
    for name, own, side in zip(names, cells, sides, strict=True):
        columns[f"{name}: nodes"] = [", ".join(node.name for node in cell.nodes) for cell in own]
        columns[f"{name}: operators"] = [", ".join(cell.operators) for cell in own]
        columns[f"{name}: bytes"] = [cell.nbytes for cell in own]
        if side.ran:
            columns[f"{name}: ms"] = [cell.milliseconds for cell in own]
    for index, name in enumerate(names[1:], start=1):
        pairs = list(zip(cells[0], cells[index], strict=True))
        columns[f"{name}: Δ bytes"] = [
            other.nbytes - first.nbytes if first.nodes and other.nodes else None for first, other in pairs
        ]
        if sides[0].ran and sides[index].ran:
            columns[f"{name}: Δ ms"] = [
                None
                if first.milliseconds is None or other.milliseconds is None
                else other.milliseconds - first.milliseconds
                for first, other in pairs
            ]
            _add_errors(columns, name, pairs)
    return columns


def _add_errors(columns: dict[str, list[object]], name: str, pairs: Sequence[tuple[Cell, Cell]]) -> None:
    errors = [
        error(first.value, other.value)
        if first.value is not None and other.value is not None and first.value.shape == other.value.shape
        else None
        for first, other in pairs
    ]
    if any(item is not None for item in errors):
        columns[f"{name}: SQNR dB"] = [None if item is None else item[0] for item in errors]
        columns[f"{name}: max error"] = [None if item is None else item[1] for item in errors]


def _status(names: Sequence[str], cells: Mapping[int, Cell]) -> str:
    if len(cells) < len(names):
        return "only in " + ", ".join(names[index] for index in sorted(cells))
    same = len({(cell.operators, cell.shape) for cell in cells.values()}) == 1
    return MATCHED if same else CHANGED


def _total(table: pd.DataFrame, column: str) -> float | None:
    return float(table[column].sum()) if column in table else None


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"s{index}"
