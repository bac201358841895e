"""Tables of figures, as text for the terminal and as markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table of formatted cells.

    Attributes:
        title: Stands above it.
        head: Names of the columns.
        rows: Cells as text.
        note: Stands below it.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def text(self) -> str:
        """For a terminal."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [self.title]
        for row in (self.head, *self.rows):
            first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join((first.strip().ljust(widths[0]), *rest)))
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def markdown(self) -> str:
        """For a document."""
        ruler = ["---", *("---:" for _ in self.head[1:])]
        lines = ["| " + " | ".join(row) + " |" for row in (self.head, ruler, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, *(["", self.note] if self.note else []), ""])


def table_of(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> Table:
    """A table of values: numbers with three digits, `-` for what was not measured."""
    return Table(title, tuple(head), tuple(tuple(_cell(value) for value in row) for row in rows), note)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str | int):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        digits = max(0, 2 - len(str(int(abs(value)))) + 1) if abs(value) >= 1 else 3
        return f"{value:.{digits}f}"
    return f"{value:.1e}"
