"""What the comparison view draws and asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench_widgets.columns import F64, I32, U8, U32, Strings
from workbench_widgets.graph.contract import GraphDocument


@dataclass(frozen=True)
class CompareSide:
    """One side, and its totals.

    Attributes:
        name: What it is called.
        title: What it is.
        kind: What was compared: a lowering or a program from a file, a run in our runtime, or one in
            another (`peer`).
        stage: The stage whose nodes are compared: `lowered`, or `program` for a program from a file.
        rows: In how many rows it has nodes.
        matched: Rows that are the same on all sides.
        changed: Rows that all sides have, but differently.
        only: Rows that no other side has.
        nodes: Its nodes.
        bytes: Bytes that its nodes write.
        program_bytes: Size of the file; None where there is none.
        arena_bytes: Bytes of all planned arenas; None where nothing was planned.
        ms: Time of all rows in one execution; None where nothing was measured.
    """

    name: str
    title: str
    kind: Literal["lowering", "run", "peer"]
    stage: str
    rows: int
    matched: int
    changed: int
    only: int
    nodes: int
    bytes: float
    program_bytes: float | None
    arena_bytes: float | None
    ms: float | None


@dataclass(frozen=True)
class CompareCells:
    """What one side has in each row.

    Attributes:
        nodes: Names of its nodes, separated by commas; empty where it has none.
        operators: Their operators.
        bytes: Bytes that they write.
        ms: Median time of one execution; NaN where it was not measured.
        sqnr: Signal to noise ratio against the reference in dB; infinite where equal, NaN where not known.
        error: Largest absolute difference to the reference; NaN where not known.
        inside: What ran inside a delegate and how long, a line each; empty where nothing is known.
        node: Name of each node in the lowered graph.
        node_row: Its row.
        handle: Source handles of the side that the first side counts differently.
        first_handle: The first side's handle for the same exported node; 0 where it has no such node.
    """

    nodes: Strings
    operators: Strings
    bytes: F64
    ms: F64
    sqnr: F64
    error: F64
    inside: Strings
    node: Strings
    node_row: I32
    handle: I32
    first_handle: I32


@dataclass(frozen=True)
class CompareDocument:
    """Several lowerings or runs, joined on the exported nodes.

    Attributes:
        method: The method.
        reference: Number of the side that the others are held against.
        sides: One each, as they were given.
        cells: One for each side.
        status: Of each row: 0 matched, 1 changed, 2 missing on some side.
        present: Bit i is set where side i has nodes in the row.
        source: `file:line`, or empty.
        module: Path of the module, or empty.
        handle_start: First of the row's handles, with one entry more than rows.
        handles: Source handles as the first side counts them, ascending for each row.
        can_add_peer: No side is a run in ExecuTorch's own runtime yet.
    """

    method: str
    reference: int
    sides: list[CompareSide]
    cells: list[CompareCells]
    status: U8
    present: U32
    source: Strings
    module: Strings
    handle_start: I32
    handles: I32
    can_add_peer: bool


@dataclass(frozen=True)
class PeerOptions:
    """How to run in ExecuTorch's own runtime.

    Attributes:
        repeat: Executions, of which the median time is shown.
    """

    repeat: int


@dataclass(frozen=True)
class PeerAdded:
    """The side that was added."""

    name: str


DOCUMENTS = {"compare": CompareDocument, "compare.graph": GraphDocument}
CALLS = {"compare.peer": (PeerOptions, PeerAdded)}
