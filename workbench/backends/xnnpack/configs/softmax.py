"""Softmax over the last dimension, or over the channels of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS"]


class Softmax(Config):
    """`softmax`."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (torch.ops.aten._softmax.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The library goes along the innermost dimension, which in NHWC are the channels."""
        rank = node.meta["val"].dim()
        axis: Any = node.args[1]
        if rank == 0:
            return WhyNot(node, "its input has no dimension", "it had one")
        if axis % rank == rank - 1 or (rank == 4 and axis % rank == 1):
            return None
        return WhyNot(node, f"it runs over dimension {axis} of {rank}", f"it ran over dimension {rank - 1}")

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        value = builder.value(node.args[0])
        axis: Any = node.args[1]
        if axis % value.rank == value.rank - 1:
            builder.define(node, builder.like("Softmax", [value], node))
            return
        last = builder.transpose(value, (0, 2, 3, 1))
        result = builder.call("Softmax", [last], last.shape, last.free)
        builder.define(node, builder.transpose(result, (0, 3, 1, 2)))


CONFIGS: tuple[Config, ...] = (Softmax(),)
