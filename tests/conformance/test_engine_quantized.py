"""The engine's operators on integers that stand for numbers, against exact results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.nn import functional as F

import engine_harness
from engine_harness import INPUT, Quantization, Quantized, Step
from quantized_samples import activation, assert_one_step, fitting, numbers, quantized, rows, weight

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

SIZES = st.one_of(st.integers(0, 9), st.sampled_from([15, 16, 17, 63, 64, 65, 127, 129, 1000, 5000]))
DTYPES = st.sampled_from([torch.int8, torch.uint8])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def run(
    op: str,
    inputs: list[Tensor | Quantized | None],
    shape: tuple[int, ...],
    out: Quantization | None,
    dtype: torch.dtype = torch.int8,
    attributes: dict[str, object] | None = None,
    *,
    post: tuple[Step, ...] = (),
    constants: tuple[int, ...] = (),
) -> Tensor:
    """One operator's result: integers if `out` says how they stand for numbers."""
    output = (shape, torch.float32) if out is None else (shape, dtype, out)
    [found] = engine_harness.run(op, inputs, [output], attributes, post=post, constants=constants)
    assert found is not None
    return found


# ---- quantize and dequantize -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(n=SIZES, dtype=DTYPES, seed=st.integers(0, 1000), scale=st.sampled_from([1e-30, 0.01, 0.5, 3.0, 1e30]))
def test_quantize_is_eager_s(n: int, dtype: torch.dtype, seed: int, scale: float) -> None:
    random = generator(seed)
    low = torch.iinfo(dtype).min
    x = (torch.randint(-400, 400, (n,), generator=random) / 2) * scale  # halves occur often
    q = Quantization(scale=scale, zero_point=low + int(torch.randint(0, 256, (), generator=random)))
    found = run("Quantize", [x], (n,), q, dtype)
    ops = torch.ops.quantized_decomposed
    rounded = float(torch.tensor(scale, dtype=torch.float32))
    expected = ops.quantize_per_tensor(x, rounded, q.zero_point, low, low + 255, dtype)
    assert torch.equal(found, expected)
    back = run("Dequantize", [Quantized(found, q)], (n,), None)
    assert torch.equal(back, ops.dequantize_per_tensor(found, rounded, q.zero_point, low, low + 255, dtype))


def test_what_is_no_number_becomes_zero_and_infinities_saturate() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e38, -3e38] * 30)
    found = run("Quantize", [x], (150,), Quantization(scale=0.1, zero_point=7))
    assert found.tolist() == [7, 127, -128, 127, -128] * 30


@settings(max_examples=40, deadline=None)
@given(n=SIZES, source=DTYPES, target=DTYPES, seed=st.integers(0, 1000))
def test_requantize(n: int, source: torch.dtype, target: torch.dtype, seed: int) -> None:
    x = activation((3, n), generator(seed), dtype=source)
    q = fitting(numbers(x), generator(seed + 1), target)
    assert_one_step(run("Quantize", [x], (3, n), q, target), numbers(x), q)


