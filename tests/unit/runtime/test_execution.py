from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

from workbench.emit import ir
from workbench.errors import ExecutionError
from workbench.runtime import Method, Runtime

LONG, BOOL = 4, 11


def load(data: bytes, **options: Any) -> Method:
    return Runtime.get().load_program(data).load_method("forward", **options)


def add_program(builder: Any, *sizes: int, planned: bool = True, dynamism: int = 0) -> bytes:
    a = builder.tensor(*sizes, planned=planned, dynamism=dynamism)
    b = builder.tensor(*sizes, planned=planned, dynamism=dynamism)
    out = builder.tensor(*sizes, planned=planned, dynamism=dynamism)
    builder.sum_of(a, b, out)
    return bytes(builder.bytes([a, b], [out]))


def endless_program(builder: Any) -> bytes:
    a, out = builder.tensor(2), builder.tensor(2)
    builder.sum_of(a, a, out)
    builder.add(ir.JumpFalse(builder.scalar(False), 0))
    return bytes(builder.bytes([a], [out]))


@pytest.mark.parametrize("planned", [True, False])
def test_execute_adds_whatever_the_memory_of_the_arguments(builder: Any, planned: bool) -> None:
    method = load(add_program(builder, 2, 3, planned=planned))
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for a, b in ((x, y), (x.T.contiguous().T, y.flip(0)), (x[:1].expand(2, 3), y), (x.requires_grad_(), y)):
        (out,) = method.execute([a, b])
        torch.testing.assert_close(out, (a + b).detach(), rtol=0, atol=0)


def test_execute_takes_arrays_that_are_read_only(builder: Any) -> None:
    method = load(add_program(builder, 4, planned=False))
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    (out,) = method.execute([x, x[::-1]])
    assert out.tolist() == [3.0, 3.0, 3.0, 3.0]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_outputs_stay_when_the_method_runs_again_and_goes(builder: Any) -> None:
    method = load(add_program(builder, 2))
    first = method.execute([torch.tensor([1.0, 2.0]), torch.zeros(2)])[0]
    lent = method.execute([torch.tensor([3.0, 4.0]), torch.zeros(2)], copy_outputs=False)[0]
    assert first.tolist() == [1.0, 2.0]
    method.execute([torch.tensor([5.0, 6.0]), torch.zeros(2)])
    assert lent.tolist() == [5.0, 6.0]  # it refers to the method's memory
    del method
    gc.collect()
    assert lent.tolist() == [5.0, 6.0]
    assert first.tolist() == [1.0, 2.0]


def test_dynamic_sizes_shrink_and_grow_up_to_their_bound(builder: Any) -> None:
    method = load(add_program(builder, 4, 2, dynamism=1))
    for rows in (4, 1, 0, 3):
        x = torch.randn(rows, 2)
        torch.testing.assert_close(method.execute([x, x])[0], x + x, rtol=0, atol=0)
    with pytest.raises(ExecutionError, match="size of at most 4, found 5") as raised:
        method.execute([torch.zeros(5, 2), torch.zeros(5, 2)])
    assert raised.value.code == "InvalidArgument"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "expected 2 inputs, found 0"),
        ([torch.zeros(2), torch.zeros(2, dtype=torch.float64)], "input 1.*|expected float32, found float64"),
        ([torch.zeros(2), torch.zeros(1, 2)], "expected rank 1, found rank 2"),
        ([torch.zeros(3), torch.zeros(3)], "expected size 2, found 3"),
        ([torch.zeros(2), 7], "expected Tensor, found int"),
        ([torch.zeros(2), None], "expected Tensor, found None"),
    ],
)
def test_execute_refuses_inputs_and_can_be_used_after_that(
    builder: Any, inputs: list[Any], message: str
) -> None:
    method = load(add_program(builder, 2))
    with pytest.raises(ExecutionError, match=message) as raised:
        method.execute(inputs)
    assert raised.value.code == "InvalidArgument"
    assert method.execute([torch.ones(2), torch.ones(2)])[0].tolist() == [2.0, 2.0]


