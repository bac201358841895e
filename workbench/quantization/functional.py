"""Operators that write their input become operators with a result of their own.

An exported program keeps `relu_` as it was written. Whoever reads the input later reads the written value;
between quantize and dequantize operators, which copy, that would be lost.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

__all__ = ["make_functional", "writes_state"]

aten = torch.ops.aten


def make_functional(program: ExportedProgram) -> int:
    """Replace in place what writes a value that is nobody else's memory; returns how many were replaced."""
    order = {node: number for number, node in enumerate(program.graph.nodes)}
    count = 0
    for node in list(program.graph.nodes):
        written = _written(node)
        plain = _functional(node.target) if written is not None else None
        if plain is None or written is None or written.op != "call_function" or _is_view(written):
            continue
        node.target = plain
        later = [user for user in written.users if user in order and order[user] > order[node]]
        for user in later:
            user.replace_input_with(written, node)
        count += 1
    if count:
        program.graph_module.recompile()
    return count


def writes_state(program: ExportedProgram) -> list[str]:
    """Names of the operators that write a parameter or buffer."""
    found = []
    for node in program.graph.nodes:
        written = _written(node)
        while written is not None and written.op == "call_function" and _is_view(written):
            first: Any = written.args[0]
            written = first if isinstance(first, Node) else None
        state = written is not None and written.op == "placeholder"
        if state or (node.target is aten.batch_norm.default and bool(node.args[5])):
            found.append(node.name)
    return found


def _written(node: Node) -> Node | None:
    """The value that an operator writes, if it is its first argument."""
    if not isinstance(node.target, OpOverload) or not node.target._schema.is_mutable or not node.args:
        return None
    alias = node.target._schema.arguments[0].alias_info
    first = node.args[0]
    return first if alias is not None and alias.is_write and isinstance(first, Node) else None


def _functional(target: Any) -> OpOverload | None:
    name = target._opname
    if not name.endswith("_") or name.startswith("__") or target.namespace != "aten":
        return None
    packet = getattr(aten, name[:-1], None)
    found = getattr(packet, target._overloadname or "default", None) if packet is not None else None
    if not isinstance(found, OpOverload):
        return None
    same = [a.name for a in found._schema.arguments] == [a.name for a in target._schema.arguments]
    return found if same else None


def _is_view(node: Node) -> bool:
    """Whether a result may be somebody else's memory."""
    if not isinstance(node.target, OpOverload):
        return True
    return any(value.alias_info is not None for value in node.target._schema.returns)
