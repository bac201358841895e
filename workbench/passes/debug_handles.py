"""Debug handles: numbers by which traces, programs and edge graphs speak of the same node."""

from __future__ import annotations

from collections.abc import Mapping

from torch.export import ExportedProgram

from workbench import provenance
from workbench.passes.base import InPlacePass

__all__ = ["DEBUG_HANDLE_KEY", "DebugHandles"]

DEBUG_HANDLE_KEY = "debug_handle"


class DebugHandles(InPlacePass):
    """Give each node without a debug handle the next free one, from 1, branches included.

    Handles that nodes have are kept: the edge program that a record of the lowering holds and the program
    that is emitted from its copy must agree.
    """

    name = "debug_handles"

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Annotate in place."""
        nodes = [node for node in provenance.nodes_of(program.graph_module) if node.op != "get_attr"]
        last = max((node.meta.get(DEBUG_HANDLE_KEY) or 0 for node in nodes), default=0)
        given = 0
        for node in nodes:
            if node.meta.get(DEBUG_HANDLE_KEY) is None:
                last += 1
                given += 1
                node.meta[DEBUG_HANDLE_KEY] = last
        return {"handles": given}
