"""Convolutions: on images as NHWC between two transposes, with the weight as PyTorch stores it."""

from __future__ import annotations

from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Entry, Refusal, no
from workbench.backends.cpu.graph import NO_VALUE, Op, WeightOrder, Window

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_TO_NHWC, _TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def _convolution(emitter: Emitter, call: Call) -> None:
    image = emitter.value(call["input"])
    flat = len(emitter.dims(image)) == 3
    output = emitter.result(call)
    dims: Any = list(emitter.dims(output))
    if flat:  # (n, c, w) is an image of one row
        n, c, w = emitter.dims(image)
        image = emitter.reshaped(image, [n, c, 1, w])
        dims = [dims[0], dims[1], 1, dims[2]]
    made = emitter.temporary(call.result().dtype, [dims[d] for d in _TO_NHWC])
    weight, order = _weight(emitter, call)
    bias = NO_VALUE if call["bias"] is None else emitter.value(call["bias"])
    given = _attributes(call, 1 if flat else 2)
    op = Op.TransposedConvolution if call["transposed"] else Op.Convolution
    inputs = [emitter.transposed(image, _TO_NHWC), weight, bias]
    emitter.add(op, inputs, [made], weight_order=order, **given)
    if flat:
        emitter.reshaped(emitter.transposed(made, _TO_NCHW), emitter.dims(output), output)
    else:
        emitter.transposed(made, _TO_NCHW, output)


def _attributes(call: Call, rank: int) -> dict[str, Any]:
    def pair(name: str, missing: int) -> tuple[int, int]:
        numbers = call.numbers(name, rank)
        return (missing, numbers[0]) if rank == 1 else (numbers[0], numbers[1])

    kernel = call.sizes("weight")[2:]
    top, left = pair("padding", 0)
    window = Window(
        kernel=(1, kernel[0]) if rank == 1 else (kernel[0], kernel[1]),
        stride=pair("stride", 1),
        dilation=pair("dilation", 1),
        top=top,
        bottom=top,
        left=left,
        right=left,
    )
    given: dict[str, Any] = {"window": window, "groups": call["groups"]}
    if call["transposed"]:
        given["output_padding_h"], given["output_padding_w"] = pair("output_padding", 0)
    return given


def _weight(emitter: Emitter, call: Call) -> tuple[int, WeightOrder]:
    """The weight and how it stands: (out, in / groups, h, w), of transposed ones (in, out / groups, h, w)."""
    groups, integers = call["groups"], emitter.integers(call["weight"])
    if integers is not None and integers.channels not in (None, int(call["transposed"])):
        integers = None  # scales by input channel: the numbers themselves
    sizes = tuple(call.tensor("weight").shape)
    first, second, h, w = sizes if len(sizes) == 4 else (*sizes[:2], 1, sizes[2])
    area = h * w

    def rearranged(x: torch.Tensor) -> torch.Tensor:
        x = x.reshape(first, second, h, w)
        if groups == 1 or not call["transposed"]:
            return x
        # With groups no strides lead to an output channel: it is rearranged to (out, in of a group, h, w).
        split = x.reshape(groups, first // groups, second, h, w)
        return split.transpose(1, 2).reshape(groups * second, first // groups, h, w)

    order = WeightOrder(second * area, area, w, 1)
    if call["transposed"]:
        order = WeightOrder(area, second * area, w, 1)
        if groups != 1:
            order = WeightOrder(first // groups * area, area, w, 1)
    name = call["weight"].name
    if integers is None:
        return emitter.constant(rearranged(emitter.tensor(call["weight"])), name), order
    if call["transposed"] and groups != 1:
        integers = integers.repeated(groups)
    return emitter.numbers(integers.moved(rearranged), name), order


def _check(call: Call) -> Refusal | None:
    rank = call.tensor("input").dim()
    if rank not in (3, 4):
        return no(f"the image has {rank - 2} spatial dimensions", "it had one or two")
    if not call.constant("weight"):
        return no("its weight is computed while the program runs", "the weight were a constant")
    if call["bias"] is not None and not call.constant("bias"):
        return no("its bias is computed while the program runs", "the bias were a constant")
    return None


ENTRIES = [Entry((aten.convolution.default,), _convolution, _check)]
