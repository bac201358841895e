"""Programs in memory -> `.pte` files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from workbench.emit import ir
from workbench.errors import SerializationError
from workbench.serialize.encode import Encoder
from workbench.serialize.forward import Forward
from workbench.serialize.segments import Segment, SerializedFile, lay_out

__all__ = ["SerializedProgram", "write_program"]

T = TypeVar("T")

SerializedProgram = SerializedFile
IDENTIFIER = b"ET12"
HEADER = struct.Struct("<4sIQQQ")
"""`eh00`, length of the header, size of the flatbuffer with it, base and size of the segments."""

_FILE_ALIGNMENT = 16
_ZEROS = memoryview(bytes(4096))


def write_program(program: ir.Program) -> SerializedProgram:
    """Write a program.

    Constants, states, blobs and named data are referenced, not copied; they must not change before the file
    is written.

    Args:
        program: The program.

    Returns:
        The file in parts.

    Raises:
        SerializationError: The program refers to what it does not have, or a number does not fit its field.
    """
    segments, blobs = _segments(program)
    size = lay_out(segments, program.segment_alignment)
    header = HEADER.size if size else 0
    writer = _Writer(program, segments, blobs, header)
    try:
        flatbuffer = writer.run()
    except struct.error as error:
        raise SerializationError(f"a number does not fit its field: {error}", stage="program") from error
    base = -(-len(flatbuffer) // program.segment_alignment) * program.segment_alignment
    if header:
        HEADER.pack_into(flatbuffer, 8, b"eh00", HEADER.size, len(flatbuffer), base, size)
    return SerializedProgram(bytes(flatbuffer), base if header else len(flatbuffer), segments)


def _segments(program: ir.Program) -> tuple[list[Segment], list[tuple[int, int]]]:
    """The segments in the file's order, and for each delegate blob its location and index."""
    segments = [Segment("constants", _padded(program.constants, program.constant_alignment))]
    if len(program.states) > 1:
        segments.append(Segment("states", program.states))
    blobs = []
    inline = 0
    for blob in program.delegate_data:
        if blob.nbytes and program.extract_delegates:
            blobs.append((1, len(segments)))
            segments.append(Segment("delegates", [blob]))
        else:
            blobs.append((0, inline))
            inline += 1
    seen: dict[int, int] = {}
    for named in program.named_data.values():
        if id(named.data) not in seen:
            seen[id(named.data)] = len(segments)
            segments.append(Segment("named data", [named.data], named.alignment))
        elif named.alignment > 1:
            segment = segments[seen[id(named.data)]]
            segment.alignment = max(segment.alignment, named.alignment)
    return segments, blobs


def _padded(pieces: list[memoryview], alignment: int) -> list[memoryview]:
    """Pieces with zeros between them, so that each starts aligned."""
    found: list[memoryview] = []
    for index, piece in enumerate(pieces):
        found.append(piece)
        pad = -piece.nbytes % alignment
        if pad and index + 1 < len(pieces):
            found.append(_ZEROS[:pad] if pad <= len(_ZEROS) else memoryview(bytes(pad)))
    return found


def starts(pieces: list[memoryview], alignment: int) -> list[int]:
    """Where each piece starts in its segment."""
    found = []
    end = 0
    for piece in pieces:
        found.append(end)
        end += piece.nbytes + -piece.nbytes % alignment
    return found


