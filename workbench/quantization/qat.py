"""Quantization-aware training: a module that computes as the integers will, to be trained further.

trained = prepare_qat(exported_program, quantizer)
for x, y in data:
    loss(trained.module(x), y).backward(); optimizer.step()
quantized = trained.convert()
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from workbench.backends.programs import copy_program
from workbench.errors import QuantizationError
from workbench.quantization.convert import convert
from workbench.quantization.fake_quantize import FakeQuantize, fake_quantize_of
from workbench.quantization.fold_batch_norm import folded
from workbench.quantization.functional import writes_state
from workbench.quantization.lifting import attribute, unlift
from workbench.quantization.norm_in_training import LayerWithNorm
from workbench.quantization.plan import Point
from workbench.quantization.prepare import prepare
from workbench.quantization.programs import CalibratedProgram, PreparedProgram

__all__ = ["TrainingProgram", "prepare_qat"]


def prepare_qat(program: ExportedProgram, quantizer: Any, **options: Any) -> TrainingProgram:
    """Make a module to be trained.

    Args:
        program: As `torch.export` made it, in evaluation mode: dropout is not simulated, batch norms are.
        quantizer: A quantizer of PT2E.
        **options: As of `prepare`.

    Raises:
        QuantizationError: As of `prepare`; or the program changes buffers, which training can't follow.
    """
    specs = program.graph_signature.output_specs
    changed = [spec.target for spec in specs if spec.kind != OutputKind.USER_OUTPUT]
    if changed := [*changed, *writes_state(program)]:
        raise QuantizationError(
            "a program that changes its buffers can't be trained",
            stage="prepare",
            found=", ".join(map(str, changed)),
            hint="export the model in evaluation mode: model.eval()",
        )
    return TrainingProgram(prepare(program, quantizer, **options))


class TrainingProgram:
    """A prepared program with a module that simulates its quantization.

    Attributes:
        prepared: The program as it was before training.
        module: What is trained: the inputs and results of the model, parameters of its own (the model's are
            not written). In evaluation mode, scales and batch norms stay as they are.
    """

    def __init__(self, prepared: PreparedProgram) -> None:
        self.prepared = prepared
        self._simulated = {group.name: fake_quantize_of(group) for group in prepared.plan.groups}
        graph = unlift(prepared.program)
        self._norms = _insert_norms(graph, prepared, self._simulated)
        self._parameters = _own_parameters(graph, prepared.program)
        _insert(graph, prepared, self._simulated)
        self.module = _Trained(graph, prepared.program)

    def convert(self) -> ExportedProgram:
        """The quantized program with the weights and scales as they are now.

        Raises:
            CalibrationError: The module was never run.
        """
        return convert(self.calibrated())

    def calibrated(self) -> CalibratedProgram:
        """The trained program with its scales, as after calibration."""
        program = copy_program(self.prepared.program)
        values = {target: value.detach().clone() for target, value in self._parameters.items()}
        for layer, trained in self._norms.items():
            weight, bias = trained.targets
            values[weight], values[bias] = (item.detach().clone() for item in folded(trained.norm_now(layer)))
        for target, value in values.items():
            table = program.state_dict if target in program.state_dict else program.constants
            old = table[target]
            table[target] = torch.nn.Parameter(value) if isinstance(old, torch.nn.Parameter) else value
        observers: dict[str, Any] = {}
        with torch.no_grad():
            module = unlift(program)
            nodes = {node.name: node for node in module.graph.nodes}
            for group in self.prepared.plan.groups:
                simulated = self._simulated[group.name]
                observers[group.name] = simulated if simulated.observer is None else simulated.observer
                if group.constant and simulated.observer is not None:
                    for name in group.values:
                        simulated.observer(attribute(module, str(nodes[name].target)))
        return CalibratedProgram(program, self.prepared.plan, observers)


class _Trained(torch.nn.Module):
    """The graph behind the model's own signature."""

    def __init__(self, graph: GraphModule, program: ExportedProgram) -> None:
        super().__init__()
        self.graph_module = graph
        self._out_spec = program.call_spec.out_spec

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = pytree.tree_flatten((args, kwargs))
        return pytree.tree_unflatten(list(self.graph_module(*leaves)), self._out_spec)


def _own_parameters(graph: GraphModule, program: ExportedProgram) -> dict[str, torch.nn.Parameter]:
    """Replace the graph's parameters, which are the model's, by copies that may be trained."""
    kinds = {str(spec.target): spec.kind for spec in program.graph_signature.input_specs}
    found: dict[str, torch.nn.Parameter] = {}
    for node in graph.graph.nodes:
        target = str(node.target)
        if node.op != "get_attr" or target in found or not node.users:
            continue
        owner, _, name = target.rpartition(".")
        holder = graph.get_submodule(owner) if owner else graph
        value = getattr(holder, name)
        if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
            continue
        if kinds.get(target) is InputKind.BUFFER:
            continue
        delattr(holder, name)
        found[target] = torch.nn.Parameter(value.detach().clone())
        holder.register_parameter(name, found[target])
    return found


def _insert_norms(
    graph: GraphModule, prepared: PreparedProgram, simulated: dict[str, FakeQuantize]
) -> dict[str, LayerWithNorm]:
    """Put the batch norms back that were folded, as modules that train as their layers will compute."""
    nodes = {node.name: node for node in graph.graph.nodes}
    groups = dict(prepared.plan.points())
    made = {}
    for norm in prepared.norms:
        layer = nodes[norm.layer]
        weight, bias = layer.args[1], layer.args[2]
        group = groups.get(Point(weight.name, layer.name))
        module = LayerWithNorm(norm, layer, None if group is None else simulated[group.name])
        name = f"{layer.name}_with_norm"
        graph.add_submodule(name, module)
        with graph.graph.inserting_before(layer):
            call = graph.graph.call_module(name, (layer.args[0],))
        call.meta = dict(layer.meta)
        layer.replace_all_uses_with(call)
        graph.graph.erase_node(layer)
        call.name = norm.layer  # the plan goes by names
        for unused in (weight, bias):
            if not unused.users:
                graph.graph.erase_node(unused)
        made[norm.layer] = module
    graph.recompile()
    return made


def _insert(graph: GraphModule, prepared: PreparedProgram, simulated: dict[str, FakeQuantize]) -> None:
    """Put the simulation behind each value that will be quantized."""
    groups = dict(prepared.plan.points())
    names = {}
    for number, (name, module) in enumerate(simulated.items()):
        names[name] = f"fake_quantize_{number}"
        graph.add_submodule(names[name], module)
    for node in list(graph.graph.nodes):
        own = groups.get(Point(node.name))
        readers: list[Node] = list(node.users)
        source = node
        if own is not None:
            with graph.graph.inserting_after(node):
                source = graph.graph.call_module(names[own.name], (node,))
            for reader in readers:
                reader.replace_input_with(node, source)
        made: dict[str, Node] = {}
        for reader in readers:
            asked = groups.get(Point(node.name, reader.name))
            if asked is None or asked is own:
                continue
            if asked.name not in made:
                with graph.graph.inserting_after(source):
                    made[asked.name] = graph.graph.call_module(names[asked.name], (source,))
            reader.replace_input_with(source, made[asked.name])
    graph.graph.lint()
    graph.recompile()
