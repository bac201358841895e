"""Writing flatbuffers front to back.

The usual builder works from the back and looks every vtable up; in Python that costs about 20 us a table, and
a program has tens of thousands. Here the vtables of the common tables are written first, and a table together
with its children is one `struct.pack`: children follow their parents, so all distances in such a run of bytes
are known. A reader can't tell the difference.

See https://flatbuffers.dev/internals for the format.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["Forward"]

_ALIGN = 8
"""Every run of bytes starts at a multiple of this, the largest alignment of a field."""


class Forward:
    """A flatbuffer that grows at its end.

    Args:
        identifier: The four bytes at offset 4.
        reserve: Bytes that are left free behind the identifier, for a header.

    Attributes:
        out: The bytes so far. The first four are filled in by `root`.
    """

    def __init__(self, identifier: bytes, reserve: int = 0) -> None:
        self.out = bytearray(4) + identifier + bytes(reserve)
        self._vtables: dict[bytes, int] = {}
        self._pad()

    def append(self, data: bytes) -> int:
        """Add a run of bytes at the next multiple of 8; returns where it starts."""
        out = self.out
        position = len(out)
        out += data
        rest = len(out) & (_ALIGN - 1)
        if rest:
            out += bytes(_ALIGN - rest)
        return position

    def vtable(self, table_size: int, fields: Sequence[int]) -> int:
        """Add a vtable, or find the one that is there.

        Args:
            table_size: Bytes of the table, its distance to the vtable included.
            fields: For each field its offset in the table; 0 for absent ones.
        """
        entries = (4 + 2 * len(fields), table_size, *fields)
        packed = struct.pack(f"<{len(entries)}H", *entries)
        if packed not in self._vtables:
            self._vtables[packed] = self.append(packed)
        return self._vtables[packed]

    def table(self, fields: Sequence[tuple[int, str, int | float]], count: int) -> dict[int, int]:
        """Add a table of any fields; for those that occur rarely.

        Args:
            fields: Number, format (`struct`'s, or "ref" for an offset that is set later) and value.
            count: How many fields the table has in the schema.

        Returns:
            By number of the field its position in the buffer; under -1 the position of the table.
        """
        sized = [(number, "I" if kind == "ref" else kind, value) for number, kind, value in fields]
        sized.sort(key=lambda item: -struct.calcsize(item[1]))
        offsets = [0] * count
        end = 4
        for number, kind, _ in sized:
            size = struct.calcsize(kind)
            end = (end + size - 1) & -size
            offsets[number] = end
            end += size
        vtable = self.vtable(end, offsets)
        body = bytearray(end)
        for number, kind, value in sized:
            struct.pack_into(f"<{kind}", body, offsets[number], value)
        table = self.append(bytes(body))
        struct.pack_into("<i", self.out, table, table - vtable)
        places = {number: table + offsets[number] for number, _, _ in fields}
        places[-1] = table
        return places

    def point(self, place: int, target: int) -> None:
        """Let an offset field point at what was added later."""
        struct.pack_into("<I", self.out, place, target - place)

    def string(self, text: str) -> int:
        """Add a string."""
        data = text.encode()
        return self.append(struct.pack(f"<I{len(data)}sx", len(data), data))

    def vector(self, kind: str, items: Sequence[int] | Sequence[float]) -> int:
        """Add a vector of numbers; returns where its length stands."""
        size = struct.calcsize(kind)
        pad = 4 if size == 8 else 0  # the items are aligned, not the length
        return self.append(struct.pack(f"<{pad}xI{len(items)}{kind}", len(items), *items)) + pad

    def offsets(self, count: int) -> int:
        """Add a vector of offsets that `fill` sets later; returns where its length stands."""
        return self.append(struct.pack("<I", count) + bytes(4 * count))

    def fill(self, vector: int, targets: Sequence[int]) -> None:
        """Set all offsets of a vector."""
        first = vector + 4
        distances = [target - first - 4 * index for index, target in enumerate(targets)]
        struct.pack_into(f"<{len(targets)}I", self.out, first, *distances)

    def root(self, table: int) -> None:
        """Name the root table."""
        struct.pack_into("<I", self.out, 0, table)

    def align(self, alignment: int, skip: int = 0) -> None:
        """Add zeros until `skip` bytes further on lies a multiple of an alignment."""
        self.out += bytes(-(len(self.out) + skip) % alignment)

    def _pad(self) -> None:
        self.align(_ALIGN)
