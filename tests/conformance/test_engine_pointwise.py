"""Pointwise programs of the engine over broadcast operands, and epilogues, against eager PyTorch."""

from __future__ import annotations

import random

import pytest
import torch

import engine_harness
from engine_harness import INPUT, OperatorError, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

F32 = torch.float32
SHAPES = [
    (2, 3, 4, 5), (7,), (1,), (0, 3), (4, 1000), (3, 2, 2049), (1000, 3), (5, 1, 130), (), (2, 1, 1, 64),
    (17, 129),
]  # fmt: skip


def _run(
    inputs: list[torch.Tensor], out: torch.Tensor, program: list[Step], dtype: torch.dtype = F32
) -> torch.Tensor:
    found = engine_harness.run("Pointwise", inputs, [(out.shape, dtype)], post=program)[0]
    assert found is not None
    return found


def _operand(shape: tuple[int, ...]) -> torch.Tensor:
    sizes = [size if random.random() < 0.6 else 1 for size in shape[random.randint(0, len(shape)) :]]
    return torch.randn(sizes)


def _operands(shape: tuple[int, ...], seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random.seed(seed)
    torch.manual_seed(seed)
    first = torch.randn(shape) if seed % 3 else _operand(shape)
    return first, _operand(shape), _operand(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(12))
def test_program_agrees_over_broadcast_operands(shape: tuple[int, ...], seed: int) -> None:
    a, b, c = _operands(shape, seed)
    expected = (a + b) * c
    program = [Step("Add", (0, INPUT + 1)), Step("Mul", (1, INPUT + 2))]
    assert torch.equal(_run([a, b, c], expected, program), expected)
    truth = a > b / c
    program = [Step("Div", (INPUT + 1, INPUT + 2)), Step("Gt", (INPUT, 1))]
    assert torch.equal(_run([a, b, c], truth, program, torch.bool), truth)
    chosen = torch.where(b > 0, a, c)
    assert torch.equal(_run([b > 0, a, c], chosen, [Step("Where", (0, INPUT + 1, INPUT + 2))]), chosen)


@pytest.mark.parametrize("shape", SHAPES)
def test_program_of_integers_is_exact(shape: tuple[int, ...]) -> None:
    a, b, _ = _operands(shape, 1)
    x, y = (a * 1e12).long(), (b * 1000).int()
    expected = x * y + 3
    program = [Step("Mul", (0, INPUT + 1)), Step("AddScalar", (1,), a=3.0)]
    assert torch.equal(_run([x, y], expected, program, torch.int64), expected)
    assert torch.equal(_run([x, y], x <= y, [Step("Le", (0, INPUT + 1))], torch.bool), x <= y)
    divisor = y.abs() + 1
    expected = torch.remainder(x, divisor)
    assert torch.equal(
        _run([x, divisor], expected, [Step("Remainder", (0, INPUT + 1))], torch.int64), expected
    )
    mixed = _run([x, b], x + b, [Step("Add", (0, INPUT + 1))])
    torch.testing.assert_close(mixed, x + b)


@pytest.mark.parametrize("shape", SHAPES)
def test_program_may_use_a_register_twice(shape: tuple[int, ...]) -> None:
    a, b, _ = _operands(shape, 2)
    program = [
        Step("AddScalar", (0,), a=3.0),
        Step("Clamp", (1,), a=0.0, b=6.0),
        Step("Mul", (0, 2)),
        Step("Sub", (3, INPUT + 1)),
        Step("Tanh", (4,)),
        Step("Maximum", (5, 1)),
    ]
    expected = torch.maximum(torch.tanh(a * (a + 3).clamp(0, 6) - b), a + 3)
    torch.testing.assert_close(_run([a, b], expected, program), expected)


def test_program_with_a_step_beyond_the_limit_is_refused() -> None:
    x = torch.ones(3)
    with pytest.raises(OperatorError, match="1 to 16 steps"):
        _run([x], x, [Step("Neg", (i,)) for i in range(17)])


def test_square_root_of_an_integer_result_is_refused() -> None:
    x = torch.ones(3, dtype=torch.int64)
    with pytest.raises(OperatorError, match="gives no integer"):
        _run([x], x, [Step("Sqrt", (0,))], torch.int64)


@pytest.mark.parametrize("columns", [1, 3, 64, 1300])
def test_epilogue_agrees_with_all_kinds_of_operands(columns: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(37, columns)
    full, row, one = torch.randn(37, columns), torch.randn(columns), torch.randn(1)
    program = [
        Step("Add", (0, INPUT)),
        Step("Mul", (1, INPUT + 1)),
        Step("Maximum", (2, INPUT + 2)),
        Step("Sub", (3, 0)),
        Step("Silu", (4,)),
    ]
    found = engine_harness.run(
        "Softmax", [x], [(x.shape, F32)], {"axis": 1}, post=program, post_inputs=[full, row, one]
    )[0]
    assert found is not None
    y = torch.softmax(x, 1)
    expected = torch.nn.functional.silu(torch.maximum((y + full) * row, one) - y)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    torch.manual_seed(0)
    x, row = torch.randn(300, 1000), torch.randn(1000)
    program = [Step("Add", (0, INPUT + 1)), Step("Gelu", (1,))]
    alone = _run([x, row], x, program)
    engine_harness.set_threads(threads)
    try:
        together = _run([x, row], x, program)
    finally:
        engine_harness.set_threads(1)
    assert torch.equal(alone, together)
