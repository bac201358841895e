"""Exported programs as modules that quantizers can annotate, and back.

A quantizer of PT2E expects weights as attributes of the module (`get_attr`); an exported program has them as
inputs of the graph. Only the form changes: names, metadata and order of the other nodes stay.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, GraphModule, Node

from workbench.backends.programs import copy_attribute, copy_node, copy_signature
from workbench.edge.fake import fake_mode, fake_of
from workbench.edge.program import input_specs

__all__ = ["attribute", "lift", "unlift"]

_LIFTED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def attribute(module: torch.nn.Module, path: str) -> Any:
    """What a dotted path names in a module; None where it names nothing."""
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def unlift(program: ExportedProgram) -> GraphModule:
    """A module with the weights as attributes: flat inputs of the user -> flat results, mutations included.

    Args:
        program: Not changed; the tensors are shared.
    """
    specs = input_specs(program)
    graph = Graph()
    mapping: dict[Node, Node] = {}
    attributes: dict[str, Any] = {}
    inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
    given = [node for node in inputs if specs[node.name].kind not in _LIFTED]
    for node in [*given, *(item for item in inputs if item not in set(given))]:
        spec = specs[node.name]
        if spec.kind not in _LIFTED:
            mapping[node] = copy_node(graph, node, mapping)
            continue
        target = str(spec.target)
        table = program.state_dict if target in program.state_dict else program.constants
        attributes[target] = table[target]
        made = graph.create_node("get_attr", target, name=node.name)
        made.name = node.name
        made.meta = dict(node.meta)
        mapping[node] = made
    for node in program.graph.nodes:
        if node.op == "placeholder":
            continue
        mapping[node] = copy_node(graph, node, mapping)
        if node.op == "get_attr":
            attributes[str(node.target)] = copy_attribute(program.graph_module, str(node.target))
    module = GraphModule(attributes, graph)
    module.meta.update(program.graph_module.meta)
    return module


def lift(module: GraphModule, program: ExportedProgram) -> ExportedProgram:
    """The exported program of a module that `unlift` made of another one, and that was changed since.

    Args:
        module: Its attributes that the program does not know become constants.
        program: Where the module comes from: tells which attribute is a parameter, a buffer or a constant.

    Returns:
        A new program. Weights that nothing reads any more are left out.
    """
    signature = copy_signature(program.graph_signature)
    known = {str(spec.target): spec for spec in signature.input_specs if spec.kind in _LIFTED}
    written = {str(spec.target) for spec in signature.output_specs if spec.target is not None}
    graph = Graph()
    mapping: dict[Node, Node] = {}
    state: dict[str, Any] = {}
    constants: dict[str, Any] = {
        name: value for name, value in program.constants.items() if not isinstance(value, torch.Tensor)
    }
    lifted: list[InputSpec] = []
    inner: dict[str, Any] = {}
    mode = fake_mode(program.graph_module)
    placed: dict[str, Node] = {}
    for node in _in_old_order(module, list(known)):
        target = str(node.target)
        value = attribute(module, target)
        if isinstance(value, GraphModule) or (not node.users and target not in written):
            continue
        if target in placed:
            mapping[node] = placed[target]
            continue
        made = graph.create_node("placeholder", node.name, name=node.name)
        made.name = node.name
        made.target = node.name
        made.meta = dict(node.meta)
        if "val" not in made.meta:
            made.meta["val"] = fake_of(value.detach(), mode)
        spec = known.get(target)
        if spec is None:
            spec = InputSpec(
                InputKind.CONSTANT_TENSOR, TensorArgument(name=made.name), target=target, persistent=None
            )
        spec.arg = TensorArgument(name=made.name)
        lifted.append(spec)
        (state if target in program.state_dict else constants)[target] = value
        placed[target] = mapping[node] = made
    for node in module.graph.nodes:
        if node in mapping or (node.op == "get_attr" and _is_weight(module, node)):
            continue
        mapping[node] = copy_node(graph, node, mapping)
        if node.op == "get_attr":
            inner[str(node.target)] = attribute(module, str(node.target))
    given = [spec for spec in signature.input_specs if spec.kind not in _LIFTED]
    signature.input_specs[:] = [*lifted, *given]
    results: Any = graph.output_node().args[0]
    for output, result in zip(signature.output_specs, results, strict=True):
        if isinstance(result, Node):
            output.arg = dataclasses.replace(output.arg, name=result.name)
    made_program = ExportedProgram(
        inner,
        graph,
        signature,
        state,
        dict(program.range_constraints),
        list(program.module_call_graph),
        program.example_inputs,
        constants,
        verifiers=program.verifiers,
    )
    made_program.graph_module.meta.update(program.graph_module.meta)
    return made_program


def _is_weight(module: GraphModule, node: Node) -> bool:
    return isinstance(attribute(module, str(node.target)), torch.Tensor)


def _in_old_order(module: GraphModule, order: list[str]) -> list[Node]:
    """The attribute nodes: those of the old signature first, in its order."""
    nodes = [node for node in module.graph.nodes if node.op == "get_attr"]
    position = {target: index for index, target in enumerate(order)}
    return sorted(nodes, key=lambda node: position.get(str(node.target), len(position)))
