"""`.ptd` files: data by name, outside of programs."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from workbench.emit.ir import ELEMENT_SIZES, NamedBytes
from workbench.errors import SerializationError
from workbench.serialize.forward import Forward
from workbench.serialize.program_reader import Source, as_view
from workbench.serialize.reading import Table, root_table
from workbench.serialize.segments import Segment, SerializedFile, lay_out

__all__ = ["read_named_data", "write_named_data"]

IDENTIFIER = b"FT01"
HEADER = struct.Struct("<4sIQQQQ")
"""`FH01`, length of the header, place and size of the flatbuffer, base and size of the segments."""

_ROOM = 48
"""The header is padded to the largest alignment of a flatbuffer, 16."""


def write_named_data(data: Mapping[str, NamedBytes], *, segment_alignment: int = 128) -> SerializedFile:
    """Write a data file.

    Args:
        data: By name. Entries with the same memoryview share a segment.
        segment_alignment: Of each segment's offset, in bytes; a power of two.

    Returns:
        The file in parts; the data is referenced, not copied.
    """
    segments: list[Segment] = []
    index_of: dict[int, int] = {}
    for entry in data.values():
        key = id(entry.data)
        if key in index_of:
            known = segments[index_of[key]]
            known.alignment = max(known.alignment, entry.alignment)
        else:
            index_of[key] = len(segments)
            segments.append(Segment("named data", [entry.data], entry.alignment))
    size = lay_out(segments, segment_alignment)
    out = Forward(IDENTIFIER, _ROOM)
    root = out.table([(0, "I", 0), (1, "ref", 0), (2, "ref", 0)], 3)
    out.root(root[-1])
    vector = out.offsets(len(segments))
    out.point(root[1], vector)
    out.fill(vector, [out.table([(0, "Q", s.offset), (1, "Q", s.size)], 2)[-1] for s in segments])
    vector = out.offsets(len(data))
    out.point(root[2], vector)
    out.fill(vector, [_entry(out, key, item, index_of[id(item.data)]) for key, item in data.items()])
    out.align(16)
    base = -(-len(out.out) // segment_alignment) * segment_alignment
    # The size is that of the flatbuffer without the header's room, which ExecuTorch's tools add to the place.
    HEADER.pack_into(out.out, 8, b"FH01", HEADER.size, _ROOM, len(out.out) - _ROOM, base, size)
    return SerializedFile(bytes(out.out).ljust(base, b"\0"), base, segments)


def read_named_data(source: Source) -> dict[str, NamedBytes]:
    """Read and check a data file.

    Args:
        source: The file's bytes, or its path; a path is mapped into memory.

    Returns:
        By name, the data as memoryviews into the file.

    Raises:
        SerializationError: The file is no data file, is truncated, or refers to what it does not have.
    """
    data = as_view(source)
    if len(data) < 8 + HEADER.size or bytes(data[8:12]) != b"FH01":
        raise SerializationError("this is no data file: its header is missing", expected="FH01 at byte 8")
    _, length, place, size, base, total = HEADER.unpack_from(data, 8)
    if length < HEADER.size or place + size > len(data) or base + total > len(data):
        raise SerializationError(
            "the header does not fit the file",
            expected=f"parts of {len(data)} bytes",
            found=f"a flatbuffer up to {place + size}, segments up to {base + total}",
            hint="the file may be truncated",
        )
    root = root_table(data[: place + size], IDENTIFIER, "data file")
    segments = root.tables(1, "segments", lambda t: (int(t.number(0, "Q")), int(t.number(1, "Q"))))
    found: dict[str, NamedBytes] = {}
    for key, index, layout in root.tables(
        2, "named_data", lambda t: (t.text(0, "key"), int(t.number(1, "I")), t.table(2, "tensor_layout"))
    ):
        if index >= len(segments) or segments[index][0] + segments[index][1] > len(data) - base:
            raise SerializationError(f"`{key}` stands in a segment that is not in the file", found=str(index))
        offset, nbytes = segments[index]
        found[key] = _named(key, data[base + offset : base + offset + nbytes], layout)
    return found


def _entry(out: Forward, key: str, item: NamedBytes, segment: int) -> int:
    fields: list[tuple[int, str, int | float]] = [(0, "ref", 0), (1, "I", segment)]
    if item.scalar_type is not None:
        fields.append((2, "ref", 0))
    table = out.table(fields, 3)
    out.point(table[0], out.string(key))
    if item.scalar_type is not None:
        layout = out.table([(0, "b", item.scalar_type), (1, "ref", 0), (2, "ref", 0)], 3)
        out.point(table[2], layout[-1])
        out.point(layout[1], out.vector("i", item.sizes))
        out.point(layout[2], out.vector("B", item.dim_order))
    return table[-1]


def _named(key: str, data: memoryview, layout: Table | None) -> NamedBytes:
    if layout is None:
        return NamedBytes(data)
    kind = layout.number(0, "b")
    sizes = layout.numbers(1, "i", "sizes")
    order = layout.numbers(2, "B", "dim_order")
    nbytes = ELEMENT_SIZES.get(kind, -1)
    for size in sizes:
        nbytes *= size
    if nbytes < 0 or nbytes > data.nbytes or sorted(order) != list(range(len(sizes))):
        raise SerializationError(
            f"`{key}` is no tensor of the sizes given",
            expected=f"element type {kind}, sizes {list(sizes)}, order {list(order)}",
            found=f"{data.nbytes} bytes",
        )
    return NamedBytes(data, 1, kind, sizes, order)
