"""Common subexpressions are computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.passes.base import GraphPass, replace
from workbench.passes.dead_code import has_effect

__all__ = ["Cse"]

_RANDOM = torch.Tag.nondeterministic_seeded


class Cse(GraphPass):
    """Merge nodes of one operator with the same arguments; the first one stays, with the handles of all."""

    name = "cse"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Merge in place."""
        seen: dict[Any, Node] = {}
        merged = 0
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or not _mergeable(node):
                continue
            key = (node.target, _frozen(node.args), _frozen(node.kwargs), node.meta.get("delegation_tag"))
            first = seen.setdefault(key, node)
            if first is not node:
                replace(node, first)
                merged += 1
        return {"merged": merged}


def _mergeable(node: Node) -> bool:
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    if isinstance(target, OpOverload) and _RANDOM in target.tags:
        return False
    return not has_effect(node)


def _frozen(argument: Any) -> Any:
    # `1`, `1.0` and `True` are equal keys of a dictionary but different arguments, so the type is part of the
    # key.
    if isinstance(argument, (list, tuple)):
        return tuple(_frozen(item) for item in argument)
    if isinstance(argument, dict):
        return tuple(sorted((key, _frozen(item)) for key, item in argument.items()))
    if isinstance(argument, Node):
        return argument
    return type(argument), repr(argument)
