"""Operators that only move or choose numbers: their results have the scales of their inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization import pt2e
from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor

__all__ = ["FAMILY", "MOVES"]

aten = torch.ops.aten

MOVES = frozenset(
    {
        aten.view.default,
        aten.reshape.default,
        aten._unsafe_view.default,
        aten.flatten.using_ints,
        aten.unflatten.int,
        aten.permute.default,
        aten.transpose.int,
        aten.t.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.unsqueeze.default,
        aten.expand.default,
        aten.slice.Tensor,
        aten.select.int,
        aten.narrow.default,
        aten.clone.default,
        aten.contiguous.default,
        aten.alias.default,
        aten.detach.default,
        aten.dropout.default,
        aten.dropout_.default,
        aten.max_pool1d.default,
        aten.max_pool2d.default,
        aten.adaptive_max_pool2d.default,
        aten.amax.default,
        aten.amin.default,
        aten.upsample_nearest2d.vec,
        aten.upsample_nearest2d.default,
        aten.pixel_shuffle.default,
        aten.channel_shuffle.default,
        aten.flip.default,
        aten.repeat.default,
        aten.index_select.default,
        aten.constant_pad_nd.default,
        aten.pad.default,
    }
)
_JOINS = (aten.cat.default, aten.stack.default, aten.concat.default)


def _shared(node: Node, config: Any, context: Context) -> Outcome:
    source = node.args[0]
    assert isinstance(source, Node)
    if config.output_activation is None:
        return Outcome(why="dynamic scales are for layers with weights")
    why = float_tensor(source) or float_tensor(node) or _padding(node)
    if not why and not context.quantized(source):
        why = f"its input `{source}` is in floats"
    if not why and node not in context.wanted and not context.explicit(node):
        why = "no reader computes on integers"
    if why:
        return Outcome(why=why)
    spec = pt2e.SharedQuantizationSpec(source)
    context.annotate(node, {source: spec}, pt2e.SharedQuantizationSpec((source, node)))
    return Outcome(how="moves int8 numbers, with the scales of its input")


def _padding(node: Node) -> str:
    if node.target is aten.constant_pad_nd.default:
        value: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("value", 0)
    elif node.target is aten.pad.default:
        mode = node.args[2] if len(node.args) > 2 else node.kwargs.get("mode", "constant")
        if mode != "constant":
            return ""
        value = node.args[3] if len(node.args) > 3 else node.kwargs.get("value")
    else:
        return ""
    if not value:
        return ""
    return f"it pads with {value}, which the scales of its input need not represent"


def _join(node: Node, config: Any, context: Context) -> Outcome:
    if config.output_activation is None:
        return Outcome(why="dynamic scales are for layers with weights")
    given: Any = node.args[0]
    parts = [item for item in given if isinstance(item, Node)]
    why = next((reason for reason in map(float_tensor, parts) if reason), "")
    if not why and not context.explicit(node):
        floats = [item for item in parts if not context.quantized(item) and context.constant(item) is None]
        if floats:
            why = f"its part `{floats[0]}` is in floats"
        elif node not in context.wanted:
            why = "no reader computes on integers"
    if why:
        return Outcome(why=why)
    first = parts[0]
    # All parts are quantized with the scales of the result, which has to hold them all.
    inputs: dict[Node, Any] = {first: config.input_activation}
    for part in parts[1:]:
        if part is not first:
            inputs[part] = pt2e.SharedQuantizationSpec((first, node))
    context.annotate(node, inputs, pt2e.SharedQuantizationSpec((first, node)))
    return Outcome(how="joins int8 numbers of one scale")


FAMILY: dict[Any, Family] = {**dict.fromkeys(MOVES, _shared), **dict.fromkeys(_JOINS, _join)}
