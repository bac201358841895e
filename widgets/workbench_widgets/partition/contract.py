"""What the partition editor draws, asks for and gets.

Rows are those of the `GraphDocument` of the stage `partitioned`: a node's row is its number in all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench_widgets.columns import F64, I32, U8, Strings

__all__ = [
    "CALLS",
    "DOCUMENTS",
    "PartitionAnswer",
    "PartitionBackend",
    "PartitionCost",
    "PartitionDocument",
    "PartitionMeasure",
    "PartitionMove",
    "PartitionMoved",
    "PartitionOutcome",
    "PartitionRelower",
    "PartitionRequest",
    "PartitionState",
    "PartitionStep",
    "PartitionSuggestion",
    "PartitionTag",
]


@dataclass(frozen=True)
class PartitionDocument:
    """The nodes of one method, as far as edits don't change them.

    Attributes:
        method: Name of the method.
        name: Of each node.
        op: Operator.
        module: Path of the module.
        source: `file:line` of the user's code; empty where unknown.
        bytes: Of all results.
        operator: 1 for what can have a tag: calls of operators.
        proposed: The tag that the recipe's partitioners gave; empty where they left the node behind.
        handle_start: First of the node's handles, with one entry more than nodes.
        handles: Source handles, ascending for each node.
    """

    method: str
    name: Strings
    op: Strings
    module: Strings
    source: Strings
    bytes: F64
    operator: U8
    proposed: Strings
    handle_start: I32
    handles: I32


@dataclass(frozen=True)
class PartitionTag:
    """One tag.

    Attributes:
        name: Its name.
        backend: Who runs it.
        settings: The backend's settings, as text.
        color: Number of its colour, which it keeps while other tags come and go.
        nodes: Operators inside.
        input_bytes: Passed in at each execution.
        output_bytes: Passed out at each execution.
        constant_bytes: Of the constants that the delegate owns.
        inputs: Number of values passed in.
        outputs: Number of values passed out.
    """

    name: str
    backend: str
    settings: str
    color: int
    nodes: int
    input_bytes: float
    output_bytes: float
    constant_bytes: float
    inputs: int
    outputs: int


@dataclass(frozen=True)
class PartitionBackend:
    """A backend that nodes can be assigned to.

    Attributes:
        name: Its identifier.
        checked: A partitioner of the recipe says for each node whether it can run there. Otherwise the
            backend itself is asked to compile a tag, as long as that is small.
        settings: What a new tag is made with, as text.
    """

    name: str
    checked: bool
    settings: str


@dataclass(frozen=True)
class PartitionCost:
    """What a partition amounts to.

    Attributes:
        partitions: Number of tags.
        delegated: Operators in them.
        crossing_bytes: Into and out of all delegates at each execution.
        constant_bytes: Of the constants that delegates own.
    """

    partitions: int
    delegated: int
    crossing_bytes: float
    constant_bytes: float


@dataclass(frozen=True)
class PartitionStep:
    """One entry of the history.

    Attributes:
        number: From 1, in the order of the list.
        text: What was asked for.
        state: `lowered` (in the recipe), `pending` (made, not lowered yet), `refused`, `undone` (can be
            redone).
        changed: Nodes whose tag changed.
        reason: Why it was refused.
        index: Place among the edits that are made, for `partition.remove`; -1 for the others.
        rows: The nodes that it asked about, the first 200.
    """

    number: int
    text: str
    state: Literal["lowered", "pending", "refused", "undone"]
    changed: int
    reason: str
    index: int
    rows: list[int]


@dataclass(frozen=True)
class PartitionState:
    """The partition as it is edited now.

    Attributes:
        method: Name of the method.
        tag: For each row its tag's place in `tags`, -1 for none.
        pending: 1 for rows whose tag differs from what is lowered.
        tags: The tags.
        reason_row: Rows that were left behind; a row with several reasons stands several times.
        reason_by: Who left it.
        reason: Why.
        eligible_if: The nearest form that would be taken; empty where there is none.
        asked_row: Rows that edits asked about, or changed without being asked.
        asked_tag: The tag that was asked for last; empty for none at all (the runtime).
        asked_given: 1 where an edit named the node; 0 where it only followed.
        asked_why: Why the applied tag is another than the one that was asked for; empty where it isn't.
        history: Edits in order.
        backends: Who nodes can be assigned to.
        operators: Number of operators.
        cost: What the partition amounts to.
        lowered: The same for the partition that is lowered.
        undo: What would be undone; empty for nothing.
        redo: What would be redone; empty for nothing.
        waiting: Number of edits by which the partition differs from the recipe's.
        editable: There is a lowering whose recipe can take edits.
        python: Statements that make the edits on `lowering`.
        json: The recipe with the edits; only the edits where the recipe can't be written.
        note: What happened that nobody asked for; empty for nothing.
    """

    method: str
    tag: I32
    pending: U8
    tags: list[PartitionTag]
    reason_row: I32
    reason_by: Strings
    reason: Strings
    eligible_if: Strings
    asked_row: I32
    asked_tag: Strings
    asked_given: U8
    asked_why: Strings
    history: list[PartitionStep]
    backends: list[PartitionBackend]
    operators: int
    cost: PartitionCost
    lowered: PartitionCost
    undo: str
    redo: str
    waiting: int
    editable: bool
    python: str
    json: str
    note: str


@dataclass(frozen=True)
class PartitionRequest:
    """An edit to look at or to make.

    Attributes:
        method: Name of the method.
        action: What to do.
        rows: The nodes.
        handles: More nodes: all that come from these exported nodes.
        module: More nodes: all operators of this module, by path; None for none.
        tag: The tag to assign to, or the name of the new one; None makes a name.
        tags: The tags to merge.
        backend: For `assign` to a new tag: who shall run it.
    """

    method: str
    action: Literal["assign", "erase", "merge", "split"]
    rows: list[int]
    handles: list[int]
    module: str | None
    tag: str | None
    tags: list[str]
    backend: str | None


@dataclass(frozen=True)
class PartitionSuggestion:
    """The nearest legal form of an edit that isn't legal.

    Attributes:
        text: What is different.
        rows: The nodes to name instead.
        changed: Nodes whose tag would change.
    """

    text: str
    rows: list[int]
    changed: int


@dataclass(frozen=True)
class PartitionAnswer:
    """What an edit would do, or did.

    Attributes:
        legal: It can be made.
        text: The edit in words.
        kind: If not: which rule it breaks.
        message: If not: the rule and how it is broken.
        hint: If not: what would make it legal.
        nodes: If not: rows that stand in the way.
        path: If not, for a cycle: rows along which data leaves the tag and comes back.
        changed: Rows whose tag would change.
        before: Their tags now; empty for none.
        after: Their tags then; empty for none.
        why: For rows that change without being asked for: why; empty for the others.
        requested: Number of operators that the edit names.
        missing: What it names that isn't there.
        unchecked: What can't be told before the partition is lowered; empty for nothing.
        cost_before: What the partition amounts to now.
        cost_after: What it would amount to; as now if the edit isn't legal.
        suggestion: If not legal: the nearest legal form, where one was found.
    """

    legal: bool
    text: str
    kind: str
    message: str
    hint: str
    nodes: list[int]
    path: list[int]
    changed: I32
    before: Strings
    after: Strings
    why: Strings
    requested: int
    missing: list[str]
    unchecked: str
    cost_before: PartitionCost
    cost_after: PartitionCost
    suggestion: PartitionSuggestion | None


@dataclass(frozen=True)
class PartitionMove:
    """A step in the history of a method.

    Attributes:
        method: Name of the method.
        what: `undo`; `redo`; `remove` one edit; `discard` the edits that are not lowered; `clear` all edits
            by hand.
        index: Which edit to remove, as of `PartitionStep.index`; -1 for the other moves.
    """

    method: str
    what: Literal["undo", "redo", "remove", "discard", "clear"]
    index: int


@dataclass(frozen=True)
class PartitionMoved:
    """What a step in the history did, in words."""

    text: str


@dataclass(frozen=True)
class PartitionRelower:
    """Write the edits to the recipe and lower again.

    Attributes:
        method: The method to measure.
        run: Run the program before and after with the same inputs, too.
    """

    method: str
    run: bool


@dataclass(frozen=True)
class PartitionMeasure:
    """One quantity before and after.

    Attributes:
        name: What it is.
        unit: How it is written.
        before: None where it could not be measured.
        after: None where it could not be measured.
        better: Which way is better.
        note: How it was measured.
    """

    name: str
    unit: Literal["ms", "bytes", "count", "error", "dB"]
    before: float | None
    after: float | None
    better: Literal["less", "more", "neither"]
    note: str


@dataclass(frozen=True)
class PartitionOutcome:
    """What lowering again did.

    Attributes:
        measures: Time, bytes and error before and after.
        seconds: How long lowering took.
        ran: The steps that ran.
        problem: Why the programs could not be run or compared; empty where they were.
    """

    measures: list[PartitionMeasure]
    seconds: float
    ran: list[str]
    problem: str


DOCUMENTS = {"partition": PartitionDocument, "partition.state": PartitionState}
CALLS = {
    "partition.preview": (PartitionRequest, PartitionAnswer),
    "partition.apply": (PartitionRequest, PartitionAnswer),
    "partition.move": (PartitionMove, PartitionMoved),
    "partition.relower": (PartitionRelower, PartitionOutcome),
}
