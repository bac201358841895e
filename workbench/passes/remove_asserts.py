"""Assertions of the exporter leave the graph.

`_assert_tensor_metadata` restates what the graph's own metadata says and goes at once. The others guard
ranges of symbols; they stay in the edge dialect, where partitioners and passes may read them, and go before a
program is written: the runtime checks the sizes of its inputs against the same bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from workbench.passes.base import GraphPass

__all__ = ["RemoveAsserts"]

aten = torch.ops.aten
_METADATA = frozenset({aten._assert_tensor_metadata.default})
_ALL = _METADATA | {
    aten._assert_async.msg,
    aten._assert_async.default,
    aten._assert_scalar.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    torch.ops.aten._functional_assert_async.msg,
    torch.ops.aten._functional_assert_scalar.default,
}


class RemoveAsserts(GraphPass):
    """Erase assertion nodes.

    Args:
        only_metadata: Keep the assertions on symbols.
    """

    name = "remove_asserts"

    def __init__(self, *, only_metadata: bool = False) -> None:
        self._targets = _METADATA if only_metadata else _ALL

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Erase the nodes in place."""
        doomed = [
            node for node in graph_module.graph.nodes if node.target in self._targets and not node.users
        ]
        for node in doomed:
            graph_module.graph.erase_node(node)
        return {"asserts": len(doomed)}
