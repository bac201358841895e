"""Extraction: each tag of a graph becomes a program of its own, and one delegate call in its place.

All tags of a graph are taken out in one pass, in time linear in the graph (n log n for the new order). The
graph is edited in place; the tensors are shared. Node names, meta and source handles of the nodes that move
are kept.
"""

from __future__ import annotations

import dataclasses
import heapq
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ArgumentSpec,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node

from workbench import provenance
from workbench.backends.base import TAG_KEY
from workbench.backends.call_delegate import executorch_call_delegate, free_names
from workbench.backends.graphs import constant_inputs, mutated_buffers, tag_of
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.programs import FlatProgram, copy_attribute, copy_node, flat_call_graph
from workbench.errors import PartitionError

__all__ = ["Extracted", "extract_tags", "insert_delegates", "release_constants"]


@dataclass
class Extracted:
    """One tag, taken out but not yet lowered.

    Attributes:
        tag: The tag.
        program: The partition as a program.
        owner: The graph module that the partition comes from.
        nodes: Its operators in the owner, in graph order.
        inputs: Nodes of the owner that are passed in, in the order of the program's user inputs.
        outputs: Nodes of the partition whose values are passed out, in the order of the program's user
            outputs.
        constants: Placeholders of the owner that the partition owns.
        mutations: For each buffer that the delegate keeps itself: the node with the new value.
    """

    tag: str
    program: FlatProgram
    owner: GraphModule
    nodes: list[Node]
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    constants: list[Node] = field(default_factory=list)
    mutations: dict[Node, Node] = field(default_factory=dict)


def extract_tags(program: ExportedProgram, owner: GraphModule, only: str | None = None) -> list[Extracted]:
    """Make a program of each tag of one graph; the graph itself is left as it is.

    Args:
        program: The program that the graph belongs to; its tags are legal (see `verify_partition`).
        owner: Its top graph, or that of a control-flow branch.
        only: The one tag to make a program of; by default all.

    Returns:
        The partitions, in the order of their first nodes.

    Raises:
        PartitionError: Nothing that a tag computes is used.
    """
    top = owner is program.graph_module
    constants = constant_inputs(program) if top else {}
    writers = mutated_buffers(program) if top else {}
    members: dict[str, list[Node]] = {}
    for node in owner.graph.nodes:
        tag = tag_of(node)
        if tag is not None and node.op == "call_function" and only in (None, tag):
            members.setdefault(tag, []).append(node)
    return [_extract(program, owner, tag, nodes, constants, writers) for tag, nodes in members.items()]


def _extract(
    program: ExportedProgram,
    owner: GraphModule,
    tag: str,
    nodes: list[Node],
    constants: Mapping[str, InputSpec],
    writers: Mapping[str, str],
) -> Extracted:
    inside = set(nodes)
    sources = list(dict.fromkeys(s for node in nodes for s in node.all_input_nodes if s not in inside))
    attributes = [s for s in sources if s.op == "get_attr"]
    # A tag on a constant says that delegates own it; every tag that uses it then does.
    owned = [s for s in sources if s.name in constants and tag_of(s) is not None]
    owned.sort(key=lambda s: _CONSTANT_ORDER[constants[s.name].kind])
    taken = {*attributes, *owned}
    inputs = [s for s in sources if s not in taken]
    by_name = {node.name: node for node in nodes}
    mutations = {
        s: by_name[writers[s.name]]
        for s in owned
        if s.name in writers and tag_of(s) == tag and writers[s.name] in by_name
    }
    outputs = _outputs(nodes, inside, mutations)
    if not outputs and not mutations:
        raise PartitionError(
            f"nothing that the tag '{tag}' computes is used",
            stage="partition",
            node=nodes[-1].name,
            source=provenance.source_line(nodes[-1]),
            hint="leave nodes without users untagged",
        )
    graph, tables = _build_graph(owner, nodes, [*owned, *inputs], attributes, [*mutations.values(), *outputs])
    input_specs = [_owned_spec(constants[s.name]) for s in owned]
    input_specs += [InputSpec(InputKind.USER_INPUT, _argument(s), None) for s in inputs]
    output_specs = [
        OutputSpec(OutputKind.BUFFER_MUTATION, _argument(new), constants[s.name].target)
        for s, new in mutations.items()
    ]
    output_specs += [OutputSpec(OutputKind.USER_OUTPUT, _argument(node), None) for node in outputs]
    targets = [str(constants[s.name].target) for s in owned]
    extracted = FlatProgram(
        tables,
        graph,
        ExportGraphSignature(input_specs, output_specs),
        {t: program.state_dict[t] for t in targets if t in program.state_dict},
        dict(program.range_constraints),
        flat_call_graph(input_specs, output_specs),
        None,
        {t: program.constants[t] for t in targets if t in program.constants and t not in program.state_dict},
        verifiers=program.verifiers,
    )
    return Extracted(tag, extracted, owner, nodes, inputs, outputs, owned, mutations)


