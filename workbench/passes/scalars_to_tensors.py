"""Numbers in tensor positions become constant tensors.

ATen's dispatcher wraps `x + 2` silently; an out-variant kernel takes what its schema says. The constant gets
the type in which the operator computes, so that no conversion is left to run time; numbers that are symbols
become `scalar_tensor` nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import fake_mode, fake_of
from workbench.edge.program import add_constant
from workbench.passes.base import GraphPass
from workbench.passes.promote_types import compute_dtype

__all__ = ["ScalarsToTensors"]

_SYMBOL_DTYPES = {torch.SymInt: torch.int64, torch.SymFloat: torch.float32, torch.SymBool: torch.bool}


class ScalarsToTensors(GraphPass):
    """Replace numbers and symbols where the schema asks for a tensor."""

    name = "scalars_to_tensors"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Replace the arguments in place; equal numbers of one type share a constant."""
        self._constants: dict[tuple[Any, ...], Node] = {}
        self._mode = fake_mode(graph_module)
        self._top = graph_module is program.graph_module
        constants = symbols = 0
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or not isinstance(node.target, OpOverload):
                continue
            for position, argument in enumerate(node.target._schema.arguments):
                if not _takes_tensor(argument) or argument.kwarg_only or position >= len(node.args):
                    continue
                given = node.args[position]
                if isinstance(given, (bool, int, float, complex)):
                    node.update_arg(position, self._constant(graph_module, program, node, given))
                    constants += 1
                elif isinstance(given, Node) and type(given.meta.get("val")) in _SYMBOL_DTYPES:
                    node.update_arg(position, self._symbol(graph_module, node, given))
                    symbols += 1
        return {"constants": constants, "symbols": symbols}

    def _constant(self, graph_module: GraphModule, program: ExportedProgram, node: Node, number: Any) -> Node:
        dtype = _dtype_for(node, number)
        key = (dtype, type(number), repr(number))
        if key not in self._constants:
            tensor = torch.tensor(number, dtype=dtype)
            if self._top:
                made = add_constant(program, tensor, self._mode, stem="_lifted_tensor_constant")
            else:
                made = _attribute(graph_module, tensor)
                made.meta["val"] = fake_of(tensor, self._mode)
            self._constants[key] = made
        return self._constants[key]

    def _symbol(self, graph_module: GraphModule, node: Node, symbol: Node) -> Node:
        found = symbol.meta["val"]
        dtype = _SYMBOL_DTYPES[type(found)]
        with graph_module.graph.inserting_before(node):
            made = graph_module.graph.call_function(
                torch.ops.aten.scalar_tensor.default, (symbol,), {"dtype": dtype}
            )
        made.meta["val"] = fake_of(torch.empty((), dtype=dtype), self._mode)
        made.meta["stack_trace"] = node.meta.get("stack_trace")
        provenance.transfer((node,), made)
        return made


def _takes_tensor(argument: Any) -> bool:
    kind = argument.type
    if isinstance(kind, torch.OptionalType):
        kind = kind.getElementType()
    return isinstance(kind, torch.TensorType)


def _dtype_for(node: Node, number: Any) -> torch.dtype:
    """The type in which the operator computes; that of the number where nothing else says it."""
    found = compute_dtype(node)
    if found is not None and torch.tensor(number).is_floating_point() <= found.is_floating_point:
        return found
    if isinstance(number, bool):
        return torch.bool
    return torch.int64 if isinstance(number, int) else torch.get_default_dtype()


def _attribute(graph_module: GraphModule, tensor: torch.Tensor) -> Node:
    number = 0
    while hasattr(graph_module, f"_tensor_constant{number}"):
        number += 1
    name = f"_tensor_constant{number}"
    graph_module.register_buffer(name, tensor)
    first = next(node for node in graph_module.graph.nodes if node.op != "placeholder")
    with graph_module.graph.inserting_before(first):
        return graph_module.graph.get_attr(name)
