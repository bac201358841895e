"""The documents of the partition editor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.backends import registry
from workbench.backends.base import CompileSpec, ReasonIndex
from workbench.backends.capability import CapabilityPartitioner, is_delegated
from workbench.backends.costs import Boundary, boundaries
from workbench.backends.edits import EditOutcome, PartitionEdit
from workbench.backends.graphs import tag_of
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.graph.document import graph_document
from workbench_widgets.partition.contract import (
    PartitionBackend,
    PartitionCost,
    PartitionDocument,
    PartitionState,
    PartitionStep,
    PartitionTag,
)
from workbench_widgets.partition.editor import MethodSession, PartitionSession
from workbench_widgets.partition.history import History, describe
from workbench_widgets.replay import as_json, as_python

__all__ = ["cost_of", "partition_document", "state_document"]

_SHOWN_ROWS = 200


def partition_document(context: Context, key: str) -> PartitionDocument:
    """The nodes of a method, as far as edits don't change them.

    Args:
        context: The subject.
        key: Name of the method.

    Raises:
        WorkbenchError: There is no such method, or nothing of a partition to show.
    """
    session = context.state(PartitionSession).method(key)
    graph = graph_document(context, f"partitioned/{key}")
    operator = [
        node is not None and node.op == "call_function" and not is_delegated(node) for node in session.nodes
    ]
    return PartitionDocument(
        method=key,
        name=graph.name,
        op=graph.op,
        module=Strings(graph.module_path[module] for module in graph.module.tolist()),
        source=graph.source,
        bytes=graph.bytes,
        operator=np.array(operator, np.uint8),
        proposed=Strings(tag or "" for tag in session.proposed()),
        handle_start=graph.handle_start,
        handles=graph.handles,
    )


def state_document(context: Context, key: str) -> PartitionState:
    """The partition as it is edited now; key and errors as of `partition_document`."""
    session = context.state(PartitionSession)
    method = session.method(key)
    history = method.history
    borders = boundaries(method.result.tagged_exported_program, method.sizes)
    tags = _tags(method, borders)
    place = {tag.name: at for at, tag in enumerate(tags)}
    now = [tag_of(node) if node is not None else None for node in method.nodes]
    pending = [a != b for a, b in zip(now, method.lowered_tags, strict=True)]
    outcomes = [] if history is None else history.outcomes
    asked = list(_asked(method, outcomes))
    reasons = list(_reasons(method))
    python, json = _texts(session)
    editable = context.lowering is not None
    return PartitionState(
        method=key,
        tag=np.array([place.get(tag, -1) if tag else -1 for tag in now], np.int32),
        pending=np.array(pending, np.uint8),
        tags=tags,
        reason_row=np.array([row for row, *_ in reasons], np.int32),
        reason_by=Strings(by for _, by, _, _ in reasons),
        reason=Strings(reason for _, _, reason, _ in reasons),
        eligible_if=Strings(form for *_, form in reasons),
        asked_row=np.array([row for row, *_ in asked], np.int32),
        asked_tag=Strings(tag for _, tag, _, _ in asked),
        asked_given=np.array([given for _, _, given, _ in asked], np.uint8),
        asked_why=Strings(why for *_, why in asked),
        history=list(_steps(method)),
        backends=_backends(session) if editable else [],
        operators=method.operator_count,
        cost=cost_of(borders),
        lowered=cost_of(method.lowered_borders()),
        undo="" if history is None else history.undo_title,
        redo="" if history is None else history.redo_title,
        waiting=0 if history is None else history.waiting,
        editable=editable,
        python=python,
        json=json,
        note=session.note,
    )


def cost_of(borders: Mapping[str, Boundary]) -> PartitionCost:
    """What a partition with these borders amounts to."""
    return PartitionCost(
        partitions=len(borders),
        delegated=sum(border.nodes for border in borders.values()),
        crossing_bytes=sum(border.crossing_bytes for border in borders.values()),
        constant_bytes=sum(border.constant_bytes for border in borders.values()),
    )


def _tags(method: MethodSession, borders: Mapping[str, Boundary]) -> list[PartitionTag]:
    found = []
    for name, border in borders.items():
        spec = method.result.partition_tags[name]
        found.append(
            PartitionTag(
                name=name,
                backend=spec.backend_id,
                settings=_settings(spec.compile_specs),
                color=method.color(name),
                nodes=border.nodes,
                input_bytes=border.input_bytes,
                output_bytes=border.output_bytes,
                constant_bytes=border.constant_bytes,
                inputs=len(border.inputs),
                outputs=len(border.outputs),
            )
        )
    return found


def _settings(specs: Sequence[CompileSpec]) -> str:
    return ", ".join(f"{spec.key}={_number_or_hex(spec.value)}" for spec in specs)


def _number_or_hex(value: bytes) -> str:
    return str(value[0]) if len(value) == 1 else f"0x{value[:16].hex()}" + ("…" if len(value) > 16 else "")


def _backends(session: PartitionSession) -> list[PartitionBackend]:
    checked = [
        p.delegation_spec.backend_id for p in session.partitioners if isinstance(p, CapabilityPartitioner)
    ]
    # Those of the recipe first; the first is what a view offers.
    names = [*dict.fromkeys(checked), *(name for name in registry.backend_ids() if name not in checked)]
    return [PartitionBackend(name, name in checked, _settings(session.settings(name))) for name in names]


def _reasons(method: MethodSession) -> Iterator[tuple[int, str, str, str]]:
    """Row, author, reason and nearest form of what was left behind, in order."""
    index = ReasonIndex(method.result.reasons)
    for row, node in enumerate(method.nodes):
        if node is None or node.op != "call_function" or tag_of(node) is not None:
            continue
        for reason in index.about(node):
            yield row, reason.by, reason.reason, reason.eligible_if or ""


def _asked(method: MethodSession, outcomes: Sequence[EditOutcome]) -> Iterator[tuple[int, str, int, str]]:
    """What edits asked for each node that they concern, and what became of it.

    Yields:
        Row, the tag asked for last, whether an edit named the node, and why its tag is another one.
    """
    wanted: dict[str, tuple[str | None, int, str]] = {}
    for number, outcome in enumerate(outcomes, start=1):
        for name, tag in outcome.requested.items():
            wanted[name] = (tag, 1, "")
        for name, (before, after) in outcome.changes.items():
            if name in outcome.requested and outcome.requested[name] == after:
                continue
            given = wanted.get(name)
            why = f"edit {number}: {outcome.consequences.get(name, 'it follows')}"
            wanted[name] = (given[0], given[1], why) if given else (before, 0, why)
    for name, (tag, was_given, why) in wanted.items():
        for row in method.rows([name]):
            node = method.nodes[row]
            differs = node is not None and tag_of(node) != tag
            yield row, tag or "", was_given, (why or "a later edit changed it") if differs else ""


def _steps(method: MethodSession) -> Iterator[PartitionStep]:
    history = method.history
    if history is None:
        return
    for number, entry in enumerate(history.entries(), start=1):
        outcome = entry.outcome
        names = list(outcome.requested) or list(outcome.changes)
        yield PartitionStep(
            number=number,
            text=describe(outcome.edit, history.editor),
            state=entry.state,
            changed=len(outcome.changes),
            reason=outcome.reason or "",
            index=entry.index,
            rows=method.rows(names[:_SHOWN_ROWS]),
        )


def _texts(session: PartitionSession) -> tuple[str, str]:
    """The edits as Python and as JSON."""
    if session.context.lowering is None:
        return "", ""
    recipe = session.recipe()
    histories: dict[str, History] = session.histories()
    comments = []
    for edit in recipe.edits:
        history = histories.get(edit.method)
        if history is not None and edit.step == PartitionEdit.step:
            comments.append(describe(PartitionEdit.from_data(edit.data), history.editor))
        else:
            comments.append(edit.step)
    return as_python(recipe.edits, comments), as_json(recipe)
