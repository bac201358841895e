"""Pools, upsampling and padding of the engine against eager PyTorch."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine_harness
from engine_harness import Step, enumerators

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

F32 = torch.float32
CHANNELS = st.sampled_from([1, 2, 3, 7, 16, 17, 64, 70])


def _nhwc(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1).contiguous()


def _run(
    op: str,
    x: torch.Tensor,
    expected: torch.Tensor,
    attributes: dict[str, object],
    post: tuple[Step, ...] = (),
) -> torch.Tensor:
    found = engine_harness.run(op, [x], [(expected.shape, F32)], attributes, post=post)[0]
    assert found is not None
    return found


def _window(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int] = (1, 1),
) -> dict[str, object]:
    """Attributes of a window; pads are those of F.pad: left, right, top, bottom."""
    left, right, top, bottom = pads
    values = (*kernel, *stride, *dilation, top, bottom, left, right)
    names = "kernel_h kernel_w stride_h stride_w dilation_h dilation_w pad_top pad_bottom pad_left pad_right"
    return {f"window.{name}": value for name, value in zip(names.split(), values, strict=True)}


@settings(max_examples=250, deadline=None)
@given(
    data=st.data(),
    batch=st.integers(1, 2),
    channels=CHANNELS,
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ceil=st.booleans(),
    average=st.booleans(),
)
def test_pools_agree(
    data: st.DataObject,
    batch: int,
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    ceil: bool,
    average: bool,
) -> None:
    pad = (data.draw(st.integers(0, kernel[0] // 2)), data.draw(st.integers(0, kernel[1] // 2)))
    x = torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(batch + channels))
    if data.draw(st.integers(0, 4)) == 0:
        x.view(-1)[data.draw(st.integers(0, x.numel() - 1))] = data.draw(
            st.sampled_from([float("nan"), float("inf"), float("-inf")])
        )
    attributes = _window(kernel, stride, (pad[1], pad[1], pad[0], pad[0]))
    attributes["window.ceil_mode"] = ceil
    try:
        if average:
            include, divisor = data.draw(st.booleans()), data.draw(st.sampled_from([None, 3]))
            attributes |= {"window.count_include_pad": include, "window.divisor": divisor or 0}
            expected = F.avg_pool2d(x, kernel, stride, pad, ceil, include, divisor)
        else:
            dilation = (data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2)))
            attributes |= {"window.dilation_h": dilation[0], "window.dilation_w": dilation[1]}
            expected = F.max_pool2d(x, kernel, stride, pad, dilation, ceil)
    except RuntimeError:  # the window does not fit
        assume(False)
    found = _run("AvgPool" if average else "MaxPool", _nhwc(x), _nhwc(expected), attributes)
    torch.testing.assert_close(found, _nhwc(expected), rtol=1e-5, atol=1e-6, equal_nan=True)


@settings(max_examples=150, deadline=None)
@given(
    channels=CHANNELS,
    size=st.tuples(st.integers(4, 12), st.integers(4, 12)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(-2, 2)] * 4),
    average=st.booleans(),
)
def test_pools_agree_with_padding_of_its_own_on_each_side(
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    average: bool,
) -> None:
    x = torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(channels))
    padded = F.pad(x, pads, value=0.0 if average else float("-inf"))
    assume(padded.shape[2] >= kernel[0] and padded.shape[3] >= kernel[1])
    expected = F.avg_pool2d(padded, kernel, stride) if average else F.max_pool2d(padded, kernel, stride)
    attributes = _window(kernel, stride, pads) | {"window.count_include_pad": 1}
    post = (Step("Clamp", (0,), a=-0.5, b=float("inf")),)
    found = _run("AvgPool" if average else "MaxPool", _nhwc(x), _nhwc(expected), attributes, post)
    torch.testing.assert_close(found, _nhwc(expected).clamp(min=-0.5), rtol=1e-5, atol=1e-6)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    batch=st.integers(1, 2),
    channels=CHANNELS,
    size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    linear=st.booleans(),
    align=st.booleans(),
)
def test_upsampling_agrees(
    data: st.DataObject, batch: int, channels: int, size: tuple[int, int], linear: bool, align: bool
) -> None:
    x = torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(channels))
    attributes: dict[str, object] = {"upsample_mode": int(linear), "align_corners": linear and align}
    mode = "bilinear" if linear else "nearest"
    corners = align if linear else None
    if data.draw(st.booleans()):
        factors = st.sampled_from([0.5, 1.0, 1.7, 2.0, 2.3, 3.0])
        scale = (data.draw(factors), data.draw(factors))
        assume(all(int(s * f) >= 1 for s, f in zip(size, scale, strict=True)))
        expected = F.interpolate(x, scale_factor=scale, mode=mode, align_corners=corners)
        attributes |= {"scale_h": scale[0], "scale_w": scale[1]}
    else:
        to = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30)))
        expected = F.interpolate(x, size=to, mode=mode, align_corners=corners)
        attributes |= {"out_h": to[0], "out_w": to[1]}
    found = _run("Upsample", _nhwc(x), _nhwc(expected), attributes)
    torch.testing.assert_close(found, _nhwc(expected), rtol=1e-5, atol=1e-5)


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    fill=st.sampled_from([0.0, 1.5]),
)
def test_constant_padding_agrees_also_when_it_cuts(
    data: st.DataObject, shape: list[int], fill: float
) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))
    before = [data.draw(st.integers(-(size // 2), 4)) for size in shape]
    after = [data.draw(st.integers(-(size - size // 2), 4)) for size in shape]
    pads = [value for d in reversed(range(len(shape))) for value in (before[d], after[d])]
    expected = F.pad(x, pads, value=fill)
    assert torch.equal(_run("Pad", x, expected, {"before": before, "after": after, "fill": fill}), expected)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    dims=st.integers(1, 3),
    mode=st.sampled_from(["reflect", "replicate"]),
    sizes=st.tuples(*[st.integers(2, 7)] * 5),
)
def test_mirrored_padding_agrees(
    data: st.DataObject, dims: int, mode: Literal["reflect", "replicate"], sizes: tuple[int, ...]
) -> None:
    shape = sizes[: dims + 2]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(dims))
    most = [size - 1 if mode == "reflect" else 9 for size in shape]
    before = [0, 0] + [data.draw(st.integers(0, m)) for m in most[2:]]
    after = [0, 0] + [data.draw(st.integers(0, m)) for m in most[2:]]
    pads = [value for d in reversed(range(2, len(shape))) for value in (before[d], after[d])]
    expected = F.pad(x, pads, mode)
    attributes: dict[str, object] = {
        "before": before, "after": after, "pad_mode": enumerators("PadMode")[mode.capitalize()],
    }  # fmt: skip
    assert torch.equal(_run("Pad", x, expected, attributes), expected)
