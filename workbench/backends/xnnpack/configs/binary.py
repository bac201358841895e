"""Operators on two tensors, element by element, which broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, argument, sizes_of
from workbench.backends.xnnpack.graph import Value

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS", "aligned"]

aten = torch.ops.aten


class Binary(Config):
    """One call on both operands; a number is an operand too."""

    kinds: ClassVar[dict[Any, str]] = {
        aten.mul.Tensor: "Multiply",
        aten.mul.Scalar: "Multiply",
        aten.div.Tensor: "Divide",
        aten.div.Scalar: "Divide",
        aten.maximum.default: "Maximum",
        aten.minimum.default: "Minimum",
    }
    targets = tuple(kinds)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Numbers must be known."""
        for operand in node.args[:2]:
            if not isinstance(operand, (Node, int, float)):
                return WhyNot(node, f"its operand {operand} is known at run time only", "it were a constant")
        return _alignable(node)

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        operands = [builder.operand(operand) for operand in node.args[:2]]
        builder.define(node, builder.like(self.kinds[node.target], aligned(operands, node, builder), node))


class Sum(Config):
    """`add` and `sub`; with an `alpha` the second operand is scaled before."""

    kinds: ClassVar[dict[Any, str]] = {
        aten.add.Tensor: "Add",
        aten.add.Scalar: "Add",
        aten.sub.Tensor: "Subtract",
        aten.sub.Scalar: "Subtract",
        aten.rsub.Scalar: "Subtract",
    }
    targets = tuple(kinds)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Numbers must be known."""
        for operand in (*node.args[:2], self._alpha(node)):
            if not isinstance(operand, (Node, int, float)):
                return WhyNot(node, f"its operand {operand} is known at run time only", "it were a constant")
        return _alignable(node)

    def build(self, node: Node, builder: Builder) -> None:
        """One call, or two."""
        alpha = self._alpha(node)
        read = builder.operand if alpha == 1 else builder.value
        operands = [read(operand) for operand in node.args[:2]]
        scaled = 0 if node.target is aten.rsub.Scalar else 1
        if alpha != 1:
            value = operands[scaled]
            if value.data is not None:
                operands[scaled] = builder.constant(value.data * alpha)
            else:
                operands[scaled] = builder.call(
                    "Multiply", [value, builder.value(float(alpha))], value.shape, value.free
                )
        if node.target is aten.rsub.Scalar:
            operands.reverse()
        builder.define(node, builder.like(self.kinds[node.target], aligned(operands, node, builder), node))

    @staticmethod
    def _alpha(node: Node) -> Any:
        return argument(node, "alpha", 1)


class Prelu(Config):
    """`prelu` with a constant slope, one or one per channel."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten._prelu_kernel.default,)
    whole = (aten.prelu.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The slopes must be constant."""
        if not context.is_constant(node.args[1]):
            return WhyNot(node, "its slopes are computed at run time", "they were constants")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call; the slopes broadcast over all but dimension 1."""
        value = builder.value(node.args[0])
        slopes = builder.tensor(node.args[1]).reshape(-1)  # type: ignore[arg-type]
        spread = slopes.reshape([1, -1, *[1] * (value.rank - 2)][-max(value.rank, 1) :])
        if slopes.numel() == 1:
            spread = slopes
        builder.define(node, builder.like("PReLU", [value, builder.constant(spread)], node))


def _alignable(node: Node) -> WhyNot | None:
    """Operands have the result's type; one of fewer dimensions is reshaped, which allows one free size."""
    rank, dtype = node.meta["val"].dim(), node.meta["val"].dtype
    for operand in node.args[:2]:
        if isinstance(operand, Node) and operand.meta["val"].dtype != dtype:
            found = operand.meta["val"].dtype
            return WhyNot(
                node, f"'{operand.name}' is {found}, its result {dtype}", "both types were the same"
            )
    for operand in node.args[:2]:
        if not isinstance(operand, Node) or operand.meta["val"].dim() in (rank, 0) or rank != 4:
            continue
        _, free = sizes_of(operand.meta["val"])
        if len(free) > 1:
            return WhyNot(
                node,
                f"'{operand.name}' broadcasts with {len(free)} dynamic sizes",
                "at most one were dynamic",
            )
    return None


def aligned(operands: list[Value], node: Node, builder: Builder) -> list[Value]:
    """The operands of an operator with rank 4, of rank 4 too, so that they can be brought to one layout."""
    rank = node.meta["val"].dim()
    if rank != 4:
        return operands
    found = []
    for value in operands:
        if 0 < value.rank < rank and value.numel > 1:
            added = rank - value.rank
            value = builder.reshape(value, (*[1] * added, *value.shape), [i + added for i in value.free])
        found.append(value)
    return found


CONFIGS: tuple[Config, ...] = (Binary(), Sum(), Prelu())
