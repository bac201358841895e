"""Reading and changing the inputs of an `ExportedProgram` in place: constants, parameters, buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument
from torch.fx import GraphModule, Node

from workbench.edge.fake import fake_of

__all__ = [
    "add_constant",
    "branch_names",
    "constant_tensor",
    "graph_modules",
    "input_specs",
    "lifted_tensor",
    "mutated_targets",
    "remove_inputs",
    "sync_outputs",
    "unique_name",
]

_LIFTED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def input_specs(program: ExportedProgram) -> dict[str, InputSpec]:
    """The input specification of each placeholder, by the placeholder's name."""
    return {spec.arg.name: spec for spec in program.graph_signature.input_specs}


def lifted_tensor(program: ExportedProgram, spec: InputSpec) -> torch.Tensor | None:
    """The tensor behind a parameter, buffer or constant; None for an input of the user."""
    if spec.kind not in _LIFTED or spec.target is None:
        return None
    found = program.state_dict.get(spec.target)
    if found is None:
        found = program.constants.get(spec.target)
    return found if isinstance(found, torch.Tensor) else None


def mutated_targets(program: ExportedProgram) -> frozenset[str]:
    """Names of the buffers that the program writes."""
    kind = OutputKind.BUFFER_MUTATION
    specs = program.graph_signature.output_specs
    return frozenset(spec.target for spec in specs if spec.kind == kind and spec.target is not None)


def constant_tensor(program: ExportedProgram, node: Node) -> torch.Tensor | None:
    """The value of a placeholder that never changes; None for inputs, mutable buffers and other nodes.

    Walks the signature on each call; passes that ask for many nodes build the table once with `input_specs`.
    """
    spec = input_specs(program).get(node.name) if node.op == "placeholder" else None
    if spec is None or spec.target in mutated_targets(program):
        return None
    return lifted_tensor(program, spec)


def unique_name(program: ExportedProgram, stem: str) -> str:
    """A name for a new constant that no parameter, buffer, constant or node has."""
    number = len(program.constants)
    taken = {node.name for node in program.graph.nodes if node.op == "placeholder"}
    while True:
        name = f"{stem}{number}"
        if name not in program.constants and name not in program.state_dict and name not in taken:
            return name
        number += 1


def add_constant(program: ExportedProgram, tensor: torch.Tensor, mode: Any, *, stem: str) -> Node:
    """Add a constant input to a program, in front of the user's inputs.

    Args:
        program: Changed in place: graph, signature and constants.
        tensor: The value, shared, not copied.
        mode: The mode of the graph's fake values.
        stem: Start of the new constant's name.

    Returns:
        The new placeholder.
    """
    name = unique_name(program, stem)
    specs = program.graph_signature.input_specs
    position = next(
        (i for i, spec in enumerate(specs) if spec.kind not in (*_LIFTED, InputKind.TOKEN)), len(specs)
    )
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    anchor = placeholders[position] if position < len(placeholders) else _first_body_node(program)
    with program.graph.inserting_before(anchor):
        node: Node = program.graph.placeholder(name)
    node.meta["val"] = fake_of(tensor, mode)
    specs.insert(
        position,
        InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=node.name), target=name, persistent=None),
    )
    program.constants[name] = tensor
    return node


def _first_body_node(program: ExportedProgram) -> Node:
    nodes: Iterator[Node] = iter(program.graph.nodes)
    return next(node for node in nodes if node.op != "placeholder")


def remove_inputs(program: ExportedProgram, nodes: Collection[Node]) -> None:
    """Remove placeholders without users, their specifications and their tensors.

    Raises:
        ValueError: If one of the nodes is an input of the user or still has users.
    """
    specs = input_specs(program)
    doomed = set()
    for node in nodes:
        spec = specs[node.name]
        if spec.kind not in _LIFTED or node.users:
            raise ValueError(f"{node.name} is an input of the user, or is in use")
        doomed.add(node.name)
        program.graph.erase_node(node)
    signature = program.graph_signature
    signature.input_specs[:] = [spec for spec in signature.input_specs if spec.arg.name not in doomed]
    kept = {spec.target for spec in signature.input_specs}
    for name in doomed:
        target = specs[name].target
        if target not in kept:
            program.state_dict.pop(target, None)
            program.constants.pop(target, None)


def sync_outputs(program: ExportedProgram) -> None:
    """Write the names of the graph's results to the signature, after passes replaced some of them."""
    results: Any = program.graph.output_node().args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        if isinstance(result, Node):
            spec.arg = dataclasses.replace(spec.arg, name=result.name)


def branch_names(node: Node) -> list[str]:
    """Attribute names of the graphs that a control-flow node calls."""
    names = []
    for argument in node.args:
        if isinstance(argument, Node) and argument.op == "get_attr":
            owner = argument.graph.owning_module
            if isinstance(getattr(owner, str(argument.target), None), GraphModule):
                names.append(str(argument.target))
    return names


def graph_modules(graph_module: GraphModule) -> Iterator[GraphModule]:
    """A graph and all control-flow graphs in it, outer before inner; delegates' graphs are not entered."""
    yield graph_module
    for node in graph_module.graph.nodes:
        if node.op == "get_attr" and node.users:
            inner = getattr(graph_module, str(node.target), None)
            if isinstance(inner, GraphModule):
                yield from graph_modules(inner)
