"""Operators that hand on what they are given leave the graph.

Each rule compares fake values: sizes, type and strides must be known to be equal. Arithmetic with neutral
elements goes only where the result is the same bit for bit: `x * 1`, `x / 1` and `x - 0` always, `x + 0` only
for integers (since -0.0 + 0 is 0.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from workbench.edge.dim_order_ops import CLONE, TO_COPY
from workbench.edge.program import input_specs, lifted_tensor, mutated_targets
from workbench.passes.base import GraphPass, replace

__all__ = ["RemoveNoops"]

aten = torch.ops.aten

_SAME_VALUE = frozenset(
    {
        aten.view_copy.default,
        aten.expand_copy.default,
        aten.slice_copy.Tensor,
        aten.squeeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.alias_copy.default,
        aten.detach_copy.default,
        aten.clone.default,
        aten._to_copy.default,
        CLONE,
        TO_COPY,
    }
)
"""Operators that are the identity whenever sizes, type and strides of the result are those of the input."""


def _is_permutation_identity(node: Node) -> bool:
    rank = len(node.meta["val"].shape)
    order: Any = node.args[1]
    return [int(dim) % max(rank, 1) for dim in order] == list(range(rank))


def _is_eval_dropout(node: Node) -> bool:
    return node.args[2] is False


def _is_single(node: Node) -> bool:
    tensors: Any = node.args[0]
    return len(tensors) == 1


_RULES: dict[OpOverload, Callable[[Node], bool]] = {
    aten.permute_copy.default: _is_permutation_identity,
    aten.dropout.default: _is_eval_dropout,
    aten.cat.default: _is_single,
    **dict.fromkeys(_SAME_VALUE, lambda node: True),
}
_NEUTRAL: dict[OpOverload, tuple[float, bool]] = {
    # Operator: the neutral second operand, and whether it is neutral for floats too.
    aten.mul.Tensor: (1, True),
    aten.mul.Scalar: (1, True),
    aten.div.Tensor: (1, True),
    aten.div.Scalar: (1, True),
    aten.sub.Tensor: (0, True),
    aten.sub.Scalar: (0, True),
    aten.add.Tensor: (0, False),
    aten.add.Scalar: (0, False),
}


class RemoveNoops(GraphPass):
    """Let the users of an operator that changes nothing read its input."""

    name = "remove_noops"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Remove in place."""
        numbers = _Numbers(program) if graph_module is program.graph_module else None
        removed = pruned = 0
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            if node.target is aten.cat.default:
                pruned += _prune_empty(node)
            source = _source(node, numbers)
            if source is not None and _may_merge(source, node):
                replace(node, source)
                removed += 1
        return {"removed": removed, "empty operands": pruned}


class _Numbers:
    """The values of 0-dimensional constants, read on demand."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._specs = input_specs(program)
        self._written = mutated_targets(program)

    def of(self, argument: Any) -> float | None:
        if isinstance(argument, (int, float)):
            return argument
        if not isinstance(argument, Node) or argument.op != "placeholder":
            return None
        spec = self._specs[argument.name]
        if spec.kind != InputKind.CONSTANT_TENSOR:
            return None
        tensor = lifted_tensor(self._program, spec)
        return tensor.item() if tensor is not None and tensor.dim() == 0 else None


def _source(node: Node, numbers: _Numbers | None) -> Node | None:
    rule = _RULES.get(node.target)  # type: ignore[call-overload]
    if rule is not None:
        first: Any = node.args[0]
        if node.target is aten.cat.default:
            first = first[0] if first else None
        if isinstance(first, Node) and rule(node) and _same(first, node):
            return first
        return None
    neutral = _NEUTRAL.get(node.target)  # type: ignore[call-overload]
    if neutral is None or numbers is None or len(node.args) < 2:
        return None
    number, floats = neutral
    left: Any = node.args[0]
    if not isinstance(left, Node) or numbers.of(node.args[1]) != number or not _same(left, node):
        return None
    return left if floats or not node.meta["val"].dtype.is_floating_point else None


def _same(source: Node, node: Node) -> bool:
    """Whether two nodes' values are known to have the same sizes, type and strides."""
    before, after = source.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    if before.dtype != after.dtype or before.dim() != after.dim() or before.device != after.device:
        return False
    pairs = [*zip(before.shape, after.shape, strict=True), *zip(before.stride(), after.stride(), strict=True)]
    return all(a is b or statically_known_true(a == b) for a, b in pairs)


def _may_merge(source: Node, node: Node) -> bool:
    """Results of a graph must not be its inputs: those may be written after they are read."""
    return source.op == "call_function" or not any(user.op == "output" for user in node.users)


def _prune_empty(node: Node) -> int:
    """Drop empty operands of `cat`; one is kept where all are empty."""
    tensors: Any = node.args[0]
    kept = [item for item in tensors if not _is_empty(item)] or list(tensors[:1])
    if len(kept) < len(tensors):
        node.update_arg(0, kept)
    return len(tensors) - len(kept)


def _is_empty(node: Node) -> bool:
    return any(statically_known_true(size == 0) for size in node.meta["val"].shape)
