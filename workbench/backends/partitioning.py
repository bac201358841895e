"""Running partitioners: on private copies, checked, with a reason for every operator that is left behind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends.base import TAG_KEY, WHY_NOT_KEY, Partitioner, PartitionResult, ReasonIndex, WhyNot
from workbench.backends.call_delegate import delegates_in
from workbench.backends.capability import is_delegated
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.extract import extract_tags, insert_delegates, release_constants
from workbench.backends.graphs import graphs_of, tag_of
from workbench.backends.legality import verify_partition
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.programs import copy_program
from workbench.errors import PartitionError

__all__ = ["note_reasons", "partition", "unfused", "why_not"]


def partition(program: ExportedProgram, partitioner: Partitioner | Sequence[Partitioner]) -> PartitionResult:
    """Run partitioners on a private copy of a program and check what they did.

    Args:
        program: The program; it stays as it is.
        partitioner: One, or several in order: each sees what the ones before it left, with their parts as
            delegate calls. The result holds the tags of all.

    Returns:
        The tagged copy with the tags' backends, and the reasons for every operator that is left behind.

    Raises:
        PartitionError: A partitioner changed the graph, or its tags are illegal.
    """
    several = [partitioner] if isinstance(partitioner, Partitioner) else list(partitioner)
    if not several:
        return PartitionResult(copy_program(program), {})
    result = _partition_once(program, several[0])
    for further in several[1:]:
        _join(result, _partition_once(_with_calls(result), further))
    return result


def why_not(program: ExportedProgram) -> list[WhyNot]:
    """The reasons of all operators of a program that were left behind, in graph order.

    A node keeps the reasons of every partitioner that saw it; they are given in turn.
    """
    return [
        reason
        for node in provenance.nodes_of(program.graph_module)
        for reason in node.meta.get(WHY_NOT_KEY, ())
    ]


def unfused(program: ExportedProgram) -> list[WhyNot]:
    """The operators of a lowered program that are quantized, and that a backend computes on floats anyway.

    Args:
        program: After `to_backend`.

    Returns:
        For each what hinders it, and what would make it one operation on integers. Backends that don't say
        (`PreprocessResult.delegate_info`) are left out.
    """
    found: list[WhyNot] = []
    for delegate in delegates_in(program.graph_module):
        found += getattr(delegate.lowered.meta.get("delegate_info"), "unfused", ())
    return found


def note_reasons(result: PartitionResult) -> None:
    """Write the reasons to the nodes that they are about, after those of earlier partitioners."""
    index = ReasonIndex(result.reasons)
    for node in _left_behind(result):
        reasons = tuple(index.about(node))
        if reasons:
            node.meta[WHY_NOT_KEY] = (*node.meta.get(WHY_NOT_KEY, ()), *reasons)


def _partition_once(program: ExportedProgram, partitioner: Partitioner) -> PartitionResult:
    copy = copy_program(program)
    ensure_debug_handles(copy)
    for node in provenance.nodes_of(copy.graph_module):
        node.meta.pop(TAG_KEY, None)
    before = _shape_of(copy)
    result = partitioner(copy)
    name = type(partitioner).__name__
    if not isinstance(result, PartitionResult) or result.partition_tags is None:
        raise PartitionError(
            f"{name}.partition must return a PartitionResult with its partition_tags",
            stage="partition",
            found=type(result).__name__,
        )
    if _shape_of(result.tagged_exported_program) != before:
        raise PartitionError(
            f"{name} changed the graph",
            stage="partition",
            hint="a partitioner only tags nodes; edit graphs in passes",
        )
    verify_partition(result.tagged_exported_program, result.partition_tags)
    result.reasons = _complete_reasons(result, name)
    return result


def _with_calls(result: PartitionResult) -> ExportedProgram:
    """A copy of a tagged program with delegate calls in the place of the tags; nothing is compiled."""
    program = copy_program(result.tagged_exported_program)
    for _, graph in reversed(list(graphs_of(program))):
        parts = extract_tags(program, graph)
        blank = [
            (p, LoweredBackendModule(p.program, result.partition_tags[p.tag].backend_id, b"", []))
            for p in parts
        ]
        insert_delegates(program, graph, blank)
        if graph is program.graph_module:
            release_constants(program, parts)
    return program


def _join(result: PartitionResult, further: PartitionResult) -> None:
    """Add the tags of a later partitioner, which saw the parts of the earlier ones as calls."""
    names: dict[str, str] = {}
    for tag, spec in further.partition_tags.items():
        candidates = (tag if n == 0 else f"{tag}_{n}" for n in count())
        names[tag] = next(name for name in candidates if name not in result.partition_tags)
        result.partition_tags[names[tag]] = spec
    later = dict(graphs_of(further.tagged_exported_program))
    for path, graph in graphs_of(result.tagged_exported_program):
        if path not in later:  # a branch that is inside of a delegate now
            continue
        tags = {node.name: names[t] for node in later[path].graph.nodes if (t := tag_of(node)) is not None}
        for node in graph.graph.nodes:
            if node.name in tags and tag_of(node) is None:
                node.meta[TAG_KEY] = tags[node.name]
    index = ReasonIndex([*result.reasons, *further.reasons])
    result.reasons = [reason for node in _left_behind(result) for reason in index.about(node)]


def _shape_of(program: ExportedProgram) -> list[tuple[Any, ...]]:
    """What a partitioner may not change."""
    return [(n.name, n.op, n.target, n.args, n.kwargs) for n in provenance.nodes_of(program.graph_module)]


def _left_behind(result: PartitionResult) -> list[Node]:
    nodes = provenance.nodes_of(result.tagged_exported_program.graph_module)
    return [n for n in nodes if n.op == "call_function" and tag_of(n) is None and not is_delegated(n)]


def _complete_reasons(result: PartitionResult, partitioner: str) -> list[WhyNot]:
    """The reasons of all operators that are left behind, in graph order; others are dropped."""
    index = ReasonIndex(result.reasons)
    silent = f"{partitioner} gave no reason"
    return [
        reason
        for node in _left_behind(result)
        for reason in index.about(node) or [WhyNot(node, silent, by=partitioner)]
    ]
