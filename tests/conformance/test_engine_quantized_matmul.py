"""The engine's products of integers against exact ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine_harness
from engine_harness import INPUT, Quantization, Quantized, Step
from quantized_samples import activation, assert_one_step, fitting, integers, numbers, rows, weight

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

SIZES = st.one_of(st.integers(0, 9), st.sampled_from([12, 13, 16, 17, 31, 33, 48, 63, 64, 65, 100, 130]))
DEPTHS = st.one_of(st.integers(0, 9), st.sampled_from([27, 31, 32, 64, 100, 129, 1023, 1024, 1030]))
BATCHES = st.sampled_from(
    [((), ()), ((2,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (4,)), ((0,), ()), ((5, 1), (1, 1))]
)


def product(
    a: torch.Tensor | Quantized,
    b: Quantized,
    bias: torch.Tensor | Quantized | None = None,
    out: Quantization | None = None,
    *,
    transpose_b: bool = False,
    dtype: torch.dtype = torch.int8,
    constants: tuple[int, ...] = (1, 2),
    post: tuple[Step, ...] = (),
    post_inputs: tuple[torch.Tensor | Quantized, ...] = (),
) -> torch.Tensor:
    """a b + bias by the engine, quantized as `out` says."""
    a_shape, b_shape = numbers(a).shape, numbers(b).shape
    n = b_shape[-2 if transpose_b else -1]
    shape = (*torch.broadcast_shapes(a_shape[:-2], b_shape[:-2]), a_shape[-2], n)
    result = engine_harness.run(
        "MatMul",
        [a, b, bias],
        [(shape, torch.float32) if out is None else (shape, dtype, out)],
        {"transpose_b": int(transpose_b)},
        constants=constants,
        post=post,
        post_inputs=post_inputs,
    )[0]
    assert result is not None
    return result


def exact_product(a: torch.Tensor | Quantized, b: Quantized, transpose_b: bool) -> torch.Tensor:
    right = numbers(b)
    return torch.matmul(numbers(a), right.transpose(-1, -2) if transpose_b else right)


def assert_near(found: torch.Tensor, exact: torch.Tensor, tolerance: float = 1e-6) -> None:
    """Of numbers: sums of integers are exact, so that only a few operations on floats differ."""
    if exact.numel():
        bound = tolerance * (exact.abs() + float(exact.abs().max()))
        assert bool(((found.double() - exact).abs() <= bound + 1e-9).all())


@settings(max_examples=150, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
    transpose_b=st.booleans(),
    channels=st.booleans(),
    bias=st.sampled_from(["none", "float", "int", "scaled"]),
    kinds=st.sampled_from(["int8", "uint8", "rows"]),
    result=st.sampled_from(["float", "int8", "uint8"]),
    batches=BATCHES,
)
def test_constant_weights_of_any_sizes(
    m: int,
    n: int,
    k: int,
    transpose_b: bool,
    channels: bool,
    bias: str,
    kinds: str,
    result: str,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    generator = torch.Generator().manual_seed(m * 7 + n * 3 + k)
    shape = (*batches[0], m, k)
    a = (
        rows(shape, generator)
        if kinds == "rows"
        else activation(shape, generator, dtype=getattr(torch, kinds))
    )
    rank = len(batches[1]) + 2
    axis = (rank - 2 if transpose_b else rank - 1) if channels else None
    b = weight((*batches[1], *((n, k) if transpose_b else (k, n))), generator, axis=axis)
    exact = exact_product(a, b, transpose_b)
    v: torch.Tensor | Quantized | None = None
    if bias == "float" or (bias == "int" and kinds == "rows"):
        v = torch.randn(n, generator=generator) * 3
        exact = exact + v.double()
    elif bias != "none":
        v = torch.randint(-5000, 5000, (n,), generator=generator, dtype=torch.int32)
        scales = numbers(Quantized(torch.ones(1, dtype=torch.int8), Quantization(scale=0.003)))
        if bias == "int":
            of_b = b.quantization.scales if channels else torch.tensor([b.quantization.scale])
            assert of_b is not None
            scales = of_b.double() * torch.tensor(a.quantization.scale).double()
        else:
            v = Quantized(v, Quantization(scale=0.003))
        exact = exact + (v.data if isinstance(v, Quantized) else v).double() * scales
    if result == "float":
        assert_near(product(a, b, v, transpose_b=transpose_b), exact)
        return
    dtype = getattr(torch, result)
    out = fitting(exact, generator, dtype)
    assert_one_step(product(a, b, v, out, transpose_b=transpose_b, dtype=dtype), exact, out)


@settings(max_examples=80, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
    transpose_b=st.booleans(),
    left=st.sampled_from(["int8", "uint8", "rows"]),
    right=st.sampled_from([torch.int8, torch.uint8]),
    batches=BATCHES,
)
def test_products_of_activations(
    m: int,
    n: int,
    k: int,
    transpose_b: bool,
    left: str,
    right: torch.dtype,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    generator = torch.Generator().manual_seed(m * 7 + n * 3 + k)
    shape = (*batches[0], m, k)
    a = rows(shape, generator) if left == "rows" else activation(shape, generator, dtype=getattr(torch, left))
    b = activation((*batches[1], *((n, k) if transpose_b else (k, n))), generator, dtype=right)
    exact = exact_product(a, b, transpose_b)
    out = fitting(exact, generator)
    assert_one_step(product(a, b, None, out, transpose_b=transpose_b, constants=()), exact, out)


@settings(max_examples=120, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    k=DEPTHS,
    bits=st.sampled_from([4, 8]),
    group=st.sampled_from([0, 8, 32, 64, 128]),
    zero=st.sampled_from([0, 8, 15]),
    bias=st.booleans(),
    kinds=st.sampled_from(["float", "int8", "rows"]),
)
def test_weights_of_four_bits_and_in_groups(
    m: int, n: int, k: int, bits: int, group: int, zero: int, bias: bool, kinds: str
) -> None:
    generator = torch.Generator().manual_seed(m * 7 + n * 3 + k)
    a: torch.Tensor | Quantized
    if kinds == "float":
        a = torch.randn(m, k, generator=generator)
    else:
        a = rows((m, k), generator) if kinds == "rows" else activation((m, k), generator)
    b = weight((n, k), generator, axis=0, bits=bits, group=group, zero=zero)
    v = torch.randn(n, generator=generator) if bias else None
    exact = exact_product(a, b, True)
    if v is not None:
        exact = exact + v.double()
    found = product(a, b, v, transpose_b=True)
    size = torch.matmul(numbers(a).abs(), numbers(b).abs().T) if exact.numel() else exact
    room = 1e-9 + 3e-6 * (size + (0 if v is None else v.abs().double()))
    if kinds != "float" and group:  # what stands for zero is taken off floats
        room = room + 2e-6 * 256 * float(numbers(b).abs().sum(1).max() if k and n else 0) * 0.05
    assert bool(((found.double() - exact).abs() <= room).all())


def test_sums_of_extreme_integers_are_exact() -> None:
    """Neither 16 bits nor the trick of unsigned operands may overflow."""
    k = 4096
    for left in (-128, 127):
        for right in (-128, 127):
            a = Quantized(torch.full((7, k), left, dtype=torch.int8), Quantization(scale=1.0))
            b = Quantized(torch.full((k, 70), right, dtype=torch.int8), Quantization(scale=1.0))
            found = product(a, b)
            assert bool((found == left * right * k).all())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "n", "k"), [(197, 192, 264), (1, 2000, 700), (1000, 40, 400), (49, 512, 4608)])
def test_large_products_on_all_threads(threads: int, m: int, n: int, k: int) -> None:
    generator = torch.Generator().manual_seed(1)
    engine_harness.set_threads(threads)
    try:
        a, b = activation((m, k), generator), weight((n, k), generator, axis=0)
        v = torch.randn(n, generator=generator)
        exact = exact_product(a, b, True) + v.double()
        out = fitting(exact, generator)
        assert_one_step(product(a, b, v, out, transpose_b=True), exact, out)
        four = weight((n, k), generator, bits=4, group=8)
        for left in (a, rows((m, k), generator), torch.randn(m, k, generator=generator)):
            exact = exact_product(left, four, True)
            found = product(left, four, transpose_b=True)
            torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-4 * float(exact.abs().max()))
        if isinstance(b.data, torch.Tensor):
            right = Quantized(integers((n, k), generator), Quantization(scale=0.01, zero_point=3))
            exact = exact_product(a, right, True)
            out = fitting(exact, generator)
            assert_one_step(product(a, right, None, out, transpose_b=True, constants=()), exact, out)
    finally:
        engine_harness.set_threads(1)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("quantized", [True, False])
def test_the_epilogue_computes_with_numbers(constant: bool, quantized: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    a, b = activation((3, 30, 70), generator), weight((3, 70, 150), generator)
    if not constant:
        b = activation((3, 70, 150), generator)
    residual = activation((3, 30, 150), generator) if quantized else torch.randn(3, 30, 150)
    scale = torch.rand(150, generator=generator)
    steps = (
        Step("Add", (0, INPUT)),
        Step("Clamp", (1,), a=-9.0, b=20.0),
        Step("Mul", (2, INPUT + 1)),
        Step("Sigmoid", (3,)),
    )
    exact = torch.sigmoid((exact_product(a, b, False) + numbers(residual)).clamp(-9, 20) * scale.double())
    out = Quantization(scale=1 / 200, zero_point=-100)
    constants = (1, 2) if constant else ()
    found = product(a, b, None, out, post=steps, post_inputs=(residual, scale), constants=constants)
    assert_one_step(found, exact, out)
    found = product(a, b, None, None, post=steps, post_inputs=(residual, scale), constants=constants)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0.0, float("inf")), (0.0, 6.0), (-1.0, 1.0), (0.26, 0.27)])
def test_a_clamp_is_that_of_the_numbers(low: float, high: float) -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = activation((20, 64), generator, scale=0.02), weight((64, 100), generator)
    out = Quantization(scale=0.05, zero_point=-20)
    exact = exact_product(a, b, False).clamp(low, high)
    assert_one_step(product(a, b, None, out, post=(Step("Clamp", (0,), a=low, b=high),)), exact, out)
    found = product(a, b, post=(Step("Clamp", (0,), a=low, b=high),))
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)
