"""Copies and flat views of exported programs. Graphs are copied, weights are shared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

__all__ = [
    "FlatProgram",
    "copy_attribute",
    "copy_graph",
    "copy_node",
    "copy_program",
    "copy_signature",
    "flat_call_graph",
    "flat_program",
]


class FlatProgram(ExportedProgram):
    """A program with flat positional inputs that returns a tuple.

    What stands inside a delegate has this form. `module()` is made once: torch's operator for delegate calls
    asks for it at each call.
    """

    _flat_module: Callable[..., tuple[Any, ...]] | None = None

    def module(self, check_guards: bool = True) -> Any:
        """The program as a callable: flat inputs to a tuple of outputs. Mutated buffers are written."""
        del check_guards  # the caller's graph has checked its own inputs
        if self._flat_module is None:
            self._flat_module = _FlatModule(self)
        return self._flat_module


class _FlatModule(torch.nn.Module):
    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        # In a tuple, so that torch.nn.Module doesn't register (and torch.export doesn't lift) what the
        # program holds.
        self._program = (program,)

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        (program,) = self._program
        given = iter(inputs)
        values = [_lifted(program, spec, given) for spec in program.graph_signature.input_specs]
        results = program.graph_module(*values)
        outputs = []
        for spec, value in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                outputs.append(value)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                state = program.state_dict if spec.target in program.state_dict else program.constants
                state[str(spec.target)].copy_(value)
        return tuple(outputs)


def _lifted(program: ExportedProgram, spec: InputSpec, given: Any) -> Any:
    if spec.kind == InputKind.USER_INPUT:
        return next(given)
    table = program.state_dict if spec.target in program.state_dict else program.constants
    return table[str(spec.target)]


def copy_graph(source: GraphModule) -> tuple[Graph, dict[str, Any]]:
    """Copy a graph with its meta; the graphs of its control-flow branches are copied too.

    Returns:
        The new graph, and the attributes that its `get_attr` nodes name.
    """
    graph = Graph()
    mapping: dict[Node, Node] = {}
    attributes: dict[str, Any] = {}
    for node in source.graph.nodes:
        mapping[node] = copy_node(graph, node, mapping)
        if node.op == "get_attr":
            attributes[node.target] = copy_attribute(source, node.target)
    return graph, attributes


def copy_node(graph: Graph, node: Node, mapping: Mapping[Node, Node]) -> Node:
    """Append a copy of a node with its name and meta.

    A new graph changes names that Python uses itself ("input"); exported programs hold such names, and
    their signatures go by them.
    """
    copied = graph.node_copy(node, mapping.__getitem__)
    copied.name = node.name
    return copied


def copy_attribute(owner: GraphModule, path: str) -> Any:
    """What a `get_attr` node names; a graph is copied, anything else is shared."""
    value: Any = owner
    for part in path.split("."):
        value = getattr(value, part)
    if not isinstance(value, GraphModule):
        return value
    graph, attributes = copy_graph(value)
    copied = GraphModule(attributes, graph, value.__class__.__name__)
    copied.meta.update(value.meta)
    return copied


def copy_signature(signature: ExportGraphSignature) -> ExportGraphSignature:
    """Copy a signature; its entries may be edited."""
    return ExportGraphSignature(
        [dataclasses.replace(spec, arg=dataclasses.replace(spec.arg)) for spec in signature.input_specs],
        [dataclasses.replace(spec, arg=dataclasses.replace(spec.arg)) for spec in signature.output_specs],
    )


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """A private copy: own graph, signature and tables; shared tensors, vals and lowered modules."""
    graph, attributes = copy_graph(program.graph_module)
    copied = type(program)(
        attributes,
        graph,
        copy_signature(program.graph_signature),
        dict(program.state_dict),
        dict(program.range_constraints),
        list(program.module_call_graph),
        program.example_inputs,
        dict(program.constants),
        verifiers=program.verifiers,
    )
    copied.graph_module.meta.update(program.graph_module.meta)
    return copied


def flat_program(program: ExportedProgram) -> FlatProgram:
    """A private copy of a program with the flat calling convention."""
    graph, attributes = copy_graph(program.graph_module)
    flat = FlatProgram(
        attributes,
        graph,
        copy_signature(program.graph_signature),
        dict(program.state_dict),
        dict(program.range_constraints),
        flat_call_graph(program.graph_signature.input_specs, program.graph_signature.output_specs),
        None,
        dict(program.constants),
        verifiers=program.verifiers,
    )
    flat.graph_module.meta.update(program.graph_module.meta)
    return flat


def flat_call_graph(inputs: list[InputSpec], outputs: list[OutputSpec]) -> list[ModuleCallEntry]:
    """The module call graph of a program that takes a flat tuple and returns one."""
    arguments = tuple(0 for spec in inputs if spec.kind == InputKind.USER_INPUT)
    results = tuple(0 for spec in outputs if spec.kind == OutputKind.USER_OUTPUT)
    in_spec = pytree.tree_structure((arguments, {}))
    out_spec = pytree.tree_structure(results)
    return [ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))]
