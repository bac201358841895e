"""Debug handles inside delegates: which of the backend's own events belongs to which node."""

from __future__ import annotations

from collections.abc import Iterable

from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.errors import PartitionError

__all__ = ["DEBUG_HANDLE_KEY", "DelegateMappingBuilder", "ensure_debug_handles"]

# Key of a node's debug handle in `node.meta`: a positive integer, unique in its method.
DEBUG_HANDLE_KEY = "debug_handle"


def ensure_debug_handles(program: ExportedProgram) -> None:
    """Give each node of a program that has no debug handle yet the next free one, branches included."""
    nodes = list(provenance.nodes_of(program.graph_module))
    last = max((node.meta.get(DEBUG_HANDLE_KEY) or 0 for node in nodes), default=0)
    for node in nodes:
        if node.meta.get(DEBUG_HANDLE_KEY) is None:
            last += 1
            node.meta[DEBUG_HANDLE_KEY] = last


class DelegateMappingBuilder:
    """Collects a backend's `debug_handle_map`: from the identifiers that it logs to the nodes' debug handles.

    Args:
        generated_identifiers: Identifiers are counted from 0 instead of given.
    """

    def __init__(self, generated_identifiers: bool = False) -> None:
        self._generated = generated_identifiers
        self._map: dict[int | str, tuple[int, ...]] = {}

    def get_delegate_mapping(self) -> dict[int, tuple[int, ...]] | dict[str, tuple[int, ...]]:
        """The map: identifiers (all int or all str) to sorted debug handles."""
        return dict(self._map)  # type: ignore[return-value]

    def insert_delegate_mapping_entry(
        self,
        nodes: Node | Iterable[Node] | None = None,
        handles: int | Iterable[int | None] | None = None,
        identifier: int | str | None = None,
    ) -> int | str:
        """Add an entry for the nodes (or the debug handles) given.

        Args:
            nodes: The nodes that the event stands for; or
            handles: their debug handles. None among them is left out.
            identifier: What the native half logs; only if identifiers aren't generated.

        Returns:
            The identifier.

        Raises:
            PartitionError: The arguments contradict each other, the identifier is taken or of another type
                than the others, or there is no handle.
        """
        if self._generated == (identifier is not None):
            raise PartitionError("a delegate's identifiers are either all generated or all given")
        if (nodes is None) == (handles is None):
            raise PartitionError("either nodes or debug handles must be given")
        key = len(self._map) if identifier is None else identifier
        if key in self._map or any(type(key) is not type(known) for known in list(self._map)[:1]):
            raise PartitionError(
                "a delegate's identifiers must differ and be all of one type",
                found=f"{key!r} after {list(self._map)}",
            )
        if nodes is not None:
            handles = [n.meta.get(DEBUG_HANDLE_KEY) for n in ([nodes] if isinstance(nodes, Node) else nodes)]
        listed = [handles] if isinstance(handles, int) else list(handles or ())
        present = sorted({handle for handle in listed if handle is not None})
        if not present:
            raise PartitionError("no node of the entry has a debug handle", found=repr(key))
        self._map[key] = tuple(present)
        return key
