"""Tensors of given values, and arithmetic on numbers of the value table."""

from __future__ import annotations

import pytest
import torch

from kernel_harness import KernelError, Out, call, numbers
from kernel_samples import DTYPES, check


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_have_the_type_of_the_output(dtype: torch.dtype) -> None:
    like = torch.rand(3, 4)
    check("aten::full.out", torch.full((3, 4), 2.7).to(dtype), [3, 4], 2.7)
    check("aten::full_like.out", torch.full((3, 4), 3, dtype=dtype), like, 3, None)
    check("aten::scalar_tensor.out", torch.scalar_tensor(3, dtype=dtype), 3)
    check("aten::ones.out", torch.ones(3, dtype=dtype), [3])
    check("aten::zeros.out", torch.zeros(0, 3, dtype=dtype), [0, 3])
    check("aten::fill.Scalar_out", torch.full((3, 4), 2, dtype=dtype), like, 2)
    check("aten::fill.Tensor_out", torch.full((3, 4), 2, dtype=dtype), like, torch.tensor(2))


@pytest.mark.parametrize("bounds", [(2, 20, 3), (5, -5, -2), (0.5, 2000, 0.3), (3, 3, 1)])
def test_arange_agrees(bounds: tuple[float, float, float]) -> None:
    check("aten::arange.start_out", torch.arange(*bounds), *bounds)


@pytest.mark.parametrize(
    "bounds", [(0, 5, 0), (0, 5, -1), (0.0, float("inf"), 1.0), (-(2**63), 2**63 - 1, 1)]
)
def test_arange_refuses_bounds_without_an_end(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(KernelError):
        call("aten::arange.start_out", *bounds, Out((5,)))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add", (3, 4), 7),
        ("add", (2**63 - 1, 1), -(2**63)),
        ("sub", (3, 4.5), -1.5),
        ("mul", (3, 4), 12),
        ("floordiv", (-7, 2), -4),
        ("floordiv", (-(2**63), -1), -(2**63)),
        ("truediv", (7, 2), 3.5),
        ("mod", (-7, 3), 2),
        ("eq", (2, 2), True),
        ("lt", (2, 3), True),
        ("ge", (2, 3), False),
        ("sym_max", (2, 3), 3),
        ("sym_min", (2, 3), 2),
        ("neg", (3,), -3),
        ("round", (2.5,), 2),
        ("ceil", (2.1,), 3),
        ("trunc", (-2.9,), -2),
        ("sym_float", (3,), 3.0),
        ("sym_not", (False,), True),
        ("sym_ite", (True, 1, 2), 1),
    ],
)
def test_numbers_follow_python(name: str, args: tuple[float, ...], expected: float) -> None:
    found = numbers(f"executorch_prim::{name}.Scalar", *args)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("name", ["floordiv", "truediv", "mod"])
def test_division_of_numbers_by_zero_is_an_error(name: str) -> None:
    with pytest.raises(KernelError, match="zero"):
        numbers(f"executorch_prim::{name}.Scalar", 1, 0)


def test_tensors_give_numbers() -> None:
    x = torch.rand(3, 7)
    assert numbers("aten::sym_size.int", x, -1) == 7
    assert numbers("aten::sym_numel", x) == 21
    assert numbers("aten::_local_scalar_dense", torch.tensor([2.5])) == 2.5
    assert numbers("aten::_local_scalar_dense", torch.tensor(True)) is True
    with pytest.raises(KernelError):
        numbers("aten::sym_size.int", x, 2)


def test_random_numbers_have_their_distribution_and_repeat() -> None:
    uniform = call("aten::rand.out", [10000], Out((10000,)))
    normal = call("aten::randn.out", [10000], Out((10000,)))
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05
    assert torch.equal(uniform, call("aten::rand.out", [10000], Out((10000,))))


def test_dropout_scales_what_it_keeps() -> None:
    x = torch.ones(10000)
    out, mask = call("aten::native_dropout.out", x, 0.25, True, Out((10000,)), Out((10000,), torch.bool))
    assert abs(mask.float().mean() - 0.75) < 0.03
    assert torch.allclose(out, mask.float() / 0.75)
