"""ETDump files: what ran when, and the values that it produced.

The wire format is `schema/etdump.fbs`, compatible with what ExecuTorch's runtime writes and its tools read.
Tensors stand in a *debug buffer*, a file of its own, in which a dump holds offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import flatbuffers
import torch

from workbench.errors import SerializationError
from workbench.serialize._generated import etdump_generated as fb

__all__ = [
    "AllocationEvent",
    "DebugBuffer",
    "DebugEvent",
    "ETDump",
    "ProfileEvent",
    "RunBlock",
    "TensorRef",
    "Value",
    "read_etdump",
    "read_tensor",
    "write_etdump",
]

_IDENTIFIER = b"ED00"
_VERSION = 0
_UINT64 = (1 << 64) - 1

# Numbers of the wire, which are those of c10::ScalarType.
_DTYPES: dict[int, torch.dtype] = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
    15: torch.bfloat16,
    22: torch.uint16,  # BITS16, as some backends log 16-bit codes
    27: torch.uint16,
    28: torch.uint32,
    29: torch.uint64,
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items() if number != 22}


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor of a debug buffer.

    Attributes:
        dtype: The scalar type's number on the wire.
        sizes: The shape.
        strides: In elements.
        offset: In bytes from the start of the debug buffer.
    """

    dtype: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


Payload: TypeAlias = TensorRef | list[TensorRef] | int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Value:
    """A logged value; `is_output` marks what the method returned."""

    payload: Payload
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """A span of time, in the clock's units (nanoseconds in our own dumps).

    Attributes:
        name: The operator, or an event of the framework such as `Method::execute`.
        start: When it began.
        end: When it ended.
        chain: The chain of instructions.
        instruction: The instruction's index in the chain; -1 where it belongs to none.
        delegate_id: The backend's own identifier, for what ran inside a delegate.
        metadata: Opaque bytes of the backend.
    """

    name: str
    start: int
    end: int
    chain: int = 0
    instruction: int = -1
    delegate_id: int | str | None = None
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class DebugEvent:
    """A value that an instruction, or something inside a delegate, produced. Fields as of `ProfileEvent`."""

    name: str
    value: Value
    chain: int = 0
    instruction: int = -1
    delegate_id: int | str | None = None


@dataclass(frozen=True, slots=True)
class AllocationEvent:
    """`size` bytes taken from the allocator with this index."""

    allocator: int
    size: int


Event: TypeAlias = ProfileEvent | DebugEvent | AllocationEvent


@dataclass(slots=True)
class RunBlock:
    """What was recorded in one execution, or while loading.

    Attributes:
        name: `Execute` for executions, `Default` for loading.
        events: In the order in which they were recorded.
        bundled_input_index: Which input of a bundled program was run; -1 for none.
        allocators: The names of the allocators.
    """

    name: str
    events: list[Event] = field(default_factory=list)
    bundled_input_index: int = -1
    allocators: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ETDump:
    """The content of one file."""

    blocks: list[RunBlock] = field(default_factory=list)
    version: int = _VERSION


class DebugBuffer:
    """Collects tensors for the file beside a dump.

    Tensors are stored contiguously, for that is how ExecuTorch's Inspector reads them.
    """

    _ALIGNMENT = 64

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, tensor: torch.Tensor) -> TensorRef:
        """Append a tensor.

        Args:
            tensor: Any shape; a dtype of the wire format.

        Returns:
            Where it stands.

        Raises:
            SerializationError: The wire format has no such dtype.
        """
        number = _NUMBERS.get(tensor.dtype)
        if number is None:
            raise SerializationError(f"an ETDump can't hold a tensor of {tensor.dtype}")
        dense = tensor.detach().cpu().contiguous()
        data = dense.reshape(-1).view(torch.uint8).numpy().tobytes()
        padding = -self._size % self._ALIGNMENT
        offset = self._size + padding
        self._chunks += [b"\0" * padding, data]
        self._size = offset + len(data)
        return TensorRef(number, tuple(dense.shape), tuple(dense.stride()), offset)

    def to_bytes(self) -> bytes:
        """All tensors so far."""
        return b"".join(self._chunks)


