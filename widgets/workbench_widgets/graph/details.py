"""All that is known about one node."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.tables import dtype_name
from workbench_widgets.context import Context
from workbench_widgets.graph.attributes import arguments_of
from workbench_widgets.graph.contract import (
    CodeLine,
    GraphDetails,
    GraphDocument,
    GraphRow,
    NodeArgument,
    NodeOrigin,
    NodeTensor,
    StageRows,
)
from workbench_widgets.graph.document import graph_document, rows_of
from workbench_widgets.graph.program import Instructions
from workbench_widgets.graph.rows import Rows, numbers_of

__all__ = ["graph_details"]

_CONTEXT_LINES = 4
_MOST_ROWS = 50
# Shown elsewhere in the pane, or of use to torch only.
_LEFT_OUT = {"val", "tensor_meta", "nn_module_stack", "stack_trace", "custom", "source_handles", "torch_fn"}
_LONGEST = 400


def graph_details(context: Context, asked: GraphRow) -> GraphDetails:
    """What the pane beside the graph shows.

    Raises:
        WorkbenchError: There is no such stage, method or row.
    """
    document = graph_document(context, f"{asked.stage}/{asked.method}")
    if not 0 <= asked.row < len(document.name):
        raise WorkbenchError(
            "the graph has no such row", expected=f"0 to {len(document.name) - 1}", found=str(asked.row)
        )
    if document.stage == "program":
        return _of_program(context, document, asked.row)
    return _of_node(context, document, asked.row)


def _of_node(context: Context, document: GraphDocument, row: int) -> GraphDetails:
    rows = rows_of(context.stage(document.stage), document.method)
    node = rows.nodes[row]
    schema = getattr(node.target, "_schema", None)
    handles = _handles(document, row)
    module = int(document.module[row])
    return GraphDetails(
        row=row,
        name=node.name,
        target=str(node.target),
        schema="" if schema is None else str(schema),
        module=document.module_path[module],
        module_type=document.module_type[module],
        inputs=list(_inputs(rows, node)),
        outputs=list(_tensors(node.meta.get("val"), "", row)),
        arguments=[NodeArgument(name, _cut(text)) for name, text in arguments_of(node)],
        metadata=_metadata(node),
        why_not=_why_not(context, document, node),
        source=document.source[row],
        code=_code(document.source[row]),
        origins=[
            NodeOrigin(s.handle, s.name, s.target, s.module_path, s.source or "")
            for s in rows.origins(handles)
        ],
        stages=_stages(context, document, handles),
    )


def _inputs(rows: Rows, node: Node) -> Iterable[NodeTensor]:
    known = arguments_of(node)
    for item in node.all_input_nodes:
        name = next((name for name, text in known if text == item.name), item.name)
        title = item.name if name.isdigit() or name == item.name else f"{name}: {item.name}"
        yield from _tensors(item.meta.get("val"), title, rows.row.get(item, -1))


def _tensors(value: Any, name: str, row: int) -> Iterable[NodeTensor]:
    if isinstance(value, torch.Tensor):
        sizes = numbers_of(value.shape)
        count = 1
        for size in sizes:
            count *= size
        strides, order = _memory(value)
        yield NodeTensor(
            name=name,
            row=row,
            shape=f"({', '.join(map(str, value.shape))})",
            dtype=str(value.dtype).removeprefix("torch."),
            strides=strides,
            dim_order=order,
            bytes=float(count * value.dtype.itemsize),
        )
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _tensors(item, f"{name}[{place}]" if name else f"result {place}", row)


def _memory(value: torch.Tensor) -> tuple[str, str]:
    """Strides, and the dimensions in the order of their strides, as text."""
    if value.layout is not torch.strided:
        return "", ""
    strides = list(value.stride())
    text = f"({', '.join(map(str, strides))})"
    try:
        return text, f"({', '.join(map(str, value.dim_order()))})"
    except (RuntimeError, TypeError):  # ambiguous or symbolic
        return text, ""


def _metadata(node: Node) -> dict[str, str]:
    found = {"debug_handle": str(node.meta["debug_handle"])} if "debug_handle" in node.meta else {}
    for key, value in node.meta.items():
        if key in _LEFT_OUT or key in found or value is None:
            continue
        found[str(key)] = _cut(str(value))
    stack = node.meta.get("nn_module_stack") or {}
    if stack:
        found["modules"] = " > ".join(str(path) or "(root)" for path, _ in stack.values())
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _why_not(context: Context, document: GraphDocument, node: Node) -> list[str]:
    if document.stage not in ("edge", "partitioned") or context.lowering is None:
        return []
    reasons = context.lowering.partitioned.reasons.get(document.method, ())
    return [
        reason.reason + (f" Eligible if {reason.eligible_if}." if reason.eligible_if else "")
        for reason in reasons
        if reason.node == node.name
    ]


def _code(source: str) -> list[CodeLine]:
    """A few lines around `file:line`, from the file or from the notebook's cell."""
    file, _, line = source.rpartition(":")
    if not file or not line.isdigit():
        return []
    lines = linecache.getlines(file)
    number = int(line)
    first, last = max(1, number - _CONTEXT_LINES), min(len(lines), number + _CONTEXT_LINES)
    if number > len(lines):
        return []
    around = [line.rstrip("\r\n").expandtabs(4) for line in lines[first - 1 : last]]
    shown = textwrap.dedent("\n".join(around)).split("\n")
    return [CodeLine(at, text) for at, text in enumerate(shown, start=first)]


