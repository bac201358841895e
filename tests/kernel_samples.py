"""Tensors to try kernels on, and the comparison of a kernel with eager."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernel_harness import Out, call

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES = (*FLOATS, *INTS, torch.bool)
LAYOUTS = ("contiguous", "channels_last", "reversed")

_RTOL = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.float64: 1e-10}


def order_of(layout: str, rank: int) -> list[int]:
    """Dimensions from the outermost in memory to the innermost."""
    if layout == "channels_last" and rank >= 3:
        return [0, *range(2, rank), 1]
    return list(range(rank))[::-1] if layout == "reversed" else list(range(rank))


def lay_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another dim order."""
    order = order_of(layout, tensor.dim())
    return tensor.permute(order).contiguous().permute([order.index(d) for d in range(tensor.dim())])


def sample(
    shape: Sequence[int], dtype: torch.dtype, layout: str = "contiguous", low: int = -4, high: int = 5
) -> torch.Tensor:
    """Small random values; integers in [low, high), at least 0 where the type is unsigned."""
    if dtype == torch.bool:
        values = torch.rand(tuple(shape)) > 0.5
    elif dtype.is_floating_point:
        values = (torch.rand(tuple(shape)) * (high - low) + low).to(dtype)
    else:
        values = torch.randint(max(low, 0) if dtype == torch.uint8 else low, high, tuple(shape)).to(dtype)
    return lay_out(values, layout)


def agree(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Integers and bool bit for bit; floats within the tolerance of their type."""
    assert found.dtype == expected.dtype
    rtol = _RTOL.get(expected.dtype, 0.0)
    atol = 2e-6 if expected.dtype in (torch.float32, torch.float64) else 1e-3 if rtol else 0.0
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)


def check(
    name: str, expected: torch.Tensor | Sequence[torch.Tensor], *args: object, layout: str = "contiguous"
) -> None:
    """Runs the kernel on `args`, with outputs like `expected` in this layout, and compares."""
    wanted = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    outs = [Out(tuple(t.shape), t.dtype, order_of(layout, t.dim())) for t in wanted]
    found = call(name, *args, *outs)
    for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        agree(got, want)


def check_list(
    name: str, expected: Sequence[torch.Tensor], *args: object, layout: str = "contiguous"
) -> None:
    """As `check`, for a kernel whose output is a list of tensors."""
    outs = [Out(tuple(t.shape), t.dtype, order_of(layout, t.dim())) for t in expected]
    found = call(name, *args, outs)
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        agree(got, want)
