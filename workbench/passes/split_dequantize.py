"""Each reader of dequantized numbers has a dequantize node of its own.

Backends take `dequantize -> operator -> quantize` as a whole. A dequantize node that several operators share
would tie their partitions together, or be left outside of all. What stays with the runtime is merged again
before memory is planned (`cse`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.passes.base import GraphPass

__all__ = ["SplitDequantize"]


class SplitDequantize(GraphPass):
    """Copy dequantize nodes until each has one reader."""

    name = "split_dequantize"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Copy in place."""
        copies = 0
        graph = graph_module.graph
        for node in list(graph.nodes):
            if not _dequantizes(node):
                continue
            for user in list(node.users)[1:]:
                if user.op == "output":
                    continue
                with graph.inserting_before(user):
                    copy = graph.node_copy(node)
                copy.meta = dict(node.meta)
                provenance.set_handles(copy, provenance.handles(node))
                user.replace_input_with(node, copy)
                copies += 1
        return {"copies": copies}


def _dequantizes(node: Node) -> bool:
    target: Any = node.target
    return (
        node.op == "call_function"
        and isinstance(target, OpOverload)
        and target.namespace in ("quantized_decomposed", "torchao")
        and target._opname.startswith("dequantize")
    )
