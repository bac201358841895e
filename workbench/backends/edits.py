"""Edits of a partition by hand (assign, erase, merge, split): checked before they are made, none lost.

An edit names nodes by their source handles, so that it can be replayed on the same model later.
`apply_edits` makes those that are legal, in order, and reports for each what was asked for and what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends.base import (
    TAG_KEY,
    CompileSpec,
    DelegationSpec,
    PartitionResult,
    ReasonIndex,
    Supported,
    WhyNot,
)
from workbench.backends.capability import group_nodes, is_delegated
from workbench.backends.constants import tag_constant_data
from workbench.backends.graphs import constant_inputs, graphs_of, is_getitem, is_structured, tag_of
from workbench.backends.legality import check_partition
from workbench.errors import PartitionError

__all__ = ["EditOutcome", "EditReport", "PartitionEdit", "apply_edits"]

_ACTIONS = ("assign", "erase", "merge", "split")
_FIELDS = ("action", "handles", "tag", "tags", "backend_id", "compile_specs")


@dataclass(frozen=True)
class PartitionEdit:
    """One edit.

    Attributes:
        action: `assign` nodes to a tag; `erase` nodes from whatever tag they have; `merge` several tags into
            one; `split` nodes off their tag into a new one.
        handles: Source handles of the nodes (not for `merge`).
        tag: The tag that results (for `erase` unused; for `merge` the first of `tags` if None; for `assign`
            and `split` a new name is made if None).
        tags: The tags to merge.
        backend_id: For `assign` to a new tag: who shall run it.
        compile_specs: For `assign` to a new tag: the backend's settings.
    """

    # The step of the pipeline that a recipe replays the edit in.
    step: ClassVar[str] = "partition"

    action: str
    handles: tuple[int, ...] = ()
    tag: str | None = None
    tags: tuple[str, ...] = ()
    backend_id: str | None = None
    compile_specs: tuple[CompileSpec, ...] = ()

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS:
            raise PartitionError("unknown edit", expected=", ".join(_ACTIONS), found=repr(self.action))
        object.__setattr__(self, "handles", tuple(self.handles))
        object.__setattr__(self, "tags", tuple(self.tags))
        object.__setattr__(self, "compile_specs", tuple(self.compile_specs))

    def to_data(self) -> dict[str, Any]:
        """The edit as JSON data; empty fields are left out."""
        data = {name: getattr(self, name) for name in _FIELDS if getattr(self, name)}
        for name in ("handles", "tags"):
            if name in data:
                data[name] = list(data[name])
        if self.compile_specs:
            data["compile_specs"] = [{"key": s.key, "value": s.value.hex()} for s in self.compile_specs]
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> PartitionEdit:
        """The edit that `to_data` gave.

        Raises:
            PartitionError: A field is unknown or malformed.
        """
        unknown = sorted(set(data) - set(_FIELDS))
        if unknown:
            raise PartitionError(
                "an edit has an unknown field", expected=", ".join(_FIELDS), found=unknown[0]
            )
        specs = data.get("compile_specs", ())
        try:
            parsed = tuple(CompileSpec(spec["key"], bytes.fromhex(spec["value"])) for spec in specs)
            return cls(**{**data, "compile_specs": parsed})
        except (KeyError, TypeError, ValueError) as error:
            raise PartitionError("an edit is malformed", found=f"{dict(data)}: {error}") from error


@dataclass(frozen=True)
class EditOutcome:
    """What became of one edit.

    Attributes:
        edit: What was asked for.
        applied: Whether it was made.
        reason: If not, why.
        changes: For each node whose tag changed, by name: the tag before and after.
        missing: Handles that no operator of the program has.
    """

    edit: PartitionEdit
    applied: bool
    reason: str | None = None
    changes: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    missing: tuple[int, ...] = ()


@dataclass(frozen=True)
class EditReport:
    """What became of a list of edits, in their order."""

    outcomes: tuple[EditOutcome, ...]

    @property
    def refused(self) -> list[EditOutcome]:
        """Those that were not made."""
        return [outcome for outcome in self.outcomes if not outcome.applied]


Capability = Callable[[Node, ExportedProgram], Supported | WhyNot]


def apply_edits(
    result: PartitionResult,
    edits: Iterable[PartitionEdit],
    capabilities: Mapping[str, Capability] | None = None,
) -> EditReport:
    """Make edits on a tagged program, in place.

    Args:
        result: What `partition` returned. Tags, their backends and the reasons follow the edits.
        edits: The edits, in order. An edit that would make the partition illegal is not made.
        capabilities: By backend identifier the `supports` of its partitioner: nodes that it refuses can't be
            assigned to that backend. Without it a node that the backend's partitioner gave a reason against
            is refused.

    Returns:
        For each edit what was asked for and what was done.
    """
    editor = _Editor(result, capabilities or {})
    return EditReport(tuple(editor.apply(edit) for edit in edits))


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """The edit can't be made; the text says why."""


