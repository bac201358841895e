"""Symbolic sizes are asked for in one way, `aten.sym_size.int` and its kin; known sizes are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.passes.base import GraphPass

__all__ = ["NormalizeSymbols"]

aten = torch.ops.aten
_OVERLOADS: dict[Any, torch._ops.OpOverload] = {
    aten.sym_size: aten.sym_size.int,
    aten.sym_stride: aten.sym_stride.int,
    aten.sym_numel: aten.sym_numel.default,
}


class NormalizeSymbols(GraphPass):
    """Name the overload of symbol queries, and answer those whose result is known."""

    name = "normalize_symbols"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Change targets in place; a size that turned out a plain number replaces its query."""
        named = known = 0
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            if node.target in _OVERLOADS:
                node.target = _OVERLOADS[node.target]
                named += 1
            if node.target in (aten.sym_size.int, aten.sym_numel.default) and _is_number(node):
                number = int(node.meta["val"])
                for user in list(node.users):
                    _substitute(user, node, number)
                graph_module.graph.erase_node(node)
                known += 1
        return {"overloads": named, "known sizes": known}


def _is_number(node: Node) -> bool:
    found = node.meta.get("val")
    return isinstance(found, int) and not isinstance(found, torch.SymInt)


def _substitute(user: Node, old: Node, number: int) -> None:
    def swap(argument: Node) -> Any:
        return number if argument is old else argument

    user.args = torch.fx.node.map_arg(user.args, swap)
    user.kwargs = torch.fx.node.map_arg(user.kwargs, swap)