@settings(max_examples=40, deadline=None)
@given(n=SIZES, count=st.sampled_from([1, 2, 7]), seed=st.integers(0, 1000))
def test_rows_get_the_scale_of_their_range(n: int, count: int, seed: int) -> None:
    x = torch.randn((count, n), generator=generator(seed)) * torch.logspace(-6, 4, count)[:, None] + seed % 3
    start = -(-x.numel() // 64) * 64
    bytes_ = torch.zeros(start + 8 * count, dtype=torch.uint8)
    holder = Quantized(bytes_, Quantization(kind="PerRow"), tuple(x.shape), torch.int8)
    # The harness makes an output of the integers alone: enough room is in a wider one of the same rows.
    if n == 0:
        return
    made = engine_rows(x)
    holder.data[: made.numel()] = made
    error = (numbers(holder) - x.double()).abs()
    low, high = x.amin(1).clamp(max=0), x.amax(1).clamp(min=0)
    step = ((high - low) / 255).double()[:, None].clamp(min=1e-37)
    assert bool((error <= step * 0.501 + 1e-37).all())
    assert torch.allclose(
        run("Dequantize", [holder], tuple(x.shape), None).double(), numbers(holder), rtol=1e-6
    )


def engine_rows(x: Tensor) -> Tensor:
    """Integers and what stands behind them, as the engine quantizes rows."""
    count, n = x.shape
    start = -(-x.numel() // 64) * 64
    total = start + 8 * count
    lib = engine_harness.library()
    assert lib is not None
    memory = torch.zeros(total + 64, dtype=torch.uint8)
    node = ctypes.c_void_p(lib.wb_engine_node(engine_harness.enumerators("Op")["Quantize"]))
    try:
        engine_harness._attach(lib, node, 0, x, constant=False)
        out = Quantized(memory, Quantization(kind="PerRow"), (count, n), torch.int8)
        engine_harness._attach(lib, node, 1, out, constant=False)
        text = ctypes.create_string_buffer(512)
        assert lib.wb_engine_run(node, 1, None, text) == 0, text.value
    finally:
        lib.wb_engine_free(node)
    assert bool((memory[total:] == 0).all())
    return memory[:total]


# ---- pointwise ---------------------------------------------------------------------------------------------

UNARY: dict[str, tuple[Step, Callable[[Tensor], Tensor]]] = {
    "Clamp": (Step("Clamp", (INPUT,), 0.0, 2.0), lambda x: x.clamp(0, 2)),
    "HardSwish": (Step("HardSwish", (INPUT,)), F.hardswish),
    "Sigmoid": (Step("Sigmoid", (INPUT,)), torch.sigmoid),
    "Gelu": (Step("Gelu", (INPUT,)), F.gelu),
    "Neg": (Step("Neg", (INPUT,)), torch.neg),
    "LeakyRelu": (Step("LeakyRelu", (INPUT,), 0.1), lambda x: F.leaky_relu(x, 0.1)),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
}


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=25, deadline=None)
@given(n=SIZES, source=DTYPES, target=DTYPES, seed=st.integers(0, 1000))
def test_functions_of_one_operand(
    name: str, n: int, source: torch.dtype, target: torch.dtype, seed: int
) -> None:
    step, function = UNARY[name]
    x = activation((n,), generator(seed), dtype=source)
    exact = function(numbers(x))
    q = fitting(exact, generator(seed + 1), target)
    assert_one_step(run("Pointwise", [x], (n,), q, target, post=(step,)), exact, q)
    found = run("Pointwise", [x], (n,), None, post=(step,))
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-6)


