"""Runs of bytes behind a flatbuffer: where each goes, and writing them from where they lie."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from functools import cached_property

__all__ = ["Segment", "SerializedFile", "lay_out"]


class Segment:
    """One segment.

    Args:
        kind: What it holds: "constants", "states", "delegates", "named data".
        pieces: Its bytes, in order.
        alignment: That its offset must have, in bytes, beside that of all segments.

    Attributes:
        offset: From the first segment's start, in bytes; set by `lay_out`.
        size: In bytes.
    """

    def __init__(self, kind: str, pieces: Sequence[memoryview], alignment: int = 1) -> None:
        self.kind = kind
        self.pieces = pieces
        self.alignment = alignment
        self.offset = 0
        self.size = sum(piece.nbytes for piece in pieces)


def lay_out(segments: Sequence[Segment], alignment: int) -> int:
    """Give each segment its offset; returns the bytes from the first one's start to the last one's end."""
    end = 0
    for segment in segments:
        if not segment.size:
            segment.offset = end
            continue
        unit = math.lcm(alignment, segment.alignment)
        segment.offset = -(-end // unit) * unit
        end = segment.offset + segment.size
    return end


class SerializedFile:
    """A file in parts: a flatbuffer and the segments behind it.

    Args:
        flatbuffer: With its header.
        base: Where the segments start; the flatbuffer's end where there are none.
        segments: With their offsets.
    """

    def __init__(self, flatbuffer: bytes, base: int, segments: Sequence[Segment]) -> None:
        self.flatbuffer = flatbuffer
        self.base = base
        self.segments = tuple(segments)

    def __len__(self) -> int:
        end = len(self.flatbuffer)
        for segment in self.segments:
            if segment.size:
                end = max(end, self.base + segment.offset + segment.size)
        return end

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of the file, in order, padding included."""
        yield self.flatbuffer
        end = len(self.flatbuffer)
        for segment in self.segments:
            if not segment.size:
                continue
            start = self.base + segment.offset
            if start > end:
                yield bytes(start - end)
            yield from segment.pieces
            end = start + segment.size

    @cached_property
    def buffer(self) -> bytes:
        """The whole file as one string of bytes."""
        return b"".join(self.pieces())

    def __bytes__(self) -> bytes:
        return self.buffer

    def write_to_file(self, file: io.BufferedIOBase | io.RawIOBase | io.BufferedWriter) -> None:
        """Write the file; segments go from where they lie, without a copy in between."""
        for piece in self.pieces():
            file.write(piece)

    def sizes(self) -> dict[str, int]:
        """Bytes by part of the file, padding between the parts on its own."""
        found: dict[str, int] = {"flatbuffer": len(self.flatbuffer)}
        for segment in self.segments:
            found[segment.kind] = found.get(segment.kind, 0) + segment.size
        padding = len(self) - sum(found.values())
        if padding:
            found["padding"] = padding
        return found
