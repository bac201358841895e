"""Averages over windows and axes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor

__all__ = ["FAMILY"]

aten = torch.ops.aten


def _average(node: Node, config: Any, context: Context) -> Outcome:
    source = node.args[0]
    assert isinstance(source, Node)
    if config.output_activation is None:
        return Outcome(why="dynamic scales are for layers with weights")
    why = float_tensor(source) or float_tensor(node)
    if not why and not context.explicit(node):
        if not context.quantized(source):
            why = f"its input `{source}` is in floats"
        elif node not in context.wanted:
            why = "no reader computes on integers"
    if why:
        return Outcome(why=why)
    context.annotate(node, {source: config.input_activation}, config.output_activation)
    return Outcome(how=f"int8 {node.target._opname}")  # type: ignore[union-attr]


FAMILY: dict[Any, Family] = dict.fromkeys(
    [
        aten.avg_pool1d.default,
        aten.avg_pool2d.default,
        aten.adaptive_avg_pool1d.default,
        aten.adaptive_avg_pool2d.default,
        aten.mean.dim,
    ],
    _average,
)
