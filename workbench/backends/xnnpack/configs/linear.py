"""Matrix products: fully connected layers where a weight is constant, else batch products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, argument
from workbench.backends.xnnpack.configs.constants import quantized_constant
from workbench.backends.xnnpack.configs.dynamic import reshaped_rows
from workbench.backends.xnnpack.quantization import PerTensor, permuted

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS", "TRANSPOSE_B"]

aten = torch.ops.aten
TRANSPOSE_B = 1  # of a batch product: the second operand's last two dimensions are exchanged


def _needs_constant(node: Node, what: str, operand: Any, context: Context) -> WhyNot | None:
    if operand is None or context.is_constant(operand):
        return None
    return WhyNot(
        node,
        f"its {what} '{operand}' is computed at run time",
        f"the {what} were a constant, or `force_non_static_weights_for_f32_linear` were set",
    )


def _reads_rows(weight: Any, order: tuple[int, int], context: Context) -> bool:
    """Whether a weight, with its outputs first in `order`, is one for rows that are quantized at run time."""
    found = quantized_constant(weight, context) if context.is_constant(weight) else None
    if found is None:
        return False
    quantization = permuted(found[1], order)
    if isinstance(quantization, PerTensor):
        return quantization.zero_point == 0
    return quantization.axis == 0  # type: ignore[union-attr]


class Linear(Config):
    """`linear`."""

    precisions = frozenset(ConfigPrecisionType)
    targets = (aten.linear.default,)
    whole = (aten.linear.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Weight and bias must be constant, unless they are passed in on purpose."""
        value: Any = node.args[0]
        if value.meta["val"].dim() == 0 or node.args[1].meta["val"].dim() != 2:  # type: ignore[union-attr]
            return WhyNot(node, "its operands are no matrices", "the weight had 2 dimensions")
        if context.dynamic_weights:
            return None
        return _needs_constant(node, "weight", node.args[1], context) or _needs_constant(
            node, "bias", argument(node, "bias"), context
        )

    def takes_rows(self, node: Node, operand: Node, context: Context) -> bool:
        """The input, where the weight is quantized symmetrically."""
        if node.args[0] is not operand or node.args[1] is operand:
            return False
        return self.refusal(node, context) is None and _reads_rows(node.args[1], (0, 1), context)

    def build(self, node: Node, builder: Builder) -> None:
        """One call, whatever the rank."""
        value, bias = builder.value(node.args[0]), argument(node, "bias")
        weight = builder.operand(node.args[1], weight=True)
        inputs = [value, weight, None if bias is None else builder.value(bias)]
        if value.rank == 1:
            shape = (1, *value.shape)
            rows = reshaped_rows(value, shape, {i + 1 for i in value.free}, builder)
            inputs[0] = builder.reshape(value, shape) if rows is None else rows
            result = builder.call("FullyConnected", inputs, (1, *node.meta["val"].shape))
            builder.define(node, builder.reshape(result, result.shape[1:]))
            return
        builder.define(node, builder.like("FullyConnected", inputs, node))


class Product(Config):
    """`mm` and `addmm` with a constant second operand."""

    precisions = frozenset(ConfigPrecisionType)
    targets = (aten.mm.default, aten.addmm.default)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The second matrix and what is added must be constant; no factors."""
        bias, _, weight = self._operands(node)
        factors = argument(node, "alpha", 1), argument(node, "beta", 1)
        if node.target is aten.addmm.default and factors != (1, 1):
            return WhyNot(node, f"alpha and beta are {factors[0]} and {factors[1]}", "both were 1")
        if bias is not None and bias.meta["val"].dim() != 1:
            sizes = tuple(bias.meta["val"].shape)
            return WhyNot(node, f"it adds a tensor of sizes {sizes}", "it added one number per column")
        if bias is not None and bias.meta["val"].shape[0] != node.meta["val"].shape[-1]:
            return WhyNot(node, "it adds one number to all columns", "it added one number per column")
        return _needs_constant(node, "second matrix", weight, context) or _needs_constant(
            node, "bias", bias, context
        )

    def takes_rows(self, node: Node, operand: Node, context: Context) -> bool:
        """The first matrix, where the second is quantized symmetrically."""
        bias, value, weight = self._operands(node)
        if value is not operand or weight is operand or bias is operand:
            return False
        return self.refusal(node, context) is None and _reads_rows(weight, (1, 0), context)

    def build(self, node: Node, builder: Builder) -> None:
        """One call; a transpose before the weight falls together with the one of its meaning."""
        bias, value, weight = self._operands(node)
        filter_ = builder.transpose(builder.operand(weight, weight=True), (1, 0))
        inputs = [builder.value(value), filter_, None if bias is None else builder.value(bias)]
        builder.define(node, builder.like("FullyConnected", inputs, node))

    @staticmethod
    def _operands(node: Node) -> tuple[Any, Any, Any]:
        return (None, *node.args[:2]) if node.target is aten.mm.default else tuple(node.args[:3])  # type: ignore[return-value]


class BatchProduct(Config):
    """`bmm`."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten.bmm.default,)

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        inputs = [builder.value(node.args[0]), builder.value(node.args[1])]
        builder.define(node, builder.like("BatchMatrixMultiply", inputs, node))


CONFIGS: tuple[Config, ...] = (Linear(), Product(), BatchProduct())
