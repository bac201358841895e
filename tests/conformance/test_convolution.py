"""Convolutions against eager: geometries, dtypes and orders in memory drawn at random."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from kernel_harness import KernelError, Out, call, ordered

TOLERANCES = {torch.float32: (1e-4, 1e-4), torch.float64: (1e-9, 1e-9), torch.float16: (1e-3, 1e-3)}
ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1), (0, 1, 3, 2), (3, 2, 1, 0), (1, 0, 2, 3)]
CHANNELS = [1, 2, 3, 7, 17]


def check(case: dict[str, Any], x: torch.Tensor, weight: torch.Tensor, orders: list[tuple[int, ...]]) -> None:
    dtype = x.dtype
    channels = weight.shape[1] * case["groups"] if case["transposed"] else weight.shape[0]
    bias = torch.randn(channels).to(dtype) if case["bias"] else None
    dims = [case[name] for name in ("stride", "padding", "dilation")]
    tail = (case["transposed"], case["output_padding"], case["groups"])
    try:
        # Eager's float16 kernels may round partial sums: compare with sums in float32.
        wide = torch.float32 if dtype == torch.float16 else dtype
        tensors = [None if t is None else t.to(wide) for t in (x, weight, bias)]
        wanted = torch.ops.aten.convolution(*tensors, *dims, *tail).to(dtype)
    except RuntimeError:
        assume(False)
    x, weight = ordered(x, orders[0]), ordered(weight, orders[1])
    out = Out(wanted.shape, dtype, orders[2])
    rtol, atol = TOLERANCES[dtype]
    for constant in (True, False):
        found = call("aten::convolution.out", x, weight, bias, *dims, *tail, out, constant=constant, times=2)
        assert_close(found, wanted, rtol=rtol, atol=atol)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_convolution_agrees_for_random_geometries(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)), data.draw(st.integers(low, high))]

    transposed = data.draw(st.booleans())
    groups = data.draw(st.sampled_from([1, 1, 2, 5, 16]))
    first, second = data.draw(st.sampled_from(CHANNELS)), data.draw(st.sampled_from([*CHANNELS, 1, 1]))
    kernel = pair(1, 7)
    dtype = data.draw(st.sampled_from(list(TOLERANCES)))
    case = {
        "stride": pair(1, 3),
        "padding": pair(0, 3),
        "dilation": pair(1, 3),
        "transposed": transposed,
        "output_padding": pair(0, 1) if transposed else [0, 0],
        "groups": groups,
        "bias": data.draw(st.booleans()),
    }
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    inputs = first if transposed else second
    shape = (
        data.draw(st.integers(0, 2)),
        groups * inputs,
        data.draw(st.integers(1, 20)),
        data.draw(st.integers(1, 40)),
    )
    assume(shape[0] * shape[1] * shape[2] * shape[3] < 100_000)
    weight = torch.randn(groups * first, second, *kernel).to(dtype)
    orders = [data.draw(st.sampled_from(ORDERS)) for _ in range(3)]
    check(case, torch.randn(shape).to(dtype), weight, orders)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(1, 3), st.integers(0, 3), st.sampled_from([1, 4]), st.booleans())
def test_convolution_agrees_in_one_dimension(
    kernel: int, stride: int, padding: int, groups: int, transposed: bool
) -> None:
    case = {
        "stride": [stride],
        "padding": [padding],
        "dilation": [1],
        "transposed": transposed,
        "output_padding": [0],
        "groups": groups,
        "bias": True,
    }
    orders = [(0, 1, 2), (0, 1, 2), (0, 2, 1)]
    check(case, torch.randn(2, 3 * groups, 50), torch.randn(3 * groups, 3, kernel), orders)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)], ids=str)
@pytest.mark.parametrize("groups", [1, 8])
def test_convolution_agrees_on_large_inputs_in_blocks(order: tuple[int, ...], groups: int) -> None:
    x, weight = torch.randn(1, 8, 200, 301), torch.randn(16, 8 // groups, 3, 3)
    wanted = torch.ops.aten.convolution(x, weight, None, [2, 1], [1, 1], [1, 1], False, [0, 0], groups)
    geometry = ([2, 1], [1, 1], [1, 1], False, [0, 0], groups)
    out = Out(wanted.shape, order=order)
    found = call("aten::convolution.out", ordered(x, order), weight, None, *geometry, out)
    assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_convolution_agrees_below_its_upper_bound() -> None:
    x, weight = torch.randn(1, 3, 9, 11), torch.randn(8, 3, 3, 3)
    wanted = torch.nn.functional.conv2d(x, weight, padding=1)
    upper = [(1, 3, 64, 64), (8, 3, 3, 3), (1, 8, 64, 64)]
    found = call(
        "aten::convolution.out", x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, Out(wanted.shape),
        upper=upper,
    )  # fmt: skip
    assert_close(found, wanted, rtol=1e-4, atol=1e-4)


BIG = 2**62


@pytest.mark.parametrize(
    "change",
    [
        {"stride": [0, 1]},
        {"stride": [BIG, BIG]},
        {"padding": [-1, 0]},
        {"padding": [BIG, 1]},
        {"dilation": [0, 0]},
        {"dilation": [9, 9]},
        {"groups": 0},
        {"groups": 2},
        {"groups": BIG},
        {"stride": [1, 1, 1]},
        {"stride": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_refuses_impossible_arguments(change: dict[str, Any], transposed: bool) -> None:
    case = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1} | change
    with pytest.raises(KernelError):
        call(
            "aten::convolution.out", torch.ones(1, 3, 8, 8), torch.ones(3, 3, 3, 3), None, case["stride"],
            case["padding"], case["dilation"], transposed, [0, 0], case["groups"], Out((1, 3, 7, 7)),
        )  # fmt: skip
