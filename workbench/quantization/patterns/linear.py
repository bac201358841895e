"""Linear layers and products of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor, fused_activation

__all__ = ["FAMILY"]

aten = torch.ops.aten

# Operator -> positions of input, weight and bias, and the axis of the output channels in the weight.
_LAYERS: dict[Any, tuple[int, int, int | None, int]] = {
    aten.linear.default: (0, 1, 2, 0),
    aten.addmm.default: (1, 2, 0, 1),
    aten.mm.default: (0, 1, None, 1),
    aten.matmul.default: (0, 1, None, 1),
}
_PRODUCTS = (aten.mm.default, aten.matmul.default, aten.bmm.default)


def _layer(node: Node, config: Any, context: Context) -> Outcome:
    source, position, _, axis = _LAYERS[node.target]
    activation, weight = node.args[source], node.args[position]
    assert isinstance(activation, Node) and isinstance(weight, Node)
    why = float_tensor(activation) or float_tensor(weight)
    if node.target is aten.addmm.default and not _plain_addmm(node):
        why = "addmm with beta or alpha other than 1"
    found = context.constant(weight)
    if not why and found is None:
        why = "its weight is computed when the program runs"
    if why:
        return Outcome(why=why)
    assert found is not None
    group = getattr(config, "group_size", None)
    if group is not None and (axis != 0 or found.shape[1] % group):
        return Outcome(why=f"rows of {found.shape[1 - axis]} are no multiples of the group size {group}")
    spec = config.weight_along(axis) if hasattr(config, "weight_along") else config.weight
    inputs = {activation: config.input_activation, weight: spec}
    after = None if config.output_activation is None else fused_activation(node)
    context.annotate(node, inputs, None if after else config.output_activation)
    if after is not None:
        context.annotate(after, output=config.output_activation)
    return Outcome(how=str(config), nodes=(after,) if after else ())


def _plain_addmm(node: Node) -> bool:
    return all(node.kwargs.get(name, 1) == 1 for name in ("beta", "alpha"))


def _product(node: Node, config: Any, context: Context) -> Outcome:
    one, other = node.args[:2]
    assert isinstance(one, Node) and isinstance(other, Node)
    if config.output_activation is None:
        return Outcome(why="both factors are computed when the program runs: dynamic scales are for weights")
    why = float_tensor(one) or float_tensor(other)
    if why:
        return Outcome(why=why)
    spec = config.input_activation
    context.annotate(node, {one: spec, other: spec}, config.output_activation)
    return Outcome(how="int8 product of two activations")


def _linear(node: Node, config: Any, context: Context) -> Outcome:
    if node.target in _PRODUCTS:
        known = _LAYERS.get(node.target)
        weight = context.constant(node.args[1]) if known else None
        if weight is None or weight.dim() != 2:
            return _product(node, config, context)
    return _layer(node, config, context)


FAMILY: dict[Any, Family] = dict.fromkeys([*_LAYERS, aten.bmm.default], _linear)
