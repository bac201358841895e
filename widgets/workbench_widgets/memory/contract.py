"""What the memory view draws, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from workbench_widgets.columns import F64, I32, U8, Strings

__all__ = [
    "CALLS",
    "DOCUMENTS",
    "ArenaChange",
    "MemoryArena",
    "MemoryChoices",
    "MemoryCode",
    "MemoryDocument",
    "MemoryEdit",
    "MemoryPin",
    "MemoryPreview",
]

Kind = Literal["input", "output", "state", "temporary"]
KINDS: tuple[Kind, ...] = ("temporary", "input", "output", "state")


@dataclass(frozen=True)
class MemoryPin:
    """A place that the user chose.

    Attributes:
        arena: From 1.
        offset: Bytes from the start of the arena.
    """

    arena: int
    offset: int


@dataclass(frozen=True)
class MemoryChoices:
    """How memory is planned; fields as of `workbench.MemoryOptions`.

    Attributes:
        planner: Name of a planner; empty for that of a file, which does not say.
        alignment: Bytes, a power of two.
        arena_limits: By arena (as text) the bytes that it may take.
        arenas: By tensor the arena that it goes to.
        pins: By tensor the place that it is put to.
    """

    planner: str
    alignment: int
    arena_limits: dict[str, int] = field(default_factory=dict)
    arenas: dict[str, int] = field(default_factory=dict)
    pins: dict[str, MemoryPin] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryArena:
    """One arena.

    Attributes:
        arena: From 1.
        size: Bytes that the plan takes.
        lower_bound: Bytes alive at once at the worst moment.
        peak_moment: That moment.
        limit: Bytes that it may take; None for no limit.
        total: Bytes of all tensors, as if none shared memory.
        fragmentation: Share of the arena that is empty even at the worst moment, 0 to 1.
        tensors: How many lie in it.
    """

    arena: int
    size: int
    lower_bound: int
    peak_moment: int
    limit: int | None
    total: int
    fragmentation: float
    tensors: int


@dataclass(frozen=True)
class MemoryDocument:
    """The memory of one method.

    Moment 0 is when the inputs are given, moment `i + 1` that of instruction `i`, the last one when the
    results are read. Columns without another note have a row for each tensor.

    Attributes:
        method: Its name.
        origin: `plan`: the plan of a lowering; `file`: read off a program.
        can_apply: The plan can be made anew in place.
        why_not: Why it can't.
        planners: Names of all planners.
        choices: What the plan was made with; what a file does not say stands at its default.
        plan_inputs: Inputs have a place in the arena.
        plan_outputs: Outputs have a place in the arena.
        arenas: The arenas.
        moments: How many moments there are.
        moment_name: By moment the operator or backend; `inputs`, `results`.
        moment_source: By moment `file:line`, or nothing.
        moment_handle_start: Of each moment's handles, [moments + 1].
        moment_handles: Source handles.
        live_start: Of each arena's steps, [arenas + 1].
        live_moment: Moment from which on so many bytes are alive.
        live_bytes: Bytes alive, rounded up to the alignment each.
        name: Names of the tensors' nodes.
        arena: From 1.
        offset: Bytes from the start of the arena.
        bytes: Bytes, not rounded.
        first: First moment of use.
        last: Last moment of use, included.
        producer: Moment at which it is first written.
        at_peak: Alive at its arena's worst moment.
        pinned: The user chose the place.
        kind: Position in `temporary`, `input`, `output`, `state`.
        shape: Sizes as text.
        dtype: Element type.
        views: How many tensors share the buffer beside the first.
        source: `file:line` of what made it, or nothing.
        handle_start: Of each tensor's handles, [tensors + 1].
        handles: Source handles.
    """

    method: str
    origin: Literal["plan", "file"]
    can_apply: bool
    why_not: str
    planners: list[str]
    choices: MemoryChoices
    plan_inputs: bool
    plan_outputs: bool
    arenas: list[MemoryArena]
    moments: int
    moment_name: Strings
    moment_source: Strings
    moment_handle_start: I32
    moment_handles: I32
    live_start: I32
    live_moment: I32
    live_bytes: F64
    name: Strings
    arena: I32
    offset: F64
    bytes: F64
    first: I32
    last: I32
    producer: I32
    at_peak: U8
    pinned: U8
    kind: U8
    shape: Strings
    dtype: Strings
    views: I32
    source: Strings
    handle_start: I32
    handles: I32


@dataclass(frozen=True)
class MemoryEdit:
    """Plan with other choices.

    Attributes:
        method: The method that is looked at.
        choices: The choices, for all methods.
    """

    method: str
    choices: MemoryChoices


@dataclass(frozen=True)
class ArenaChange:
    """What becomes of an arena.

    Attributes:
        arena: From 1.
        before: Bytes; 0 for a new one.
        after: Bytes; 0 for one that is gone.
        lower_bound: Bytes that no plan goes below.
        limit: Bytes that it may take.
        peak_moment: The worst moment of the new plan.
    """

    arena: int
    before: int
    after: int
    lower_bound: int
    limit: int | None
    peak_moment: int


@dataclass(frozen=True)
class MemoryPreview:
    """A plan with other choices, made beside the one that holds.

    Attributes:
        arenas: By arena, before and after.
        before: Bytes of all arenas.
        after: Bytes of all arenas.
        arena: For each tensor of the document, the arena that it would lie in.
        offset: For each tensor, bytes from the arena's start.
        moved: For each tensor, whether its place changes.
        milliseconds: What planning took.
    """

    arenas: list[ArenaChange]
    before: int
    after: int
    arena: I32
    offset: F64
    moved: U8
    milliseconds: float


@dataclass(frozen=True)
class MemoryCode:
    """Choices as Python.

    Attributes:
        text: An expression that makes them, with the workbench imported as `wb`.
    """

    text: str


DOCUMENTS = {"memory": MemoryDocument}
CALLS = {
    "memory.preview": (MemoryEdit, MemoryPreview),
    "memory.apply": (MemoryEdit, MemoryPreview),
    "memory.python": (MemoryEdit, MemoryCode),
}
