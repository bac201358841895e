from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.emit import ir
from workbench.errors import ExecutionError
from workbench.runtime import Runtime


def load(data: Any) -> Any:
    return Runtime.get().load_program(data).load_method("forward")


def refused(data: Any, code: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message) as raised:
        load(data)
    assert raised.value.code == code


def test_program_loads_from_path_bytes_buffer_and_file(builder: Any, tmp_path: Path) -> None:
    a, out = builder.tensor(2), builder.tensor(2)
    builder.sum_of(a, builder.constant(1.0, 2.0), out)
    data = builder.bytes([a], [out])
    path = tmp_path / "program.pte"
    path.write_bytes(data)
    changed = bytearray(data)
    for source in (path, str(path), data, bytearray(data), memoryview(data), io.BytesIO(data), changed):
        method = load(source)
        changed[:] = bytes(len(changed))  # what was checked is not what the caller may still write to
        assert method.execute([torch.zeros(2)])[0].tolist() == [1.0, 2.0]
        changed[:] = data
    with pytest.raises(TypeError, match="expected bytes"):
        load(3)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.pte", "NotFound", "can't open")
    refused(tmp_path, "AccessFailed", "not a regular file")
    (tmp_path / "empty.pte").touch()
    refused(tmp_path / "empty.pte", "InvalidProgram", "is empty")
    refused(b"hello", "InvalidProgram", "not a program")
    refused(b"\0" * 1000, "InvalidProgram", "not a program")


def test_unknown_operators_are_all_named(builder: Any) -> None:
    a = builder.tensor(2)
    builder.call("nobody::knows.out", a, a)
    builder.call("nobody::either", a)
    refused(builder.bytes([a], [a]), "OperatorMissing", r"nobody::knows\.out.*nobody::either")


def test_unknown_backends_are_named(builder: Any) -> None:
    a, out = builder.tensor(2), builder.tensor(2)
    builder.program.delegate_data.append(memoryview(b"blob"))
    builder.method.delegates.append(ir.Delegate("NobodysBackend", 0))
    builder.add(ir.DelegateCall(0, (a, out)))
    refused(builder.bytes([a], [out]), "NotFound", "no backend NobodysBackend")


def test_plan_outside_of_its_arena_is_refused(builder: Any) -> None:
    a = builder.tensor(4)
    builder.method.arena_sizes[1] = 8
    refused(
        builder.bytes([a], [a]), "InvalidProgram", "value 0: planned 16 bytes at 0 of arena 1, which has 8"
    )


def test_constant_longer_than_its_data_is_refused(builder: Any) -> None:
    value = builder.constant(1.0, 2.0)
    builder.method.values[value].sizes = (3000,)
    refused(builder.bytes([], [value]), "InvalidProgram", "value 0: needs 12000 bytes of constant 1")


def test_dim_order_that_is_no_permutation_is_refused(builder: Any) -> None:
    value = builder.tensor(2, 2)
    builder.method.values[value].dim_order = (1, 1)
    refused(builder.bytes([], [value]), "InvalidProgram", "dim_order is no permutation")


def test_jump_outside_of_the_chain_is_refused(builder: Any) -> None:
    builder.add(ir.JumpFalse(builder.scalar(False), 5))
    refused(builder.bytes([], []), "InvalidProgram", "instruction 0 of chain 0|jumps to instruction 5 of 1")


def test_writing_to_a_constant_is_refused(builder: Any) -> None:
    a, constant = builder.tensor(2), builder.constant(1.0, 2.0)
    builder.sum_of(a, a, constant)
    refused(builder.bytes([a], [constant]), "InvalidProgram", "writes to a constant")


def test_output_over_an_input_is_refused(builder: Any) -> None:
    a, out = builder.tensor(4), builder.tensor(4)
    builder.method.values[out].allocation = (1, 8)
    builder.sum_of(a, a, out)
    refused(builder.bytes([a], [out]), "InvalidProgram", "overlaps that of another argument")


def test_move_between_kinds_is_refused(builder: Any) -> None:
    a, number, other = builder.tensor(2), builder.scalar(1), builder.tensor(3)
    builder.add(ir.Move(a, number))
    refused(builder.bytes([a], [a]), "InvalidProgram", "can't move Tensor to int")
    builder.method.instructions[:] = [ir.Move(a, other)]
    refused(builder.bytes([a], [a]), "InvalidProgram", "another dtype, rank, shape or dim order")


def test_limits_of_memory_are_kept(builder: Any) -> None:
    a = builder.tensor(1000)
    program = Runtime.get().load_program(builder.bytes([a], [a]))
    with pytest.raises(ExecutionError, match="arena 1 needs 4000 bytes, the limit is 3999") as raised:
        program.load_method(arena_limits=[3999])
    assert raised.value.code == "OutOfResources"
    with pytest.raises(ExecutionError) as raised:
        program.load_method(memory_limit=4000)
    assert raised.value.code == "MemoryAllocationFailed"
    program.load_method(arena_limits=[4000])


def test_external_constants_come_from_a_data_file(builder: Any, tmp_path: Path) -> None:
    from workbench.serialize import write_named_data

    a, out = builder.tensor(2), builder.tensor(2)
    weight = builder.value(ir.Tensor(6, (2,), (0,), fqn="layer.weight", external=True))
    builder.sum_of(a, weight, out)
    data = builder.bytes([a], [out])
    entry = ir.NamedBytes(memoryview(torch.tensor([3.0, 4.0]).numpy()).cast("B"), 16, 6, (2,), (0,))
    path = tmp_path / "weights.ptd"
    path.write_bytes(bytes(write_named_data({"layer.weight": entry}).buffer))
    method = Runtime.get().load_program(data, data_map=path).load_method()
    assert method.execute([torch.ones(2)])[0].tolist() == [4.0, 5.0]
    refused(data, "NotFound", "layer.weight")
