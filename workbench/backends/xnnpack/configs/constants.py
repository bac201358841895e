"""Constants that are dequantized: their integers, and what these stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.fx import Node

from workbench.backends.xnnpack.quantization import (
    PerChannel,
    PerGroup,
    PerTensor,
    Quantization,
    is_usable,
    permuted,
)

if TYPE_CHECKING:
    from workbench.backends.xnnpack.configs.base import Context

__all__ = ["MAKES_NUMBERS", "is_affine", "name_of", "quantized_constant"]

aten = torch.ops.aten
quantized = torch.ops.quantized_decomposed
_FOUR_BITS = (-8, 7)
_GROUP_MULTIPLE = 32  # of the library's kernels
_Found = tuple[torch.Tensor, Quantization]

# Operators that make numbers of integers, by name: those of torchao may not be there.
MAKES_NUMBERS = frozenset(
    {
        "quantized_decomposed.dequantize_per_tensor.default",
        "quantized_decomposed.dequantize_per_tensor.tensor",
        "quantized_decomposed.dequantize_per_channel.default",
        "quantized_decomposed.dequantize_per_channel_group.default",
        "quantized_decomposed.dequantize_per_token.default",
        "torchao.dequantize_affine.default",
    }
)


def name_of(node: Any) -> str:
    """The operator of a node as text, empty for what is no operator."""
    return str(node.target) if isinstance(node, Node) and node.op == "call_function" else ""


def is_affine(node: Any) -> bool:
    """Whether a node is one of torchao's operators on blocks."""
    return name_of(node).startswith("torchao.")


def quantized_constant(node: Node, context: Context) -> _Found | None:
    """The integers behind a constant, and what they stand for; None where XNNPACK has no such kind.

    Args:
        node: A constant of `context`.
        context: The program.
    """
    read = _READERS.get(name_of(node))
    if read is not None:
        return read(node, context)
    order = _order(node)
    if order is not None:
        source: Any = node.args[0]
        found = quantized_constant(source, context)
        if found is not None and len(order) == found[0].dim():
            return found[0].permute(*order), _require(permuted(found[1], order))
    return None


def _require(found: Quantization | None) -> Quantization:
    assert found is not None
    return found


def _order(node: Node) -> list[int] | None:
    """The order that a permutation brings dimensions to."""
    if node.op != "call_function" or node.target not in _PERMUTATIONS:
        return None
    source: Any = node.args[0]
    rank = source.meta["val"].dim()
    order = list(range(rank))
    if node.target is aten.permute_copy.default:
        listed: Any = node.args[1]
        return [int(axis) % rank for axis in listed]
    pair: Any = (0, 1) if node.target is aten.t_copy.default else node.args[1:3]
    if rank > 1:
        i, j = int(pair[0]) % rank, int(pair[1]) % rank
        order[i], order[j] = order[j], order[i]
    return order


_PERMUTATIONS = (aten.permute_copy.default, aten.t_copy.default, aten.transpose_copy.int)


def _argument(node: Node, name: str, default: Any = None) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    schema: Any = node.target
    for index, parameter in enumerate(schema._schema.arguments):
        if parameter.name == name:
            return node.args[index] if index < len(node.args) else default
    return default


def _is_float32(node: Node) -> bool:
    found: torch.dtype = node.meta["val"].dtype
    return found == torch.float32


def _integers(node: Node, context: Context) -> torch.Tensor | None:
    source: Any = node.args[0]
    integers: torch.Tensor = context.tensor(source)
    return integers if integers.dtype == torch.int8 and _is_float32(node) else None


def _per_tensor(node: Node, context: Context) -> _Found | None:
    integers = _integers(node, context)
    scale, zero_point = node.args[1:3]
    if integers is None or not is_usable(float(scale)):  # type: ignore[arg-type]
        return None
    return integers, PerTensor(_single(float(scale)), int(zero_point))  # type: ignore[arg-type]


def _single(scale: float) -> float:
    """As float32, in which the program stores it."""
    return torch.tensor(scale, dtype=torch.float32).item()


def _constant(node: Any, context: Context) -> torch.Tensor | None:
    """The tensor of an operand; None where it is none."""
    if not isinstance(node, Node):
        return None
    found: torch.Tensor = context.tensor(node)
    return found


def _usable(scales: torch.Tensor, zeros: torch.Tensor | None) -> torch.Tensor | None:
    """Scales in float32, if the library takes them."""
    if zeros is not None and bool((zeros != 0).any()):
        return None
    single = scales.detach().float()
    smallest = torch.finfo(torch.float32).smallest_normal
    return single if bool((single.isfinite() & (single >= smallest)).all()) else None


def _per_channel(node: Node, context: Context) -> _Found | None:
    integers = _integers(node, context)
    scales = _usable(context.tensor(_node(node.args[1])), _constant(node.args[2], context))
    if integers is None or scales is None:
        return None
    axis = int(node.args[3]) % integers.dim()  # type: ignore[arg-type]
    bits = 4 if tuple(node.args[4:6]) == _FOUR_BITS else 8
    return integers, PerChannel(scales, axis, bits)


def _node(node: Any) -> Node:
    assert isinstance(node, Node)
    return node


def _per_group(node: Node, context: Context) -> _Found | None:
    limits = _argument(node, "quant_min"), _argument(node, "quant_max")
    scales, zeros = context.tensor(_node(node.args[1])), _constant(node.args[2], context)
    return _groups(_integers(node, context), scales, zeros, limits, int(_argument(node, "group_size")))


def _affine(node: Node, context: Context) -> _Found | None:
    """`dequantize_affine` of blocks that are a group, a row, or all."""
    integers = _integers(node, context)
    block: Any = node.args[1]
    scales, zeros = context.tensor(_node(node.args[2])), _constant(node.args[3], context)
    if integers is None:
        return None
    limits = tuple(
        given if (given := _argument(node, name)) is not None else limit
        for name, limit in (("quant_min", -128), ("quant_max", 127))
    )
    sizes = list(block)
    if integers.dim() == 2 and sizes[0] == 1:
        return _groups(integers, scales.reshape(integers.shape[0], -1), zeros, limits, int(sizes[1]))
    rows = [1, *integers.shape[1:]]
    if sizes == rows:
        usable = _usable(scales.reshape(-1), zeros)
        return None if usable is None else (integers, PerChannel(usable, 0))
    return None


def _groups(
    integers: torch.Tensor | None,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
    limits: tuple[Any, ...],
    size: int,
) -> _Found | None:
    usable = _usable(scales, zeros)
    if integers is None or usable is None or integers.dim() != 2:
        return None
    four = limits == _FOUR_BITS
    if size == integers.shape[1]:
        return integers, PerChannel(usable.reshape(-1), 0, 4 if four else 8)
    if not four or size % _GROUP_MULTIPLE or integers.shape[1] % size:
        return None
    return integers, PerGroup(usable.reshape(integers.shape[0], -1), size)


_READERS: Mapping[str, Callable[[Node, Any], _Found | None]] = {
    "quantized_decomposed.dequantize_per_tensor.default": _per_tensor,
    "quantized_decomposed.dequantize_per_channel.default": _per_channel,
    "quantized_decomposed.dequantize_per_channel_group.default": _per_group,
    "torchao.dequantize_affine.default": _affine,
}
