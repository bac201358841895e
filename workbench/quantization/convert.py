"""From a plan and its scales to a graph of quantize and dequantize operators.

The convention is that of PT2E, as XNNPACK's partitioners expect it: each reader of a quantized value has a
dequantize node of its own, weights are integers followed by a dequantize node, biases stay in floats.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import compute, fake_mode, fake_of
from workbench.errors import QuantizationError
from workbench.quantization import pt2e  # noqa: F401  # defines the operators
from workbench.quantization.lifting import attribute, lift, unlift
from workbench.quantization.plan import Group, Plan, Point
from workbench.quantization.programs import CalibratedProgram

__all__ = ["convert"]

quantized = torch.ops.quantized_decomposed


def convert(
    calibrated: CalibratedProgram, *, only: Iterable[str] | None = None, without: Iterable[str] = ()
) -> ExportedProgram:
    """Write the quantized program.

    Args:
        calibrated: What `calibrate` returned.
        only: Names of layers (`plan.layers`): the others stay in floats.
        without: Names of layers that stay in floats.

    Returns:
        A new program with q/dq operators; nodes keep their names, source handles and stack traces, new ones
        have those of the value that they quantize.

    Raises:
        QuantizationError: There is no such layer, or a scale can't be used.
        CalibrationError: An observer saw nothing.
    """
    plan = calibrated.plan
    if only is not None:
        plan = plan.only(only)
    if without := tuple(without):
        plan = plan.without(without)
    module = unlift(calibrated.program)
    _Writer(module, plan, calibrated).write()
    made = lift(module, calibrated.program)
    provenance.attach(made, provenance.source_map(calibrated.program))
    return made


class _Writer:
    """Puts the operators of one plan into a module."""

    def __init__(self, module: GraphModule, plan: Plan, calibrated: CalibratedProgram) -> None:
        self._module, self._plan = module, plan
        self._graph = module.graph
        self._observers = calibrated.observers
        self._groups = dict(plan.points())
        self._all = dict(calibrated.plan.points())
        self._mode = fake_mode(module)
        self._scales: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self._constants: dict[Any, Node] = {}
        self._reader: Node | None = None

    def write(self) -> None:
        for node in list(self._graph.nodes):
            self._write_value(node)
        self._graph.eliminate_dead_code(
            lambda node: node.op not in ("get_attr", "call_module") or bool(node.users)
        )

    # ---- values --------------------------------------------------------------------------------------------

    def _write_value(self, node: Node) -> None:
        """Quantize the result of a node for its readers, as its points say."""
        own = self._groups.get(Point(node.name))
        readers = list(node.users)
        edges = {reader: self._groups.get(Point(node.name, reader.name)) for reader in readers}
        if own is None and not any(edges.values()):
            return
        numbers: dict[str, Callable[[], Node]] = {}
        for reader in readers:
            asked = edges[reader]
            source: Node = node
            if own is not None:
                source = self._quantize(node, own, numbers, reader)
            if asked is not None and asked is not own:
                source = self._quantize(source, asked, numbers if source is node else {}, reader)
            if source is not node:
                reader.replace_input_with(node, source)

    def _quantize(
        self, node: Node, group: Group, numbers: dict[str, Callable[[], Node]], reader: Node
    ) -> Node:
        """A dequantize node of the reader's own, behind a quantize node that all readers of a group share."""
        self._reader = reader
        if group.name not in numbers:
            numbers[group.name] = self._written(node, group)
        with self._graph.inserting_before(reader):
            return numbers[group.name]()

    def _written(self, node: Node, group: Group) -> Callable[[], Node]:
        """Write the integers of a value; returns what makes a dequantize node."""
        if group.spec.dynamic:
            return self._dynamic(node, group)
        scale, zero = self._parameters(group)
        if node.op == "get_attr" and isinstance(attribute(self._module, str(node.target)), torch.Tensor):
            return self._constant(node, group, scale, zero)
        if scale.numel() != 1:
            return self._channels(node, group, scale, zero)
        arguments = self._per_tensor(group, scale, zero)
        with self._graph.inserting_after(node):
            integers = self._call(
                quantized.quantize_per_tensor.default, (node, *arguments), node, group.spec.dtype
            )
        return lambda: self._call(
            quantized.dequantize_per_tensor.default, (integers, *arguments), node, node.meta["val"].dtype
        )

    def _channels(self, node: Node, group: Group, scale: Any, zero: Any) -> Callable[[], Node]:
        arguments = self._per_channel(node, group, scale, zero)
        with self._graph.inserting_after(node):
            integers = self._call(
                quantized.quantize_per_channel.default, (node, *arguments), node, group.spec.dtype
            )
        return lambda: self._call(
            quantized.dequantize_per_channel.default, (integers, *arguments), node, node.meta["val"].dtype
        )

    # ---- constants -----------------------------------------------------------------------------------------

    def _constant(self, node: Node, group: Group, scale: Any, zero: Any) -> Callable[[], Node]:
        """Integers in the place of a weight."""
        weight = attribute(self._module, str(node.target)).detach()
        spec = group.spec
        if spec.group_size is not None:
            shaped = weight.reshape(weight.shape[0], -1, spec.group_size).double()
            numbers = (shaped / scale.unsqueeze(-1)).round() + zero.unsqueeze(-1)
            numbers = numbers.reshape(weight.shape)
        else:
            shape = [1] * weight.dim()
            if spec.axis is not None:
                shape[spec.axis] = -1
            numbers = torch.round(weight.double() / scale.reshape(shape)) + zero.reshape(shape)
        integers = numbers.clamp_(spec.quant_min, spec.quant_max).to(spec.dtype)
        held = self._hold(group, node, f"{node.target}_quantized", integers)
        limits = (spec.quant_min, spec.quant_max, spec.dtype)
        dtype = node.meta["val"].dtype
        if spec.group_size is not None:
            scales = self._hold(group, node, f"{node.target}_scale", scale.float())
            zeros = self._hold(group, node, f"{node.target}_zero_point", zero.to(torch.int32))
            arguments: tuple[Any, ...] = (held, scales, zeros, *limits, spec.group_size, dtype)
            return lambda: self._call(quantized.dequantize_per_channel_group.default, arguments, node, dtype)
        if spec.axis is not None:
            arguments = (held, *self._per_channel(node, group, scale, zero))
            return lambda: self._call(quantized.dequantize_per_channel.default, arguments, node, dtype)
        arguments = (held, *self._per_tensor(group, scale, zero))
        return lambda: self._call(quantized.dequantize_per_tensor.default, arguments, node, dtype)

    def _hold(self, group: Group, node: Node, name: str, tensor: torch.Tensor) -> Node:
        """A new attribute of the module with a node that reads it; one for all readers of a group."""
        name = name.replace(".", "_")
        key = (group.name, name)
        if key in self._constants:
            return self._constants[key]
        free, number = name, 0
        while hasattr(self._module, free):
            number += 1
            free = f"{name}_{number}"
        self._module.register_buffer(free, tensor)
        with self._graph.inserting_before(next(iter(self._graph.nodes))):
            held = self._graph.create_node("get_attr", free)
        held.meta["val"] = fake_of(tensor, self._mode)
        provenance.transfer((node,), held)
        self._constants[key] = held
        return held

    # ---- scales chosen at run time -------------------------------------------------------------------------

    def _dynamic(self, node: Node, group: Group) -> Callable[[], Node]:
        spec = group.spec
        limits = (spec.quant_min, spec.quant_max, spec.dtype)
        token = spec.dynamic == "token"
        observer = self._observers.get(group.name)
        with self._graph.inserting_after(node):
            marker = self._graph.call_function(operator.getitem)  # keeps the place; erased below
        with self._graph.inserting_before(marker):
            if token:
                chosen = self._plain(
                    quantized.choose_qparams_per_token_asymmetric.default, (node, spec.dtype), node
                )
            else:
                eps = float(getattr(observer, "eps", 2.0**-23))
                kind = "choose_qparams_symmetric" if spec.symmetric else "choose_qparams"
                target = getattr(quantized, kind).tensor
                arguments = (node, spec.quant_min, spec.quant_max, eps, spec.dtype)
                chosen = self._plain(target, arguments, node)
            scale, zero = (self._plain(operator.getitem, (chosen, index), node) for index in (0, 1))
            write = quantized.quantize_per_token.default if token else quantized.quantize_per_tensor.tensor
            read = quantized.dequantize_per_token.default if token else quantized.dequantize_per_tensor.tensor
            integers = self._call(write, (node, scale, zero, *limits), node, spec.dtype)
        self._graph.erase_node(marker)
        dtype = node.meta["val"].dtype
        more = (dtype,) if token else ()
        return lambda: self._call(read, (integers, scale, zero, *limits, *more), node, dtype)

    # ---- nodes ---------------------------------------------------------------------------------------------

    def _call(self, target: Any, arguments: tuple[Any, ...], origin: Node, dtype: torch.dtype) -> Node:
        """A node whose result has the shape of the value that it stands for."""
        made = self._bare(target, arguments, origin)
        with self._mode:
            made.meta["val"] = torch.empty_like(origin.meta["val"], dtype=dtype)
        return made

    def _plain(self, target: Any, arguments: tuple[Any, ...], origin: Node) -> Node:
        made = self._bare(target, arguments, origin)
        compute(made, self._mode)
        return made

    def _bare(self, target: Any, arguments: tuple[Any, ...], origin: Node) -> Node:
        made = self._graph.call_function(target, arguments)
        # Inputs and weights are of no line; what reads them is.
        place = origin if origin.meta.get("stack_trace") or self._reader is None else self._reader
        for key in ("nn_module_stack", "stack_trace", "source_fn_stack"):
            if key in place.meta:
                made.meta[key] = place.meta[key]
        for key in ("custom", provenance.META_KEY):
            if key in origin.meta:
                made.meta[key] = origin.meta[key]
        return made

    # ---- scales --------------------------------------------------------------------------------------------

    def _per_tensor(self, group: Group, scale: Any, zero: Any) -> tuple[Any, ...]:
        spec = group.spec
        return float(scale), int(zero), spec.quant_min, spec.quant_max, spec.dtype

    def _per_channel(self, node: Node, group: Group, scale: Any, zero: Any) -> tuple[Any, ...]:
        spec = group.spec
        scales = self._hold(group, node, f"{node.target}_scale", scale.float())
        zeros = self._hold(group, node, f"{node.target}_zero_point", zero.to(torch.int64))
        return scales, zeros, spec.axis, spec.quant_min, spec.quant_max, spec.dtype

    def _parameters(self, group: Group) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales (float64) and zero points of a group."""
        if group.name not in self._scales:
            self._scales[group.name] = self._checked(group, *self._chosen(group))
        return self._scales[group.name]

    def _chosen(self, group: Group) -> tuple[torch.Tensor, torch.Tensor]:
        spec = group.spec
        if spec.scale is not None:
            return torch.tensor([spec.scale], dtype=torch.float64), torch.tensor([spec.zero_point])
        if spec.derive is not None:
            sources = [self._observers.get(self._all[point].name) for point in spec.derived_from]
            return spec.derive(sources)
        observer = self._observers.get(group.name)
        if observer is None:
            raise QuantizationError(
                f"there is no observer of {group.name}", stage="convert", node=group.values[0]
            )
        found: tuple[torch.Tensor, torch.Tensor] = observer.calculate_qparams()
        return found

    def _checked(self, group: Group, scale: Any, zero: Any) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.as_tensor(scale).detach().double()
        zero = torch.as_tensor(zero).detach()
        if zero.dtype.is_floating_point:
            zero = zero.round().to(torch.int64)  # some schemes of PT2E have zero points between two numbers
        if not bool(torch.isfinite(scale).all()) or not bool((scale > 0).all()):
            raise QuantizationError(
                f"the scale of `{group.name}` can't be used",
                stage="convert",
                node=group.values[0],
                expected="finite and above 0",
                found=str(scale.reshape(-1)[:4].tolist()),
                hint="look at calibrated.observer_report, or keep the layer in floats",
            )
        return scale if scale.dim() else scale.reshape(1), zero if zero.dim() else zero.reshape(1)