def read_tensor(ref: TensorRef, buffer: bytes | memoryview) -> torch.Tensor:
    """The tensor at a place of a debug buffer, as a copy.

    Raises:
        SerializationError: The place lies outside of the buffer, or the dtype is unknown.
    """
    dtype = _DTYPES.get(ref.dtype)
    if dtype is None:
        raise SerializationError("a tensor of an ETDump has an unknown scalar type", found=str(ref.dtype))
    strides = ref.strides or _contiguous_strides(ref.sizes)
    if len(strides) != len(ref.sizes) or min((*ref.sizes, *strides, ref.offset), default=0) < 0:
        raise SerializationError("a tensor of an ETDump is malformed", found=str(ref))
    if 0 in ref.sizes:
        return torch.empty(ref.sizes, dtype=dtype)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(ref.sizes, strides, strict=True))
    nbytes = extent * dtype.itemsize
    if ref.offset + nbytes > len(buffer):
        raise SerializationError(
            "a tensor of an ETDump lies outside of the debug buffer",
            expected=f"at most {len(buffer)} bytes",
            found=f"{ref.offset} + {nbytes}",
        )
    data = bytearray(buffer[ref.offset : ref.offset + nbytes])
    return torch.frombuffer(data, dtype=dtype).as_strided(ref.sizes, strides)


def _contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


# ---- writing -----------------------------------------------------------------------------------------------


def write_etdump(dump: ETDump) -> bytes:
    """The bytes of an ETDump file, size-prefixed.

    Args:
        dump: What to write; tensors in it refer to a debug buffer that is written apart.
    """
    return _Writer().write(dump)


