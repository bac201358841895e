"""Edits of a partition by hand (assign, erase, merge, split): checked before they are made, none lost.

An edit names nodes by their source handles, so that it can be replayed on the same model later.
`apply_edits` makes those that are legal, in order, and reports for each what was asked for and what was done;
`workbench.backends.editor` answers what an edit would do, and takes edits back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.base import CompileSpec, Partitioner, PartitionResult, Supported, WhyNot
from workbench.backends.capability import CapabilityPartitioner
from workbench.errors import PartitionError

__all__ = [
    "Capability",
    "EditOutcome",
    "EditReport",
    "PartitionEdit",
    "apply_edits",
    "capabilities_of",
]

_ACTIONS = ("assign", "erase", "merge", "split")
_FIELDS = ("action", "handles", "nodes", "tag", "tags", "backend_id", "compile_specs")


@dataclass(frozen=True)
class PartitionEdit:
    """One edit.

    Attributes:
        action: `assign` nodes to a tag; `erase` nodes from whatever tag they have; `merge` several tags into
            one; `split` nodes off their tag into a new one.
        handles: Source handles of the nodes (not for `merge`). One handle may stand for several operators:
            those that an exported operator was decomposed into.
        nodes: Names that narrow the handles: of the operators with these handles only those with these names.
            Without handles: the operators with these names. Empty: all operators with the handles.
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
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS:
            raise PartitionError("unknown edit", expected=", ".join(_ACTIONS), found=repr(self.action))
        for name in ("handles", "nodes", "tags", "compile_specs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def to_data(self) -> dict[str, Any]:
        """The edit as JSON data; empty fields are left out."""
        data = {name: getattr(self, name) for name in _FIELDS if getattr(self, name)}
        for name in ("handles", "nodes", "tags"):
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
        missing_nodes: Names that no operator with the edit's handles has.
        requested: For each node that the edit asks about, by name: the tag that it asks for.
        consequences: For each node whose tag changed without being asked for, by name: why.
        kind: If refused: `unsupported`, `together`, `no-tag`, `no-backend`, `no-nodes`, or as of `Violation`.
        nodes: If refused: the nodes that stand in the way, by name.
        path: If refused for a cycle: the nodes along which data leaves the tag and comes back to it.
        hint: If refused: what would make it legal.
    """

    edit: PartitionEdit
    applied: bool
    reason: str | None = None
    changes: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    missing_nodes: tuple[str, ...] = ()
    requested: Mapping[str, str | None] = field(default_factory=dict)
    consequences: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None
    nodes: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class EditReport:
    """What became of a list of edits, in their order."""

    outcomes: tuple[EditOutcome, ...]

    @property
    def refused(self) -> list[EditOutcome]:
        """Those that were not made."""
        return [outcome for outcome in self.outcomes if not outcome.applied]


Capability = Callable[[Node, ExportedProgram], Supported | WhyNot]


def capabilities_of(partitioners: Iterable[Partitioner]) -> dict[str, Capability]:
    """By backend identifier what the partitioners that answer for single nodes say.

    Where several partitioners speak for one backend, a node that any of them takes can be assigned to it.
    """
    known: dict[str, list[Capability]] = {}
    for partitioner in partitioners:
        if isinstance(partitioner, CapabilityPartitioner):
            known.setdefault(partitioner.delegation_spec.backend_id, []).append(partitioner.supports)
    return {backend_id: _any_of(answers) for backend_id, answers in known.items()}


def _any_of(capabilities: list[Capability]) -> Capability:
    if len(capabilities) == 1:
        return capabilities[0]

    def supports(node: Node, program: ExportedProgram) -> Supported | WhyNot:
        answers = [capability(node, program) for capability in capabilities]
        return next((answer for answer in answers if isinstance(answer, Supported)), answers[0])

    return supports


def apply_edits(
    result: PartitionResult,
    edits: Iterable[PartitionEdit],
    capabilities: Mapping[str, Capability] | None = None,
) -> EditReport:
    """Make edits on a tagged program, in place.

    Args:
        result: What `partition` returned. Tags, their backends and the reasons follow the edits.
        edits: The edits, in order. An edit that would make the partition illegal is not made.
        capabilities: By backend identifier the `supports` of its partitioner (`capabilities_of`): nodes that
            it refuses can't be assigned to that backend. Without it a node that the backend's partitioner
            gave a reason against is refused.

    Returns:
        For each edit what was asked for and what was done.
    """
    from workbench.backends.editor import PartitionEditor

    editor = PartitionEditor(result, capabilities)
    return EditReport(tuple(editor.apply(edit) for edit in edits))
