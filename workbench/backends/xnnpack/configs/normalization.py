"""Batch norm with stored statistics, and layer norm."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, sizes_of
from workbench.backends.xnnpack.configs.reduction import mean_over

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS"]

aten = torch.ops.aten


def _reads_more(node: Node) -> WhyNot | None:
    if any(user.target is operator.getitem and user.args[1] != 0 for user in node.users):
        return WhyNot(node, "its statistics are used", "only its first result were")
    return None


class BatchNorm(Config):
    """Batch norm with stored statistics: one product, one sum; behind a convolution they are folded."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten._native_batch_norm_legit_no_training.default,)
    results = 1

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The statistics and factors must be constant."""
        for operand in node.args[1:5]:
            if operand is not None and not context.is_constant(operand):
                return WhyNot(node, f"'{operand}' is computed at run time", "it were a constant")
        return _reads_more(node)

    def build(self, node: Node, builder: Builder) -> None:
        """The factors are computed in double precision and rounded once."""
        value = builder.value(node.args[0])
        gamma, beta, mean, variance = (
            None if item is None else builder.tensor(item).double()  # type: ignore[arg-type]
            for item in node.args[1:5]
        )
        assert mean is not None and variance is not None
        epsilon: Any = node.args[6]
        scale = (variance + epsilon).rsqrt() * (1.0 if gamma is None else gamma)
        shift = (0.0 if beta is None else beta) - mean * scale
        spread = [1, -1, *[1] * (value.rank - 2)]
        factors = [builder.constant(t.reshape(spread).to(value.dtype)) for t in (scale, shift)]
        scaled = builder.call("Multiply", [value, factors[0]], value.shape, value.free)
        result = builder.call("Add", [scaled, factors[1]], value.shape, value.free)
        for user in node.users:
            builder.define(user, result)


class LayerNorm(Config):
    """Layer norm, from two averages: mean, and mean of the squared differences."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten.native_layer_norm.default,)
    dtypes = (torch.float32,)  # squares of halves go beyond their range
    results = 1

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Its averages may have one dynamic size."""
        value: Any = node.args[0]
        sizes, free = sizes_of(value.meta["val"])
        axes: Any = node.args[1]
        if len(free) > 1 or any(len(sizes) - 1 - i in free for i in range(len(axes))):
            return WhyNot(
                node, f"its input has the sizes {tuple(value.meta['val'].shape)}", "one were dynamic"
            )
        return _reads_more(node)

    def build(self, node: Node, builder: Builder) -> None:
        """Two averages, and element by element what is between them."""
        value = builder.value(node.args[0])
        normalized: Any = node.args[1]
        axes = list(range(value.rank - len(normalized), value.rank))
        shape, free = value.shape, value.free
        mean = mean_over(value, axes, builder)
        centred = builder.call("Subtract", [value, mean], shape, free)
        squared = builder.call("Square", [centred], shape, free)
        variance = mean_over(squared, axes, builder)
        epsilon = builder.value(float(node.args[4]))  # type: ignore[arg-type]
        shifted = builder.call("Add", [variance, epsilon], variance.shape, variance.free)
        factor = builder.call("ReciprocalSquareRoot", [shifted], shifted.shape, shifted.free)
        result = builder.call("Multiply", [centred, factor], shape, free)
        for kind, operand in zip(("Multiply", "Add"), node.args[2:4], strict=True):
            if operand is not None:
                result = builder.call(kind, [result, builder.value(operand)], shape, free)
        for user in node.users:
            builder.define(user, result)


CONFIGS: tuple[Config, ...] = (BatchNorm(), LayerNorm())
