"""Operands of one operator get one type.

Eager promotes `int32 + float32` inside the kernel. Here the conversion is a node of its own: a kernel then
needs one instance per type instead of one per pair of types, and the conversion of a constant is folded away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from torch._prims_common import elementwise_dtypes
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import fake_mode
from workbench.passes.base import GraphPass

__all__ = ["PROMOTED", "PromoteTypes", "compute_dtype", "operands"]

aten = torch.ops.aten

PROMOTED: dict[OpOverload, tuple[slice, KIND]] = {
    **dict.fromkeys(
        (
            aten.add.Tensor,
            aten.sub.Tensor,
            aten.mul.Tensor,
            aten.div.Tensor_mode,
            aten.minimum.default,
            aten.maximum.default,
            aten.fmod.Tensor,
            aten.remainder.Tensor,
            aten.floor_divide.default,
            aten.bitwise_and.Tensor,
            aten.bitwise_or.Tensor,
            aten.bitwise_xor.Tensor,
            aten.eq.Tensor,
            aten.ne.Tensor,
            aten.lt.Tensor,
            aten.le.Tensor,
            aten.gt.Tensor,
            aten.ge.Tensor,
        ),
        (slice(0, 2), KIND.DEFAULT),
    ),
    aten.div.Tensor: (slice(0, 2), KIND.INT_TO_FLOAT),
    aten.atan2.default: (slice(0, 2), KIND.INT_TO_FLOAT),
    aten.pow.Tensor_Tensor: (slice(0, 2), KIND.DEFAULT),
    aten.where.self: (slice(1, 3), KIND.DEFAULT),
}
"""Which positional operands of an operator take one type, and by which rule it is found."""


def operands(node: Node) -> tuple[int, int, KIND] | None:
    """First and last (exclusive) position of the operands that share a type, and the rule."""
    found = PROMOTED.get(node.target)  # type: ignore[call-overload]
    if found is None:
        return None
    span, kind = found
    if node.target is aten.div.Tensor_mode and node.kwargs.get("rounding_mode") is None:
        kind = KIND.INT_TO_FLOAT
    return span.start, min(span.stop, len(node.args)), kind


def compute_dtype(node: Node) -> torch.dtype | None:
    """The type in which an elementwise operator computes; None for operators that promote nothing.

    Comparisons compute in the promoted type of their operands, though their result is boolean.
    """
    found = operands(node)
    if found is None:
        return None
    first, last, kind = found
    values = [_value(argument) for argument in node.args[first:last]]
    if any(item is None for item in values):
        return None
    computed, result = elementwise_dtypes(*values, type_promotion_kind=kind)
    # In half precision `computed` is float32 inside the kernel; the operands keep their storage type.
    return (
        result
        if kind is KIND.INT_TO_FLOAT or computed.is_floating_point == result.is_floating_point
        else computed
    )


def _value(argument: Any) -> Any:
    if isinstance(argument, Node):
        return argument.meta.get("val")
    return argument if isinstance(argument, (bool, int, float)) else None


class PromoteTypes(GraphPass):
    """Insert conversions where the operands of an operator differ in type."""

    name = "promote_types"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Convert operands in place; one conversion serves all users of a value."""
        made: dict[tuple[Node, torch.dtype], Node] = {}
        mode = fake_mode(graph_module)
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            if node.target is aten.cat.default:
                self._promote_list(node, made, mode)
                continue
            found = operands(node)
            if found is None:
                continue
            first, last, _ = found
            types = {
                argument.meta["val"].dtype
                for argument in node.args[first:last]
                if isinstance(argument, Node) and isinstance(argument.meta.get("val"), FakeTensor)
            }
            if len(types) == 1 and types == {node.meta["val"].dtype}:
                continue
            target = compute_dtype(node)
            for position in range(first, last):
                argument = node.args[position]
                if target is not None and isinstance(argument, Node):
                    node.update_arg(position, _converted(argument, target, node, made, mode))
        return {"conversions": len(made)}

    def _promote_list(self, node: Node, made: dict[tuple[Node, torch.dtype], Node], mode: Any) -> None:
        target = node.meta["val"].dtype
        tensors: Any = node.args[0]
        node.update_arg(0, [_converted(item, target, node, made, mode) for item in tensors])


def _converted(
    argument: Node, dtype: torch.dtype, user: Node, made: dict[tuple[Node, torch.dtype], Node], mode: Any
) -> Node:
    found = argument.meta.get("val")
    if not isinstance(found, torch.Tensor) or found.dtype == dtype:
        return argument
    if (argument, dtype) not in made:
        graph = user.graph
        with graph.inserting_before(user):
            node = graph.call_function(aten._to_copy.default, (argument,), {"dtype": dtype})
        with mode:
            node.meta["val"] = aten._to_copy.default(found, dtype=dtype)
        node.meta["stack_trace"] = user.meta.get("stack_trace")
        node.meta["nn_module_stack"] = user.meta.get("nn_module_stack")
        provenance.transfer((user,), node)
        made[argument, dtype] = node
    return made[argument, dtype]
