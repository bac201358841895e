"""Kernels that read memory as if it were contiguous get contiguous operands.

Undelegated, only some operators are at home in channels-last: convolution and pooling, copies that name their
dim order, and pointwise operators whose operands all have the same sizes and the same order. `cat`, `topk`,
`pad`, `mean`, matrix products and the rest compute on contiguous tensors; where eager hands them a
channels-last one, a copy is put in front. Without it ExecuTorch's kernels compute wrongly in silence (pull
request #21865) or refuse (#11086, #16507, #19139, #22520).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.dim_order_ops import CLONE, TO_COPY
from workbench.edge.fake import compute, dim_order, fake_mode, is_contiguous, propagate_layout
from workbench.passes.base import GraphPass

__all__ = ["CHANNELS_LAST", "LegalizeDimOrder"]

aten = torch.ops.aten

CHANNELS_LAST: frozenset[OpOverload] = frozenset(
    {aten.convolution.default, aten.max_pool2d_with_indices.default, TO_COPY, CLONE}
)
"""Operators whose kernels read and write channels-last tensors in every runtime."""


class LegalizeDimOrder(GraphPass):
    """Insert contiguous copies before operators that need them."""

    name = "legalize_dim_order"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Insert in place; one copy serves all users of a value."""
        self._copies: dict[tuple[Node, tuple[int, ...]], Node] = {}
        self._mode = fake_mode(graph_module)
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or not isinstance(node.target, OpOverload):
                continue
            wanted = _wanted(node)
            if not wanted:
                continue
            for source, order in wanted.items():
                node.replace_input_with(source, self._copy(source, order, node))
            # Each step settles the strides behind it, since the next node's need depends on them.
            compute(node, self._mode)
            propagate_layout(graph_module, {node}, self._mode)
        return {"copies": len(self._copies)}

    def _copy(self, source: Node, order: tuple[int, ...], user: Node) -> Node:
        if (source, order) not in self._copies:
            with user.graph.inserting_before(user):
                node = user.graph.call_function(TO_COPY, (source,), {"dim_order": list(order)})
            compute(node, self._mode)
            node.meta["stack_trace"] = user.meta.get("stack_trace")
            node.meta["nn_module_stack"] = user.meta.get("nn_module_stack")
            provenance.transfer((user,), node)
            self._copies[source, order] = node
        return self._copies[source, order]


def _wanted(node: Node) -> dict[Node, tuple[int, ...]]:
    """The operands of a node that need another dim order, with that order."""
    operands = {source: source.meta.get("val") for source in node.all_input_nodes}
    tensors = {source: found for source, found in operands.items() if isinstance(found, torch.Tensor)}
    result = node.meta.get("val")
    strided = {source for source, found in tensors.items() if not is_contiguous(found)}
    if node.target is aten.convolution.default:
        return _convolution(node, tensors)
    if not strided:
        return {}
    if node.target in CHANNELS_LAST and all(_is_known(tensors[source]) for source in strided):
        return {}
    if torch.Tag.pointwise in node.target.tags and _all_alike(tensors, result):  # type: ignore[union-attr]
        return {}
    return {source: tuple(range(tensors[source].dim())) for source in strided}


def _convolution(node: Node, tensors: dict[Node, torch.Tensor]) -> dict[Node, tuple[int, ...]]:
    """Input and result in one order: eager picks channels-last where the input or the weight is so."""
    image: Any = node.args[0]
    weight: Any = node.args[1]
    order = dim_order(node.meta["val"])
    wanted = {} if dim_order(tensors[image]) == order else {image: order}
    if weight in tensors and not _is_known(tensors[weight]):
        wanted[weight] = tuple(range(tensors[weight].dim()))
    return wanted


def _is_known(tensor: torch.Tensor) -> bool:
    order = dim_order(tensor)
    rank = len(order)
    return order in (tuple(range(rank)), (0, *range(2, rank), 1))


def _all_alike(tensors: dict[Node, torch.Tensor], result: Any) -> bool:
    if not isinstance(result, torch.Tensor):
        return False
    order = dim_order(result)
    return all(item.shape == result.shape and dim_order(item) == order for item in tensors.values())
