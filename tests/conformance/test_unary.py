"""Pointwise operators of one tensor, clamps and choices, against eager."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernel_harness import Out, call
from kernel_samples import DTYPES, FLOATS, INTS, LAYOUTS, check, sample

FLOAT = [
    "exp",
    "log",
    "tanh",
    "erf",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp2",
    "expm1",
    "log1p",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "erfc",
]
ANY = ["abs", "neg", "sign", "ceil", "floor", "trunc", "isnan", "isinf", "bitwise_not", "logical_not", "relu"]
SPECIAL = [
    0.0,
    -0.0,
    float("inf"),
    -float("inf"),
    float("nan"),
    1e-30,
    -1e-30,
    88.0,
    89.5,
    -88.0,
    -104.0,
    1e30,
    4.0,
]
# Eager's vectorized versions overflow earlier than needed.
LIMITED = {"sinh", "cosh"}


def refused(name: str, dtype: torch.dtype) -> bool:
    """Eager has no such operator for the type."""
    try:
        getattr(torch, name)(torch.ones(1, dtype=dtype))
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("name", [*FLOAT, *ANY])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_unary_agrees_for_every_dtype(name: str, layout: str) -> None:
    for dtype in DTYPES:
        if refused(name, dtype):
            continue
        for shape in ((2, 3, 4, 5), (700,), (), (0, 3)):
            x = sample(shape, dtype, layout)
            check(f"aten::{name}.out", getattr(torch, name)(x), x, layout=layout)


@pytest.mark.parametrize("name", [n for n in [*FLOAT, *ANY] if n not in LIMITED and n != "bitwise_not"])
def test_unary_agrees_on_special_values(name: str) -> None:
    x = torch.tensor(SPECIAL * 5)  # long enough for vectors and their rest
    check(f"aten::{name}.out", getattr(torch, name)(x), x)


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "log", "expm1"])
def test_vectorized_functions_are_within_4e_7(name: str) -> None:
    x = torch.logspace(-30, 30, 20001) if name == "log" else torch.linspace(-12, 12, 20001)
    exact = getattr(torch, name)(x.double())
    found = call(f"aten::{name}.out", x, Out(tuple(x.shape))).double()
    error = (found - exact).abs() / exact.abs().clamp_min(1e-6 if name == "log" else 1e-30)
    assert error.max() < 4e-7


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_agree(dtype: torch.dtype) -> None:
    x = sample((3, 333), dtype)
    check("aten::gelu.out", functional.gelu(x), x, "none")
    check("aten::gelu.out", functional.gelu(x, approximate="tanh"), x, "tanh")
    check("aten::leaky_relu.out", functional.leaky_relu(x, 0.1), x, 0.1)
    check("aten::elu.out", functional.elu(x, 1.2), x, 1.2, 1.0, 1.0)
    check("aten::hardtanh.out", functional.hardtanh(x, -1, 2), x, -1.0, 2.0)
    check("aten::softplus.out", functional.softplus(x, 2, 3), x, 2.0, 3.0)
    check("aten::silu.out", functional.silu(x), x)
    check("aten::hardswish.out", functional.hardswish(x), x)
    check("aten::hardsigmoid.out", functional.hardsigmoid(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logit_clamps_by_eps(dtype: torch.dtype) -> None:
    x = torch.rand(100, dtype=dtype)
    check("aten::logit.out", torch.logit(x, 0.1), x, 0.1)
    check("aten::logit.out", torch.logit(x), x, None)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_clamp_agrees_with_numbers_and_tensors(dtype: torch.dtype) -> None:
    x, low, high = sample((3, 333), dtype), sample((333,), dtype), sample((3, 1), dtype)
    check("aten::clamp.out", torch.clamp(x, 1, 2), x, 1, 2)
    check("aten::clamp.out", torch.clamp(x, min=1), x, 1, None)
    check("aten::clamp.out", torch.clamp(x, max=1.5), x, None, 1.5)
    check("aten::clamp.Tensor_out", torch.clamp(x, low, high), x, low, high)
    check("aten::clamp.Tensor_out", torch.clamp(x, min=low), x, low, None)
    check("aten::clamp.Tensor_out", torch.clamp(x, max=high), x, None, high)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_and_masked_fill_agree(dtype: torch.dtype) -> None:
    mask, a = sample((4, 1, 20), torch.bool), sample((4, 3, 20), dtype, "reversed")
    for other in DTYPES:
        for b in (sample((), other), sample((3, 20), other)):
            check("aten::where.self_out", torch.where(mask, a, b), mask, a, b)
            check("aten::where.self_out", torch.where(mask, b, a), mask, b, a, layout="reversed")
    check("aten::masked_fill.Scalar_out", a.masked_fill(mask, 1), a, mask, 1)
    one = torch.ones((), dtype=dtype)
    check("aten::masked_fill.Tensor_out", a.masked_fill(mask, one), a, mask, one)
