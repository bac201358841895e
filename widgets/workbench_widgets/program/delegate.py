"""The program view's document of one delegate."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from workbench import provenance
from workbench.backends.call_delegate import is_call_delegate, lowered_module_of
from workbench.errors import WorkbenchError
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.program.blobs import Blob, BlobStep
from workbench_widgets.program.contract import ProgramDelegateDocument
from workbench_widgets.program.document import csr
from workbench_widgets.program.model import Model, model_of

__all__ = ["delegate_document", "hex_lines", "texts_in"]

_HEX_BYTES = 1024
_MOST_TEXTS = 200
_TEXT = re.compile(rb"[\x20-\x7e]{5,}")
# Far into megabytes of weights, what looks like text is chance.
_SEARCHED = 1 << 20


def delegate_document(context: Context, key: str) -> ProgramDelegateDocument:
    """The inside of a delegate.

    Args:
        context: As of `program_document`.
        key: `method/index`.

    Raises:
        WorkbenchError: There is no such delegate.
    """
    model = model_of(context)
    name, _, number = key.rpartition("/")
    method = model.methods.get(name)
    count = len(method.method.delegates) if method is not None else 0
    if method is None or not number.isdigit() or int(number) >= count:
        raise WorkbenchError(
            "there is no such delegate", expected=f"method/number, numbers below {count}", found=key
        )
    index = int(number)
    delegate = method.method.delegates[index]
    data = model.program.delegate_data[delegate.data]
    blob = model.blobs[delegate.data] or Blob("")
    nodes = [_origin(context, model, name, index, step) for step in blob.steps]
    starts, handles = csr(sorted(found) for _, found in nodes)
    specs = {f"compile spec {item}": _spec(value) for item, value in delegate.compile_specs}
    return ProgramDelegateDocument(
        method=name,
        index=index,
        backend=delegate.backend_id,
        format="" if blob.note else blob.format,
        note=blob.note,
        facts={"bytes": f"{len(data):,}", **blob.facts, **specs},
        section_name=Strings(section.name for section in blob.sections),
        section_start=np.array([section.start for section in blob.sections], np.float64),
        section_bytes=np.array([section.size for section in blob.sections], np.float64),
        step_name=Strings(step.name for step in blob.steps),
        step_inputs=Strings(", ".join(step.inputs) for step in blob.steps),
        step_outputs=Strings(", ".join(step.outputs) for step in blob.steps),
        step_detail=Strings(step.detail for step in blob.steps),
        step_node=Strings(node for node, _ in nodes),
        step_handle_start=starts,
        step_handles=handles,
        value_name=Strings(value.name for value in blob.values),
        value_role=Strings(value.role for value in blob.values),
        value_text=Strings(value.text for value in blob.values),
        hex=Strings(hex_lines(data[:_HEX_BYTES])),
        texts=Strings(texts_in(data[:_SEARCHED])),
    )


def _spec(value: bytes) -> str:
    text = bytes(value)
    if text.isascii() and text.decode("ascii").isprintable():
        return repr(text.decode("ascii"))
    number = f" = {int.from_bytes(text, 'little')}" if len(text) in (1, 2, 4, 8) else ""
    return f"{text[:32].hex(' ')}{' …' if len(text) > 32 else ''}{number}"


def _origin(
    context: Context, model: Model, method: str, delegate: int, step: BlobStep
) -> tuple[str, frozenset[int]]:
    """Name and source handles of the node that a step of a delegate stands for."""
    inner = _inner(context, method, delegate)
    if inner is None or step.identifier is None:
        return "", frozenset()
    debug_map = (inner.meta or {}).get("debug_handle_map") or {}
    wanted = debug_map.get(step.identifier, ())
    wanted = {wanted} if isinstance(wanted, int) else set(wanted)
    nodes = [node for node in inner.original_module.graph.nodes if node.meta.get("debug_handle") in wanted]
    found = frozenset().union(*(provenance.handles(node) for node in nodes))
    return ", ".join(node.name for node in nodes), found


def _inner(context: Context, method: str, delegate: int) -> Any:
    """The module that a delegate was made from; None for a program from a file."""
    try:
        stage: Any = context.stage("planned")
    except WorkbenchError:
        return None
    program = stage._programs.get(method)
    if program is None:
        return None
    calls = [node for node in provenance.nodes_of(program.graph_module) if is_call_delegate(node)]
    return lowered_module_of(calls[delegate]) if delegate < len(calls) else None


def hex_lines(data: memoryview) -> list[str]:
    """Bytes as lines of 16: offset, hex, characters."""
    lines = []
    for start in range(0, len(data), 16):
        row = bytes(data[start : start + 16])
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:06x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {shown}")
    return lines


def texts_in(data: memoryview) -> list[str]:
    """Runs of printable characters, five at least, each different one once."""
    found: dict[str, None] = {}
    for match in _TEXT.finditer(data):
        found[match[0].decode("ascii")] = None
        if len(found) == _MOST_TEXTS:
            break
    return list(found)
