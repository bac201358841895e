"""Asking backends themselves: those that no partitioner of the recipe answers for are given a tag to compile.

What they make of it is thrown away. Only small tags are tried, so that answers stay quick.
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.backends import registry
from workbench.backends.edits import EditOutcome
from workbench.backends.extract import extract_tags
from workbench.backends.graphs import graphs_of
from workbench.backends.programs import copy_program
from workbench.errors import PartitionError, WorkbenchError
from workbench_widgets.partition.editor import PartitionSession
from workbench_widgets.partition.history import History

__all__ = ["refused", "unchecked"]

# Operators of a tag, and tags of an edit, up to which backends are asked.
_OPERATORS, _TAGS = 150, 4


def refused(session: PartitionSession, history: History, outcome: EditOutcome) -> Iterator[WorkbenchError]:
    """What backends say against the tags that an edit changes; to be called while the edit is made."""
    tags = _concerned(session, history, outcome)
    for tag in tags if len(tags) <= _TAGS else ():
        if len(history.editor.tags.members(tag)) <= _OPERATORS:
            error = _compile(history, tag)
            if error is not None:
                yield error


def unchecked(session: PartitionSession, history: History, outcome: EditOutcome) -> str:
    """What can't be told of an edit before it is lowered; empty for nothing."""
    edit = outcome.edit
    spec = history.editor.result.partition_tags.get(edit.tag or "")
    backend = edit.backend_id or (spec.backend_id if spec is not None else "")
    if edit.action != "assign" or backend in session.capabilities:
        return ""
    size = len(outcome.requested) + (len(history.editor.tags.members(edit.tag)) if edit.tag else 0)
    if size <= _OPERATORS:
        return ""
    return (
        f"no partitioner of the recipe answers for '{backend}': whether it can run these nodes "
        "shows when the partition is lowered"
    )


def _concerned(session: PartitionSession, history: History, outcome: EditOutcome) -> list[str]:
    """The tags that an edit changed and that are of backends without a partitioner."""
    specs = history.editor.result.partition_tags
    touched = dict.fromkeys(tag for pair in outcome.changes.values() for tag in pair if tag is not None)
    return [tag for tag in touched if tag in specs and specs[tag].backend_id not in session.capabilities]


def _compile(history: History, tag: str) -> WorkbenchError | None:
    """What the backend says against a tag; None where it takes it."""
    result = history.editor.result
    spec = result.partition_tags[tag]
    program = result.tagged_exported_program
    try:
        backend = registry.get_backend(spec.backend_id)
        for _, graph_module in graphs_of(program):
            for part in extract_tags(program, graph_module, only=tag):
                backend.preprocess(copy_program(part.program), list(spec.compile_specs))
    except WorkbenchError as error:
        return error
    except Exception as error:  # a backend is a stranger's code: whatever it raises is its refusal
        return PartitionError(f"the backend '{spec.backend_id}' failed: {type(error).__name__}: {error}")
    return None
