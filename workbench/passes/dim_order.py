"""Operators with `memory_format` become operators that name the dim order of their result.

The order is read off the fake value, whose strides are those that eager gives: `preserve_format` and
`channels_last` need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.edge.dim_order_ops import DIM_ORDER_OPS, EMPTY
from workbench.edge.fake import dim_order
from workbench.edge.program import graph_modules
from workbench.passes.base import Condition, GraphPass

__all__ = ["DimOrder"]


def _first_memory_format(program: ExportedProgram) -> tuple[Node, str] | None:
    for graph_module in graph_modules(program.graph_module):
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target in DIM_ORDER_OPS:
                return node, str(node.target)
    return None


class DimOrder(GraphPass):
    """Replace `_to_copy`, `clone` and `empty` by `workbench._to_dim_order_copy` and its kin."""

    name = "dim_order"
    ensures = (Condition("no operator takes a memory format", _first_memory_format),)

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Change operators and arguments in place."""
        count = 0
        for node in graph_module.graph.nodes:
            target: Any = DIM_ORDER_OPS.get(node.target) if node.op == "call_function" else None
            if target is None:
                continue
            kwargs: dict[str, Any] = {"dim_order": list(dim_order(node.meta["val"]))}
            dtype = node.kwargs.get("dtype")
            if target is EMPTY or (isinstance(dtype, torch.dtype) and _changes_dtype(node, dtype)):
                kwargs["dtype"] = dtype
            node.target = target
            node.kwargs = kwargs
            count += 1
        return {"operators": count}


def _changes_dtype(node: Node, dtype: torch.dtype) -> bool:
    source: Any = node.args[0]
    return bool(source.meta["val"].dtype != dtype)
