"""Pointwise operators of two tensors, or of a tensor and a number, against eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_harness import KernelError, Out, call
from kernel_samples import DTYPES, FLOATS, INTS, LAYOUTS, check, sample

BITS = (*INTS, torch.bool)
ALPHA = (1,)
# name -> (eager, arguments after the operands, dtypes)
TENSOR: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[torch.dtype, ...]]] = {
    "add.out": (torch.add, ALPHA, DTYPES),
    "sub.out": (torch.sub, ALPHA, (*FLOATS, *INTS)),
    "mul.out": (torch.mul, (), DTYPES),
    "div.out": (torch.div, (), DTYPES),
    "atan2.out": (torch.atan2, (), FLOATS),
    "maximum.out": (torch.maximum, (), DTYPES),
    "minimum.out": (torch.minimum, (), DTYPES),
    "eq.Tensor_out": (torch.eq, (), DTYPES),
    "ne.Tensor_out": (torch.ne, (), DTYPES),
    "lt.Tensor_out": (torch.lt, (), DTYPES),
    "le.Tensor_out": (torch.le, (), DTYPES),
    "gt.Tensor_out": (torch.gt, (), DTYPES),
    "ge.Tensor_out": (torch.ge, (), DTYPES),
    "logical_and.out": (torch.logical_and, (), DTYPES),
    "logical_or.out": (torch.logical_or, (), DTYPES),
    "logical_xor.out": (torch.logical_xor, (), DTYPES),
    "bitwise_and.Tensor_out": (torch.bitwise_and, (), BITS),
    "bitwise_or.Tensor_out": (torch.bitwise_or, (), BITS),
    "bitwise_xor.Tensor_out": (torch.bitwise_xor, (), BITS),
}
NUMBER: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...]]] = {
    "add.Scalar_out": (torch.add, ALPHA),
    "sub.Scalar_out": (torch.sub, ALPHA),
    "rsub.Scalar_out": (torch.rsub, ALPHA),
    "mul.Scalar_out": (torch.mul, ()),
    "div.Scalar_out": (torch.div, ()),
    "eq.Scalar_out": (torch.eq, ()),
    "ne.Scalar_out": (torch.ne, ()),
    "lt.Scalar_out": (torch.lt, ()),
    "le.Scalar_out": (torch.le, ()),
    "gt.Scalar_out": (torch.gt, ()),
    "ge.Scalar_out": (torch.ge, ()),
    "fmod.Scalar_out": (torch.fmod, ()),
    "remainder.Scalar_out": (torch.remainder, ()),
}


@pytest.mark.parametrize("name", TENSOR)
def test_binary_agrees_for_every_pair_of_dtypes(name: str) -> None:
    eager, extra, dtypes = TENSOR[name]
    for a_type in dtypes:
        for b_type in dtypes:
            a, b = sample((2, 3, 4, 5), a_type), sample((3, 1, 5), b_type)
            check(f"aten::{name}", eager(a, b), a, b, *extra)


@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float32), (torch.int32, torch.float16)])
def test_binary_agrees_in_mixed_dim_orders(
    layout_a: str, layout_b: str, dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    a, b = sample((2, 40, 6, 7), dtypes[0], layout_a), sample((2, 40, 6, 7), dtypes[1], layout_b)
    row = sample((40, 1, 1), dtypes[1])
    for out in LAYOUTS:
        check("aten::add.out", a + b, a, b, 1, layout=out)
        check("aten::mul.out", a * row, a, row, layout=out)
        check("aten::sub.out", row - a, row, a, 1, layout=out)


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = draw(st.lists(st.integers(0, 6), max_size=5))

    def part() -> tuple[int, ...]:
        kept = shape[draw(st.integers(0, len(shape))) :]
        return tuple(1 if draw(st.booleans()) else size for size in kept)

    return part(), part()


@settings(max_examples=150, deadline=None)
@given(broadcastable(), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_binary_broadcasts_any_shapes(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], a_layout: str, b_layout: str, out_layout: str
) -> None:
    a, b = sample(shapes[0], torch.float32, a_layout), sample(shapes[1], torch.float32, b_layout)
    try:
        expected = a * b
    except RuntimeError:  # a size of 0 against another one
        with pytest.raises(KernelError):
            call("aten::mul.out", a, b, Out((1,)))
        return
    check("aten::mul.out", expected, a, b, layout=out_layout)


@pytest.mark.parametrize("name", NUMBER)
@pytest.mark.parametrize("number", [2, 2.5, True])
def test_binary_with_a_number_agrees(name: str, number: float) -> None:
    eager, extra = NUMBER[name]
    for dtype in (*FLOATS, *INTS):
        if name[:3] in ("sub", "rsu") and isinstance(number, bool):
            continue  # eager refuses to subtract a bool
        a = sample((3, 20), dtype)
        check(f"aten::{name}", eager(a, number), a, number, *extra)


@pytest.mark.parametrize("alpha", [10, -2, 2.5])
def test_add_scales_the_second_operand(alpha: float) -> None:
    a, b = sample((3, 20), torch.float32), sample((20,), torch.float32)
    check("aten::add.out", torch.add(a, b, alpha=alpha), a, b, alpha)
    check("aten::sub.out", torch.sub(a, b, alpha=alpha), a, b, alpha)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *INTS])
def test_division_rounds_as_asked(mode: str | None, dtype: torch.dtype) -> None:
    a, b = sample((50,), dtype, low=-100, high=100), sample((50,), dtype, low=1, high=9)
    check("aten::div.out_mode", torch.div(a, b, rounding_mode=mode), a, b, mode)
    check("aten::div.Scalar_mode_out", torch.div(a, 3, rounding_mode=mode), a, 3, mode)
    for name, eager in (("fmod.Tensor", torch.fmod), ("remainder.Tensor", torch.remainder)):
        check(f"aten::{name}_out", eager(a, b), a, b)
    check("aten::floor_divide.out", torch.floor_divide(a, b), a, b)


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_agree_for_every_count(dtype: torch.dtype) -> None:
    a = sample((200,), dtype, low=-100, high=100)
    counts = torch.arange(200).remainder(torch.iinfo(dtype).bits).to(dtype)
    for name, eager in (("left", torch.bitwise_left_shift), ("right", torch.bitwise_right_shift)):
        check(f"aten::bitwise_{name}_shift.Tensor_out", eager(a, counts), a, counts)
        check(f"aten::bitwise_{name}_shift.Tensor_Scalar_out", eager(a, 1), a, 1)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, 1.7])
def test_pow_agrees(exponent: float) -> None:
    for dtype in FLOATS:
        a = sample((4, 30), dtype).abs() + 0.1
        check("aten::pow.Tensor_Scalar_out", a**exponent, a, exponent)
        check("aten::pow.Tensor_Tensor_out", a**a, a, a)
        check("aten::pow.Scalar_out", torch.pow(2.5, a), 2.5, a)


def test_integers_divided_by_zero_give_no_crash() -> None:
    a, zero = torch.tensor([5, -(2**63)]), torch.tensor([0, -1])
    found = call("aten::floor_divide.out", a, zero, Out((2,), torch.int64))
    assert found.tolist() == [0, -(2**63)]


def test_dynamic_shapes_resize_the_output() -> None:
    a, b = sample((2, 5), torch.float32), sample((5,), torch.float32)
    upper = [(8, 16), (16,), (8, 16)]
    assert torch.equal(call("aten::add.out", a, b, 1, Out((2, 5)), upper=upper), a + b)


@pytest.mark.parametrize(
    "args",
    [
        (torch.ones(2), torch.ones(3), 1, Out((2,))),  # not broadcastable
        (torch.ones(2), 1, 1, Out((2,))),  # a number for a tensor
        (torch.ones(2), torch.ones(2), Out((2,))),  # an argument too few
        (torch.ones(2), torch.ones(2), 1, Out((3,))),  # an output of another size
        (torch.ones(2), torch.ones(2), None, Out((2,))),  # no alpha
    ],
)
def test_binary_refuses_broken_arguments(args: tuple[object, ...]) -> None:
    with pytest.raises(KernelError):
        call("aten::add.out", *args)