class _Writer:
    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1 << 16)
        self._strings: dict[str, int] = {}

    def write(self, dump: ETDump) -> bytes:
        builder = self._builder
        blocks = self._vector([self._block(block) for block in dump.blocks])
        fb.ETDumpStart(builder)
        fb.ETDumpAddVersion(builder, dump.version)
        fb.ETDumpAddRunData(builder, blocks)
        builder.FinishSizePrefixed(fb.ETDumpEnd(builder), file_identifier=_IDENTIFIER)
        return bytes(builder.Output())

    def _string(self, text: str) -> int:
        # Names repeat with each execution; one copy of each is enough.
        known = self._strings.get(text)
        if known is None:
            known = self._strings[text] = self._builder.CreateString(text)
        return known

    def _vector(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _longs(self, values: Sequence[int]) -> int:
        self._builder.StartVector(8, len(values), 8)
        for value in reversed(values):
            self._builder.PrependInt64(value)
        return int(self._builder.EndVector())

    def _block(self, block: RunBlock) -> int:
        builder = self._builder
        events = self._vector([self._event(event) for event in block.events])
        allocators = self._vector([self._allocator(name) for name in block.allocators])
        name = self._string(block.name)
        fb.RunDataStart(builder)
        fb.RunDataAddName(builder, name)
        fb.RunDataAddBundledInputIndex(builder, block.bundled_input_index)
        if block.allocators:
            fb.RunDataAddAllocators(builder, allocators)
        fb.RunDataAddEvents(builder, events)
        return int(fb.RunDataEnd(builder))

    def _allocator(self, name: str) -> int:
        text = self._string(name)
        fb.AllocatorStart(self._builder)
        fb.AllocatorAddName(self._builder, text)
        return int(fb.AllocatorEnd(self._builder))

    def _event(self, event: Event) -> int:
        builder = self._builder
        if isinstance(event, ProfileEvent):
            offset, add = self._profile(event), fb.EventAddProfileEvent
        elif isinstance(event, DebugEvent):
            offset, add = self._debug(event), fb.EventAddDebugEvent
        else:
            fb.AllocationEventStart(builder)
            fb.AllocationEventAddAllocatorId(builder, event.allocator)
            fb.AllocationEventAddAllocationSize(builder, event.size)
            offset, add = fb.AllocationEventEnd(builder), fb.EventAddAllocationEvent
        fb.EventStart(builder)
        add(builder, offset)
        return int(fb.EventEnd(builder))

    def _profile(self, event: ProfileEvent) -> int:
        builder = self._builder
        name = self._string(event.name) if event.name else None
        text_id = self._string(event.delegate_id) if isinstance(event.delegate_id, str) else None
        metadata = builder.CreateByteVector(event.metadata) if event.metadata else None
        fb.ProfileEventStart(builder)
        fb.ProfileEventAddStartTime(builder, event.start)
        fb.ProfileEventAddEndTime(builder, event.end)
        fb.ProfileEventAddChainIndex(builder, event.chain)
        fb.ProfileEventAddInstructionId(builder, event.instruction)
        if name is not None:
            fb.ProfileEventAddName(builder, name)
        if text_id is not None:
            fb.ProfileEventAddDelegateDebugIdStr(builder, text_id)
        elif isinstance(event.delegate_id, int):
            fb.ProfileEventAddDelegateDebugIdInt(builder, event.delegate_id)
        if metadata is not None:
            fb.ProfileEventAddDelegateDebugMetadata(builder, metadata)
        return int(fb.ProfileEventEnd(builder))

    def _debug(self, event: DebugEvent) -> int:
        builder = self._builder
        value = self._value(event.value)
        name = self._string(event.name) if event.name else None
        text_id = self._string(event.delegate_id) if isinstance(event.delegate_id, str) else None
        fb.DebugEventStart(builder)
        fb.DebugEventAddChainIndex(builder, event.chain & _UINT64)
        fb.DebugEventAddInstructionId(builder, event.instruction)
        fb.DebugEventAddDebugEntry(builder, value)
        if text_id is not None:
            fb.DebugEventAddDelegateDebugIdStr(builder, text_id)
        elif isinstance(event.delegate_id, int):
            fb.DebugEventAddDelegateDebugIdInt(builder, event.delegate_id)
        if name is not None:
            fb.DebugEventAddName(builder, name)
        return int(fb.DebugEventEnd(builder))

    def _tensor(self, ref: TensorRef) -> int:
        builder = self._builder
        sizes, strides = self._longs(ref.sizes), self._longs(ref.strides)
        fb.TensorStart(builder)
        fb.TensorAddScalarType(builder, ref.dtype)
        fb.TensorAddSizes(builder, sizes)
        fb.TensorAddStrides(builder, strides)
        fb.TensorAddOffset(builder, ref.offset)
        return int(fb.TensorEnd(builder))

    def _boxed(self, table: str, payload: Any) -> int:
        """A table that holds a single number: Int, Double or Bool."""
        getattr(fb, f"{table}Start")(self._builder)
        getattr(fb, f"{table}Add{table}Val")(self._builder, payload)
        return int(getattr(fb, f"{table}End")(self._builder))

    def _value(self, value: Value) -> int:
        builder = self._builder
        kind, offset, add = self._payload(value.payload)
        output = self._boxed("Bool", True) if value.is_output else None
        fb.ValueStart(builder)
        fb.ValueAddVal(builder, kind)
        if add is not None:
            add(builder, offset)
        if output is not None:
            fb.ValueAddOutput(builder, output)
        return int(fb.ValueEnd(builder))

    def _payload(self, payload: Payload) -> tuple[int, int, Callable[[Any, int], None] | None]:
        kinds = fb.ValueType
        if payload is None or isinstance(payload, str):  # the format has no field for a text
            return kinds.Null, 0, None
        if isinstance(payload, TensorRef):
            return kinds.Tensor, self._tensor(payload), fb.ValueAddTensor
        if isinstance(payload, list):
            tensors = self._vector([self._tensor(ref) for ref in payload])
            fb.TensorListStart(self._builder)
            fb.TensorListAddTensors(self._builder, tensors)
            return kinds.TensorList, int(fb.TensorListEnd(self._builder)), fb.ValueAddTensorList
        if isinstance(payload, bool):
            return kinds.Bool, self._boxed("Bool", payload), fb.ValueAddBoolValue
        if isinstance(payload, int):
            return kinds.Int, self._boxed("Int", payload), fb.ValueAddIntValue
        return kinds.Double, self._boxed("Double", payload), fb.ValueAddDoubleValue


# ---- reading -----------------------------------------------------------------------------------------------


def read_etdump(data: bytes | memoryview) -> ETDump:
    """Read an ETDump file.

    Args:
        data: The file's bytes; with or without the size prefix.

    Raises:
        SerializationError: The bytes are not an ETDump, or are damaged.
    """
    raw = bytes(data)
    if raw[8:12] == _IDENTIFIER:
        (size,) = struct.unpack_from("<I", raw)
        if size + 4 > len(raw):
            raise SerializationError(
                "the ETDump is truncated", expected=f"{size + 4} bytes", found=f"{len(raw)}"
            )
        raw = raw[4 : size + 4]
    elif raw[4:8] != _IDENTIFIER:
        raise SerializationError(
            "not an ETDump", expected="the identifier ED00 at byte 8", found=repr(raw[4:12])
        )
    try:
        root = fb.ETDump.GetRootAs(raw, 0)
        # A damaged file may claim any number of blocks and events: no more than its bytes can hold are read.
        reader = _Reader(len(raw))
        return ETDump(reader.items(root.RunDataLength(), root.RunData, reader.block), root.Version())
    except (struct.error, IndexError, ValueError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise SerializationError("the ETDump is damaged", found=str(error)) from error


class _Reader:
    def __init__(self, limit: int) -> None:
        self._budget = limit

    def items(self, count: int, get: Callable[[int], Any], convert: Callable[[Any], Any]) -> list[Any]:
        self._budget -= count
        if count < 0 or self._budget < 0:
            raise ValueError("more entries than the file has bytes")
        return [convert(get(i)) for i in range(count)]

    def block(self, run: Any) -> RunBlock:
        return RunBlock(
            name=_text(run.Name()),
            events=[e for e in self.items(run.EventsLength(), run.Events, self._event) if e is not None],
            bundled_input_index=run.BundledInputIndex(),
            allocators=self.items(run.AllocatorsLength(), run.Allocators, lambda a: _text(a.Name())),
        )

    def _event(self, event: Any) -> Event | None:
        if (profile := event.ProfileEvent()) is not None:
            # Byte by byte: the numpy view would accept a length beyond the file.
            count = profile.DelegateDebugMetadataLength()
            metadata = bytes(self.items(count, profile.DelegateDebugMetadata, int))
            return ProfileEvent(
                name=_text(profile.Name()),
                start=profile.StartTime(),
                end=profile.EndTime(),
                chain=profile.ChainIndex(),
                instruction=profile.InstructionId(),
                delegate_id=_delegate_id(profile),
                metadata=metadata,
            )
        if (debug := event.DebugEvent()) is not None:
            return DebugEvent(
                name=_text(debug.Name()),
                value=self._value(debug.DebugEntry()),
                chain=_signed(debug.ChainIndex()),
                instruction=debug.InstructionId(),
                delegate_id=_delegate_id(debug),
            )
        if (allocation := event.AllocationEvent()) is not None:
            return AllocationEvent(allocation.AllocatorId(), allocation.AllocationSize())
        return None

    def _value(self, value: Any) -> Value:
        if value is None:
            return Value(None)
        output = value.Output()
        is_output = output is not None and bool(output.BoolVal())
        return Value(self._payload(value), is_output)

    def _payload(self, value: Any) -> Payload:
        kinds = fb.ValueType
        kind = value.Val()
        scalars: dict[int, Callable[[], Any]] = {
            kinds.Int: lambda: value.IntValue().IntVal(),
            kinds.Bool: lambda: bool(value.BoolValue().BoolVal()),
            kinds.Float: lambda: value.FloatValue().FloatVal(),
            kinds.Double: lambda: value.DoubleValue().DoubleVal(),
        }
        if kind in scalars:
            return scalars[kind]()  # type: ignore[no-any-return]
        if kind == kinds.Tensor:
            return self._tensor(value.Tensor())
        if kind == kinds.TensorList:
            tensors = value.TensorList()
            return self.items(tensors.TensorsLength(), tensors.Tensors, self._tensor)
        return None

    def _tensor(self, tensor: Any) -> TensorRef:
        return TensorRef(
            dtype=tensor.ScalarType(),
            sizes=tuple(self.items(tensor.SizesLength(), tensor.Sizes, int)),
            strides=tuple(self.items(tensor.StridesLength(), tensor.Strides, int)),
            offset=tensor.Offset(),
        )


def _signed(value: int) -> int:
    # The chain of a debug event is unsigned on the wire; "none" is written as -1 all the same.
    return value - (1 << 64) if value >> 63 else value


def _text(raw: bytes | None) -> str:
    return "" if raw is None else raw.decode("utf-8", errors="replace")


def _delegate_id(event: Any) -> int | str | None:
    number = event.DelegateDebugIdInt()
    if number != -1:
        return int(number)
    return _text(event.DelegateDebugIdStr()) or None
