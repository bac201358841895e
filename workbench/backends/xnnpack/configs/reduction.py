"""Means and sums: the library's average over height and width, on a tensor that is shaped for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, Context, argument, sizes_of
from workbench.backends.xnnpack.configs.pooling import KEEP_DIMS
from workbench.backends.xnnpack.graph import Value

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS", "mean_over"]

aten = torch.ops.aten


class Mean(Config):
    """`mean` and `sum` over neighbouring dimensions."""

    targets = (aten.mean.dim, aten.sum.dim_IntList)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The dimensions must be neighbours, and at most one size beside them dynamic."""
        value: Any = node.args[0]
        found = value.meta["val"]
        if argument(node, "dtype") not in (None, found.dtype):
            return WhyNot(node, f"it computes in {argument(node, 'dtype')}", "dtype were None")
        axes = _axes(node, found.dim())
        free = sizes_of(found)[1]
        if node.target is aten.sum.dim_IntList:
            if set(axes) & free:
                return WhyNot(node, "it sums over a dynamic size", "the size were known")
            if found.dtype != torch.float32:
                return WhyNot(node, "a sum of halves goes beyond their range", "it were float32")
        keep = argument(node, "keepdim", False)
        if found.dim() == 4 and axes == [2, 3] and (keep or len(free - set(axes)) <= 1):
            return None
        if axes != list(range(axes[0], axes[-1] + 1)):
            return WhyNot(node, f"it runs over the dimensions {axes}", "they were neighbours")
        if len(free) > 1:
            return WhyNot(node, f"its input has {len(free)} dynamic sizes", "at most one were dynamic")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """The average, scaled for a sum."""
        value = builder.value(node.args[0])
        axes = _axes(node, value.rank)
        result = mean_over(value, axes, builder)
        if node.target is aten.sum.dim_IntList:
            count = math.prod(value.shape[axis] for axis in axes)
            scale = builder.value(float(count))
            result = builder.call("Multiply", [result, scale], result.shape, result.free)
        builder.define(node, builder.reshape(result, *sizes_of(node.meta["val"])))


def _axes(node: Node, rank: int) -> list[int]:
    given = argument(node, "dim")
    listed = range(rank) if given is None or given == [] else [given] if isinstance(given, int) else given
    return sorted(int(axis) % rank for axis in listed)


def mean_over(value: Value, axes: list[int], builder: Builder) -> Value:
    """The mean over neighbouring dimensions, which stay with size 1."""
    shape = [1 if axis in axes else size for axis, size in enumerate(value.shape)]
    free = value.free - set(axes)
    if value.rank == 4 and axes == [2, 3]:
        return builder.call("GlobalAvgPooling2d", [value], shape, free, flags=KEEP_DIMS)
    outer = math.prod(value.shape[: axes[0]])
    inner = math.prod(value.shape[axes[-1] + 1 :])
    averaged = math.prod(value.shape[axis] for axis in axes)
    place = {min(max(axis - axes[0] + 1, 0), 1) if axis <= axes[-1] else 3 for axis in value.free}
    image = builder.reshape(value, (outer, averaged, 1, inner), place)
    # NHWC in memory as it is; the transposes around it say so, and cancel out.
    means = builder.call(
        "GlobalAvgPooling2d",
        [builder.transpose(image, (0, 3, 1, 2))],
        (outer, inner, 1, 1),
        {1 if axis == 3 else axis for axis in place - {1}},
        flags=KEEP_DIMS,
    )
    return builder.reshape(builder.transpose(means, (0, 2, 3, 1)), shape, free)


CONFIGS: tuple[Config, ...] = (Mean(),)