class _Writer:
    """The flatbuffer of one program."""

    def __init__(
        self, program: ir.Program, segments: list[Segment], blobs: list[tuple[int, int]], header: int
    ) -> None:
        self.program = program
        self.segments = segments
        self.blobs = blobs
        self.out = Forward(IDENTIFIER, header)
        self.encoder = Encoder(self.out)
        self.strings: dict[str, int] = {}

    def run(self) -> bytearray:
        out, program = self.out, self.program
        inline = [
            blob for blob, (kind, _) in zip(program.delegate_data, self.blobs, strict=True) if kind == 0
        ]
        fields: list[tuple[int, str, int]] = [(0, "I", program.version), (1, "ref", 0), (5, "ref", 0)]
        fields += [(3, "ref", 0), (4, "ref", 0)]  # ExecuTorch's tools want both, even if they are empty
        fields += [(6, "ref", 0)] if len(program.states) > 1 else []
        fields += [(7, "ref", 0)] if program.named_data else []
        root = out.table(fields, 8)
        out.root(root[-1])
        self.vector(root[1], program.methods, self.method)
        self.vector(root[3], inline, self.inline)
        self.vector(root[4], self.segments, self.segment)
        out.point(root[5], self.subsegments(0, starts(program.constants, program.constant_alignment)))
        if len(program.states) > 1:
            self.vector(root[6], [starts(program.states, 1)], lambda offsets: self.subsegments(1, offsets))
        if program.named_data:
            self.vector(root[7], self.named(), self.name)
        out.align(_FILE_ALIGNMENT)
        return out.out

    def vector(self, place: int, items: Sequence[T], make: Callable[[T], int]) -> None:
        """A vector of tables: first its slots, then what they point at."""
        vector = self.out.offsets(len(items))
        self.out.point(place, vector)
        self.out.fill(vector, [make(item) for item in items])

    def segment(self, segment: Segment) -> int:
        return self.out.table([(0, "Q", segment.offset), (1, "Q", segment.size)], 2)[-1]

    def text(self, place: int, text: str) -> None:
        known = self.strings.get(text)
        # An offset only points forward, so a string can be shared with what was written before it.
        if known is None or known < place:
            known = self.strings[text] = self.out.string(text)
        self.out.point(place, known)

    def subsegments(self, segment: int, offsets: list[int]) -> int:
        table = self.out.table([(0, "I", segment), (1, "ref", 0)], 2)
        self.out.point(table[1], self.out.vector("Q", offsets))
        return table[-1]

    def named(self) -> list[tuple[str, int]]:
        """The names of the data, and the segment of each."""
        first = {id(s.pieces[0]): i for i, s in enumerate(self.segments) if s.kind == "named data"}
        return [(key, first[id(named.data)]) for key, named in self.program.named_data.items()]

    def name(self, item: tuple[str, int]) -> int:
        key, segment = item
        table = self.out.table([(0, "ref", 0), (1, "I", segment)], 2)
        self.text(table[0], key)
        return table[-1]

    def inline(self, blob: memoryview) -> int:
        out = self.out
        table = out.table([(0, "ref", 0)], 1)
        out.align(max(self.program.delegate_alignment, 8), skip=4)
        place = len(out.out)
        out.out += struct.pack("<I", blob.nbytes)
        out.out += blob
        out.align(8)
        out.point(table[0], place)
        return table[-1]

    def method(self, method: ir.Method) -> int:
        out, encoder = self.out, self.encoder
        _check(method, self.program)
        table = out.table([(number, "ref", 0) for number in range(9)], 10)
        self.text(table[0], method.name)
        container = out.table([(0, "ref", 0), (1, "ref", 0)], 2)
        out.point(table[1], container[-1])
        self.text(container[0], method.input_tree)
        self.text(container[1], method.output_tree)
        vector = out.offsets(len(method.values))
        out.point(table[2], vector)
        out.fill(vector, [encoder.value(value) for value in method.values])
        out.point(table[3], out.vector("i", method.inputs))
        out.point(table[4], out.vector("i", method.outputs))
        self.vector(table[5], method.chains, self.chain)
        self.vector(table[6], method.operators, self.operator)
        self.vector(table[7], method.delegates, self.delegate)
        out.point(table[8], out.vector("q", method.arena_sizes))
        return table[-1]

    def chain(self, chain: ir.Chain) -> int:
        out = self.out
        fields = [(number, "ref", 0) for number in (0, 1, 2)]
        fields += [(3, "ref", 0)] if chain.stacktrace else []
        table = out.table(fields, 4)
        out.point(table[0], out.vector("i", chain.inputs))
        out.point(table[1], out.vector("i", chain.outputs))
        vector = out.offsets(len(chain.instructions))
        out.point(table[2], vector)
        out.fill(vector, [self.encoder.instruction(item) for item in chain.instructions])
        if chain.stacktrace:
            self.vector(table[3], chain.stacktrace, self.frames)
        return table[-1]

    def frames(self, frames: list[tuple[str, int, str, str]]) -> int:
        table = self.out.table([(0, "ref", 0)], 1)
        self.vector(table[0], frames, self.frame)
        return table[-1]

    def frame(self, frame: tuple[str, int, str, str]) -> int:
        file, line, name, context = frame
        table = self.out.table([(0, "ref", 0), (1, "i", line), (2, "ref", 0), (3, "ref", 0)], 4)
        for number, text in ((0, file), (2, name), (3, context)):
            self.out.point(table[number], self.out.string(text))
        return table[-1]

    def operator(self, operator: tuple[str, str]) -> int:
        name, overload = operator
        table = self.out.table([(0, "ref", 0), (1, "ref", 0)], 2)
        self.text(table[0], name)
        self.text(table[1], overload)
        return table[-1]

    def delegate(self, delegate: ir.Delegate) -> int:
        table = self.out.table([(0, "ref", 0), (1, "ref", 0), (2, "ref", 0)], 3)
        self.text(table[0], delegate.backend_id)
        location, index = self.blobs[delegate.data]
        self.out.point(table[1], self.out.table([(0, "B", location), (1, "I", index)], 2)[-1])
        self.vector(table[2], delegate.compile_specs, self.compile_spec)
        return table[-1]

    def compile_spec(self, spec: tuple[str, bytes]) -> int:
        key, value = spec
        table = self.out.table([(0, "ref", 0), (1, "ref", 0)], 2)
        self.text(table[0], key)
        self.out.point(table[1], self.out.append(struct.pack(f"<I{len(value)}s", len(value), value)))
        return table[-1]


def _check(method: ir.Method, program: ir.Program) -> None:
    """Refuse what would make a file that no reader accepts."""
    for delegate in method.delegates:
        if not 0 <= delegate.data < len(program.delegate_data):
            raise SerializationError(
                f"method `{method.name}`: a delegate of `{delegate.backend_id}` has no data",
                stage="program",
                expected=f"an index below {len(program.delegate_data)}",
                found=str(delegate.data),
            )
    for index, tensor in method.tensors():
        pool = program.states if tensor.allocation else program.constants
        if tensor.buffer and not tensor.external and not 0 < tensor.buffer < len(pool):
            raise SerializationError(
                f"method `{method.name}`: value {index} has no data",
                stage="program",
                expected=f"an index below {len(pool)}",
                found=str(tensor.buffer),
            )
