"""The editor of a partition: makes edits, answers what an edit would do, and takes edits back.

All edits of one program go through one `PartitionEditor`, so that an edit costs what it touches, beside one
check of the whole partition that is linear in the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from torch.fx import Node

from workbench.backends.base import (
    DelegationSpec,
    PartitionResult,
    ReasonIndex,
    Supported,
    WhyNot,
)
from workbench.backends.capability import group_nodes
from workbench.backends.edits import Capability, EditOutcome, PartitionEdit
from workbench.backends.graphs import (
    graphs_of,
    is_getitem,
    is_structured,
    is_symbolic_scalar,
    tag_of,
)
from workbench.backends.legality import Legality
from workbench.backends.tags import Change, TagTable

__all__ = ["ERASED", "PartitionEditor"]

# The reason of a node that a person left behind.
ERASED = "erased by hand"


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """The edit can't be made; the text says why."""

    def __init__(
        self,
        message: str,
        kind: str,
        *,
        nodes: Sequence[str] = (),
        path: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.nodes = tuple(nodes)
        self.path = tuple(path)
        self.hint = hint


class PartitionEditor:
    """Edits one tagged program in place.

    Args:
        result: What `partition` returned. Tags, their backends and the reasons follow the edits.
        capabilities: As of `apply_edits`.

    Attributes:
        result: The same.
        legality: The checks of this program.
        tags: Who has which tag.
    """

    def __init__(self, result: PartitionResult, capabilities: Mapping[str, Capability] | None = None) -> None:
        self.result = result
        self.legality = Legality(result.tagged_exported_program)
        self.tags = TagTable(result)
        self._program = result.tagged_exported_program
        self._capabilities = dict(capabilities or {})
        self._answers: dict[tuple[str, Node], Supported | WhyNot] = {}
        # What the edit that is being made did without being asked: why.
        self._why: dict[Node, str] = {}

    # ---- what can be asked ---------------------------------------------------------------------------------

    def apply(self, edit: PartitionEdit) -> EditOutcome:
        """Make an edit if it is legal; otherwise nothing changes."""
        return self.change(edit)[0]

    def preview(self, edit: PartitionEdit, look: Callable[[EditOutcome], None] | None = None) -> EditOutcome:
        """What `apply` would answer; nothing changes.

        Args:
            edit: The edit.
            look: Called while the edit is made, if it is legal.
        """
        outcome, change = self.change(edit)
        if change is not None:
            try:
                if look is not None:
                    look(outcome)
            finally:
                self.revert(change)
        return outcome

    def change(self, edit: PartitionEdit) -> tuple[EditOutcome, Change | None]:
        """Make an edit if it is legal, and tell how to take it back."""
        specs, reasons = dict(self.result.partition_tags), self.result.reasons[:]
        self.tags.begin()
        self._why = {}
        missing = tuple(handle for handle in edit.handles if handle not in self.tags.by_handle)
        missing_nodes = tuple(name for name in edit.nodes if not self.tags.named(name, edit.handles))
        requested: dict[Node, str | None] = {}
        try:
            self._make(edit, requested)
            self.tags.retag_constants()
            self._check()
        except _Refused as refusal:
            self.tags.restore(Change(self.tags.written, specs, reasons))
            wanted = {node.name: tag for node, tag in requested.items()}
            text = str(refusal) + (f" ({' -> '.join(refusal.path)})" if refusal.path else "")
            outcome = EditOutcome(
                edit, False, text, {}, missing, missing_nodes, wanted,
                kind=refusal.kind, nodes=refusal.nodes, path=refusal.path, hint=refusal.hint,
            )  # fmt: skip
            return outcome, None
        except BaseException:  # a backend's own code failed: nothing of the edit stays
            self.tags.restore(Change(self.tags.written, specs, reasons))
            raise
        changed = sorted(
            (n for n, tag in self.tags.written.items() if n.op == "call_function" and tag != tag_of(n)),
            key=self.tags.place,
        )
        self._update_reasons(changed)
        outcome = EditOutcome(
            edit,
            True,
            None,
            {node.name: (self.tags.written[node], tag_of(node)) for node in changed},
            missing,
            missing_nodes,
            {node.name: tag for node, tag in requested.items()},
            {node.name: self._why[node] for node in changed if node in self._why},
        )
        return outcome, Change(self.tags.written, specs, reasons)

    def revert(self, change: Change) -> None:
        """Take an edit back. Later edits must have been taken back before."""
        self.tags.restore(change)

    def answer(self, node: Node, backend_id: str) -> Supported | WhyNot | None:
        """What is known about a backend and a node; None where nothing is."""
        supports = self._capabilities.get(backend_id)
        if supports is None:
            known = ReasonIndex(self.result.reasons).about(node) if self.result.reasons else []
            return next((r for r in known if r.by == backend_id and r.reason != ERASED), None)
        key = (backend_id, node)
        if key not in self._answers:
            producer = node.args[0] if is_getitem(node) else None
            if isinstance(producer, Node) and is_structured(producer):
                self._answers[key] = Supported()
            elif is_symbolic_scalar(node):
                self._answers[key] = WhyNot(
                    node, "it computes a number, and a delegate returns tensors only", by=backend_id
                )
            else:
                self._answers[key] = supports(node, self._program)
        return self._answers[key]

    def new_tag(self, stem: str) -> str:
        """The name that an edit without a name would make of this stem."""
        self.tags.begin()
        return self.tags.new(stem)

    # ---- the edits -----------------------------------------------------------------------------------------

    def _make(self, edit: PartitionEdit, requested: dict[Node, str | None]) -> None:
        if edit.action == "merge":
            self._merge(edit, requested)
            return
        asked, found = self._nodes(edit)
        make = {"assign": self._assign, "erase": self._erase, "split": self._split}[edit.action]
        make(edit, asked, found, requested)

    def _nodes(self, edit: PartitionEdit) -> tuple[list[Node], list[Node]]:
        """The operators that an edit names, and those with what must stay with them."""
        if edit.nodes:
            named = [node for name in edit.nodes for node in self.tags.named(name, edit.handles)]
        else:
            named = [node for handle in edit.handles for node in self.tags.by_handle.get(handle, ())]
        asked = dict.fromkeys(named)
        found: dict[Node, None] = {}
        for node in asked:
            producer = node.args[0] if is_getitem(node) else None
            whole = producer if isinstance(producer, Node) and is_structured(producer) else node
            elements = [user for user in whole.users if is_getitem(user)] if is_structured(whole) else []
            found.update(dict.fromkeys((whole, *elements)))
            for other in (whole, *elements):
                if other not in asked:
                    self._why.setdefault(other, f"it stays with '{node.name}': they share one result")
        if not found:
            named_any = edit.handles or edit.nodes
            raise _Refused(
                "no operator of the program comes from these source handles"
                if named_any
                else "the edit names no operators",
                "no-nodes",
                hint="" if named_any else "choose nodes first",
            )
        return list(asked), list(found)

    def _assign(
        self,
        edit: PartitionEdit,
        asked: Sequence[Node],
        nodes: Sequence[Node],
        requested: dict[Node, str | None],
    ) -> None:
        tag = edit.tag or self.tags.new(edit.backend_id or "tag")
        requested.update(dict.fromkeys(asked, tag))
        spec = self.result.partition_tags.get(tag)
        if spec is None:
            if edit.backend_id is None:
                raise _Refused(
                    f"there is no tag '{tag}', and no backend_id to make it with",
                    "no-tag",
                    hint="choose a backend, or one of the tags " + ", ".join(self.result.partition_tags),
                )
            spec = DelegationSpec(edit.backend_id, list(edit.compile_specs))
            self.result.partition_tags[tag] = spec
        elif edit.backend_id not in (None, spec.backend_id):
            raise _Refused(
                f"the tag '{tag}' belongs to the backend '{spec.backend_id}'",
                "no-backend",
                hint="assign to a new tag for another backend",
            )
        taken = self._supported(nodes, spec.backend_id)
        left = dict.fromkeys(old for node in taken if (old := tag_of(node)) is not None and old != tag)
        for node in taken:
            self.tags.set(node, tag)
        if left and self._stuck(left):
            for old in left:
                self._break_up(old)

    def _supported(self, nodes: Sequence[Node], backend_id: str) -> list[Node]:
        """The nodes with those that the backend wants together with them; refuses what it can't run."""
        taken = dict.fromkeys(nodes)
        answers = {node: self.answer(node, backend_id) for node in nodes}
        granted: set[Node] = set()
        waiting = [node for node in nodes if isinstance(answers[node], Supported)]
        while waiting:
            node = waiting.pop()
            answer = self.answer(node, backend_id)
            for other in answer.together if isinstance(answer, Supported) else ():
                granted.add(other)
                if other not in taken:
                    taken[other] = None
                    self._why[other] = f"'{backend_id}' wants it together with '{node.name}'"
                    waiting.append(other)
        against = [
            (node, answer)
            for node, answer in answers.items()
            if isinstance(answer, WhyNot) and node not in granted and not is_getitem(node)
        ]
        if against:
            node, first = against[0]
            others = f" (and {len(against) - 1} other nodes)" if len(against) > 1 else ""
            raise _Refused(
                f"'{backend_id}' can't run '{node.name}': {first.reason}{others}",
                "unsupported",
                nodes=[node.name for node, _ in against],
                hint=f"eligible if {first.eligible_if}" if first.eligible_if else "",
            )
        return list(taken)

    def _erase(
        self,
        edit: PartitionEdit,
        asked: Sequence[Node],
        nodes: Sequence[Node],
        requested: dict[Node, str | None],
    ) -> None:
        del edit
        requested.update(dict.fromkeys(asked))
        tags = dict.fromkeys(tag for node in nodes if (tag := tag_of(node)) is not None)
        if not tags:
            raise _Refused("none of the nodes has a tag", "no-tag")
        for node in nodes:
            self.tags.set(node, None)
        pieces = {tag: self._by_connection(tag) for tag in tags}
        if self._stuck(dict.fromkeys(piece for made in pieces.values() for piece in made)):
            # Connected pieces aren't enough: data leaves one and comes back.
            for tag, made in pieces.items():
                self._unite(tag, made)
            for tag in tags:
                self._break_up(tag)

    def _by_connection(self, tag: str) -> list[str]:
        """Give each connected part of a tag a tag of its own; the first keeps the name."""
        left = dict.fromkeys(self.tags.members(tag))
        made: list[str] = [tag]
        first = True
        while left:
            seed = next(iter(left))
            part, waiting = [], [seed]
            del left[seed]
            while waiting:
                node = waiting.pop()
                part.append(node)
                for other in (*node.all_input_nodes, *node.users):
                    if other in left:
                        del left[other]
                        waiting.append(other)
            if not first:
                made.append(self._split_off(tag, part))
            first = False
        return made

    def _split_off(self, tag: str, part: Iterable[Node]) -> str:
        spec = self.result.partition_tags.get(tag)
        if spec is None:
            raise _Refused(f"the tag '{tag}' has no backend", "no-backend")
        piece = self.tags.new(tag)
        self.result.partition_tags[piece] = spec
        for node in self.tags.ordered(part):
            self.tags.set(node, piece)
            self._why.setdefault(node, f"what is left of '{tag}' is in several pieces")
        return piece

    def _unite(self, tag: str, pieces: Iterable[str]) -> None:
        for piece in pieces:
            if piece != tag:
                for node in self.tags.members(piece):
                    self.tags.set(node, tag)
                del self.result.partition_tags[piece]

    def _break_up(self, tag: str) -> None:
        """Regroup what is left of a tag: without some of its nodes it may not be convex."""
        for _, graph_module in graphs_of(self._program):
            rest = [node for node in self.tags.members(tag) if self.tags.graph_of[node] is graph_module]
            if not rest:
                continue
            answers: dict[Node, Supported | WhyNot] = {node: Supported() for node in rest}
            groups, _ = group_nodes(graph_module, answers)
            for group in groups[1:]:
                self._split_off(tag, group)

    def _stuck(self, tags: Iterable[str]) -> bool:
        """Whether one of the tags lies on a cycle, or between two."""
        stuck = self.legality.stuck_tags()
        return any(tag in stuck for tag in tags)

    def _split(
        self,
        edit: PartitionEdit,
        asked: Sequence[Node],
        nodes: Sequence[Node],
        requested: dict[Node, str | None],
    ) -> None:
        tags = {tag_of(node) for node in nodes}
        if len(tags) != 1 or None in tags:
            raise _Refused(
                "the nodes to split off don't share one tag", "no-tag", hint="choose nodes of one tag"
            )
        (old,) = tags
        assert old is not None
        if edit.tag in self.result.partition_tags:
            raise _Refused(f"the tag '{edit.tag}' exists already", "no-tag", hint="choose another name")
        if len(nodes) == len(self.tags.members(old)):
            raise _Refused(f"these are all nodes of '{old}'", "no-nodes", hint="leave some of them out")
        tag = edit.tag or self.tags.new(old)
        requested.update(dict.fromkeys(asked, tag))
        self.result.partition_tags[tag] = self.result.partition_tags[old]
        for node in nodes:
            self.tags.set(node, tag)

    def _merge(self, edit: PartitionEdit, requested: dict[Node, str | None]) -> None:
        unknown = [tag for tag in edit.tags if tag not in self.result.partition_tags]
        if unknown or len(set(edit.tags)) < 2:
            known = ", ".join(self.result.partition_tags) or "none"
            raise _Refused(
                f"there is no tag '{unknown[0]}'" if unknown else "merging takes two tags",
                "no-tag",
                hint=f"the tags: {known}",
            )
        specs = [self.result.partition_tags[tag] for tag in edit.tags]
        if any(spec != specs[0] for spec in specs):
            raise _Refused(
                "the tags belong to different backends, or have different settings",
                "no-backend",
                hint=", ".join(
                    f"{tag}: {spec.backend_id}" for tag, spec in zip(edit.tags, specs, strict=True)
                ),
            )
        into = edit.tag or edit.tags[0]
        if into in self.result.partition_tags and into not in edit.tags:
            raise _Refused(f"the tag '{into}' exists already", "no-tag", hint="choose another name")
        for tag in dict.fromkeys(edit.tags):
            for node in self.tags.members(tag):
                requested[node] = into
                self.tags.set(node, into)
        for tag in dict.fromkeys(edit.tags):
            del self.result.partition_tags[tag]
        self.result.partition_tags[into] = specs[0]

    # ---- what follows an edit ------------------------------------------------------------------------------

    def _check(self) -> None:
        first = next(self.legality.violations(self.result.partition_tags), None)
        if first is not None:
            raise _Refused(first.message, first.kind, nodes=first.nodes, path=first.path, hint=first.hint)
        touched = {tag for node, old in self.tags.written.items() for tag in (old, tag_of(node)) if tag}
        for tag in touched:
            spec = self.result.partition_tags.get(tag)
            if spec is not None and spec.backend_id in self._capabilities:
                self._check_together(tag, spec.backend_id)

    def _check_together(self, tag: str, backend_id: str) -> None:
        for node in self.tags.members(tag):
            answer = self.answer(node, backend_id)
            for other in answer.together if isinstance(answer, Supported) else ():
                if tag_of(other) != tag:
                    raise _Refused(
                        f"'{backend_id}' takes '{node.name}' only together with '{other.name}'",
                        "together",
                        nodes=[node.name, other.name],
                        hint=f"choose '{other.name}' as well",
                    )

    def _update_reasons(self, changed: Sequence[Node]) -> None:
        index = ReasonIndex(self.result.reasons)
        gone = {id(reason) for node in changed for reason in index.about(node)}
        kept = [reason for reason in self.result.reasons if id(reason) not in gone]
        kept += [
            WhyNot(node, ERASED, "the edit is undone", by="edit") for node in changed if tag_of(node) is None
        ]
        self.result.reasons[:] = kept
