"""A lowered module as a program of its own: its inputs, one delegate call, its outputs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph

from workbench.backends.call_delegate import executorch_call_delegate
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.programs import copy_signature, flat_call_graph

if TYPE_CHECKING:
    from workbench.emit.ir import Program

__all__ = ["emit_standalone", "standalone_program"]


def standalone_program(lowered: LoweredBackendModule) -> ExportedProgram:
    """The program that calls a lowered module once, with flat inputs and outputs."""
    original = lowered.original_module
    signature = copy_signature(original.graph_signature)
    inputs = [spec for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    placeholders = {node.name: node for node in original.graph.nodes if node.op == "placeholder"}
    graph = Graph()
    arguments = []
    for spec in inputs:
        source = placeholders[spec.arg.name]
        node = graph.create_node("placeholder", source.name, name=source.name)
        node.name = source.name  # see copy_node
        node.meta = dict(source.meta)
        arguments.append(node)
    call = graph.call_function(executorch_call_delegate, (graph.get_attr("lowered_module_0"), *arguments))
    results = zip(signature.output_specs, original.graph.output_node().args[0], strict=True)
    returned = [node for spec, node in results if spec.kind == OutputKind.USER_OUTPUT]
    call.meta["val"] = tuple(node.meta["val"] for node in returned)
    elements, outputs = [], []
    for index, node in enumerate(returned):
        element = graph.call_function(operator.getitem, (call, index))
        element.meta = {"val": node.meta["val"]}
        elements.append(element)
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=element.name), None))
    graph.output(tuple(elements))
    fresh = [InputSpec(InputKind.USER_INPUT, spec.arg, None) for spec in inputs]
    return ExportedProgram(
        {"lowered_module_0": lowered},
        graph,
        ExportGraphSignature(fresh, outputs),
        {},
        dict(original.range_constraints),
        flat_call_graph(fresh, outputs),
        verifiers=original.verifiers,
    )


def emit_standalone(lowered: LoweredBackendModule) -> Program:
    """The emitted program of a lowered module.

    Raises:
        MemoryPlanError: Its inputs and outputs have no bounded size.
        EmitError: It can't be written.
    """
    # The one place below the managers that emits; see `LoweredBackendModule.program`.
    from workbench.emit import ExecutorchBackendConfig, emit

    return emit({"forward": standalone_program(lowered)}, ExecutorchBackendConfig()).program
