"""Tables of vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome, float_tensor

__all__ = ["FAMILY"]

aten = torch.ops.aten


def _embedding(node: Node, config: Any, context: Context) -> Outcome:
    table = node.args[0]
    assert isinstance(table, Node)
    if not context.explicit(node):
        return Outcome(
            why="a table is quantized only on request (set_object_type(torch.nn.Embedding, config)): "
            "the file gets smaller, but without an integer kernel each run unpacks the whole table"
        )
    why = float_tensor(table)
    if not why and context.constant(table) is None:
        why = "its table is computed when the program runs"
    if not why and getattr(config, "weight_bits", 8) != 8:
        why = "4-bit weights and groups are for linear layers"
    if why:
        return Outcome(why=why)
    # A row has the scale of its own that a channel has elsewhere.
    context.annotate(node, {table: config.weight})
    return Outcome(how="int8 table, a scale for each row")


FAMILY: dict[Any, Family] = {aten.embedding.default: _embedding}
