"""Convolutions, plain and transposed, with the activation behind them."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor, fused_activation

__all__ = ["FAMILY", "TRANSPOSED"]

aten = torch.ops.aten

TRANSPOSED = frozenset({aten.conv_transpose1d.default, aten.conv_transpose2d.input})
_PLAIN = (aten.conv1d.default, aten.conv2d.default, aten.conv2d.padding, aten.conv1d.padding)
_DEEP = (aten.conv3d.default, aten.conv_transpose3d.input, aten.conv3d.padding)


def _convolution(node: Node, config: Any, context: Context) -> Outcome:
    activation, weight = node.args[:2]
    assert isinstance(activation, Node) and isinstance(weight, Node)
    found = context.constant(weight)
    why = float_tensor(activation) or float_tensor(weight)
    if not why and found is None:
        why = "its weight is computed when the program runs"
    if not why:
        assert found is not None
        why = _refused(node, config, found)
    if why:
        return Outcome(why=why)
    axis = 1 if node.target in TRANSPOSED else 0
    spec = config.weight_along(axis) if hasattr(config, "weight_along") else config.weight
    inputs = {activation: getattr(config, "input_tensor", config.input_activation), weight: spec}
    after = None if config.output_activation is None else fused_activation(node)
    context.annotate(node, inputs, None if after else config.output_activation)
    if after is not None:
        context.annotate(after, output=config.output_activation)
    return Outcome(how=str(config), nodes=(after,) if after else ())


def _refused(node: Node, config: Any, weight: torch.Tensor) -> str:
    if getattr(config, "group_size", None) is not None or getattr(config, "weight_bits", 8) != 8:
        return "4-bit weights and groups are for linear layers"
    groups = _groups(node)
    if node.target in TRANSPOSED and groups != 1 and getattr(config, "is_per_channel", False):
        return "the channels of a transposed convolution in groups do not lie along one axis of its weight"
    dynamic = config.input_activation is not None and config.input_activation.is_dynamic
    if dynamic and weight.dim() != 4:
        return "dynamic scales are for two-dimensional convolutions"
    if dynamic and weight.shape[1] == 1:
        return "a convolution of single channels does too little with a value to choose its scale at run time"
    return ""


def _groups(node: Node) -> int:
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    position = names.index("groups")
    given = node.args[position] if len(node.args) > position else node.kwargs.get("groups", 1)
    return int(given)  # type: ignore[arg-type]


def _deep(node: Node, config: Any, context: Context) -> Outcome:
    del node, config, context
    return Outcome(why="three-dimensional convolutions have no integer kernel")


FAMILY: dict[Any, Family] = {
    **dict.fromkeys([*_PLAIN, *TRANSPOSED], _convolution),
    **dict.fromkeys(_DEEP, _deep),
}
