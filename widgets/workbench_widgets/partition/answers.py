"""What an edit would do, or did, as an answer to the view; and the nearest legal form of one that isn't."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.costs import boundaries
from workbench.backends.edits import EditOutcome, PartitionEdit
from workbench.backends.graphs import tag_of
from workbench.errors import WorkbenchError
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.partition.contract import (
    PartitionAnswer,
    PartitionCost,
    PartitionMove,
    PartitionMoved,
    PartitionRequest,
    PartitionSuggestion,
)
from workbench_widgets.partition.document import cost_of
from workbench_widgets.partition.editor import MethodSession, PartitionSession
from workbench_widgets.partition.history import History, describe
from workbench_widgets.partition.trial import refused, unchecked

__all__ = ["apply", "move", "preview"]


def preview(context: Context, request: PartitionRequest) -> PartitionAnswer:
    """What an edit would do; nothing changes.

    Raises:
        WorkbenchError: There is no such method or backend, or no lowering to edit.
    """
    session = context.state(PartitionSession)
    method, history = session.editing(request.method)
    edit, missing = session.edit(request)
    outcome, after = _looked_at(session, method, history, edit)
    before = _cost(method)
    answer = _answer(session, method, history, outcome, missing)
    suggestion = None if outcome.applied else _nearest(session, method, history, request, outcome)
    return dataclasses.replace(answer, cost_before=before, cost_after=after or before, suggestion=suggestion)


def apply(context: Context, request: PartitionRequest) -> PartitionAnswer:
    """Make an edit if it is legal; errors as of `preview`. The recipe takes it when it is lowered."""
    session = context.state(PartitionSession)
    method, history = session.editing(request.method)
    edit, missing = session.edit(request)
    session.note = ""
    before = _cost(method)
    outcome, after = _looked_at(session, method, history, edit)
    if outcome.applied:
        history.apply(edit)
    else:
        history.refuse(outcome)
    answer = _answer(session, method, history, outcome, missing)
    suggestion = None if outcome.applied else _nearest(session, method, history, request, outcome)
    context.changed("partition.state")
    return dataclasses.replace(answer, cost_before=before, cost_after=after or before, suggestion=suggestion)


def _looked_at(
    session: PartitionSession, method: MethodSession, history: History, edit: PartitionEdit
) -> tuple[EditOutcome, PartitionCost | None]:
    """What an edit would do, and the cost then; backends without a partitioner are asked themselves."""
    costs: list[PartitionCost] = []
    refusals: list[WorkbenchError] = []

    def look(outcome: EditOutcome) -> None:
        costs.append(_cost(method))
        refusals.extend(refused(session, history, outcome))

    outcome = history.editor.preview(edit, look)
    if not refusals:
        return outcome, costs[0] if costs else None
    error = refusals[0]
    others = outcome.requested or outcome.changes
    names = (error.node,) if error.node else tuple(others)
    return dataclasses.replace(
        outcome, applied=False, reason=error.message, kind="backend", nodes=names, changes={},
        consequences={}, hint=error.hint or "",
    ), None  # fmt: skip


def move(context: Context, request: PartitionMove) -> PartitionMoved:
    """Go back or forth in the history.

    Raises:
        PartitionError: There is no such edit, or one after it can't be made without it.
    """
    session = context.state(PartitionSession)
    _, history = session.editing(request.method)
    session.note = ""
    if request.what == "undo":
        title = history.undo()
        text = f"Undone: {title}" if title else "There is nothing to undo."
    elif request.what == "redo":
        title = history.redo()
        text = f"Redone: {title}" if title else "There is nothing to redo."
    elif request.what == "remove":
        text = f"Removed: {history.remove(request.index)}"
    elif request.what == "discard":
        text = f"Taken back: {history.discard()}"
    else:
        text = f"Taken back: {history.replace((), 'all edits by hand')}"
    context.changed("partition.state")
    return PartitionMoved(text)


def _cost(method: MethodSession) -> PartitionCost:
    return cost_of(boundaries(method.result.tagged_exported_program, method.sizes))


def _answer(
    session: PartitionSession,
    method: MethodSession,
    history: History,
    outcome: EditOutcome,
    missing: list[str],
) -> PartitionAnswer:
    nothing = PartitionCost(0, 0, 0, 0)
    names = list(outcome.changes)
    tags = list(outcome.changes.values())
    return PartitionAnswer(
        legal=outcome.applied,
        text=describe(outcome.edit, history.editor),
        kind=outcome.kind or "",
        message=outcome.reason or "",
        hint=outcome.hint,
        nodes=method.rows(outcome.nodes),
        path=method.rows(outcome.path),
        changed=np.array(method.rows(names), np.int32),
        before=Strings(before or "" for before, _ in tags),
        after=Strings(after or "" for _, after in tags),
        why=Strings(outcome.consequences.get(name, "") for name in names),
        requested=len(outcome.requested),
        missing=[*missing, *(f"#{handle}" for handle in outcome.missing), *outcome.missing_nodes],
        unchecked=unchecked(session, history, outcome) if outcome.applied else "",
        cost_before=nothing,
        cost_after=nothing,
        suggestion=None,
    )


# ---- the nearest legal form --------------------------------------------------------------------------------


def _nearest(
    session: PartitionSession,
    method: MethodSession,
    history: History,
    request: PartitionRequest,
    outcome: EditOutcome,
) -> PartitionSuggestion | None:
    """Without the nodes that the backend can't run; with those that lie between."""
    editor = history.editor
    chosen = [node for name in outcome.requested for node in editor.tags.named(name)]
    if outcome.kind == "unsupported":
        against = set(outcome.nodes)
        rest = [node for node in chosen if node.name not in against]
        left = len(chosen) - len(rest)
        return _tried(session, method, history, request, rest, f"without the {left} that can't run there")
    if outcome.kind == "cycle" and request.action in ("assign", "split"):
        tag = outcome.edit.tag or ""
        inside = {*chosen, *(editor.tags.members(tag) if request.action == "assign" else ())}
        between = [node for node in editor.tags.ordered(_between(inside)) if node not in inside]
        if not between:
            return None
        backend = _backend(history, outcome.edit)
        refusals = [(node, editor.answer(node, backend)) for node in between]
        if any(isinstance(answer, WhyNot) for _, answer in refusals):
            return None
        text = f"with {_listed(node.name for node in between)} in between"
        return _tried(session, method, history, request, [*chosen, *between], text)
    if outcome.kind == "together":
        more = [node for name in outcome.nodes for node in editor.tags.named(name) if node not in chosen]
        text = f"with {_listed(node.name for node in more)}, which must stand together with them"
        return _tried(session, method, history, request, [*chosen, *more], text)
    return None


