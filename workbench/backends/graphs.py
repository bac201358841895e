"""What partitioning asks of a graph: its nested graphs, its constants, the kinds of its values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec
from torch.fx import GraphModule, Node

from workbench.backends.base import TAG_KEY

__all__ = [
    "constant_inputs",
    "graphs_of",
    "is_constant_kind",
    "is_getitem",
    "is_structured",
    "is_symbolic_scalar",
    "mutated_buffers",
    "tag_of",
]

_CONSTANT_KINDS = frozenset((InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR))


def tag_of(node: Node) -> str | None:
    """The tag of a node, None for a node that stays."""
    return node.meta.get(TAG_KEY) or None


def graphs_of(program: ExportedProgram) -> Iterator[tuple[str, GraphModule]]:
    """The graph of a program and those of its control-flow branches, each with its path (`""` is the top)."""
    return _graphs("", program.graph_module)


def _graphs(path: str, graph_module: GraphModule) -> Iterator[tuple[str, GraphModule]]:
    yield path, graph_module
    seen = set()
    for node in graph_module.graph.nodes:
        if node.op != "get_attr" or node.target in seen:
            continue
        seen.add(node.target)
        inner: Any = graph_module
        for part in node.target.split("."):
            inner = getattr(inner, part, None)
        if isinstance(inner, GraphModule):
            yield from _graphs(f"{path}.{node.target}".lstrip("."), inner)


def is_constant_kind(spec: InputSpec) -> bool:
    """True for a parameter, a buffer or a lifted tensor constant."""
    return spec.kind in _CONSTANT_KINDS


def constant_inputs(program: ExportedProgram) -> dict[str, InputSpec]:
    """Parameters, buffers and lifted constants, by the name of their placeholder."""
    return {spec.arg.name: spec for spec in program.graph_signature.input_specs if is_constant_kind(spec)}


def mutated_buffers(program: ExportedProgram) -> dict[str, str]:
    """For each placeholder of a buffer that the program writes: the name of the node with the new value."""
    signature = program.graph_signature
    writers = {target: name for name, target in signature.buffers_to_mutate.items()}
    return {
        name: writers[target] for name, target in signature.inputs_to_buffers.items() if target in writers
    }


def is_getitem(node: Node) -> bool:
    """True for an element of the result of a node with several outputs."""
    return node.op == "call_function" and node.target is operator.getitem


def is_structured(node: Node) -> bool:
    """True for a node whose value is a tuple or a list, to be taken apart by `getitem`."""
    return isinstance(node.meta.get("val"), (tuple, list))


def is_symbolic_scalar(node: Node) -> bool:
    """True for a node that yields a number instead of a tensor (sizes, and arithmetic on them)."""
    value = node.meta.get("val")
    return isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))
