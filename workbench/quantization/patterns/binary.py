"""Sums and products of two activations: residuals, gates."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor, fused_activation

__all__ = ["FAMILY"]

aten = torch.ops.aten


def _binary(node: Node, config: Any, context: Context) -> Outcome:
    if config.output_activation is None:
        return Outcome(why="dynamic scales are for layers with weights")
    operands = [item for item in node.args[:2] if isinstance(item, Node)]
    if len(operands) < 2:
        return Outcome(why="one operand is a number of Python, not a tensor")
    if node.kwargs.get("alpha", 1) != 1:
        return Outcome(why=f"alpha is {node.kwargs['alpha']}: integer sums are of equal weight")
    why = float_tensor(operands[0]) or float_tensor(operands[1])
    if not why and not context.explicit(node):
        why = _pointless(node, operands, context)
    if why:
        return Outcome(why=why)
    after = fused_activation(node)
    spec = config.input_activation
    context.annotate(node, dict.fromkeys(operands, spec), None if after else config.output_activation)
    if after is not None:
        context.annotate(after, output=config.output_activation)
    return Outcome(how=f"int8 {node.target._opname}", nodes=(after,) if after else ())  # type: ignore[union-attr]


def _pointless(node: Node, operands: list[Node], context: Context) -> str:
    """Why integers would cost accuracy here and save nothing."""
    floats = [item for item in operands if not context.quantized(item) and context.constant(item) is None]
    if floats:
        return f"its operand `{floats[0]}` is in floats: integers here would cost accuracy and save nothing"
    if node not in context.wanted:
        return "no reader computes on integers: integers here would cost accuracy and save nothing"
    return ""


FAMILY: dict[Any, Family] = dict.fromkeys(
    [
        aten.add.Tensor,
        aten.add_.Tensor,
        aten.sub.Tensor,
        aten.sub_.Tensor,
        aten.mul.Tensor,
        aten.mul_.Tensor,
    ],
    _binary,
)
