"""Node identity: from a node of any stage back to the exported node, the module path and the source line.

Each node of an exported graph has a *source handle*, a positive integer: its position in the graph,
control-flow branches included, counted depth first from 1. A node of a later stage carries the set of handles
of the nodes that it comes from. Handles are kept in `node.meta[META_KEY]`; beside it a copy in
`node.meta["custom"]`, the one place that torch's own transformations (`run_decompositions`) and its `.pt2`
files carry along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = [
    "META_KEY",
    "Source",
    "SourceMap",
    "assign",
    "attach",
    "handles",
    "module_path",
    "nodes_of",
    "set_handles",
    "source_line",
    "source_map",
    "transfer",
]

META_KEY = "source_handles"
_MAP_KEY = "source_map"
_NO_HANDLES: frozenset[int] = frozenset()
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
# Frames of torch between the user's code and the operator; another library's model counts as the user's.
_LIBRARY_FRAME = re.compile(r"[/\\]torch[/\\](nn|_|fx|export|utils|autograd|functional)")


@dataclass(frozen=True, slots=True)
class Source:
    """Where one exported node comes from.

    Attributes:
        handle: The source handle.
        name: The node's name in the exported graph.
        target: The operator or attribute, as text.
        module_path: The fully qualified name of the module whose `forward` made it; `""` is the root.
        module_type: The class of that module, fully qualified; `""` where unknown.
        source: `file:line`, or None where the node has no line (a parameter, an input).
    """

    handle: int
    name: str
    target: str
    module_path: str
    module_type: str
    source: str | None


class SourceMap:
    """All sources of one exported program, by handle and by name.

    Args:
        sources: The sources, in the order of their handles.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        self._by_handle = {source.handle: source for source in sources}
        # Branches may repeat names of the graph around them, which comes first.
        self._by_name: dict[str, Source] = {}
        for source in self._by_handle.values():
            self._by_name.setdefault(source.name, source)

    def __getitem__(self, handle: int) -> Source:
        """The source of a handle. Raises `KeyError` for a handle that this program does not have."""
        return self._by_handle[handle]

    def __iter__(self) -> Iterator[Source]:
        return iter(self._by_handle.values())

    def __len__(self) -> int:
        return len(self._by_handle)

    def __contains__(self, key: object) -> bool:
        return key in self._by_handle or key in self._by_name

    def named(self, name: str) -> Source:
        """The source of an exported node's name. Raises `KeyError` where there is none."""
        return self._by_name[name]

    def resolve(self, wanted: Iterable[int]) -> list[Source]:
        """The sources of these handles, in the order of the exported graph; unknown handles are left out."""
        return [self._by_handle[handle] for handle in sorted(wanted) if handle in self._by_handle]


def nodes_of(graph_module: GraphModule) -> Iterator[Node]:
    """All nodes of a graph and of the graphs that it holds (control-flow branches), depth first."""
    for node in graph_module.graph.nodes:
        yield node
        if node.op == "get_attr":
            inner = _attribute(graph_module, str(node.target))
            if isinstance(inner, GraphModule) and len(node.users) > 0:
                yield from nodes_of(inner)


def assign(program: ExportedProgram) -> SourceMap:
    """Give each node of an exported program its source handle, once.

    Only metadata is added; a program that has its handles already is left as it is.

    Args:
        program: The program, as `torch.export` made it.

    Returns:
        The program's source map, kept with its graph module as well.
    """
    known = program.graph_module.meta.get(_MAP_KEY)
    if isinstance(known, SourceMap):
        return known
    sources = []
    for handle, node in enumerate(nodes_of(program.graph_module), start=1):
        set_handles(node, frozenset((handle,)))
        path, kind = module_path(node)
        sources.append(Source(handle, node.name, str(node.target), path, kind, source_line(node)))
    mapping = SourceMap(sources)
    program.graph_module.meta[_MAP_KEY] = mapping
    return mapping


def attach(program: ExportedProgram, sources: SourceMap) -> None:
    """Keep the exported program's source map with a program made from it, and put its handles in place.

    Args:
        program: Made by a transformation of torch that carries `node.meta["custom"]`.
        sources: What `assign` gave for the exported program.
    """
    program.graph_module.meta[_MAP_KEY] = sources
    for node in nodes_of(program.graph_module):
        if META_KEY in node.meta:
            continue
        found = handles(node)
        if not found and node.op in ("placeholder", "output") and node.name in sources:
            # Inputs keep their names, but not their metadata.
            found = frozenset((sources.named(node.name).handle,))
        node.meta[META_KEY] = found


def source_map(program: ExportedProgram) -> SourceMap:
    """The source map of a program of any stage; empty where `assign` never saw its exported program."""
    known = program.graph_module.meta.get(_MAP_KEY)
    return known if isinstance(known, SourceMap) else SourceMap(())


def handles(node: Node) -> frozenset[int]:
    """The source handles of a node; empty for a node that stands for nothing in the exported graph."""
    known = node.meta.get(META_KEY)
    if known is not None:
        return known  # type: ignore[no-any-return]
    carried = (node.meta.get("custom") or {}).get(META_KEY)
    return frozenset(carried) if carried else _NO_HANDLES


def set_handles(node: Node, value: frozenset[int]) -> None:
    """Write the source handles of a node."""
    node.meta[META_KEY] = value
    # A list of integers, since torch writes `custom` to .pt2 files as JSON.
    node.meta["custom"] = {**(node.meta.get("custom") or {}), META_KEY: sorted(value)}


def transfer(src_nodes: Iterable[Node], dst_node: Node) -> None:
    """Add the handles of the nodes that a new node replaces to those that it has."""
    union = handles(dst_node).union(*(handles(node) for node in src_nodes))
    set_handles(dst_node, union)


def module_path(node: Node) -> tuple[str, str]:
    """Path and class of the innermost module that a node was traced in; `("", "")` where unknown."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return "", ""
    path, kind = next(reversed(stack.values()))
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return str(path), name


def source_line(node: Node) -> str | None:
    """The user's `file:line` that made a node: the innermost frame that is not inside torch itself."""
    trace = node.meta.get("stack_trace")
    if not trace:
        return None
    frames = [f"{match['file']}:{match['line']}" for match in _FRAME.finditer(trace)]
    own = [frame for frame in frames if not _LIBRARY_FRAME.search(frame)]
    chosen = own or frames
    return chosen[-1] if chosen else None


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
        if module is None:
            return None
    return module
