"""The engine's convolutions against eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine_harness
from engine_convolutions import Case, assert_near, convolve
from engine_harness import INPUT, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

CHANNELS = st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17, 24, 32, 33, 48])


@st.composite
def cases(
    draw: st.DrawFn, kinds: tuple[str, ...] = ("plain", "plain", "grouped", "depthwise", "multiplied")
) -> Case:
    """Any geometry that PyTorch accepts."""
    kind = draw(st.sampled_from(kinds))
    kernel = (draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    if draw(st.booleans()):
        side = draw(st.sampled_from([1, 3, 3, 5]))
        kernel = (side, side)
    stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2), (3, 1), (2, 3)]))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 2), (1, 3), (2, 1)]))
    padding = tuple(draw(st.integers(-2, 3)) for _ in range(4))
    least = [dilation[i] * (kernel[i] - 1) + 1 - padding[2 * i] - padding[2 * i + 1] for i in range(2)]
    size = tuple(
        max(
            least[i],
            1,
            -padding[2 * i] + 1,
            -padding[2 * i + 1] + 1,
            -padding[2 * i] - padding[2 * i + 1] + 1,
        )
        + draw(st.integers(0, 18))
        for i in range(2)
    )
    cin, cout, groups = draw(CHANNELS), draw(CHANNELS), 1
    if kind == "grouped":
        groups = draw(st.sampled_from([2, 3, 4]))
        cin, cout = cin * groups, cout * groups
    elif kind == "depthwise":
        cout = groups = cin
    elif kind == "multiplied":
        groups = cin
        cout = cin * draw(st.sampled_from([2, 3]))
    return Case(
        batch=draw(st.sampled_from([0, 1, 1, 1, 2])),
        size=(size[0], size[1]),
        cin=cin,
        cout=cout,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        padding=(padding[0], padding[1], padding[2], padding[3]),
        groups=groups,
    )


@settings(max_examples=400, deadline=None)
@given(
    case=cases(),
    order=st.sampled_from(["torch", "xnnpack", "outer_last", "columns_first"]),
    constant=st.booleans(),
    half=st.booleans(),
    bias=st.booleans(),
)
def test_convolutions_agree_for_any_geometry(
    case: Case, order: str, constant: bool, half: bool, bias: bool
) -> None:
    x, weight, vector = case.tensors()
    if constant and half:
        weight, vector = weight.half(), vector.half()
    if not bias:
        vector = torch.zeros_like(vector)
    shape = case.expected(x, weight.float(), vector.float()).shape
    found = convolve(
        case, x, weight, vector if bias else None, shape, order=order, constants=(1, 2) if constant else ()
    )
    assert_near(case, found, x, weight.float(), vector.float())


NETWORK_LAYERS = [
    Case(1, (30, 30), 3, 64, (7, 7), (2, 2), padding=(3, 3, 3, 3)),
    Case(1, (49, 10), 1, 64, (10, 4), (2, 2), padding=(5, 5, 1, 1)),
    Case(1, (28, 28), 64, 64, (3, 3), padding=(1, 1, 1, 1)),
    Case(2, (14, 14), 128, 96, (3, 3), padding=(1, 1, 1, 1)),
    Case(1, (7, 7), 256, 256, (3, 3), padding=(1, 1, 1, 1)),
    Case(1, (28, 28), 64, 128, (3, 3), (2, 2), padding=(1, 1, 1, 1)),
    Case(1, (28, 28), 64, 128, (1, 1), (2, 2)),
    Case(1, (28, 28), 144, 144, (3, 3), padding=(1, 1, 1, 1), groups=144),
    Case(1, (28, 28), 144, 144, (3, 3), (2, 2), padding=(0, 1, 0, 1), groups=144),
    Case(1, (14, 14), 240, 240, (5, 5), padding=(2, 2, 2, 2), groups=240),
    Case(1, (14, 14), 240, 240, (5, 5), (2, 2), padding=(2, 2, 2, 2), groups=240),
    Case(1, (1, 200), 40, 80, (1, 5), padding=(0, 0, 4, 0)),
    Case(1, (14, 14), 128, 128, (3, 3), padding=(1, 1, 1, 1), groups=32),
    Case(1, (57, 57), 32, 32, (3, 3), padding=(1, 1, 1, 1)),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", NETWORK_LAYERS, ids=str)
def test_layers_of_networks_agree_with_their_epilogues(case: Case, threads: int) -> None:
    x, weight, bias = case.tensors()
    expected = case.expected(x, weight, bias)
    residual = torch.randn(expected.shape)
    engine_harness.set_threads(threads)
    plain = convolve(case, x, weight, bias, expected.shape)
    assert_near(case, plain, x, weight, bias)
    clamped = convolve(case, x, weight, bias, expected.shape, post=(Step("Clamp", (0,), a=0.0, b=6.0),))
    torch.testing.assert_close(clamped, plain.clamp(0, 6), rtol=0, atol=0)
    steps = (Step("Add", (0, INPUT)), Step("Clamp", (1,), a=0.0, b=float("inf")), Step("Sigmoid", (2,)))
    found = convolve(case, x, weight, bias, expected.shape, post=steps, post_inputs=(residual,))
    torch.testing.assert_close(found, torch.sigmoid((plain + residual).relu()), rtol=1e-5, atol=1e-5)
    engine_harness.set_threads(1)


def test_a_constant_image_is_kept() -> None:
    case = Case(1, (5, 6), 3, 4, (3, 3))
    x, weight, bias = case.tensors()
    found = convolve(case, x.half(), weight, bias, case.expected(x, weight, bias).shape, constants=(0, 1))
    assert_near(case, found, x.half().float(), weight, bias)


@st.composite
def transposed_cases(draw: st.DrawFn) -> Case:
    """Any geometry of a transposed convolution; padding is symmetric, as PyTorch's."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    stride = (draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 2, 3])))
    dilation = (draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 1, 2, 4])))
    kernel = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    size = (draw(st.integers(1, 12)), draw(st.integers(1, 20)))
    full = [(size[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    pad = [draw(st.integers(0, min(4, (full[i] - 1) // 2))) for i in range(2)]
    extra = [draw(st.integers(0, max(stride[i], dilation[i]) - 1)) for i in range(2)]
    return Case(
        batch=draw(st.sampled_from([0, 1, 1, 2])),
        size=size,
        cin=groups * draw(CHANNELS),
        cout=groups * draw(CHANNELS),
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        padding=(pad[0], pad[0], pad[1], pad[1]),
        groups=groups,
        output_padding=(extra[0], extra[1]),
    )


@settings(max_examples=300, deadline=None)
@given(
    case=transposed_cases(),
    order=st.sampled_from(["torch", "xnnpack", "columns_first"]),
    constant=st.booleans(),
    epilogue=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_transposed_convolutions_agree_for_any_geometry(
    case: Case, order: str, constant: bool, epilogue: bool, threads: int
) -> None:
    x, weight, bias = case.tensors()
    # PyTorch's weight is [cin, cout / groups, kh, kw].
    grouped = weight.view(case.groups, case.cout // case.groups, case.cin // case.groups, *case.kernel)
    theirs = grouped.transpose(1, 2).reshape(case.cin, case.cout // case.groups, *case.kernel)
    expected = torch.nn.functional.conv_transpose2d(
        x,
        theirs,
        bias,
        case.stride,
        (case.padding[0], case.padding[2]),
        case.output_padding,
        case.groups,
        case.dilation,
    )
    residual = torch.randn(expected.shape)
    steps: tuple[Step, ...] = ()
    if epilogue:
        steps = (Step("Add", (0, INPUT)), Step("Clamp", (1,), a=0.0, b=9.0), Step("Mul", (2, INPUT)))
        expected = (expected + residual).clamp(0, 9) * residual
    engine_harness.set_threads(threads)
    found = convolve(
        case,
        x,
        weight,
        bias,
        expected.shape,
        op="TransposedConvolution",
        order=order,
        constants=(1, 2) if constant else (),
        post=steps,
        post_inputs=(residual,) if epilogue else (),
    )
    engine_harness.set_threads(1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [(16, 16), (64, 64), (48, 200), (256, 256), (512, 512)])
@pytest.mark.parametrize("side", [7, 14, 56])
def test_winograd_stays_within_1e_5_of_the_scale_of_the_output(side: int, channels: tuple[int, int]) -> None:
    case = Case(1, (side, side), *channels, (3, 3), padding=(1, 1, 1, 1))
    x, weight, bias = case.tensors()
    x = x.relu()  # what activations are like: sums grow, nothing cancels in the transform of the input
    weight /= (9 * case.cin) ** 0.5
    exact = case.expected(x.double(), weight.double(), bias.double())
    found = convolve(case, x, weight, bias, exact.shape)
    assert ((found.double() - exact).abs().max() / exact.abs().max()).item() < 1e-5
