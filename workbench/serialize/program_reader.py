"""`.pte` files -> programs in memory. Bulk data stays where it is: memoryviews into the file."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

from workbench.emit import ir
from workbench.errors import SerializationError
from workbench.serialize.program_check import check_program
from workbench.serialize.program_writer import IDENTIFIER
from workbench.serialize.reading import Table, root_table

__all__ = ["Parts", "as_view", "read_parts", "read_program"]

Source = bytes | bytearray | memoryview | mmap.mmap | str | os.PathLike[str]


class Parts(NamedTuple):
    """A file and what is found in it.

    Attributes:
        program: The program.
        flatbuffer: Bytes of the flatbuffer, its header included.
        base: Where the segments start.
        segments: Offset from `base` and size of each.
        data: The whole file.
    """

    program: ir.Program
    flatbuffer: int
    base: int
    segments: list[tuple[int, int]]
    data: memoryview


def read_program(source: Source) -> ir.Program:
    """Read and check a program.

    Args:
        source: The file's bytes, or its path; a path is mapped into memory.

    Raises:
        SerializationError: The file is no program, is truncated, or refers to what it does not have.
    """
    return read_parts(source).program


def read_parts(source: Source) -> Parts:
    """As `read_program`, with where the parts of the file lie.

    Raises:
        SerializationError: As of `read_program`.
    """
    data = as_view(source)
    size, base, end = _header(data)
    root = root_table(data[:size], IDENTIFIER, "program")
    version = root.number(0, "I")
    if version != 0:
        raise SerializationError(
            "a program of another version of the format", expected="0", found=str(version)
        )
    segments = root.tables(4, "segments", lambda t: (int(t.number(0, "Q")), int(t.number(1, "Q"))))
    for index, (offset, length) in enumerate(segments):
        if length and base + offset + length > end:
            raise SerializationError(
                f"segment {index} lies outside of the file",
                expected=f"at most {end - base} bytes of segments",
                found=f"{length} bytes at {offset}",
            )
    program = _Reader(root, data, base, segments).run()
    check_program(program)
    return Parts(program, size, base, segments, data)


def as_view(source: Source) -> memoryview:
    """The bytes of a file; a path is mapped into memory.

    Raises:
        SerializationError: The file can't be opened.
    """
    if isinstance(source, (str, os.PathLike)):
        try:
            with Path(source).open("rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise SerializationError(f"{os.fspath(source)}: {error.strerror}") from error
    return memoryview(source).cast("B")


def _header(data: memoryview) -> tuple[int, int, int]:
    """Size of the flatbuffer, base of the segments, and where they end at most."""
    if len(data) < 40 or bytes(data[8:12]) != b"eh00":
        return len(data), 0, len(data)
    (length,) = struct.unpack_from("<I", data, 12)
    size, base = struct.unpack_from("<QQ", data, 16)
    if length < 24:
        raise SerializationError(
            "the extended header is too short", expected="at least 24", found=str(length)
        )
    if not 0 < size <= len(data) or base > len(data) or (base and base < size):
        raise SerializationError(
            "the extended header does not fit the file",
            expected=f"parts of {len(data)} bytes",
            found=f"a flatbuffer of {size} bytes and segments at {base}",
            hint="the file may be truncated",
        )
    end = len(data)
    if length >= 32:
        (segments,) = struct.unpack_from("<Q", data, 32)
        if base + segments > len(data):
            raise SerializationError(
                "the file is truncated", expected=f"{base + segments} bytes", found=f"{len(data)} bytes"
            )
        end = base + segments
    return size, base, end


_FIXED: dict[int, Any] = {
    2: lambda t: ir.Int(t.number(0, "q")),
    3: lambda t: ir.Bool(t.number(0, "?", False)),
    4: lambda t: ir.Double(t.number(0, "d", 0.0)),
    6: lambda t: ir.String(t.text(0, "string_val")),
    7: lambda t: ir.IntList(t.numbers(0, "q", "items")),
    8: lambda t: ir.DoubleList(t.numbers(0, "d", "items")),
    9: lambda t: ir.BoolList(t.numbers(0, "?", "items")),
    10: lambda t: ir.TensorList(t.numbers(0, "i", "items")),
    11: lambda t: ir.OptionalTensorList(t.numbers(0, "i", "items")),
}


class _Reader:
    """Reads the tables of one program."""

    def __init__(self, root: Table, data: memoryview, base: int, segments: list[tuple[int, int]]) -> None:
        self.root = root
        self.data = data
        self.base = base
        self.segments = segments
        self.program = ir.Program()
        self.blobs: dict[tuple[int, int], int] = {}
        self.inline = root.tables(3, "backend_delegate_data", lambda t: t.bytes_(0, "data"))
        self.constant_sizes: dict[int, int] = {}
        self.state_sizes: dict[int, int] = {}

    def run(self) -> ir.Program:
        root, program = self.root, self.program
        program.methods = root.tables(1, "execution_plan", self.method)
        program.constants = self.constants()
        states = root.tables(6, "mutable_data_segments", lambda t: t)
        if states:
            program.states = self.pieces(states[0], self.state_sizes, "states")
        for key, index in root.tables(7, "named_data", lambda t: (t.text(0, "key"), t.number(1, "I"))):
            program.named_data[key] = ir.NamedBytes(self.segment(index, f"named data `{key}`"))
        return program

    def segment(self, index: int, what: str) -> memoryview:
        if index >= len(self.segments):
            raise SerializationError(
                f"{what} stands in a segment that is not there",
                expected=f"an index below {len(self.segments)}",
                found=str(index),
            )
        offset, size = self.segments[index]
        return self.data[self.base + offset : self.base + offset + size]

    def constants(self) -> list[memoryview]:
        table = self.root.table(5, "constant_segment")
        if table is not None and table.numbers(1, "Q", "offsets"):
            return self.pieces(table, self.constant_sizes, "constants")
        # Files from before segments hold their constants in the flatbuffer.
        return self.root.tables(2, "constant_buffer", lambda t: t.bytes_(0, "storage")) or [memoryview(b"")]

    def pieces(self, table: Table, sizes: dict[int, int], what: str) -> list[memoryview]:
        offsets = table.numbers(1, "Q", "offsets")
        if not offsets:
            return [memoryview(b"")]
        segment = self.segment(table.number(0, "I"), what)
        found = [segment[:0]]
        for index, offset in enumerate(offsets[1:], start=1):
            size = sizes.get(index, 0)
            if offset + size > len(segment):
                raise SerializationError(
                    f"entry {index} of the {what} lies outside of its segment",
                    expected=f"inside {len(segment)} bytes",
                    found=f"{size} bytes at {offset}",
                )
            found.append(segment[offset : offset + size])
        return found

    def method(self, table: Table) -> ir.Method:
        container = table.table(1, "container_meta_type")
        return ir.Method(
            name=table.text(0, "name"),
            values=table.tables(2, "values", self.value),
            inputs=list(table.numbers(3, "i", "inputs")),
            outputs=list(table.numbers(4, "i", "outputs")),
            chains=table.tables(5, "chains", self.chain),
            operators=table.tables(6, "operators", lambda t: (t.text(0, "name"), t.text(1, "overload"))),
            delegates=table.tables(7, "delegates", self.delegate),
            arena_sizes=list(table.numbers(8, "q", "non_const_buffer_sizes")) or [0],
            input_tree=container.text(0, "encoded_inp_str") if container else "",
            output_tree=container.text(1, "encoded_out_str") if container else "",
        )

    def value(self, table: Table) -> ir.Value:
        tag = table.number(0, "B")
        if tag <= 1:
            return ir.Null()
        inner = table.need_table(1, "val")
        if tag == 5:
            return self.tensor(inner)
        make = _FIXED.get(tag)
        if make is None:
            raise SerializationError(
                f"{table.path} is of an unknown kind", expected="1 to 11", found=str(tag)
            )
        value: ir.Value = make(inner)
        return value

    def tensor(self, table: Table) -> ir.Tensor:
        place = table.table(6, "allocation_info")
        extra = table.table(9, "extra_tensor_info")
        tensor = ir.Tensor(
            scalar_type=table.number(0, "b"),
            sizes=table.numbers(2, "i", "sizes"),
            dim_order=table.numbers(3, "B", "dim_order"),
            dynamism=table.number(8, "b"),
            buffer=table.number(5, "I"),
            requires_grad=table.number(4, "?", False),
        )
        if table.number(1, "i") != 0 or table.number(7, "b") != 0:
            raise SerializationError(f"{table.path}: storage_offset and layout must be 0")
        if place is not None:
            offset = place.number(1, "I") | place.number(2, "I") << 32
            tensor.allocation = (place.number(0, "I"), offset)
        if extra is not None:
            tensor.segment = extra.number(0, "Q")
            tensor.fqn = extra.text(1, "fully_qualified_name") if extra.has(1) else None
            tensor.external = extra.number(2, "b") == 1
        if tensor.buffer and not tensor.external:
            sizes = self.state_sizes if tensor.allocation else self.constant_sizes
            nbytes = tensor.nbytes if min(tensor.sizes, default=0) >= 0 else 0
            sizes[tensor.buffer] = max(sizes.get(tensor.buffer, 0), nbytes)
        return tensor

    def chain(self, table: Table) -> ir.Chain:
        frame = lambda t: (t.text(0, "filename"), t.number(1, "i"), t.text(2, "name"), t.text(3, "context"))  # noqa: E731
        return ir.Chain(
            table.tables(2, "instructions", self.instruction),
            table.tables(3, "stacktrace", lambda t: t.tables(0, "items", frame)),
            table.numbers(0, "i", "inputs"),
            table.numbers(1, "i", "outputs"),
        )

    def instruction(self, table: Table) -> ir.Instruction:
        kind = table.number(0, "B")
        inner = table.need_table(1, "instr_args")
        first = inner.number(0, "i")
        if kind == 1:
            return ir.KernelCall(first, inner.numbers(1, "i", "args"))
        if kind == 2:
            return ir.DelegateCall(first, inner.numbers(1, "i", "args"))
        if kind == 3:
            return ir.Move(first, inner.number(1, "i"))
        if kind == 4:
            return ir.JumpFalse(first, inner.number(1, "i"))
        if kind == 5:
            return ir.Free(first)
        raise SerializationError(f"{table.path} is of an unknown kind", expected="1 to 5", found=str(kind))

    def delegate(self, table: Table) -> ir.Delegate:
        processed = table.need_table(1, "processed")
        location, index = processed.number(0, "b"), processed.number(1, "I")
        backend = table.text(0, "id")
        key = (location, index)
        if key not in self.blobs:
            if location == 0 and index >= len(self.inline):
                raise SerializationError(
                    f"{table.path}: the delegate of `{backend}` has no data",
                    expected=f"an index below {len(self.inline)}",
                    found=str(index),
                )
            blob = (
                self.inline[index] if location == 0 else self.segment(index, f"the delegate of `{backend}`")
            )
            self.blobs[key] = len(self.program.delegate_data)
            self.program.delegate_data.append(blob)
            self.program.extract_delegates = location == 1
        specs = table.tables(2, "compile_specs", lambda t: (t.text(0, "key"), bytes(t.bytes_(1, "value"))))
        return ir.Delegate(backend, self.blobs[key], specs)