_CONSTANT_ORDER = {InputKind.PARAMETER: 0, InputKind.BUFFER: 1, InputKind.CONSTANT_TENSOR: 2}


def _owned_spec(spec: InputSpec) -> InputSpec:
    return dataclasses.replace(spec, arg=dataclasses.replace(spec.arg))


def _argument(node: Node) -> ArgumentSpec:
    symbolic = isinstance(node.meta.get("val"), (torch.SymInt, int))
    return SymIntArgument(name=node.name) if symbolic else TensorArgument(name=node.name)


def _outputs(nodes: Sequence[Node], inside: set[Node], mutations: Mapping[Node, Node]) -> list[Node]:
    """Nodes with a use outside, in graph order. That a buffer takes a new value on is no such use."""
    kept_by_delegate = set(mutations.values())
    outputs = []
    for node in nodes:
        outside = [user for user in node.users if user not in inside]
        if node in kept_by_delegate and all(user.op == "output" for user in outside):
            (output,) = outside or (None,)
            # Once as the buffer's new value; more often if it is a result as well.
            if output is None or _count(output.args[0], node) == 1:
                continue
        if outside:
            outputs.append(node)
    return outputs


def _count(results: Any, node: Node) -> int:
    return sum(result is node for result in results)


def _build_graph(
    owner: GraphModule,
    nodes: Sequence[Node],
    placeholders: Sequence[Node],
    attributes: Sequence[Node],
    outputs: Sequence[Node],
) -> tuple[Graph, dict[str, Any]]:
    graph = Graph()
    mapping: dict[Node, Node] = {}
    for source in placeholders:
        placeholder = graph.create_node("placeholder", source.name, name=source.name)
        placeholder.name = source.name  # see copy_node
        placeholder.meta = dict(source.meta)
        mapping[source] = placeholder
    tables = {str(node.target): copy_attribute(owner, str(node.target)) for node in attributes}
    for node in (*attributes, *nodes):
        mapping[node] = copy_node(graph, node, mapping)
    for node in mapping.values():
        node.meta.pop(TAG_KEY, None)
    graph.output(tuple(mapping[node] for node in outputs))
    return graph, tables


def insert_delegates(
    program: ExportedProgram, owner: GraphModule, lowered: Sequence[tuple[Extracted, LoweredBackendModule]]
) -> None:
    """Put the delegate calls of one graph in the place of what was taken out.

    The graph is valid afterwards but not recompiled; constants that only delegates use are still there
    (see `release_constants`).

    Args:
        program: The program that the graph belongs to; its signature follows where an output changes its
            name.
        owner: The graph module.
        lowered: All partitions of this graph with what they were lowered to.
    """
    if not lowered:
        return
    if owner is program.graph_module:
        _drop_mutations(program, [part for part, _ in lowered])
    _reorder(owner.graph, [part.nodes for part, _ in lowered])
    elements: dict[Node, Node] = {}
    for (part, module), name in zip(lowered, free_names(owner), strict=False):
        owner.add_module(name, module)
        _insert(owner, part, name, elements)
    renamed = {old.name: new.name for old, new in elements.items()}
    for part, _ in reversed(lowered):
        for node in reversed(part.nodes):
            owner.graph.erase_node(node)
    if owner is program.graph_module:
        for spec in program.graph_signature.output_specs:
            if getattr(spec.arg, "name", None) in renamed:
                spec.arg.name = renamed[spec.arg.name]


