"""What a memory plan looks like, for people and for views."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.memory.problem import Buffer, Problem

__all__ = ["ArenaReport", "MemoryReport", "MethodMemory", "Placed"]


@dataclass(frozen=True)
class Placed:
    """One tensor's place.

    Attributes:
        name: The name of its node.
        arena: From 1.
        offset: Bytes from the start of the arena.
        nbytes: Bytes, not rounded.
        first: First moment of use: 0 when the inputs are given, `i + 1` at instruction `i`.
        last: Last moment of use, included.
        handles: Source handles.
        at_peak: Alive at the moment at which the most bytes are.
        pinned: The user chose the place.
    """

    name: str
    arena: int
    offset: int
    nbytes: int
    first: int
    last: int
    handles: frozenset[int]
    at_peak: bool
    pinned: bool


@dataclass(frozen=True)
class ArenaReport:
    """One arena.

    Attributes:
        arena: From 1.
        size: Bytes that the plan takes.
        lower_bound: Bytes alive at once at the worst moment.
        peak_moment: That moment.
        limit: Bytes that it may take; None for no limit.
        tensors: What lies in it, by offset.
    """

    arena: int
    size: int
    lower_bound: int
    peak_moment: int
    limit: int | None
    tensors: tuple[Placed, ...]

    @property
    def at_peak(self) -> tuple[Placed, ...]:
        """What is alive at the worst moment."""
        return tuple(item for item in self.tensors if item.at_peak)

    @property
    def fragmentation(self) -> float:
        """Share of the arena that is empty even at the worst moment, from 0 to 1."""
        return 1 - self.lower_bound / self.size if self.size else 0.0

    @property
    def total(self) -> int:
        """Bytes of all tensors, as if none shared memory."""
        return sum(item.nbytes for item in self.tensors)


@dataclass(frozen=True)
class MethodMemory:
    """The plan of one method.

    Attributes:
        method: Its name.
        arenas: Its arenas.
        planner: The planner that made it.
        buffers: What was planned, in the order in which the planner saw it: the same again gives the same.
    """

    method: str
    arenas: tuple[ArenaReport, ...]
    planner: str
    buffers: tuple[Buffer, ...] = ()

    @property
    def arena_sizes(self) -> dict[int, int]:
        """Bytes by arena."""
        return {item.arena: item.size for item in self.arenas}

    @property
    def size(self) -> int:
        """Bytes of all arenas."""
        return sum(item.size for item in self.arenas)

    @property
    def lower_bound(self) -> int:
        """Sum of the arenas' lower bounds, in bytes."""
        return sum(item.lower_bound for item in self.arenas)

    @property
    def tensors(self) -> tuple[Placed, ...]:
        """All tensors that have a place."""
        return tuple(item for arena in self.arenas for item in arena.tensors)


class MemoryReport:
    """The plans of a program.

    Attributes:
        methods: By name.
    """

    def __init__(self, methods: Mapping[str, MethodMemory]) -> None:
        self.methods = dict(methods)

    def __getitem__(self, method: str) -> MethodMemory:
        return self.methods[method]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per tensor."""
        for method in self.methods.values():
            for item in method.tensors:
                yield {
                    "method": method.method,
                    "tensor": item.name,
                    "arena": item.arena,
                    "offset": item.offset,
                    "bytes": item.nbytes,
                    "first": item.first,
                    "last": item.last,
                    "at_peak": item.at_peak,
                    "pinned": item.pinned,
                    "handles": tuple(sorted(item.handles)),
                }

    def table(self) -> Any:
        """One row per tensor, as a pandas DataFrame."""
        import pandas as pd

        columns = [
            "method",
            "tensor",
            "arena",
            "offset",
            "bytes",
            "first",
            "last",
            "at_peak",
            "pinned",
            "handles",
        ]
        return pd.DataFrame(list(self.rows()), columns=columns)

    def _summary(self) -> list[tuple[str, ...]]:
        return [
            (
                method.method,
                str(arena.arena),
                f"{arena.size:,}",
                f"{arena.lower_bound:,}",
                f"{arena.fragmentation:.1%}",
                f"{arena.total:,}",
                str(len(arena.tensors)),
                ", ".join(item.name for item in sorted(arena.at_peak, key=lambda i: -i.nbytes)[:4]),
            )
            for method in self.methods.values()
            for arena in method.arenas
        ]

    def __repr__(self) -> str:
        rows = [_HEAD, *self._summary()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._summary()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEAD = (
    "method",
    "arena",
    "bytes",
    "lower bound",
    "unused at peak",
    "without sharing",
    "tensors",
    "largest at peak",
)


def arena_report(
    arena: int, problem: Problem, offsets: Sequence[int], size: int, limit: int | None
) -> ArenaReport:
    """Describe the plan of one arena."""
    moment, _ = max(problem.load, key=lambda item: item[1], default=(0, 0))
    placed = [
        Placed(
            buffer.name,
            arena,
            offset,
            buffer.nbytes,
            buffer.first,
            buffer.last,
            buffer.handles,
            buffer.first <= moment <= buffer.last,
            buffer.pin is not None,
        )
        for buffer, offset in zip(problem.buffers, offsets, strict=True)
    ]
    placed.sort(key=lambda item: (item.offset, item.first))
    return ArenaReport(arena, size, problem.lower_bound, moment, limit, tuple(placed))


def largest(buffers: Sequence[Buffer], count: int = 5) -> str:
    """The largest buffers, for messages."""
    found = sorted(buffers, key=lambda item: -item.nbytes)[:count]
    return ", ".join(f"{item.name} ({item.nbytes:,})" for item in found)
