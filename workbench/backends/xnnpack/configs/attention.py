"""Scaled dot-product attention, kept whole until here: two batch products around a softmax.

The runtime of ExecuTorch 1.5.1 has no call for attention as a whole. Kept whole until here it still pays:
torch's own decomposition scales both operands, transposes the key in memory, and guards the softmax against
rows that are all masked, with operators on booleans that XNNPACK does not have.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, argument, is_free
from workbench.backends.xnnpack.configs.linear import TRANSPOSE_B

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS"]

aten = torch.ops.aten
_FOLDED = 1 << 20  # bytes of a constant that the edge dialect's passes fold, whatever it is made from


class Attention(Config):
    """`scaled_dot_product_attention` without dropout, with a constant mask or none."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten.scaled_dot_product_attention.default,)
    whole = (aten.scaled_dot_product_attention.default,)

    def operands(self, node: Node) -> Sequence[Node]:
        """A mask may be boolean."""
        return [item for item in node.args[:3] if isinstance(item, Node)]

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Query, key and value of the same rank and batch; no row may be masked as a whole."""
        query, key, value = (item.meta["val"] for item in node.args[:3])  # type: ignore[union-attr]
        if float(argument(node, "dropout_p", 0.0)) != 0.0:
            return WhyNot(node, "it has a dropout", "dropout_p were 0")
        if not query.dim() == key.dim() == value.dim() or query.dim() < 3:
            return WhyNot(node, f"its operands have {query.dim()}, {key.dim()} and {value.dim()} dimensions")
        if any(is_free(n) for item in (query, key, value) for n in item.shape):
            return WhyNot(node, f"its query has the sizes {tuple(query.shape)}", "all sizes were constant")
        if query.shape[:-2] != key.shape[:-2] or key.shape[:-2] != value.shape[:-2]:
            return WhyNot(node, "its heads are shared between queries", "key and value had as many heads")
        return self._check_mask(node, context)

    def _check_mask(self, node: Node, context: Context) -> WhyNot | None:
        mask = argument(node, "attn_mask")
        if not isinstance(mask, Node):
            return None
        if not context.is_constant(mask):
            return WhyNot(node, f"its mask '{mask}' is computed at run time", "it were a constant")
        size = mask.meta["val"].numel() * mask.meta["val"].element_size()
        if context.stored(mask) is None and (not context.exported or size > _FOLDED):
            return WhyNot(
                node, f"its mask '{mask}' of {size} bytes is not folded", "it were a stored constant"
            )
        found = context.tensor(mask)
        if not bool(_reach(found).any(-1).all()):
            return WhyNot(node, "its mask hides a whole row", "each query saw a key")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """Five calls at most."""
        query, key, value = (builder.value(item) for item in node.args[:3])
        scale = argument(node, "scale")
        factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
        scaled = builder.call("Multiply", [query, builder.value(factor)], query.shape)
        sizes = (*query.shape[:-1], key.shape[-2])
        scores = builder.call("BatchMatrixMultiply", [scaled, key], sizes, flags=TRANSPOSE_B)
        mask = self._mask(node, sizes, builder)
        if mask is not None:
            scores = builder.call("Add", [scores, builder.constant(mask)], sizes)
        weights = builder.call("Softmax", [scores], sizes)
        builder.define(node, builder.like("BatchMatrixMultiply", [weights, value], node))

    def _mask(self, node: Node, sizes: Sequence[int], builder: Builder) -> torch.Tensor | None:
        mask = argument(node, "attn_mask")
        dtype = builder.result_dtype
        lowest = torch.finfo(dtype).min / 2  # finite: sums with it stay numbers
        if isinstance(mask, Node):
            found = builder.tensor(mask)
            if bool((found if found.dtype == torch.bool else found == 0).all()):
                return None
            if found.dtype == torch.bool:
                return torch.zeros(found.shape, dtype=dtype).masked_fill(~found, lowest)
            return found.to(dtype).clamp(min=lowest)
        if argument(node, "is_causal", False):
            seen = torch.ones(sizes[-2], sizes[-1], dtype=torch.bool).tril()
            return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, lowest)
        return None


def _reach(mask: torch.Tensor) -> torch.Tensor:
    return mask if mask.dtype == torch.bool else mask > -math.inf


CONFIGS: tuple[Config, ...] = (Attention(),)
