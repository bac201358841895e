"""The guard of attention's softmax against masked rows looks at each row's maximum, not at each element.

`scaled_dot_product_attention` decomposes into a softmax that gives 0 for rows that are all -inf:

    where(not any(not (scores == -inf)), 0, softmax(scores))

which walks four times over the scores. A row is all -inf exactly if its maximum is, and NaN passes through
both forms alike, so `where(amax(scores) == -inf, 0, softmax(scores))` is the same bit for bit in one pass
over the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import compute, fake_mode
from workbench.edge.program import add_constant
from workbench.passes.base import GraphPass

__all__ = ["SafeSoftmax"]

aten = torch.ops.aten


class SafeSoftmax(GraphPass):
    """Rewrite the guard of each softmax that has one."""

    name = "safe_softmax"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Rewrite in place; the old guard leaves with the next `dead_code`."""
        if graph_module is not program.graph_module:
            return {"guards": 0}
        count = 0
        zeros: dict[torch.dtype, Node] = {}
        mode = None
        for node in list(graph_module.graph.nodes):
            found = _guarded_softmax(node)
            if found is None:
                continue
            mode = mode or fake_mode(graph_module)
            scores, dim = found
            softmax: Any = node.args[2]
            dtype = softmax.meta["val"].dtype
            if dtype not in zeros:
                zeros[dtype] = add_constant(program, torch.zeros((), dtype=dtype), mode, stem="_zero")
            with graph_module.graph.inserting_before(node):
                top = graph_module.graph.call_function(aten.amax.default, (scores, [dim], True))
                masked = graph_module.graph.call_function(aten.eq.Scalar, (top, float("-inf")))
            for made in (top, masked):
                compute(made, mode)
                made.meta["stack_trace"] = node.meta.get("stack_trace")
                made.meta["nn_module_stack"] = node.meta.get("nn_module_stack")
                provenance.transfer((node,), made)
            node.args = (masked, zeros[dtype], softmax)
            count += 1
        return {"guards": count}


def _guarded_softmax(node: Node) -> tuple[Node, int] | None:
    """The scores and the dimension, if a node is the guard's `where`."""
    if node.target is not aten.where.self:
        return None
    condition, zero, softmax = node.args
    some = _input(condition, aten.logical_not.default)
    unmasked = _input(some, aten.any.dim)
    masked = _input(unmasked, aten.logical_not.default)
    scores = _input(masked, aten.eq.Scalar)
    if scores is None or some is None or masked is None or not _is_zero(zero):
        return None
    if _input(softmax, aten._softmax.default) is not scores or masked.args[1] != float("-inf"):
        return None
    dim: Any = softmax.args[1]  # type: ignore[union-attr]
    reduced: Any = some.args[1]
    shape = scores.meta["val"].shape
    if reduced % len(shape) != dim % len(shape) or some.args[2:3] != (True,):
        return None
    # The maximum of nothing does not exist.
    return (scores, dim) if type(shape[dim]) is int and shape[dim] != 0 else None


def _input(node: Any, target: Any) -> Node | None:
    if isinstance(node, Node) and node.target is target and isinstance(node.args[0], Node):
        return node.args[0]
    return None


def _is_zero(node: Any) -> bool:
    if not isinstance(node, Node):
        return False
    return node.target in (aten.full_like.default, aten.full.default) and bool(node.args[1] == 0)
