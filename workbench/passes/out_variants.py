"""Which kernel computes a node, and in which order it takes its arguments.

A node keeps its functional operator; `node.meta["kernel"]` says what the runtime looks up and how the node's
arguments become the kernel's. So the planned graph can still be run and compared.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.errors import MissingKernelError
from workbench.ops.out_variant import out_variant, wire_name
from workbench.passes.base import GraphPass

__all__ = ["KERNEL_KEY", "SYMBOL_KERNELS", "Kernel", "OutVariants", "Parameter", "kernel_of"]

KERNEL_KEY = "kernel"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input argument of a kernel.

    Attributes:
        name: Its name in the schema.
        position: Where the functional operator takes it by position; None for keyword-only ones.
        kind: The schema's type without `Optional`: `"Tensor"`, `"int"`, `"int[]"`, `"Scalar"`, ...
        optional: Whether None stands for None, and not for an empty tensor.
        default: What the schema gives where the node gives nothing.
    """

    name: str
    position: int | None
    kind: str
    optional: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the runtime looks up for an operator.

    Attributes:
        name: Namespace and name, `"aten::add"`.
        overload: `"out"`; empty for the default overload.
        parameters: The inputs, in the kernel's order. The out tensors follow.
        list_out: The results are one list of tensors.
        symbolic: The result is a number, not a tensor.
    """

    name: str
    overload: str
    parameters: tuple[Parameter, ...]
    list_out: bool = False
    symbolic: bool = False

    @property
    def full_name(self) -> str:
        """The name under which kernels are registered."""
        return f"{self.name}.{self.overload}" if self.overload else self.name


def _prim(name: str, arguments: int) -> Kernel:
    parameters = tuple(Parameter("abc"[i], i, "Scalar", True, None) for i in range(arguments))
    return Kernel(f"executorch_prim::{name}", "Scalar", parameters, symbolic=True)


SYMBOL_KERNELS: dict[Any, Kernel] = {
    operator.add: _prim("add", 2),
    operator.sub: _prim("sub", 2),
    operator.mul: _prim("mul", 2),
    operator.floordiv: _prim("floordiv", 2),
    operator.truediv: _prim("truediv", 2),
    operator.mod: _prim("mod", 2),
    operator.neg: _prim("neg", 1),
    operator.eq: _prim("eq", 2),
    operator.gt: _prim("gt", 2),
    operator.lt: _prim("lt", 2),
    operator.ge: _prim("ge", 2),
    operator.le: _prim("le", 2),
    operator.not_: _prim("sym_not", 1),
    builtins.round: _prim("round", 1),
    builtins.max: _prim("sym_max", 2),
    builtins.min: _prim("sym_min", 2),
    math.ceil: _prim("ceil", 1),
    math.trunc: _prim("trunc", 1),
    torch.sym_float: _prim("sym_float", 1),
    torch.sym_int: _prim("sym_int", 1),
    torch.sym_max: _prim("sym_max", 2),
    torch.sym_min: _prim("sym_min", 2),
    torch.sym_not: _prim("sym_not", 1),
    torch.sym_ite: _prim("sym_ite", 3),
}
"""Python's functions on symbols that a runtime computes with one primitive."""

_COMPOSED = frozenset({operator.ne, operator.and_, operator.or_, math.floor, operator.abs, operator.pow})
"""Functions on symbols that the emitter composes of primitives."""

_SYMBOL_QUERIES = ("sym_size", "sym_stride", "sym_numel", "_local_scalar_dense")
_OUT_OF = {
    # torch has no out-variant of these; the runtimes' have the functional arguments and an out.
    "quantized_decomposed::quantize_per_tensor": "out",
    "quantized_decomposed::dequantize_per_tensor": "out",
    "quantized_decomposed::quantize_per_tensor.tensor": "Tensor_out",
    "quantized_decomposed::dequantize_per_tensor.tensor": "Tensor_out",
    "quantized_decomposed::quantize_per_channel": "out",
    "quantized_decomposed::dequantize_per_channel": "out",
    "quantized_decomposed::quantize_per_token": "out",
    "quantized_decomposed::dequantize_per_token": "out",
    "quantized_decomposed::choose_qparams.tensor": "Tensor_out",
    "quantized_decomposed::choose_qparams_symmetric.tensor": "Tensor_out",
    "quantized_decomposed::choose_qparams_per_token": "out",
    "quantized_decomposed::choose_qparams_per_token_asymmetric": "out",
    "quantized_decomposed::quantize_per_channel_group": "out",
    "quantized_decomposed::dequantize_per_channel_group": "out",
}