def _handles(document: GraphDocument, row: int) -> list[int]:
    start, end = document.handle_start[row : row + 2].tolist()
    return [int(handle) for handle in document.handles[start:end]]


def _stages(context: Context, document: GraphDocument, handles: list[int]) -> list[StageRows]:
    """What the same exported nodes are at each stage."""
    if not handles or context.lowering is None:
        return []
    found = []
    for stage in context.stages:
        if stage == "run":
            continue
        other = document if stage == document.stage else graph_document(context, f"{stage}/{document.method}")
        rows = _rows_with(other, handles)
        shown = rows[:_MOST_ROWS]
        found.append(
            StageRows(stage, len(rows), shown, [other.name[r] for r in shown], [other.op[r] for r in shown])
        )
    return found


def _rows_with(document: GraphDocument, handles: list[int]) -> list[int]:
    places = np.nonzero(np.isin(document.handles, handles))[0]
    rows = np.searchsorted(document.handle_start, places, side="right") - 1
    return [int(row) for row in np.unique(rows)]


# ---- instructions ------------------------------------------------------------------------------------------


def _of_program(context: Context, document: GraphDocument, row: int) -> GraphDetails:
    method = context.program.method(document.method)
    number = int(document.instruction[row])
    handles = _handles(document, row) if context.lowering is not None else []
    inputs: list[NodeTensor] = []
    outputs: list[NodeTensor] = []
    metadata: dict[str, str] = {}
    if number >= 0:
        ends = Instructions(method)
        inputs = [_value(method, index) for index in ends.reads[number]]
        outputs = [_value(method, index) for index in ends.writes[number]]
        metadata = {"instruction": str(number), "values": _values(method.instructions[number])}
    sources = (
        [] if context.lowering is None else rows_of(context.lowering.plan, document.method).origins(handles)
    )
    module = int(document.module[row])
    return GraphDetails(
        row=row,
        name=document.name[row],
        target=document.op[row],
        schema="",
        module=document.module_path[module],
        module_type=document.module_type[module],
        inputs=[tensor for tensor in inputs if tensor.dtype],
        outputs=[tensor for tensor in outputs if tensor.dtype],
        arguments=[NodeArgument("numbers", document.attributes[row])] if document.attributes[row] else [],
        metadata=metadata,
        why_not=[],
        source=document.source[row],
        code=_code(document.source[row]),
        origins=[NodeOrigin(s.handle, s.name, s.target, s.module_path, s.source or "") for s in sources],
        stages=_stages(context, document, handles),
    )


def _value(method: ir.Method, index: int) -> NodeTensor:
    value = method.values[index]
    if not isinstance(value, ir.Tensor):
        return NodeTensor(f"value {index}", -1, "", "", "", "", 0.0)
    strides = [1] * len(value.sizes)
    for place in range(len(value.dim_order) - 2, -1, -1):
        inner = value.dim_order[place + 1]
        strides[value.dim_order[place]] = strides[inner] * max(1, value.sizes[inner])
    where = f", arena {value.allocation[0]} at {value.allocation[1]}" if value.allocation is not None else ""
    return NodeTensor(
        name=f"{value.fqn or f'value {index}'}{where}",
        row=-1,
        shape=f"({', '.join(map(str, value.sizes))})",
        dtype=dtype_name(value),
        strides=f"({', '.join(map(str, strides))})",
        dim_order=f"({', '.join(map(str, value.dim_order))})",
        bytes=float(value.nbytes),
    )


def _values(instruction: ir.Instruction) -> str:
    args = getattr(instruction, "args", None)
    if args is None:
        args = [getattr(instruction, name) for name in instruction.__slots__]
    return " ".join(map(str, args))
