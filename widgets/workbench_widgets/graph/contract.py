"""What the graph view draws, asks for and gets.

Rows of a `GraphDocument` are the nodes of one method at one stage, in topological order; control-flow
branches and the insides of delegates are among them, each in its container. Containers are the modules of the
model, and what is like one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench_widgets.columns import F64, I32, U32, Strings

__all__ = [
    "CALLS",
    "DOCUMENTS",
    "CodeLine",
    "GraphDetails",
    "GraphDocument",
    "GraphRow",
    "NodeArgument",
    "NodeOrigin",
    "NodeTensor",
    "OverlayColumn",
    "OverlayDocument",
    "StageRows",
]


@dataclass(frozen=True)
class GraphDocument:
    """The graph of one method at one stage.

    Attributes:
        stage: Name of the stage.
        method: Name of the method.
        name: Of each node.
        op: Operator, or what stands for one.
        kind: `placeholder` (an input of the method or of a branch), `parameter`, `buffer`, `constant`,
            `attribute` (a branch or a blob that a call takes), `call`, `control` (a call with branches),
            `delegate` (the call of a delegate), `output`.
        shape: Sizes, as `(1, 3, 8, 8)`; those of several results separated by semicolons.
        dtype: Element types, as shapes.
        attributes: Arguments that are no tensors and differ from the operator's defaults, as `stride=[2, 2]`.
        bytes: Of all results, at the sizes' upper bounds; 0 without tensors.
        module: Row of the innermost container.
        source: `file:line` of the user's code; empty where unknown.
        tag: The partition; empty for a node that stays with the runtime.
        instruction: At the stage `program` the number of the instruction; -1 for what is none.
        handle_start: First of the node's handles, with one entry more than nodes.
        handles: Source handles, ascending for each node.
        src: Row of each edge's producer.
        dst: Row of its consumer.
        edge_bytes: Bytes of the tensors that the edge carries.
        module_parent: Of each container the row of the container around it, -1 for the first, which is the
            root. A container stands behind its parent.
        module_name: Name within the parent.
        module_path: The whole path, unique, the same in all stages.
        module_type: Class of the module, or the backend of a delegate.
        module_kind: `module`, `branch` (one graph of a control-flow call), `control` (such a call with its
            branches), `delegate` (the call with what it runs inside), `group` (an interval of the topological
            order, where a container would hold too many).
        module_hash: Equal for containers that hold the same operators on the same shapes in the same order.
    """

    stage: str
    method: str
    name: Strings
    op: Strings
    kind: Strings
    shape: Strings
    dtype: Strings
    attributes: Strings
    bytes: F64
    module: I32
    source: Strings
    tag: Strings
    instruction: I32
    handle_start: I32
    handles: I32
    src: I32
    dst: I32
    edge_bytes: F64
    module_parent: I32
    module_name: Strings
    module_path: Strings
    module_type: Strings
    module_kind: Strings
    module_hash: U32


@dataclass(frozen=True)
class OverlayColumn:
    """A number for each node, to colour the graph by.

    Attributes:
        name: Stable identifier.
        title: What people read.
        unit: How the numbers are written.
        aggregate: How a closed container comes by its number.
        values: One a node, NaN where there is none.
    """

    name: str
    title: str
    unit: Literal["ms", "bytes", "flops", "share", "dB", "number"]
    aggregate: Literal["sum", "max", "min"]
    values: F64


@dataclass(frozen=True)
class OverlayDocument:
    """All numbers that the nodes of one method at one stage can be coloured by."""

    stage: str
    method: str
    columns: list[OverlayColumn]


@dataclass(frozen=True)
class GraphRow:
    """Which node: stage, method and row of the graph document."""

    stage: str
    method: str
    row: int


@dataclass(frozen=True)
class NodeTensor:
    """A tensor that goes into a node or comes out of it.

    Attributes:
        name: Of the argument or result; empty where it has none.
        row: The node that makes it; -1 where it is no node of this graph.
        shape: Sizes.
        dtype: Element type.
        strides: In elements; empty where unknown.
        dim_order: Dimensions from the outermost in memory to the innermost; empty where unknown.
        bytes: At the sizes' upper bounds.
    """

    name: str
    row: int
    shape: str
    dtype: str
    strides: str
    dim_order: str
    bytes: float


@dataclass(frozen=True)
class NodeArgument:
    """One argument of a call, by the operator's own name for it."""

    name: str
    text: str


@dataclass(frozen=True)
class CodeLine:
    """One line of the user's source."""

    number: int
    text: str


@dataclass(frozen=True)
class NodeOrigin:
    """An exported node that a node comes from."""

    handle: int
    name: str
    target: str
    module: str
    source: str


@dataclass(frozen=True)
class StageRows:
    """What the same exported nodes are at another stage: rows and names, the first 50 of `count`."""

    stage: str
    count: int
    rows: list[int]
    names: list[str]
    ops: list[str]


@dataclass(frozen=True)
class GraphDetails:
    """All that is known about a node.

    Attributes:
        row: Which node.
        name: Its name.
        target: Operator, in full.
        schema: Its signature; empty where it has none.
        module: Path of the module.
        module_type: Its class.
        inputs: Tensors that it reads.
        outputs: Tensors that it makes.
        arguments: All arguments, as text.
        metadata: What else the node carries, as text.
        why_not: Why a partitioner left it, and what would make it eligible.
        source: `file:line`.
        code: A few lines around it; empty where the file can't be read.
        origins: The exported nodes that it comes from.
        stages: What they are at the other stages.
    """

    row: int
    name: str
    target: str
    schema: str
    module: str
    module_type: str
    inputs: list[NodeTensor]
    outputs: list[NodeTensor]
    arguments: list[NodeArgument]
    metadata: dict[str, str]
    why_not: list[str]
    source: str
    code: list[CodeLine]
    origins: list[NodeOrigin]
    stages: list[StageRows]


DOCUMENTS = {"graph": GraphDocument, "overlays": OverlayDocument}
CALLS = {"graph.details": (GraphRow, GraphDetails)}
