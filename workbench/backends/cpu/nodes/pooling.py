"""Pools: on images as NHWC between two transposes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Entry, Refusal, Size, no
from workbench.backends.cpu.graph import Op, Window

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_TO_NHWC, _TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def _pool(emitter: Emitter, call: Call, op: int, window: Window, spatial: int = 2) -> None:
    """Add a pool on (n, c, h, w), (c, h, w), (n, c, w) or (c, w)."""
    image, output = emitter.value(call["self"]), emitter.result(call)
    full = _as_image(emitter.dims(image), spatial)
    wanted = _as_image(emitter.dims(output), spatial)
    made = emitter.temporary(call.result().dtype, [wanted[d] for d in _TO_NHWC])
    given = emitter.transposed(emitter.reshaped(image, full), _TO_NHWC)
    emitter.add(op, [given], [made], window=window)
    if len(emitter.dims(output)) == 4:
        emitter.transposed(made, _TO_NCHW, output)
    else:
        emitter.reshaped(emitter.transposed(made, _TO_NCHW), emitter.dims(output), output)


def _as_image(dims: tuple[Size, ...], spatial: int) -> list[Size]:
    listed = list(dims)
    if spatial == 1:
        listed.insert(len(listed) - 1, 1)
    return listed if len(listed) == 4 else [1, *listed]


def _window(call: Call, spatial: int) -> Window:
    def pair(name: str, missing: int, default: tuple[int, ...] | None = None) -> tuple[int, int]:
        given = call.args.get(name)
        if given in (None, []):
            given = default if default is not None else [1] * spatial
        listed = list(given) if isinstance(given, (tuple, list)) else [given]
        listed = listed * spatial if len(listed) == 1 else listed
        return (missing, listed[0]) if spatial == 1 else (listed[0], listed[1])

    kernel = pair("kernel_size", 1)
    top, left = pair("padding", 0, (0,) * spatial)
    return Window(
        kernel=kernel,
        stride=pair("stride", 1, kernel[2 - spatial :]),
        dilation=pair("dilation", 1),
        top=top,
        bottom=top,
        left=left,
        right=left,
        divisor=call.args.get("divisor_override") or 0,
        ceil_mode=bool(call["ceil_mode"]),
        count_include_pad=bool(call.args.get("count_include_pad", False)),
    )


def _max_pool(emitter: Emitter, call: Call) -> None:
    _pool(emitter, call, Op.MaxPool, _window(call, 2))


def _avg_pool(emitter: Emitter, call: Call) -> None:
    spatial = 1 if call.node.target is aten.avg_pool1d.default else 2
    _pool(emitter, call, Op.AvgPool, _window(call, spatial), spatial)


def _adaptive(emitter: Emitter, call: Call) -> None:
    sizes = call.sizes("self")[-2:]
    kernel = sizes[0] // call["output_size"][0], sizes[1] // call["output_size"][1]
    _pool(emitter, call, Op.AvgPool, Window(kernel=kernel, stride=kernel))


def _check_adaptive(call: Call) -> Refusal | None:
    sizes, wanted = call.tensor("self").shape[-2:], call["output_size"]
    if not all(type(size) is int for size in sizes):
        return no("its windows depend on dynamic sizes", "height and width were static")
    if any(want == 0 or size % want for size, want in zip(sizes, wanted, strict=True)):
        return no(
            f"windows of {tuple(sizes)} to {tuple(wanted)} differ in size",
            "the image's size were a multiple of the result's",
        )
    return None


def _max_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(1, 3, 8, 8), [2, 2]
    yield torch.randn(2, 5, 9, 7), [3, 2], [2, 2], [1, 1]
    yield torch.randn(2, 5, 9, 7), [3, 3], [2, 2], [0, 0], [1, 1], True
    yield torch.randn(1, 17, 10, 11), [2, 3], [1, 2], [0, 1], [2, 1]
    yield torch.randn(4, 6, 7), [3, 3], [1, 1]


def _line_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 5, 11), [3], [2], [1]
    yield torch.randn(2, 5, 11), [4], [3], [2], True, False


ENTRIES = [
    Entry((aten.max_pool2d_with_indices.default,), _max_pool, results=(0,), samples=_max_samples),
    Entry(
        (aten.avg_pool2d.default, aten.avg_pool1d.default),
        _avg_pool,
        samples={aten.avg_pool1d.default: _line_samples},
    ),
    Entry((aten._adaptive_avg_pool2d.default,), _adaptive, _check_adaptive),
]
