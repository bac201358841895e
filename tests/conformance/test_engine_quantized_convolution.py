"""The engine's convolutions of integers against exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine_harness
from engine_harness import INPUT, Quantization, Quantized, Step
from quantized_samples import activation, assert_one_step, fitting, numbers, weight

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

CHANNELS = st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17, 24, 33, 64, 65])
DEPTHWISE = st.sampled_from([2, 3, 7, 8, 15, 16, 17, 24, 32, 63, 64, 65, 96, 130])


@dataclass(frozen=True)
class Case:
    """A convolution: weights are [cout, cin / groups, kh, kw]."""

    batch: int
    cin: int
    cout: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, bottom, left, right
    transposed: bool = False

    def attributes(self) -> dict[str, object]:
        inner, taps = self.cin // self.groups, self.kernel[0] * self.kernel[1]
        result: dict[str, object] = {"groups": self.groups}
        for name in ("kernel", "stride", "dilation"):
            result |= {f"window.{name}_{axis}": getattr(self, name)[i] for i, axis in enumerate("hw")}
        sides = ("top", "bottom", "left", "right")
        result |= {f"window.pad_{side}": self.padding[i] for i, side in enumerate(sides)}
        order = {"cout": inner * taps, "cin": taps, "h": self.kernel[1], "w": 1}
        return result | {f"weight_order.{name}": step for name, step in order.items()}

    def exact(self, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """In float64, images [n, h, w, c]."""
        top, bottom, left, right = self.padding
        x = x.permute(0, 3, 1, 2)
        if not self.transposed:
            x = torch.nn.functional.pad(x, (left, right, top, bottom))
            y = torch.nn.functional.conv2d(x, w, bias, self.stride, 0, self.dilation, self.groups)
            return y.permute(0, 2, 3, 1)
        # PyTorch has [cin, cout / groups, kh, kw].
        w = w.reshape(self.groups, self.cout // self.groups, self.cin // self.groups, *self.kernel)
        w = w.transpose(1, 2).reshape(self.cin, self.cout // self.groups, *self.kernel)
        y = torch.nn.functional.conv_transpose2d(x, w, None, self.stride, 0, 0, self.groups, self.dilation)
        y = y[:, :, top : y.shape[2] - bottom, left : y.shape[3] - right]
        return y.permute(0, 2, 3, 1) + bias


def check(
    case: Case,
    *,
    seed: int = 0,
    channels: bool = True,
    bias: str = "int",
    dtype: torch.dtype = torch.int8,
    post: Sequence[Step] = (),
    residual: bool = False,
    result: str = "int8",
) -> None:
    """Run a convolution and compare it with the exact one."""
    generator = torch.Generator().manual_seed(seed)
    x = activation((case.batch, *case.size, case.cin), generator, dtype=dtype)
    w = weight((case.cout, case.cin // case.groups, *case.kernel), generator, axis=0 if channels else None)
    scales = w.quantization.scales if channels else torch.full((case.cout,), w.quantization.scale)
    assert scales is not None
    v = torch.randint(-2000, 2000, (case.cout,), generator=generator, dtype=torch.int32)
    of_bias = v.double() * scales.double() * torch.tensor(x.quantization.scale).double()
    if bias == "float":
        v = torch.randn(case.cout, generator=generator)
        of_bias = v.double()
    if bias == "none":
        of_bias = torch.zeros(case.cout).double()
    exact = case.exact(numbers(x), numbers(w), of_bias)
    post_inputs: list[Quantized] = []
    steps = list(post)
    if residual:
        post_inputs = [activation(exact.shape, generator)]
        exact = exact + numbers(post_inputs[0])
        steps.insert(0, Step("Add", (0, INPUT)))
    for step in post:
        exact = exact.clamp(step.a, step.b) if step.fn == "Clamp" else torch.nn.functional.hardswish(exact)
    out = fitting(exact, generator, torch.uint8 if result == "uint8" else torch.int8)
    shape = tuple(exact.shape)
    found = engine_harness.run(
        "TransposedConvolution" if case.transposed else "Convolution",
        [x, w, None if bias == "none" else v],
        [(shape, torch.float32) if result == "float" else (shape, getattr(torch, result), out)],
        case.attributes(),
        constants=(1, 2),
        post=steps,
        post_inputs=post_inputs,
    )[0]
    if result != "float":
        assert_one_step(found, exact, out)
        return
    assert found is not None
    if exact.numel():
        assert float((found.double() - exact).abs().max()) <= 2e-6 * float(exact.abs().max()) + 1e-9


SIDES = st.integers(1, 9)


@settings(max_examples=150, deadline=None)
@given(
    batch=st.sampled_from([0, 1, 2, 3, 8]),
    cin=CHANNELS,
    cout=CHANNELS,
    groups=st.sampled_from([1, 1, 1, 2, 4]),
    size=st.tuples(SIDES, st.integers(1, 14)),
    kernel=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 3)]),
    padding=st.tuples(*[st.integers(0, 3)] * 4),
    transposed=st.booleans(),
    channels=st.booleans(),
    dtype=st.sampled_from([torch.int8, torch.uint8]),
    result=st.sampled_from(["int8", "uint8", "float"]),
    bias=st.sampled_from(["int", "float", "none"]),
)
def test_convolutions_of_any_geometry(
    batch: int,
    cin: int,
    cout: int,
    groups: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int, int, int],
    transposed: bool,
    channels: bool,
    dtype: torch.dtype,
    result: str,
    bias: str,
) -> None:
    cin, cout = cin * groups, cout * groups
    assume(cin * cout * kernel[0] * kernel[1] < 200_000)
    reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    sums = (padding[0] + padding[1], padding[2] + padding[3])
    for i in range(2):
        if transposed:
            assume((size[i] - 1) * stride[i] + reach[i] - sums[i] > 0)
        else:
            assume(size[i] + sums[i] >= reach[i])
    case = Case(batch, cin, cout, size, kernel, stride, dilation, groups, padding, transposed)
    check(case, seed=cin + cout, channels=channels, bias=bias, dtype=dtype, result=result)


@settings(max_examples=150, deadline=None)
@given(
    batch=st.sampled_from([0, 1, 2]),
    channels=DEPTHWISE,
    size=st.tuples(SIDES, st.integers(1, 19)),
    kernel=st.one_of(
        st.sampled_from([(3, 3), (3, 3), (5, 5)]), st.tuples(st.integers(1, 7), st.integers(1, 7))
    ),
    stride=st.sampled_from([(1, 1), (2, 2), (1, 2), (3, 3)]),
    dilation=st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 3)]),
    padding=st.tuples(*[st.integers(0, 3)] * 4),
    dtype=st.sampled_from([torch.int8, torch.uint8]),
    result=st.sampled_from(["int8", "uint8", "float"]),
    residual=st.booleans(),
)
def test_depthwise_convolutions(
    batch: int,
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int, int, int],
    dtype: torch.dtype,
    result: str,
    residual: bool,
) -> None:
    for i in range(2):
        assume(size[i] + padding[2 * i] + padding[2 * i + 1] >= dilation[i] * (kernel[i] - 1) + 1)
    case = Case(batch, channels, channels, size, kernel, stride, dilation, channels, padding)
    check(case, seed=channels, dtype=dtype, result=result, residual=residual)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "case",
    [
        Case(1, 3, 64, (60, 62), (7, 7), (2, 2), padding=(3, 3, 3, 3)),
        Case(1, 64, 64, (28, 28), (3, 3), padding=(1, 1, 1, 1)),
        Case(2, 96, 24, (28, 28), (1, 1)),
        Case(1, 256, 256, (7, 7), (3, 3), padding=(1, 1, 1, 1)),
        Case(1, 144, 144, (56, 56), (3, 3), groups=144, padding=(1, 1, 1, 1)),
        Case(1, 96, 96, (57, 56), (3, 3), (2, 2), groups=96, padding=(0, 1, 0, 1)),
        Case(1, 240, 240, (28, 28), (5, 5), groups=240, padding=(2, 2, 2, 2)),
        Case(1, 40, 30, (20, 20), (4, 4), (2, 2), padding=(1, 1, 1, 1), transposed=True),
    ],
)
def test_large_convolutions_on_all_threads(case: Case, threads: int) -> None:
    engine_harness.set_threads(threads)
    try:
        check(case, post=(Step("Clamp", (0,), a=0.0, b=6.0),))
    finally:
        engine_harness.set_threads(1)


@pytest.mark.parametrize("groups", [1, 2, 48])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("result", ["int8", "uint8", "float"])
def test_epilogues_compute_with_numbers(groups: int, transposed: bool, result: str) -> None:
    case = Case(
        2, 48, 48, (9, 11), (3, 3), (2, 2), groups=groups, padding=(1, 1, 1, 1), transposed=transposed
    )
    check(case, post=(Step("HardSwish", (1,)),), residual=True, result=result)
    check(case, post=(Step("Clamp", (1,), a=-1.0, b=1.0),), residual=True, result=result)
    check(case, post=(Step("Clamp", (0,), a=-1.0, b=1.0), Step("HardSwish", (1,))), result=result)


def test_sums_of_extreme_integers_are_exact() -> None:
    for left in (-128, 127):
        for right in (-128, 127):
            for groups in (1, 80):
                x = Quantized(torch.full((1, 9, 9, 80), left, dtype=torch.int8), Quantization(scale=1.0))
                w = torch.full((80, 80 // groups, 5, 5), right, dtype=torch.int8)
                case = Case(1, 80, 80, (9, 9), (5, 5), groups=groups)
                found = engine_harness.run(
                    "Convolution",
                    [x, Quantized(w, Quantization(scale=1.0)), None],
                    [((1, 5, 5, 80), torch.float32)],
                    case.attributes(),
                    constants=(1,),
                )[0]
                assert found is not None
                assert bool((found == left * right * 25 * (80 // groups)).all())
