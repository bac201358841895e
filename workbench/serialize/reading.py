"""Reading flatbuffers from files that nobody vouches for: every offset is checked before it is followed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from workbench.errors import SerializationError

__all__ = ["Table", "root_table"]

T = TypeVar("T")

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U16 = struct.Struct("<H")


class Table:
    """A table of a flatbuffer.

    Args:
        data: The flatbuffer.
        position: Where the table lies.
        path: What messages call it.

    Raises:
        SerializationError: It, or its vtable, does not lie inside the buffer.
    """

    __slots__ = ("_end", "_fields", "data", "path", "position")

    def __init__(self, data: memoryview, position: int, path: str) -> None:
        self.data = data
        self.path = path
        self.position = position
        self._check(position, 4, "the table")
        vtable = position - _I32.unpack_from(data, position)[0]
        self._check(vtable, 4, "its vtable")
        size = _U16.unpack_from(data, vtable)[0]
        self._end = _U16.unpack_from(data, vtable + 2)[0]
        if size < 4 or size % 2 or self._end < 4:
            raise self._bad("a malformed vtable", f"sizes {size} and {self._end}")
        self._check(vtable, size, "its vtable")
        self._check(position, self._end, "the table")
        self._fields = struct.unpack_from(f"<{(size - 4) // 2}H", data, vtable + 4)

    def has(self, field: int) -> bool:
        """Whether a field is present."""
        return field < len(self._fields) and self._fields[field] != 0

    def number(self, field: int, kind: str, default: Any = 0) -> Any:
        """A number; `kind` is `struct`'s."""
        if not self.has(field):
            return default
        offset = self._fields[field]
        if offset < 4 or offset + struct.calcsize(kind) > self._end:
            raise self._bad(f"field {field} lies outside of its table", f"offset {offset}")
        return struct.unpack_from(f"<{kind}", self.data, self.position + offset)[0]

    def table(self, field: int, name: str) -> Table | None:
        """A table; None if it is absent."""
        place = self._follow(field)
        return None if place is None else Table(self.data, place, f"{self.path}.{name}")

    def need_table(self, field: int, name: str) -> Table:
        """A table that must be there."""
        found = self.table(field, name)
        if found is None:
            raise self._bad(f"`{name}` is missing")
        return found

    def text(self, field: int, name: str, default: str = "") -> str:
        """A string."""
        place = self._follow(field)
        if place is None:
            return default
        start, size = self._vector(place, 1, name)
        try:
            return bytes(self.data[start : start + size]).decode()
        except UnicodeDecodeError:
            raise self._bad(f"`{name}` is no text") from None

    def numbers(self, field: int, kind: str, name: str) -> tuple[Any, ...]:
        """A vector of numbers; empty if it is absent."""
        place = self._follow(field)
        if place is None:
            return ()
        start, size = self._vector(place, struct.calcsize(kind), name)
        return struct.unpack_from(f"<{size}{kind}", self.data, start)

    def bytes_(self, field: int, name: str) -> memoryview:
        """A vector of bytes, not copied; empty if it is absent."""
        place = self._follow(field)
        if place is None:
            return self.data[:0]
        start, size = self._vector(place, 1, name)
        return self.data[start : start + size]

    def tables(self, field: int, name: str, read: Callable[[Table], T]) -> list[T]:
        """A vector of tables, each read at once."""
        place = self._follow(field)
        if place is None:
            return []
        start, size = self._vector(place, 4, name)
        offsets = struct.unpack_from(f"<{size}I", self.data, start)
        return [
            read(Table(self.data, start + 4 * index + offset, f"{self.path}.{name}[{index}]"))
            for index, offset in enumerate(offsets)
        ]

    def place(self, field: int) -> int | None:
        """Where the table, vector or string of a field begins, in bytes of the buffer; None if absent."""
        return self._follow(field)

    def _follow(self, field: int) -> int | None:
        if not self.has(field):
            return None
        offset = self.number(field, "I")
        if offset == 0:
            return None
        place: int = self.position + self._fields[field] + offset
        self._check(place, 4, f"field {field}")
        return place

    def _vector(self, place: int, item: int, name: str) -> tuple[int, int]:
        size = _U32.unpack_from(self.data, place)[0]
        self._check(place + 4, size * item, f"`{name}`")
        return place + 4, size

    def _check(self, position: int, size: int, what: str) -> None:
        if position < 0 or position + size > len(self.data):
            raise self._bad(f"{what} lies outside of the flatbuffer", f"{size} bytes at {position}")

    def _bad(self, problem: str, found: str | None = None) -> SerializationError:
        return SerializationError(
            f"{self.path}: {problem}",
            expected=f"inside {len(self.data)} bytes" if found and "outside" in problem else None,
            found=found,
        )


def root_table(data: memoryview, identifier: bytes, kind: str) -> Table:
    """The root of a flatbuffer.

    Args:
        data: The flatbuffer.
        identifier: What must stand at byte 4.
        kind: What messages call the file.

    Raises:
        SerializationError: It is no such file.
    """
    if len(data) < 8:
        raise SerializationError(
            f"this is no {kind}: it ends before its identifier", found=f"{len(data)} bytes"
        )
    found = bytes(data[4:8])
    if found != identifier:
        raise SerializationError(f"this is no {kind}", expected=repr(identifier), found=repr(found))
    return Table(data, _U32.unpack_from(data, 0)[0], kind)
