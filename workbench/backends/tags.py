"""Who has which tag in one program, kept up to date while edits write tags, with a way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.backends.base import TAG_KEY, DelegationSpec, PartitionResult, WhyNot
from workbench.backends.capability import is_delegated
from workbench.backends.graphs import constant_inputs, graphs_of, mutated_buffers, tag_of

__all__ = ["Change", "TagTable"]


@dataclass(frozen=True)
class Change:
    """What takes one edit back.

    Attributes:
        tags: For each node whose tag was written, the tag before.
        specs: The tags' backends before.
        reasons: The reasons before.
    """

    tags: Mapping[Node, str | None]
    specs: Mapping[str, DelegationSpec]
    reasons: Sequence[WhyNot]


class TagTable:
    """The tags of one program, and the operators that edits may name.

    Args:
        result: What `partition` returned; only this object may write its tags.

    Attributes:
        by_handle: For each source handle the operators that come from it.
        graph_of: For each node the graph that it stands in.
        written: For each node that was written since `begin`, its tag before.
    """

    def __init__(self, result: PartitionResult) -> None:
        self._result = result
        self._program = result.tagged_exported_program
        self.by_handle: dict[int, list[Node]] = {}
        self.graph_of: dict[Node, GraphModule] = {}
        self.written: dict[Node, str | None] = {}
        self._by_name: dict[str, list[Node]] = {}
        self._order: dict[Node, int] = {}
        self._members: dict[str, dict[Node, None]] = {}
        self._next: dict[str, int] = {}
        for _, graph_module in graphs_of(self._program):
            for node in graph_module.graph.nodes:
                self._enter(node, graph_module)
        self._constants = constant_inputs(self._program)
        self._writers = mutated_buffers(self._program)

    def _enter(self, node: Node, graph_module: GraphModule) -> None:
        self._order[node] = len(self._order)
        self.graph_of[node] = graph_module
        tag = tag_of(node)
        if tag is not None:
            self._members.setdefault(tag, {})[node] = None
        if node.op == "call_function" and not is_delegated(node):
            self._by_name.setdefault(node.name, []).append(node)
            for handle in provenance.handles(node):
                self.by_handle.setdefault(handle, []).append(node)

    def place(self, node: Node) -> int:
        """The position of a node in the program."""
        return self._order[node]

    def members(self, tag: str) -> list[Node]:
        """The operators of a tag, in graph order."""
        found = (node for node in self._members.get(tag, ()) if node.op == "call_function")
        return sorted(found, key=self._order.__getitem__)

    def ordered(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes in graph order."""
        return sorted(nodes, key=self._order.__getitem__)

    def named(self, name: str, handles: Sequence[int] = ()) -> list[Node]:
        """The operators of this name, one in each graph that has it; with handles, those that have one."""
        named = self._by_name.get(name, [])
        wanted = set(handles)
        return [node for node in named if not wanted or wanted & provenance.handles(node)]

    # ---- writing -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin an edit: what is written from now on is its doing."""
        self.written, self._next = {}, {}

    def new(self, stem: str) -> str:
        """A name that no tag has."""
        # Within one edit no tag made before disappears: the search goes on where it ended.
        for number in count(self._next.get(stem, 1)):
            name = f"{stem}_{number}"
            if name not in self._result.partition_tags:
                self._next[stem] = number
                return name
        raise AssertionError

    def set(self, node: Node, tag: str | None) -> None:
        """Write a node's tag."""
        before = tag_of(node)
        if before == tag:
            return
        self.written.setdefault(node, before)
        self._put(node, before, tag)

    def _put(self, node: Node, before: str | None, tag: str | None) -> None:
        if before is not None:
            del self._members[before][node]
        if tag is None:
            node.meta.pop(TAG_KEY, None)
        else:
            node.meta[TAG_KEY] = tag
            self._members.setdefault(tag, {})[node] = None

    def restore(self, change: Change) -> None:
        """Make everything as it was before a change."""
        for node, tag in change.tags.items():
            self._put(node, tag_of(node), tag)
        self._result.partition_tags.clear()
        self._result.partition_tags.update(change.specs)
        self._result.reasons[:] = change.reasons

    def retag_constants(self) -> None:
        """Constants follow the operators that use them, state the operators that write it."""
        concerned = {
            source
            for node in list(self.written)
            for source in node.all_input_nodes
            if source.op == "placeholder"
            and source.name in self._constants
            and self.graph_of[source] is self._program.graph_module
        }
        for node in self.ordered(concerned):
            tags = {tag for user in node.users if (tag := tag_of(user)) is not None}
            if node.name not in self._writers:
                self.set(node, min(tags) if tags else None)
            elif tag_of(node) is not None:
                self._follow_state(node)
        self._drop_unused()

    def _follow_state(self, buffer: Node) -> None:
        """A buffer's state stays with the delegate that owns it as long as that holds all of its uses."""
        graph = buffer.graph
        name = self._writers[buffer.name]
        writer = next(node for node in graph.nodes if node.name == name)
        tags = {tag_of(user) for user in (*buffer.users, writer) if user.op != "output"}
        self.set(buffer, tags.pop() if len(tags) == 1 else None)

    def _drop_unused(self) -> None:
        for tag in [tag for tag in self._result.partition_tags if not self._members.get(tag)]:
            del self._result.partition_tags[tag]
