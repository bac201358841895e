"""The engine's matrix products against eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine_harness
from engine_harness import INPUT, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

SIZES = st.one_of(st.integers(0, 9), st.sampled_from([13, 14, 15, 16, 17, 29, 31, 32, 33, 47, 64, 100]))
DEPTHS = st.one_of(st.integers(0, 9), st.sampled_from([31, 64, 100, 511, 512, 513, 1024, 1100]))


def product(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    transpose_b: bool = False,
    constants: tuple[int, ...] = (1, 2),
    post: tuple[Step, ...] = (),
    post_inputs: tuple[torch.Tensor, ...] = (),
) -> torch.Tensor:
    """a b + bias by the engine."""
    n = b.shape[-2 if transpose_b else -1]
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], n)
    result = engine_harness.run(
        "MatMul",
        [a, b, bias],
        [(shape, torch.float32)],
        {"transpose_b": int(transpose_b)},
        constants=constants,
        post=post,
        post_inputs=post_inputs,
    )[0]
    assert result is not None
    return result


def assert_near(found: torch.Tensor, a: torch.Tensor, b: torch.Tensor, rest: torch.Tensor) -> None:
    """The error of a sum of k products is bounded by k eps times the sum of their sizes."""
    exact = torch.matmul(a.double(), b.double()) + rest.double()
    bound = torch.matmul(a.double().abs(), b.double().abs()) + rest.double().abs() + 1e-30
    eps = torch.finfo(torch.float32).eps
    assert bool(((found.double() - exact).abs() <= bound * eps * (a.shape[-1] ** 0.5 + 4)).all())


@settings(max_examples=150, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
    transpose_b=st.booleans(),
    constant=st.booleans(),
    bias=st.booleans(),
    half=st.booleans(),
    batches=st.sampled_from(
        [((), ()), ((2,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (4,)), ((0,), ()), ((5, 1), (1, 1))]
    ),
)
def test_products_agree_for_any_sizes(
    m: int,
    n: int,
    k: int,
    transpose_b: bool,
    constant: bool,
    bias: bool,
    half: bool,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    generator = torch.Generator().manual_seed(m * 7 + n * 3 + k)
    a = torch.randn(*batches[0], m, k, generator=generator)
    b = torch.randn(*batches[1], k, n, generator=generator)
    v = torch.randn(n, generator=generator) if bias else None
    constants: tuple[int, ...] = ()
    if constant:
        constants = (1, 2)
        if half:
            b = b.half()
            v = v.half() if v is not None else None
    stored = b.transpose(-1, -2).contiguous() if transpose_b else b
    found = product(a, stored, v, transpose_b=transpose_b, constants=constants)
    rest = torch.zeros(n) if v is None else v
    assert_near(found, a, b.float(), rest.float())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "n", "k"), [(197, 192, 64), (1, 4000, 700), (1000, 40, 100), (49, 512, 1600)])
def test_large_products_agree_on_all_threads(threads: int, m: int, n: int, k: int) -> None:
    engine_harness.set_threads(threads)
    a, b, bias = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
    for constants in ((1, 2), ()):
        found = product(a, b, bias, transpose_b=True, constants=constants)
        assert_near(found, a, b.T, bias)
    engine_harness.set_threads(1)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_epilogue_takes_residual_clamp_and_the_rest(constant: bool, batch: tuple[int, ...]) -> None:
    a, b, bias = torch.randn(*batch, 30, 700), torch.randn(*batch, 700, 50), torch.randn(50)
    residual = torch.randn(*batch, 30, 50)
    scale = torch.rand(50)
    steps = (
        Step("Add", (0, INPUT)),
        Step("Clamp", (1,), a=-3.0, b=20.0),
        Step("Mul", (2, INPUT + 1)),
        Step("Sigmoid", (3,)),
    )
    found = product(
        a, b, bias, constants=(1, 2) if constant else (), post=steps, post_inputs=(residual, scale)
    )
    expected = torch.sigmoid((a @ b + bias + residual).clamp(-3, 20) * scale)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_nan_and_infinity_pass_through_a_clamp() -> None:
    a = torch.tensor([[1.0, float("nan")], [float("inf"), 0.0]])
    found = product(a, torch.eye(2), post=(Step("Clamp", (0,), a=-1.0, b=1.0),))
    assert found[0].isnan().all()
    assert found[1].isnan().sum() == 1


def test_a_constant_left_operand_is_kept() -> None:
    a, b = torch.randn(5, 40).half(), torch.randn(40, 9)
    assert_near(product(a, b, constants=(0,)), a.float(), b, torch.zeros(9))
