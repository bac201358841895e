"""Which bytes of a `.pte` are what: ranges that cover the file without a gap and without an overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.serialize.program_reader import Parts
from workbench.serialize.program_writer import IDENTIFIER
from workbench.serialize.reading import Table, root_table

__all__ = ["Range", "file_ranges", "flatbuffer_ranges"]


@dataclass(frozen=True)
class Range:
    """Some bytes of the file.

    Attributes:
        start: First byte.
        end: One after the last.
        kind: `constant`, `state`, `delegate`, `data`, `flatbuffer` or `padding`.
        index: Number of the constant, state, blob or named data; -1 for others.
    """

    start: int
    end: int
    kind: str
    index: int = -1


def file_ranges(parts: Parts) -> list[Range]:
    """The ranges of a file, ascending; they add up to its size.

    Pieces that share bytes (two names for the same data) count once, for the first.
    """
    base = _address(parts.data)
    program = parts.program
    pieces = [
        *_pieces("constant", program.constants[1:], base, 1),
        *_pieces("state", program.states[1:], base, 1),
        *_pieces("delegate", program.delegate_data, base, 0),
        *_pieces("data", [item.data for item in program.named_data.values()], base, 0),
    ]
    found: list[Range] = []
    end = 0
    for piece in sorted(pieces, key=lambda item: (item.start, -item.end)):
        if piece.end <= end:
            continue
        found += _between(end, piece.start, parts.flatbuffer)
        found.append(Range(max(end, piece.start), piece.end, piece.kind, piece.index))
        end = piece.end
    return [*found, *_between(end, len(parts.data), parts.flatbuffer)]


def _pieces(kind: str, views: Any, base: int, first: int) -> Iterator[Range]:
    for index, view in enumerate(views, start=first):
        if len(view):
            start = _address(view) - base
            yield Range(start, start + len(view), kind, index)


def _address(view: memoryview) -> int:
    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address


def _between(start: int, end: int, flatbuffer: int) -> Iterator[Range]:
    """What no piece covers: the flatbuffer up to its end, padding behind it."""
    if start < min(end, flatbuffer):
        yield Range(start, min(end, flatbuffer), "flatbuffer")
    if max(start, flatbuffer) < end:
        yield Range(max(start, flatbuffer), end, "padding")


def flatbuffer_ranges(data: memoryview) -> list[tuple[str, int]]:
    """What the flatbuffer's bytes are for: names and bytes, which add up to its size.

    An object's bytes are those from its start to the start of the next one: small tables of offsets and
    padding count for what they stand behind.

    Args:
        data: The flatbuffer, checked by the reader.
    """
    places: list[tuple[int, str]] = [(0, "header")]
    root = root_table(data, IDENTIFIER, "program")
    places += _walk(root)
    places.sort()
    totals: dict[str, int] = {}
    for (start, name), (end, _) in zip(places, [*places[1:], (len(data), "")], strict=True):
        totals[name] = totals.get(name, 0) + end - start
    return list(totals.items())


def _walk(root: Table) -> Iterator[tuple[int, str]]:
    yield root.position, "header"
    for number, name in ((2, "constants in the flatbuffer"), (3, "blobs in the flatbuffer")):
        yield from _vector(root, number, name)
    for number, name in ((4, "list of segments"), (5, "places of constants"), (6, "places of states")):
        yield from _vector(root, number, name)
    if (constants := root.table(5, "constant_segment")) is not None:
        yield from _object(constants, 1, "places of constants")
    yield from _named(root)
    for method in _tables(root, 1):
        yield from _method(method)


def _named(root: Table) -> Iterator[tuple[int, str]]:
    place = root.place(7)
    if place is not None:
        yield place, "names of data"
        for table in _tables(root, 7):
            yield table.position, "names of data"
            yield from _object(table, 0, "names of data")


def _method(table: Table) -> Iterator[tuple[int, str]]:
    name = table.text(0, "name")
    yield table.position, f"{name}: names and trees"
    for number in (0, 1, 3, 4, 8):
        yield from _object(table, number, f"{name}: names and trees")
    if (container := table.table(1, "container_meta_type")) is not None:
        for number in (0, 1):
            yield from _object(container, number, f"{name}: names and trees")
    yield from _vector(table, 2, f"{name}: values", deep=_value)
    yield from _vector(table, 6, f"{name}: operators", deep=_strings)
    yield from _vector(table, 7, f"{name}: delegates", deep=_delegate)
    yield from _vector(table, 5, f"{name}: instructions")
    for chain in _tables(table, 5):
        yield from _vector(chain, 2, f"{name}: instructions", deep=_instruction)
        yield from _vector(chain, 3, f"{name}: stack traces")
        for frames in _tables(chain, 3):
            yield from _vector(frames, 0, f"{name}: stack traces", deep=_strings)


def _value(table: Table) -> Iterator[int | None]:
    inner = table.table(1, "val")
    if inner is None:
        return
    yield inner.position
    if table.number(0, "B") == 5:
        yield from (inner.place(number) for number in (2, 3, 6, 9))
    elif table.number(0, "B") >= 6:
        yield inner.place(0)


def _instruction(table: Table) -> Iterator[int | None]:
    inner = table.table(1, "instr_args")
    if inner is not None:
        yield inner.position
        if table.number(0, "B") in (1, 2):
            yield inner.place(1)


def _strings(table: Table) -> Iterator[int | None]:
    yield table.place(0)
    if table.number(1, "I") and table.has(1):
        yield table.place(1)


def _delegate(table: Table) -> Iterator[int | None]:
    yield from (table.place(number) for number in (0, 1, 2))
    for spec in _tables(table, 2):
        yield spec.position
        yield from (spec.place(number) for number in (0, 1))


def _vector(table: Table, number: int, name: str, deep: Any = None) -> Iterator[tuple[int, str]]:
    """A field's object, and of a vector of tables (`deep`) each table and what it points at."""
    yield from _object(table, number, name)
    if deep is None:
        return
    for item in _tables(table, number):
        yield item.position, name
        yield from ((place, name) for place in deep(item) if place is not None)


def _object(table: Table, number: int, name: str) -> Iterator[tuple[int, str]]:
    place = table.place(number)
    if place is not None:
        yield place, name


def _tables(table: Table, number: int) -> list[Table]:
    return table.tables(number, "items", lambda item: item)
