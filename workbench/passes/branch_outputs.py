"""The results of a control-flow branch are values of its own.

A branch that hands back one of its inputs, a constant, or one value twice would alias memory that the caller
also writes or frees (pytorch/executorch #21490). A copy is put in front of such a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.dim_order_ops import CLONE
from workbench.edge.fake import compute, dim_order, fake_mode
from workbench.passes.base import GraphPass

__all__ = ["BranchOutputs"]


class BranchOutputs(GraphPass):
    """Copy results of branches that are inputs, constants or doubles."""

    name = "branch_outputs"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Insert copies in place; the program's own graph is left alone."""
        if graph_module is program.graph_module:
            return {"copies": 0}
        output = graph_module.graph.output_node()
        given: Any = output.args[0]
        results = list(given) if isinstance(given, (list, tuple)) else [given]
        seen: set[Node] = set()
        copies = 0
        for position, result in enumerate(results):
            if not isinstance(result, Node):
                continue
            if (result.op != "call_function" or result in seen) and _is_tensor(result):
                results[position] = self._copy(graph_module, output, result)
                copies += 1
            seen.add(result)
        if copies:
            output.args = (tuple(results),) if isinstance(given, (list, tuple)) else (results[0],)
        return {"copies": copies}

    def _copy(self, graph_module: GraphModule, output: Node, source: Node) -> Node:
        with graph_module.graph.inserting_before(output):
            order = list(dim_order(source.meta["val"]))
            node = graph_module.graph.call_function(CLONE, (source,), {"dim_order": order})
        compute(node, fake_mode(graph_module))
        provenance.transfer((source,), node)
        return node


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