SHAPES = st.sampled_from(
    [
        ((2, 3, 5), (2, 3, 5)),
        ((1000,), (1000,)),
        ((4, 70), (70,)),
        ((2, 6, 9), (2, 6, 1)),
        ((3, 4, 4, 20), (3, 1, 1, 20)),
        ((5, 7), ()),
        ((0, 3), (0, 3)),
    ]
)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=25, deadline=None)
@given(
    shapes=SHAPES,
    kinds=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    clamp=st.booleans(),
    swap=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_functions_of_two_operands(
    name: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    kinds: tuple[bool, bool, bool],
    clamp: bool,
    swap: bool,
    seed: int,
) -> None:
    random = generator(seed)
    operands: list[Tensor | Quantized | None] = [
        activation(shape, random, scale=0.03 + 0.02 * i) if whole else torch.randn(shape, generator=random)
        for i, (shape, whole) in enumerate(zip(shapes, kinds, strict=False))
    ]
    first, second = (INPUT + 1, INPUT) if swap else (INPUT, INPUT + 1)
    post = [Step(name, (first, second))]
    values = [numbers(x) for x in operands if x is not None]
    exact = BINARY[name](*(values[::-1] if swap else values))
    if clamp:
        post.append(Step("Clamp", (1,), -0.5, 1.5))
        exact = exact.clamp(-0.5, 1.5)
    shape = tuple(exact.shape)
    if kinds[2]:
        q = fitting(exact, random)
        assert_one_step(run("Pointwise", operands, shape, q, post=tuple(post)), exact, q)
    else:
        found = run("Pointwise", operands, shape, None, post=tuple(post))
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


# ---- pools, means, tables, padding -------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    c=st.sampled_from([1, 3, 16, 33, 64, 100]),
    kernel=st.sampled_from([(2, 2, 2, 0), (3, 3, 2, 1), (3, 3, 1, 1), (7, 5, 3, 0)]),
    dtype=DTYPES,
    average=st.booleans(),
    padding_counts=st.booleans(),
    seed=st.integers(0, 100),
)
def test_pools(
    c: int,
    kernel: tuple[int, int, int, int],
    dtype: torch.dtype,
    average: bool,
    padding_counts: bool,
    seed: int,
) -> None:
    h, w, stride, pad = kernel
    x = activation((2, 9, 8, c), generator(seed), dtype=dtype)
    image = numbers(x).permute(0, 3, 1, 2)
    attributes: dict[str, object] = {
        "window.kernel_h": h, "window.kernel_w": w, "window.stride_h": stride, "window.stride_w": stride,
        "window.pad_top": pad, "window.pad_bottom": pad, "window.pad_left": pad, "window.pad_right": pad,
        "window.count_include_pad": int(padding_counts),
    }  # fmt: skip
    if average:
        exact = F.avg_pool2d(image, (h, w), stride, pad, count_include_pad=padding_counts).permute(0, 2, 3, 1)
        q = fitting(exact, generator(seed + 1), dtype)
        assert_one_step(run("AvgPool", [x], tuple(exact.shape), q, dtype, attributes), exact, q)
        plain = run("AvgPool", [x], tuple(exact.shape), None, attributes=attributes)
        torch.testing.assert_close(plain.double(), exact, rtol=1e-5, atol=1e-5)
        return
    exact = F.max_pool2d(image, (h, w), stride, pad).permute(0, 2, 3, 1)
    found = run("MaxPool", [x], tuple(exact.shape), x.quantization, dtype, attributes)
    assert torch.equal(found, quantized(exact, x.quantization, dtype))


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from([(2, 7, 7, 33), (1, 49, 600), (3, 5), (4, 1000), (2, 3, 1, 1)]),
    sums=st.booleans(),
    dtype=DTYPES,
    data=st.data(),
)
def test_means_and_sums(shape: tuple[int, ...], sums: bool, dtype: torch.dtype, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first, len(shape) - 1))
    dims = tuple(range(first, last + 1))
    x = activation(shape, generator(1), dtype=dtype)
    exact = numbers(x).sum(dims, keepdim=True) if sums else numbers(x).mean(dims, keepdim=True)
    attributes: dict[str, object] = {
        "reduce": 0 if sums else 1, "mask": sum(1 << d for d in dims), "keep": 1
    }  # fmt: skip
    q = fitting(exact, generator(2), dtype)
    assert_one_step(run("Reduce", [x], tuple(exact.shape), q, dtype, attributes), exact, q)
    plain = run("Reduce", [x], tuple(exact.shape), None, attributes=attributes)
    torch.testing.assert_close(plain.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("width", [1, 16, 50])
def test_rows_of_a_table_of_integers(axis: int | None, width: int) -> None:
    table = weight((11, width), generator(3), axis=axis)
    ids = torch.tensor([[0, 10, 3], [3, 1, 0]])
    found = run("Embedding", [table, ids], (2, 3, width), None, constants=(0,))
    torch.testing.assert_close(found.double(), numbers(table)[ids], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("fill", [0.0, 1.0, -float("inf"), 1e9])
def test_padding_stands_for_the_number(fill: float) -> None:
    x = activation((2, 3, 4), generator(5))
    attributes: dict[str, object] = {"before": [0, 1, 2], "after": [0, 0, 1], "fill": fill}
    found = run("Pad", [x], (2, 4, 7), x.quantization, attributes=attributes)
    exact = F.pad(numbers(x), (2, 1, 1, 0), value=fill)
    assert torch.equal(found, quantized(exact.clamp(-1e6, 1e6), x.quantization, torch.int8))


def test_moves_of_bytes() -> None:
    x = activation((2, 3, 40, 33), generator(6))
    found = run("Transpose", [x], (2, 40, 33, 3), x.quantization, attributes={"permutation": [0, 2, 3, 1]})
    assert torch.equal(found, x.data.permute(0, 2, 3, 1))
    joined = run("Concat", [x, x], (2, 6, 40, 33), x.quantization, attributes={"axis": 1})
    assert torch.equal(joined, torch.cat([x.data, x.data], 1))


def test_rows_that_were_quantized_are_read_back() -> None:
    holder = rows((4, 70), generator(7))
    found = run("Dequantize", [holder], (4, 70), None)
    torch.testing.assert_close(found.double(), numbers(holder), rtol=1e-6, atol=1e-7)
