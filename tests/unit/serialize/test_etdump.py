from __future__ import annotations

import random
import struct

import pytest
import torch

from workbench.errors import SerializationError
from workbench.serialize.etdump import (
    AllocationEvent,
    DebugBuffer,
    DebugEvent,
    ETDump,
    ProfileEvent,
    RunBlock,
    TensorRef,
    Value,
    read_etdump,
    read_tensor,
    write_etdump,
)


@pytest.fixture
def dump():
    buffer = DebugBuffer()
    first = buffer.add(torch.arange(6.0).reshape(2, 3))
    second = buffer.add(torch.arange(3))
    events = [
        DebugEvent("", Value(first), instruction=0),
        ProfileEvent("native_call_add.out", 10, 2**40, instruction=0),
        ProfileEvent("", 11, 20, chain=1, instruction=2, delegate_id=0, metadata=b"\x00\xff"),
        ProfileEvent("", 11, 20, instruction=2, delegate_id="Convolution #1"),
        DebugEvent("layer", Value([first, second]), instruction=2, delegate_id="Convolution #1"),
        DebugEvent("", Value(-7), chain=-1, instruction=3),
        DebugEvent("", Value(True), instruction=4),
        DebugEvent("", Value(0.5), instruction=5, delegate_id=9),
        AllocationEvent(1, 4096),
        DebugEvent("", Value(second, is_output=True)),
        ProfileEvent("Method::execute", 5, 2**63, chain=-1),
    ]
    return ETDump(
        [
            RunBlock(
                "Default",
                [ProfileEvent("Method::init", 1, 2, chain=-1, instruction=0)],
                allocators=["a", "b"],
            ),
            RunBlock("Execute", events, bundled_input_index=2),
            RunBlock("Execute"),
        ]
    ), buffer.to_bytes()


def test_everything_reads_back_as_written(dump):
    assert read_etdump(write_etdump(dump[0])) == dump[0]


def test_file_is_size_prefixed_with_identifier_at_byte_8(dump):
    data = write_etdump(dump[0])
    assert data[8:12] == b"ED00"
    assert struct.unpack_from("<I", data)[0] == len(data) - 4
    assert read_etdump(data[4:]) == dump[0]  # as a file without the prefix


def test_repeated_names_are_stored_once():
    events = [ProfileEvent("native_call_a_rather_long_name.out", i, i + 1, instruction=0) for i in range(500)]
    assert write_etdump(ETDump([RunBlock("Execute", events)])).count(b"rather_long_name") == 1


def test_tensors_read_back_from_the_debug_buffer(dump):
    refs = dump[0].blocks[1].events[4].value.payload
    assert torch.equal(read_tensor(refs[0], dump[1]), torch.arange(6.0).reshape(2, 3))
    assert torch.equal(read_tensor(refs[1], dump[1]), torch.arange(3))


@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
     torch.float32, torch.float64, torch.bool],
)  # fmt: skip
def test_dtype_survives_the_debug_buffer(dtype):
    buffer = DebugBuffer()
    value = torch.tensor([0, 1, 1, 0]).to(dtype)
    ref = buffer.add(value)
    assert torch.equal(read_tensor(ref, buffer.to_bytes()), value)
    assert buffer.add(torch.empty(0, 3)).sizes == (0, 3)


def test_tensors_are_stored_contiguously_and_strides_are_honoured():
    buffer = DebugBuffer()
    value = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    assert buffer.add(value).strides == (24, 12, 4, 1)
    raw = value.permute(0, 2, 3, 1).contiguous().numpy().tobytes()
    assert torch.equal(read_tensor(TensorRef(6, (1, 2, 3, 4), (24, 1, 8, 2), 0), raw), value)


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (TensorRef(6, (4,), (1,), 8), "outside of the debug buffer"),
        (TensorRef(6, (2**40, 2**40), (2**40, 1), 0), "outside of the debug buffer"),
        (TensorRef(6, (4,), (1,), -8), "malformed"),
        (TensorRef(6, (4,), (-1,), 0), "malformed"),
        (TensorRef(6, (2, 2), (1,), 0), "malformed"),
        (TensorRef(99, (4,), (1,), 0), "unknown scalar type"),
    ],
)
def test_impossible_tensor_is_refused(ref, message):
    with pytest.raises(SerializationError, match=message):
        read_tensor(ref, bytes(16))


def test_dtype_without_number_on_the_wire_is_refused():
    with pytest.raises(SerializationError, match="complex64"):
        DebugBuffer().add(torch.zeros(2, dtype=torch.complex64))


@pytest.mark.parametrize("data", [b"", b"ED00", b"PK\x03\x04" * 8, bytes(64)])
def test_other_files_are_refused(data):
    with pytest.raises(SerializationError, match="not an ETDump"):
        read_etdump(data)


def test_truncated_file_is_refused(dump):
    data = write_etdump(dump[0])
    for length in range(12, len(data), 7):
        with pytest.raises(SerializationError):
            read_etdump(data[:length])


def test_damaged_file_reads_or_is_refused_but_never_fails_otherwise(dump):
    data = write_etdump(dump[0])
    choose = random.Random(0)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(choose.randint(1, 4)):
            damaged[choose.randrange(12, len(data))] = choose.randrange(256)
        try:
            read_etdump(bytes(damaged))
        except SerializationError:
            refused += 1
    assert refused > 100
