"""`CpuPartitioner`: what the engine of this runtime can run goes to it, whole networks where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final
from weakref import WeakKeyDictionary

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.base import CompileSpec, Supported, WhyNot
from workbench.backends.capability import CapabilityPartitioner
from workbench.backends.cpu.emitter import BACKEND_ID
from workbench.backends.cpu.entry import Context, refusal
from workbench.backends.cpu.nodes import entries

__all__ = ["CpuPartitioner"]


@final
class CpuPartitioner(CapabilityPartitioner):
    """Gathers operators for `CpuBackend`, the engine of this runtime; the rest is left, with reasons.

    Args:
        fuse: Let the engine run several operators as one where it can.
        trial: Let the engine measure the methods that may suit a layer while the program is loaded, instead
            of going by its cost model.
        min_nodes: Partitions with fewer operators are left behind.
    """

    def __init__(self, *, fuse: bool = True, trial: bool = False, min_nodes: int = 1) -> None:
        specs = [CompileSpec("fuse", bytes([fuse])), CompileSpec("trial", bytes([trial]))]
        super().__init__(BACKEND_ID, specs, min_nodes=min_nodes, merge_disconnected=True)
        self._options = {"fuse": fuse, "trial": trial, "min_nodes": min_nodes}
        self._contexts: WeakKeyDictionary[ExportedProgram, Context] = WeakKeyDictionary()

    def recipe_options(self) -> dict[str, Any]:
        """The arguments that make it again, for recipes."""
        return dict(self._options)

    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        """Does an entry of `nodes/` take the operator?"""
        entry = entries().get(node.target)  # type: ignore[call-overload]
        if entry is None:
            return WhyNot(node, "the engine has no such operator")
        return refusal(entry, node, self._context(program)) or Supported()

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Attention, LSTM, layer norm, linear and others that the engine runs whole, where it takes them."""
        table = entries()
        context = Context(ep)

        def wanted(node: Node) -> bool:
            entry = table.get(node.target)  # type: ignore[call-overload]
            return entry is not None and refusal(entry, node, context) is None

        return [target for target, entry in table.items() if entry.keep], wanted

    def _context(self, program: ExportedProgram) -> Context:
        found = self._contexts.get(program)
        if found is None:
            found = self._contexts[program] = Context(program)
        return found
