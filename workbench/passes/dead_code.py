"""What nobody reads leaves the graph: operators without effect, and weights without users."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from workbench.edge.program import graph_modules, input_specs, mutated_targets, remove_inputs
from workbench.passes.base import InPlacePass

__all__ = ["DeadCode", "has_effect"]

_LIFTED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_ASSERTS = ("_assert", "sym_constrain_range", "_functional_assert")


def has_effect(node: Node) -> bool:
    """Whether a node does something beside computing its result: it writes an argument or asserts."""
    if node.op in ("placeholder", "output"):
        return True
    if not isinstance(node.target, OpOverload):
        return isinstance(node.target, torch._ops.HigherOrderOperator) and "print" in str(node.target)
    schema = node.target._schema
    return schema.is_mutable or node.target._opname.startswith(_ASSERTS)


class DeadCode(InPlacePass):
    """Erase nodes without users and effect, and constants without users."""

    name = "dead_code"

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Erase in place; inputs of the user and written buffers stay."""
        nodes = 0
        for graph_module in graph_modules(program.graph_module):
            for node in reversed(graph_module.graph.nodes):
                if not node.users and not has_effect(node):
                    graph_module.graph.erase_node(node)
                    nodes += 1
        specs = input_specs(program)
        written = mutated_targets(program)
        unused = [
            node
            for node in program.graph.nodes
            if node.op == "placeholder"
            and not node.users
            and specs[node.name].kind in _LIFTED
            and specs[node.name].target not in written
        ]
        if unused:
            remove_inputs(program, unused)
        return {"nodes": nodes, "constants": len(unused)}
