"""Bytes and floating-point operations of a program's layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.edge.program import input_specs, lifted_tensor
from workbench.pruning.coupling import layer_of

__all__ = ["LayerCost", "layer_costs", "node_flops"]


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs.

    Attributes:
        nbytes: Bytes of its parameters, buffers and constants.
        flops: Floating-point operations of one execution, a multiplication and an addition counted as two;
            None where a symbolic size leaves it open.
        source: `file:line` of its operator, or empty.
        handles: Source handles of its operator.
    """

    nbytes: int
    flops: int | None
    source: str
    handles: frozenset[int]


def layer_costs(program: ExportedProgram) -> dict[str, LayerCost]:
    """By layer (the parameters' names without their last part) what it costs, in the order of the graph."""
    specs = input_specs(program)
    own: dict[str, list[Any]] = {}
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        weights = [
            (specs[value.name].target, tensor)
            for value in _read(node)
            if value.op == "placeholder" and (tensor := lifted_tensor(program, specs[value.name])) is not None
        ]
        for name, tensor in weights:
            entry = own.setdefault(layer_of(str(name)), [{}, 0, "", frozenset()])
            entry[0][name] = tensor.numel() * tensor.element_size()
        if weights:
            entry = own[layer_of(str(weights[0][0]))]
            flops = node_flops(node)
            entry[1] = None if flops is None or entry[1] is None else entry[1] + flops
            if flops:
                entry[2] = entry[2] or provenance.source_line(node) or ""
                entry[3] = entry[3] | provenance.handles(node)
    return {
        layer: LayerCost(sum(sizes.values()), flops, source, handles)
        for layer, (sizes, flops, source, handles) in own.items()
    }


def node_flops(node: Node) -> int | None:
    """Floating-point operations of a convolution or a product; 0 of other operators, None if symbolic."""
    name = str(getattr(node.target, "overloadpacket", "")).removeprefix("aten.")
    shapes: list[Any] = [_shape(value) for value in node.args]
    result = _shape(node)
    if name.startswith("conv"):
        per_result = math.prod(shapes[1][1:])
        moved = shapes[0] if name.startswith("conv_transpose") else result
        return _product(moved, 2 * per_result)
    if name == "linear":
        return _product(result, 2 * shapes[1][1])
    if name in ("matmul", "mm", "bmm"):
        return _product(result, 2 * shapes[0][-1])
    if name in ("addmm", "baddbmm"):
        return _product(result, 2 * shapes[1][-1])
    if name == "scaled_dot_product_attention":
        scores = _product(shapes[0], 2 * shapes[1][-2])
        products = _product(result, 2 * shapes[2][-2])
        return None if scores is None or products is None else scores + products
    return 0


def _read(node: Node) -> list[Node]:
    """What a node reads, looking through transpositions of parameters."""
    found = []
    for value in node.all_input_nodes:
        name = str(getattr(value.target, "overloadpacket", "")).removeprefix("aten.")
        found.append(value.args[0] if name in ("t", "transpose", "permute") else value)
    return [value for value in found if isinstance(value, Node)]


def _shape(value: Any) -> Any:
    tensor = value.meta.get("val") if isinstance(value, Node) else None
    return tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else ()


def _product(shape: Mapping[int, Any] | tuple[Any, ...], factor: Any) -> int | None:
    sizes = [*shape, factor]
    return math.prod(sizes) if all(isinstance(size, int) for size in sizes) else None