class _Editor:
    def __init__(self, result: PartitionResult, capabilities: Mapping[str, Capability]) -> None:
        self._result = result
        self._program = result.tagged_exported_program
        self._capabilities = capabilities
        self._by_handle: dict[int, list[Node]] = {}
        for node in provenance.nodes_of(self._program.graph_module):
            if node.op == "call_function" and not is_delegated(node):
                for handle in provenance.handles(node):
                    self._by_handle.setdefault(handle, []).append(node)

    def apply(self, edit: PartitionEdit) -> EditOutcome:
        before = self._tags()
        specs = dict(self._result.partition_tags)
        missing = tuple(handle for handle in edit.handles if handle not in self._by_handle)
        try:
            self._make(edit)
            self._retag_constants()
            self._check()
        except _Refused as refusal:
            self._restore(before, specs)
            return EditOutcome(edit, False, str(refusal), {}, missing)
        after = self._tags()
        changed = [node for node in {**before, **after} if before.get(node) != after.get(node)]
        operators = [node for node in changed if node.op == "call_function"]
        self._update_reasons(operators, "erased by hand")
        changes = {node.name: (before.get(node), after.get(node)) for node in operators}
        return EditOutcome(edit, True, None, changes, missing)

    def _make(self, edit: PartitionEdit) -> None:
        if edit.action == "merge":
            self._merge(edit)
            return
        nodes = self._nodes(edit.handles)
        {"assign": self._assign, "erase": self._erase, "split": self._split}[edit.action](edit, nodes)

    def _nodes(self, handles: Sequence[int]) -> list[Node]:
        """The operators with these handles, each with what must stay with it."""
        found: dict[Node, None] = {}
        for node in (node for handle in handles for node in self._by_handle.get(handle, ())):
            producer = node.args[0] if is_getitem(node) else None
            whole = producer if isinstance(producer, Node) and is_structured(producer) else node
            elements = [user for user in whole.users if is_getitem(user)] if is_structured(whole) else []
            found.update(dict.fromkeys((whole, *elements)))
        if not found:
            raise _Refused("no operator of the program comes from these source handles")
        return list(found)

    def _assign(self, edit: PartitionEdit, nodes: Sequence[Node]) -> None:
        tag = edit.tag or self._new_tag(edit.backend_id or "tag")
        spec = self._result.partition_tags.get(tag)
        if spec is None:
            if edit.backend_id is None:
                raise _Refused(f"there is no tag '{tag}', and no backend_id to make it with")
            spec = DelegationSpec(edit.backend_id, list(edit.compile_specs))
            self._result.partition_tags[tag] = spec
        elif edit.backend_id not in (None, spec.backend_id):
            raise _Refused(f"the tag '{tag}' belongs to the backend '{spec.backend_id}'")
        for node in nodes:
            self._refuse_unsupported(node, spec.backend_id)
            node.meta[TAG_KEY] = tag

    def _refuse_unsupported(self, node: Node, backend_id: str) -> None:
        if is_getitem(node):
            return
        supports = self._capabilities.get(backend_id)
        if supports is not None:
            answer: object = supports(node, self._program)
        else:
            known = ReasonIndex(self._result.reasons).about(node)
            answer = next((reason for reason in known if reason.by == backend_id), None)
        if isinstance(answer, WhyNot) and answer.reason != "erased by hand":
            raise _Refused(f"'{backend_id}' can't run '{node.name}': {answer.reason}")

    def _erase(self, edit: PartitionEdit, nodes: Sequence[Node]) -> None:
        tags = dict.fromkeys(tag for node in nodes if (tag := tag_of(node)) is not None)
        if not tags:
            raise _Refused("none of the nodes has a tag")
        for node in nodes:
            node.meta.pop(TAG_KEY, None)
        for tag in tags:
            self._break_up(tag)

    def _break_up(self, tag: str) -> None:
        """Regroup what is left of a tag: without the erased nodes it may be in several pieces."""
        for _, graph_module in graphs_of(self._program):
            rest = [n for n in graph_module.graph.nodes if tag_of(n) == tag and n.op == "call_function"]
            if not rest:
                continue
            answers: dict[Node, Supported | WhyNot] = {node: Supported() for node in rest}
            groups, _ = group_nodes(graph_module, answers)
            if self._result.partition_tags.get(tag) is None:
                raise _Refused(f"the tag '{tag}' has no backend")
            for group in groups[1:]:
                piece = self._new_tag(tag)
                self._result.partition_tags[piece] = self._result.partition_tags[tag]
                for node in group:
                    node.meta[TAG_KEY] = piece

    def _split(self, edit: PartitionEdit, nodes: Sequence[Node]) -> None:
        tags = {tag_of(node) for node in nodes}
        if len(tags) != 1 or None in tags:
            raise _Refused("the nodes to split off don't share one tag")
        (old,) = tags
        assert old is not None
        if edit.tag in self._result.partition_tags:
            raise _Refused(f"the tag '{edit.tag}' exists already")
        tag = edit.tag or self._new_tag(old)
        self._result.partition_tags[tag] = self._result.partition_tags[old]
        for node in nodes:
            node.meta[TAG_KEY] = tag

    def _merge(self, edit: PartitionEdit) -> None:
        unknown = [tag for tag in edit.tags if tag not in self._result.partition_tags]
        if len(edit.tags) < 2 or unknown:
            raise _Refused(f"there is no tag '{unknown[0]}'" if unknown else "merging takes two tags")
        specs = [self._result.partition_tags[tag] for tag in edit.tags]
        if any(spec != specs[0] for spec in specs):
            raise _Refused("the tags belong to different backends, or have different settings")
        into = edit.tag or edit.tags[0]
        if into in self._result.partition_tags and into not in edit.tags:
            raise _Refused(f"the tag '{into}' exists already")
        for node in provenance.nodes_of(self._program.graph_module):
            if tag_of(node) in edit.tags:
                node.meta[TAG_KEY] = into
        for tag in edit.tags:
            del self._result.partition_tags[tag]
        self._result.partition_tags[into] = specs[0]

    def _new_tag(self, stem: str) -> str:
        return next(name for n in count(1) if (name := f"{stem}_{n}") not in self._result.partition_tags)

    def _retag_constants(self) -> None:
        constants = constant_inputs(self._program)
        for node in self._program.graph.nodes:
            if node.op == "placeholder" and node.name in constants:
                node.meta.pop(TAG_KEY, None)
        tag_constant_data(self._program)
        used = {tag_of(node) for node in provenance.nodes_of(self._program.graph_module)}
        for tag in [tag for tag in self._result.partition_tags if tag not in used]:
            del self._result.partition_tags[tag]

    def _check(self) -> None:
        violations = check_partition(self._program, self._result.partition_tags)
        if violations:
            path = " -> ".join(violations[0].path)
            raise _Refused(violations[0].message + (f" ({path})" if path else ""))

    def _tags(self) -> dict[Node, str]:
        nodes = provenance.nodes_of(self._program.graph_module)
        return {node: tag for node in nodes if (tag := tag_of(node)) is not None}

    def _restore(self, tags: Mapping[Node, str], specs: Mapping[str, DelegationSpec]) -> None:
        for node in provenance.nodes_of(self._program.graph_module):
            node.meta.pop(TAG_KEY, None)
        for node, tag in tags.items():
            node.meta[TAG_KEY] = tag
        self._result.partition_tags.clear()
        self._result.partition_tags.update(specs)

    def _update_reasons(self, changed: Sequence[Node], erased: str) -> None:
        index = ReasonIndex(self._result.reasons)
        gone = {id(reason) for node in changed for reason in index.about(node)}
        kept = [reason for reason in self._result.reasons if id(reason) not in gone]
        kept += [
            WhyNot(node, erased, "the edit is undone", by="edit") for node in changed if tag_of(node) is None
        ]
        self._result.reasons[:] = kept