def test_jumps_and_moves_choose_a_branch_and_keep_both_results(builder: Any) -> None:
    """Two branches one after the other, whose intermediate memory is the same (pytorch/executorch #21490)."""
    condition = builder.tensor(dtype=BOOL)
    x = builder.tensor(2)
    first, second, total = builder.tensor(2), builder.tensor(2), builder.tensor(2)
    shared = builder.tensor(2)

    def branch(number: float, result: int) -> None:
        builder.sum_of(x, builder.constant(number, number), shared)
        builder.add(ir.Move(shared, result))

    for result, numbers in ((first, (1.0, 2.0)), (second, (100.0, -100.0))):
        start = len(builder.method.instructions)
        builder.add(ir.JumpFalse(condition, start + 4))
        branch(numbers[0], result)
        builder.add(ir.JumpFalse(builder.scalar(False), start + 6))
        branch(numbers[1], result)
    builder.sum_of(first, second, total)
    method = load(builder.bytes([condition, x], [total]))
    for truth in (True, False, True):
        (out,) = method.execute([torch.tensor(truth), torch.tensor([5.0, 6.0])])
        assert out.tolist() == ([111.0, 113.0] if truth else [-88.0, -86.0])


def test_state_lives_between_executions_of_one_method_only(builder: Any) -> None:
    x, state, out = builder.tensor(2), builder.tensor(2), builder.tensor(2)
    builder.sum_of(x, state, out)
    builder.call("aten::copy_", state, out, builder.scalar(False), state)
    program = Runtime.get().load_program(builder.bytes([x], [out]))
    method, other = program.load_method(), program.load_method(fresh=True)
    assert program.load_method() is method
    for expected in (1.0, 2.0, 3.0):
        assert method.execute([torch.ones(2)])[0].tolist() == [expected] * 2
    assert other.execute([torch.ones(2)])[0].tolist() == [1.0, 1.0]


def test_instructions_are_bounded_when_asked(builder: Any) -> None:
    method = load(endless_program(builder))
    with pytest.raises(ExecutionError, match="more than 100 instructions") as raised:
        method.execute([torch.ones(2)], max_instructions=100)
    assert raised.value.code == "OutOfResources"


def test_cancel_stops_an_endless_program_and_a_second_execution_is_refused(builder: Any) -> None:
    method = load(endless_program(builder))
    errors: list[ExecutionError] = []

    def run() -> None:
        try:
            method.execute([torch.ones(2)])
        except ExecutionError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)  # the interpreter's lock is free meanwhile: this thread goes on
    with pytest.raises(ExecutionError, match="is being executed") as raised:
        method.execute([torch.ones(2)])
    assert raised.value.code == "InvalidState"
    method.cancel()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert [error.code for error in errors] == ["Cancelled"]
    with pytest.raises(ExecutionError, match="more than 5"):
        method.execute([torch.ones(2)], max_instructions=5)


def test_scalars_must_be_those_of_the_export(builder: Any) -> None:
    x, number, out = builder.tensor(2), builder.scalar(3), builder.tensor(2)
    builder.sum_of(x, x, out)
    method = load(builder.bytes([x, number], [out, number]))
    assert method.execute([torch.ones(2), 3])[1] == 3
    with pytest.raises(ExecutionError, match="value that it had at export"):
        method.execute([torch.ones(2), 4])


def test_metadata_and_stats_tell_of_the_method(builder: Any) -> None:
    program = Runtime.get().load_program(add_program(builder, 4, 2, dynamism=1))
    meta = program.metadata("forward")
    assert (meta.num_inputs(), meta.num_outputs(), meta.num_instructions()) == (2, 1, 1)
    info = meta.input_tensor_meta(0)
    assert (info.sizes(), info.dtype(), info.nbytes()) == ((4, 2), 6, 32)
    assert info.is_memory_planned()
    assert info.is_dynamic()
    assert meta.operators() == ["aten::add.out"]
    with pytest.raises(IndexError):
        meta.input_tensor_meta(2)
    with pytest.raises(ExecutionError, match="no method nothing"):
        program.metadata("nothing")
    method = program.load_method()
    assert method.stats.arena_bytes == 96
    assert method.load_ms > 0
    assert [tuple(step) for step in method.instructions] == [(0, 0, "kernel", "aten::add.out")]
