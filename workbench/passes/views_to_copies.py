"""Views become copies: `view` -> `view_copy`, `permute` -> `permute_copy`, and so on.

A runtime that plans memory ahead knows no aliases between values unless the planner makes them, so the edge
dialect has none. A copy's result is contiguous (so says ATen), which changes the strides that later nodes
see.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.edge.fake import contiguous_like, fake_mode, is_contiguous, propagate_layout
from workbench.edge.program import graph_modules
from workbench.passes.base import Condition, GraphPass

__all__ = ["ViewsToCopies", "copy_of_view"]

aten = torch.ops.aten
_SPECIAL: dict[OpOverload, OpOverload] = {
    aten._unsafe_view.default: aten.view_copy.default,
    aten.reshape.default: aten.view_copy.default,
    aten.lift_fresh_copy.default: aten.alias_copy.default,
}


@cache
def copy_of_view(operator: Any) -> OpOverload | None:
    """The copying form of a view operator; None for an operator that is no view."""
    if not isinstance(operator, OpOverload):
        return None
    if operator in _SPECIAL:
        return _SPECIAL[operator]
    schema = operator._schema
    alias = schema.arguments[0].alias_info if schema.arguments else None
    if alias is None or alias.is_write or operator.namespace != "aten":
        return None
    packet = getattr(aten, f"{schema.name.split('::')[1]}_copy", None)
    return getattr(packet, operator._overloadname, None) if packet is not None else None


def _first_view(program: ExportedProgram) -> tuple[Node, str] | None:
    for graph_module in graph_modules(program.graph_module):
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and copy_of_view(node.target) is not None:
                return node, str(node.target)
    return None


class ViewsToCopies(GraphPass):
    """Replace each view by the operator that copies."""

    name = "views_to_copies"
    ensures = (Condition("no operator's result aliases its input", _first_view),)

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Swap the operators in place, then bring the strides downstream up to date."""
        changed: set[Node] = set()
        views = 0
        for node in graph_module.graph.nodes:
            copy = copy_of_view(node.target) if node.op == "call_function" else None
            if copy is None:
                continue
            node.target = copy
            views += 1
            before = node.meta.get("val")
            after = _contiguous(before)
            if after is not before:
                node.meta["val"] = after
                node.meta.pop("tensor_meta", None)
                changed.add(node)
        updated = propagate_layout(graph_module, changed, fake_mode(graph_module)) if changed else 0
        return {"views": views, "strides": updated}


def _contiguous(before: Any) -> Any:
    if isinstance(before, FakeTensor):
        return before if is_contiguous(before) else contiguous_like(before)
    if isinstance(before, (tuple, list)):
        after = [_contiguous(item) for item in before]
        return before if all(a is b for a, b in zip(after, before, strict=True)) else type(before)(after)
    return before