@cache
def kernel_of(target: Any) -> Kernel | None:
    """The kernel of an operator or of a function on symbols; None where no out-variant is known."""
    if not isinstance(target, OpOverload):
        return SYMBOL_KERNELS.get(target)
    if target.namespace == "aten" and target._opname in _SYMBOL_QUERIES:
        overload = "" if target._overloadname == "default" else target._overloadname
        return Kernel(f"aten::{target._opname}", overload, _parameters(target, target), symbolic=True)
    known = _OUT_OF.get(_key(target))
    if known is not None:
        return Kernel(target._schema.name, known, _parameters(target, target))
    if target._schema.is_mutable and not any(item.is_out for item in target._schema.arguments):
        return Kernel(target._schema.name, target._schema.overload_name, _parameters(target, target))
    found = out_variant(target)
    name = wire_name(target)
    if found is None or name is None:
        return None
    base, _, overload = name.partition(".")
    outs = [item for item in found._schema.arguments if item.is_out]
    list_out = len(outs) == 1 and isinstance(outs[0].type, torch.ListType)
    return Kernel(base, overload, _parameters(found, target), list_out)


def _key(target: OpOverload) -> str:
    overload = target._schema.overload_name
    return f"{target._schema.name}.{overload}" if overload else str(target._schema.name)


def _parameters(kernel: OpOverload, functional: OpOverload) -> tuple[Parameter, ...]:
    positions = {
        item.name: index for index, item in enumerate(functional._schema.arguments) if not item.kwarg_only
    }
    return tuple(
        Parameter(
            item.name,
            positions.get(item.name),
            _kind(item.type),
            isinstance(item.type, torch.OptionalType),
            item.default_value,
        )
        for item in kernel._schema.arguments
        if not item.is_out
    )


def _kind(schema_type: Any) -> str:
    if isinstance(schema_type, torch.OptionalType):
        return _kind(schema_type.getElementType())
    if isinstance(schema_type, torch.ListType):
        element = schema_type.getElementType()
        optional = isinstance(element, torch.OptionalType)
        return f"{_kind(element)}{'?' if optional else ''}[]"
    text = str(schema_type)
    return {"number": "Scalar", "SymInt": "int", "SymBool": "bool", "SymFloat": "float"}.get(text, text)


class OutVariants(GraphPass):
    """Write `node.meta["kernel"]` for each node that a kernel computes.

    Args:
        kernels: Full names of the kernels of the target runtime; None leaves unchecked what it has.
    """

    name = "out_variants"

    def __init__(self, kernels: frozenset[str] | None = None) -> None:
        self.kernels = kernels

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Annotate in place.

        Raises:
            MissingKernelError: An operator has no out-variant, or the runtime has no kernel of it.
        """
        count = 0
        for node in graph_module.graph.nodes:
            target = node.target
            if node.op != "call_function" or target is operator.getitem or target in _COMPOSED:
                continue
            if isinstance(target, HigherOrderOperator):
                continue
            kernel = kernel_of(target)
            if kernel is None:
                if isinstance(target, OpOverload) and not target._schema.returns:
                    continue  # Assertions and constraints on symbols compute nothing.
                raise _no_variant(node)
            if self.kernels is not None and kernel.full_name not in self.kernels and not _elided(node):
                raise _no_kernel(node, kernel)
            node.meta[KERNEL_KEY] = kernel
            count += 1
        return {"kernels": count}


def _elided(node: Node) -> bool:
    """Whether `alias_views` left no instruction for the node."""
    return node.meta.get("alias") is not None


def _no_variant(node: Node) -> MissingKernelError:
    return MissingKernelError(
        f"`{node.target}` has no variant that writes into tensors given to it, as kernels do",
        stage="plan",
        node=node.name,
        source=provenance.source_line(node),
        expected="an overload with `Tensor(a!) out` and otherwise the same arguments",
        hint="register the out variant with torch.library, or delegate the node",
    )


def _no_kernel(node: Node, kernel: Kernel) -> MissingKernelError:
    return MissingKernelError(
        f"the runtime has no kernel `{kernel.full_name}`",
        stage="plan",
        node=node.name,
        source=provenance.source_line(node),
        expected="an operator of docs/operators.md, or a delegate that takes the node",
        found=f"{node.target}",
        hint="express it with other operators, load a plug-in that has the kernel and lower with "
        "ExecutorchBackendConfig(check_kernels=False), or delegate the node",
    )
