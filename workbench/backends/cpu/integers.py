"""Constants that a graph dequantizes: they stay integers in the file, and the engine computes with them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.fx import Node

from workbench.backends.cpu.graph import Quantization, QuantizationKind

__all__ = ["Integers", "integers_of", "is_dequantize", "packed", "range_of"]

quantized = torch.ops.quantized_decomposed
aten = torch.ops.aten

_PER_TENSOR = (
    "dequantize_per_tensor.default",
    "dequantize_per_tensor.tensor",
    "dequantize_per_tensor.tensor2",
)
_PER_CHANNEL = ("dequantize_per_channel.default",)
_PER_GROUP = ("dequantize_per_channel_group.default",)
_NIBBLES = (-8, 7)


def _name(node: Node) -> str:
    target = str(node.target)
    return target.removeprefix("quantized_decomposed.") if target.startswith("quantized_decomposed.") else ""


def is_dequantize(node: object) -> bool:
    """Whether a node gives the numbers that the integers of a constant stand for."""
    return isinstance(node, Node) and _name(node) in (*_PER_TENSOR, *_PER_CHANNEL, *_PER_GROUP)


def range_of(dtype: torch.dtype) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    info = torch.iinfo(dtype)
    return info.min, info.max


@dataclass(frozen=True)
class Integers:
    """A constant of integers and what they stand for.

    Attributes:
        tensor: The integers, each an element.
        quantization: 8 bits; `scales` beside it.
        scales: float32, of channels and groups.
        nibbles: They are from -8 to 7.
    """

    tensor: torch.Tensor
    quantization: Quantization
    scales: torch.Tensor | None = None
    nibbles: bool = False

    def moved(self, function: Callable[[torch.Tensor], torch.Tensor], axis: int | None = None) -> Integers:
        """With the integers rearranged; `axis` is where the channels stand afterwards."""
        q = self.quantization if axis is None else replace(self.quantization, axis=axis)
        return replace(self, tensor=function(self.tensor), quantization=q)

    def repeated(self, groups: int) -> Integers:
        """With the scales of each group's output channels for those of all groups, which then come first."""
        q = self.quantization
        if q.kind != QuantizationKind.PER_CHANNEL or self.scales is None:
            return self
        zeros = None if q.zero_points is None else q.zero_points * groups
        return replace(
            self, quantization=replace(q, axis=0, zero_points=zeros), scales=self.scales.repeat(groups)
        )

    @property
    def channels(self) -> int | None:
        """The dimension that has a scale each, if one has."""
        return self.quantization.axis if self.quantization.kind == QuantizationKind.PER_CHANNEL else None


def integers_of(node: Node, tensor: Callable[[Node], torch.Tensor]) -> Integers | None:
    """The integers that a constant node dequantizes; None for other constants.

    Args:
        node: A node that follows from constants alone.
        tensor: Gives the tensor of such a node.
    """
    if node.target in (aten.t_copy.default, aten.permute_copy.default, aten.transpose_copy.int):
        return _transposed(node, tensor)
    if not is_dequantize(node):
        return None
    given: Any = [tensor(item) if isinstance(item, Node) else item for item in node.args]
    data, scale, zero = given[:3]
    if data.dtype not in (torch.int8, torch.uint8, torch.int32):
        return None
    name = _name(node)
    if name in _PER_TENSOR:
        q = Quantization(QuantizationKind.PER_TENSOR, scale=float(scale), zero_point=int(zero))
        return Integers(data, q) if data.dtype != torch.int32 or int(zero) == 0 else None
    zeros = torch.zeros(1, dtype=torch.int64) if zero is None else zero
    one = int(zeros.reshape(-1)[0]) if zeros.numel() else 0
    same = bool((zeros == one).all())
    scales = scale.detach().to(torch.float32).contiguous()
    if name in _PER_CHANNEL:
        axis, low, high = int(given[3]) % data.dim(), given[4], given[5]
        q = Quantization(QuantizationKind.PER_CHANNEL, axis=axis, zero_point=one if same else 0)
        if not same:
            q = replace(q, zero_points=tuple(int(z) for z in zeros))
        if data.dtype == torch.int32 and (not same or one):
            return None
        # Rows are what two in a byte can be taken of.
        nibbles = (low, high) == _NIBBLES and data.dim() == 2 and axis == 0 and same and one == 0
        return Integers(data, q, scales, nibbles and data.dtype == torch.int8)
    low, high, group = given[3], given[4], int(given[6])
    if data.dim() != 2 or not same or data.dtype == torch.int32:
        return None
    q = Quantization(QuantizationKind.PER_GROUP, group=min(group, data.shape[1]), zero_point=one)
    return Integers(
        data, q, scales.reshape(-1), (low, high) == _NIBBLES and one == 0 and data.dtype == torch.int8
    )


def _transposed(node: Node, tensor: Callable[[Node], torch.Tensor]) -> Integers | None:
    source: Any = node.args[0]
    found = integers_of(source, tensor) if isinstance(source, Node) else None
    if found is None or found.quantization.kind == QuantizationKind.PER_GROUP:
        return None
    dims = list(range(found.tensor.dim()))
    if node.target is aten.permute_copy.default:
        order = [int(d) % len(dims) for d in node.args[1]]  # type: ignore[union-attr, arg-type]
    else:
        first, second = (0, 1) if node.target is aten.t_copy.default else (node.args[1], node.args[2])
        if len(dims) < 2:
            return None
        order = dims
        a, b = operator.index(first) % len(dims), operator.index(second) % len(dims)  # type: ignore[arg-type]
        order[a], order[b] = order[b], order[a]
    axis = None if found.channels is None else order.index(found.channels)
    return found.moved(lambda x: x.permute(order), axis)


def packed(integers: Integers) -> tuple[torch.Tensor, Quantization]:
    """Two of 4 bits in a byte, the first in its low half, each 8 more; and how they are then quantized."""
    rows = integers.tensor.to(torch.int16) + 8
    if rows.shape[1] % 2:
        rows = torch.nn.functional.pad(rows, (0, 1))
    rows = rows.to(torch.uint8)
    return (rows[:, 1::2] << 4 | rows[:, ::2]).contiguous(), replace(
        integers.quantization, bits=4, zero_point=8
    )