def _tried(
    session: PartitionSession,
    method: MethodSession,
    history: History,
    request: PartitionRequest,
    nodes: list[Node],
    text: str,
) -> PartitionSuggestion | None:
    """The suggestion, if it is legal."""
    if not nodes:
        return None
    rows = method.rows(node.name for node in nodes)
    other = dataclasses.replace(request, rows=rows, handles=[], module=None)
    edit, _ = session.edit(other)
    outcome = history.editor.preview(edit)
    return PartitionSuggestion(text, rows, len(outcome.changes)) if outcome.applied else None


def _backend(history: History, edit: PartitionEdit) -> str:
    tags: Mapping[str, object] = history.editor.result.partition_tags
    if edit.backend_id is not None:
        return edit.backend_id
    name = edit.tag if edit.tag in tags else None
    if name is None:
        names = [t for n in edit.nodes for node in history.editor.tags.named(n) if (t := tag_of(node))]
        names += [
            t
            for h in edit.handles
            for node in history.editor.tags.by_handle.get(h, ())
            if (t := tag_of(node))
        ]
        name = names[0] if names else None
    return history.editor.result.partition_tags[name].backend_id if name is not None else ""


def _between(inside: set[Node]) -> set[Node]:
    """The operators on the ways from a set of nodes back into it."""
    return _reached(inside, forward=True) & _reached(inside, forward=False)


def _reached(inside: set[Node], *, forward: bool) -> set[Node]:
    found: set[Node] = set()
    waiting = list(inside)
    while waiting:
        node = waiting.pop()
        for other in node.users if forward else node.all_input_nodes:
            if other not in found and other not in inside and other.op == "call_function":
                found.add(other)
                waiting.append(other)
    return found


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known) if len(known) <= 3 else f"{known[0]}, {known[1]} and {len(known) - 2} more"
