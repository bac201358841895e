"""Convolutions of one and two dimensions, plain, depthwise and transposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, sizes_of
from workbench.backends.xnnpack.configs.constants import quantized_constant
from workbench.backends.xnnpack.graph import Value
from workbench.backends.xnnpack.quantization import PerChannel, PerTensor, Quantization

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS", "FILTER_AXIS"]

aten = torch.ops.aten
FILTER_AXIS = {"Conv2d": 0, "DepthwiseConv2d": 3, "ConvTranspose2d": 0}  # of the output channels


class Convolution(Config):
    """`convolution`."""

    precisions = frozenset(ConfigPrecisionType)
    targets = (aten.convolution.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Weight and bias must be constant, the geometry one that the library has."""
        value, weight, bias, *_ = node.args
        rank = weight.meta["val"].dim() - 2  # type: ignore[union-attr]
        if rank not in (1, 2):
            return WhyNot(node, f"it runs over {rank} dimensions", "it ran over 1 or 2")
        if value.meta["val"].dim() != rank + 2:  # type: ignore[union-attr]
            return WhyNot(node, "its input has no batch dimension", "it had one")
        for what, operand in (("weight", weight), ("bias", bias)):
            if operand is not None and not context.is_constant(operand):
                return WhyNot(node, f"its {what} '{operand}' is computed at run time", "it were a constant")
        return self._check_geometry(node, rank)

    def _check_geometry(self, node: Node, rank: int) -> WhyNot | None:
        _, padding, dilation, extra = _geometry(node)
        transposed = node.args[6]
        if any(not isinstance(n, int) for item in _geometry(node) for n in item):
            return WhyNot(node, "its geometry is known at run time only", "it were constant")
        if any(n < 0 for n in padding):
            return WhyNot(node, f"its padding is {padding}", "it were not negative")
        stride = _geometry(node)[0]
        if transposed and any(e >= s for e, s in zip(extra, stride, strict=True)):
            return WhyNot(
                node, f"its output padding is {extra} at stride {stride}", "it were less than the stride"
            )
        if rank == 1 and len(sizes_of(node.args[0].meta["val"])[1]) > 1:  # type: ignore[union-attr]
            return WhyNot(node, "it runs over one dimension with several dynamic sizes", "one were dynamic")
        del dilation
        return None

    def takes_rows(self, node: Node, operand: Node, context: Context) -> bool:
        """The image of a plain convolution over two dimensions with a quantized weight."""
        weight: Any = node.args[1]
        if node.args[0] is not operand or weight is operand or weight.meta["val"].dim() != 4:
            return False
        depthwise = weight.meta["val"].shape[1] == 1 and not node.args[6]
        if depthwise or self.refusal(node, context) is not None:
            return False
        return _filter(node, context) is not None

    @staticmethod
    def _weight(node: Node, builder: Builder) -> Value:
        """The weight, as integers where they are quantized in a way that the library has."""
        found = _filter(node, builder.context)
        if found is None:
            return builder.constant(builder.tensor(node.args[1]))  # type: ignore[arg-type]
        return builder.constant(*found)

    def build(self, node: Node, builder: Builder) -> None:
        """One call; over one dimension, the height is 1 and reshapes stand around it."""
        value = builder.value(node.args[0])
        given = self._weight(node, builder)
        weight = given.data
        assert weight is not None
        bias = None if node.args[2] is None else builder.value(node.args[2])
        one_dimensional = weight.dim() == 3
        if one_dimensional:
            value = builder.reshape(value, _with_height(value.shape), _moved(value.free))
            weight = weight.unsqueeze(2)
        sizes, free = sizes_of(node.meta["val"])
        shape = _with_height(sizes) if one_dimensional else sizes
        kind, filter_, fields = _call(node, weight)
        quantization = given.quantization
        if isinstance(quantization, PerChannel):
            quantization = PerChannel(quantization.scales, FILTER_AXIS[kind])
        if kind == "ConvTranspose2d" and quantization is None:
            # The library has no transposed convolution of halves with weights in halves.
            filter_ = filter_.float()
            bias = None if bias is None else builder.constant(builder.tensor(node.args[2]).float())  # type: ignore[arg-type]
        inputs = [value, builder.constant(filter_, quantization), bias]
        result = builder.call(kind, inputs, shape, _moved(free) if one_dimensional else free, **fields)
        if one_dimensional:
            result = builder.reshape(result, sizes, free)
        builder.define(node, result)


def _filter(node: Node, context: Context) -> tuple[torch.Tensor, Quantization] | None:
    """The integers of a weight with a scale for the tensor or for each output channel."""
    weight: Any = node.args[1]
    found = quantized_constant(weight, context)
    if found is None:
        return None
    quantization = found[1]
    if isinstance(quantization, PerTensor):
        return found if quantization.zero_point == 0 else None
    transposed, groups = node.args[6], node.args[8]
    fits = isinstance(quantization, PerChannel) and quantization.axis == int(bool(transposed))
    return found if fits and not (transposed and groups != 1) else None


def _with_height(shape: Any) -> tuple[int, ...]:
    return (*shape[:2], 1, shape[2])


def _moved(free: frozenset[int]) -> frozenset[int]:
    return frozenset(i + 1 if i == 2 else i for i in free)


def _geometry(node: Node) -> list[list[int]]:
    weight: Any = node.args[1]
    rank = weight.meta["val"].dim() - 2
    items: list[Any] = [node.args[3], node.args[4], node.args[5], node.args[7]]
    return [list(item) * rank if len(item) == 1 else list(item) for item in items]


def _call(node: Node, weight: torch.Tensor) -> tuple[str, torch.Tensor, dict[str, Any]]:
    """Kind, filter and fields of the call; the weight has 4 dimensions."""
    groups: Any = node.args[8]
    transposed = bool(node.args[6])
    neutral = (1, 0, 1, 0)
    pairs = [[n, *item] if len(item) == 1 else item for n, item in zip(neutral, _geometry(node), strict=True)]
    stride, padding, dilation, extra = pairs
    if transposed:
        inputs, outputs = weight.shape[0] // groups, weight.shape[1]
        # (groups * in, out, h, w) to (groups * out, h, w, in).
        rows = weight.reshape(groups, inputs, outputs, *weight.shape[2:]).permute(0, 2, 3, 4, 1)
        kind, filter_ = "ConvTranspose2d", rows.reshape(groups * outputs, *weight.shape[2:], inputs)
    else:
        inputs, outputs = weight.shape[1], weight.shape[0] // groups
        depthwise = inputs == 1
        kind = "DepthwiseConv2d" if depthwise else "Conv2d"
        filter_ = weight.permute(1, 2, 3, 0) if depthwise else weight.permute(0, 2, 3, 1)
    fields = {
        "padding_top": padding[0],
        "padding_right": padding[1],
        "padding_bottom": padding[0],
        "padding_left": padding[1],
        "kernel_height": weight.shape[2],
        "kernel_width": weight.shape[3],
        "subsampling_height": stride[0],
        "subsampling_width": stride[1],
        "dilation_height": dilation[0],
        "dilation_width": dilation[1],
        "group_input_channels": inputs,
        "group_output_channels": outputs,
        "groups": groups,
        "adjustment_height": extra[0] if transposed else 0,
        "adjustment_width": extra[1] if transposed else 0,
    }
    return kind, filter_, fields


CONFIGS: tuple[Config, ...] = (Convolution(),)