def _insert(owner: GraphModule, part: Extracted, name: str, elements: dict[Node, Node]) -> None:
    """Put a call before the nodes of a partition, which stand in one row, and let it feed their users.

    Args:
        owner: The graph module.
        part: The partition.
        name: Attribute that holds its lowered module.
        elements: For each node that a partition passes out what stands for it now. Grows.
    """
    graph = owner.graph
    with graph.inserting_before(part.nodes[0]):
        holder = graph.get_attr(name)
        # An input may be a result of a partition whose call is there already.
        inputs = (elements.get(node, node) for node in part.inputs)
        call = graph.call_function(executorch_call_delegate, (holder, *inputs))
        call.meta["val"] = tuple(node.meta["val"] for node in part.outputs)
        provenance.transfer(part.nodes, call)
        for index, node in enumerate(part.outputs):
            element = graph.call_function(operator.getitem, (call, index))
            element.meta["val"] = node.meta["val"]
            provenance.transfer([node], element)
            node.replace_all_uses_with(element)
            elements[node] = element


def _drop_mutations(program: ExportedProgram, parts: Sequence[Extracted]) -> None:
    """Remove the results that write buffers which delegates keep themselves, with their specifications."""
    constants = constant_inputs(program)
    kept_inside = {constants[node.name].target for part in parts for node in part.mutations}
    if not kept_inside:
        return
    output = program.graph.output_node()
    results: Any = output.args[0]
    specs = program.graph_signature.output_specs
    left = [
        (spec, result)
        for spec, result in zip(specs, results, strict=True)
        if spec.kind != OutputKind.BUFFER_MUTATION or spec.target not in kept_inside
    ]
    output.args = (tuple(result for _, result in left),)
    specs[:] = [spec for spec, _ in left]


def _reorder(graph: Graph, groups: Sequence[Sequence[Node]]) -> None:
    """Move nodes so that each group stands in one row, behind its inputs; else the order is kept."""
    group_of = {node: number for number, nodes in enumerate(groups) for node in nodes}
    position = {node: index for index, node in enumerate(graph.nodes)}
    waiting: dict[Node | int, int] = {}
    for node in position:
        key = group_of.get(node, node)
        inputs = sum(1 for source in node.all_input_nodes if group_of.get(source, source) != key)
        waiting[key] = waiting.get(key, 0) + inputs
    first = {number: position[nodes[0]] for number, nodes in enumerate(groups)}
    ready = [(first[k] if isinstance(k, int) else position[k], k) for k, n in waiting.items() if n == 0]
    # Positions differ, so the heap never compares nodes.
    heapq.heapify(ready)
    cursor = graph._root
    while ready:
        _, key = heapq.heappop(ready)
        for node in groups[key] if isinstance(key, int) else (key,):
            if cursor.next is not node:
                cursor.append(node)
            cursor = node
            for user in node.users:
                target = group_of.get(user, user)
                if target == key:
                    continue
                waiting[target] -= 1
                if waiting[target] == 0:
                    heapq.heappush(
                        ready, (first[target] if isinstance(target, int) else position[target], target)
                    )


def release_constants(program: ExportedProgram, parts: Sequence[Extracted]) -> None:
    """Remove from a program what its delegates own: placeholders, signature entries, tensors.

    Args:
        program: The program after `insert_delegates`.
        parts: The partitions of its top graph.
    """
    signature = program.graph_signature
    constants = constant_inputs(program)
    owned = dict.fromkeys(node for part in parts for node in part.constants)
    gone = {node.name for node in owned if not node.users}
    for node in owned:
        if node.name in gone:
            program.graph.erase_node(node)
        else:
            node.meta.pop(TAG_KEY, None)
    signature.input_specs = [
        spec for spec in signature.input_specs if getattr(spec.arg, "name", None) not in gone
    ]
    used = {spec.target for spec in signature.input_specs}
    for name in gone:
        target = str(constants[name].target)
        if target not in used:
            program.state_dict.pop(target, None)
            program.constants.pop(target, None)
