"""Conversion between numbers and integers of one scale and zero point, and the groups around an operator.

An operator on integers stands in a graph as `dequantize -> operator -> quantize`. The three are taken
together; `passes/integers.py` makes one call of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context
from workbench.backends.xnnpack.configs.constants import MAKES_NUMBERS, name_of
from workbench.backends.xnnpack.quantization import PerTensor, is_usable

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = [
    "CONFIGS",
    "given_quantization",
    "group_of",
    "is_constant_maker",
    "is_dequantize",
    "is_quantize",
]

aten = torch.ops.aten
quantized = torch.ops.quantized_decomposed
_QUANTIZE = quantized.quantize_per_tensor.default
_DEQUANTIZE = quantized.dequantize_per_tensor.default
# XNNPACK saturates to all of int8; one step off is what symmetric ranges lose by it.
_RANGES = ((-128, 127), (-127, 127))
_ACTIVATIONS = (aten.relu.default, aten.hardtanh.default, aten.clamp.default)
_STATIC = frozenset({ConfigPrecisionType.STATIC_QUANT})


def is_quantize(node: Any) -> bool:
    """Whether a node makes integers with a constant scale."""
    return isinstance(node, Node) and node.op == "call_function" and node.target is _QUANTIZE


def is_dequantize(node: Any) -> bool:
    """Whether a node makes numbers of integers with a constant scale."""
    return isinstance(node, Node) and node.op == "call_function" and node.target is _DEQUANTIZE


def parameters_of(node: Node) -> PerTensor:
    """Scale and zero point of a node that quantizes or dequantizes."""
    scale, zero_point = node.args[1:3]
    return PerTensor(torch.tensor(scale, dtype=torch.float32).item(), int(zero_point))  # type: ignore[arg-type]


def given_quantization(node: Node) -> PerTensor | None:
    """What the integers of an input stand for, by those who read it."""
    for user in node.users:
        if is_dequantize(user):
            return parameters_of(user)
    return None


def group_of(node: Node) -> tuple[Node, ...]:
    """The nodes around an operator that make one call with it: before it, behind it.

    Those that others read, too, are left out: they may stand in another partition.
    """
    before = tuple(
        source for source in node.all_input_nodes if is_dequantize(source) and len(source.users) == 1
    )
    if not any(is_dequantize(source) for source in node.all_input_nodes):
        return ()
    behind: list[Node] = []
    last = node
    while len(last.users) == 1 and len(behind) < 2:
        (user,) = last.users
        if not (is_quantize(user) or user.target in _ACTIVATIONS):
            break
        behind.append(user)
        last = user
        if is_quantize(user):
            return (*before, *behind)
    return before


class _PerTensor(Config):
    """What both directions have in common."""

    dtypes = (torch.float32, torch.int8)
    precisions = _STATIC

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Integers of 8 bits with sign, over their whole range."""
        if context.is_constant(node):
            return WhyNot(node, "it is constant", "a layer that XNNPACK takes read it")
        scale, zero_point, low, high, dtype = node.args[1:6]
        if dtype != torch.int8:
            return WhyNot(node, f"its integers are {str(dtype).removeprefix('torch.')}", "they were int8")
        if (low, high) not in _RANGES:
            return WhyNot(node, f"its integers run from {low} to {high}", "they ran from -128 to 127")
        if not isinstance(scale, float) or not is_usable(scale):
            return WhyNot(node, f"its scale is {scale}", "it were positive, finite and normal")
        if not isinstance(zero_point, int) or not -128 <= zero_point <= 127:
            return WhyNot(node, f"its zero point is {zero_point}", "it were an int8")
        return None


class Quantize(_PerTensor):
    """`quantize_per_tensor` with constant parameters."""

    targets = (_QUANTIZE,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """It makes integers of float32."""
        found = node.args[0].meta["val"].dtype  # type: ignore[union-attr]
        if found != torch.float32:
            return WhyNot(node, f"it quantizes {str(found).removeprefix('torch.')}", "it quantized float32")
        return super().check(node, context)

    def build(self, node: Node, builder: Builder) -> None:
        """One conversion."""
        value, parameters = builder.value(node.args[0]), parameters_of(node)
        builder.define(
            node, builder.like("Convert", [value], node, dtype=torch.int8, quantization=parameters)
        )


class Dequantize(_PerTensor):
    """`dequantize_per_tensor` with constant parameters."""

    targets = (_DEQUANTIZE,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """All that read the same integers must agree on what they stand for."""
        answer = super().check(node, context)
        if answer is not None:
            return answer
        source: Any = node.args[0]
        if node.meta["val"].dtype != torch.float32:
            found = str(node.meta["val"].dtype).removeprefix("torch.")
            return WhyNot(node, f"its result is {found}", "it were float32")
        if source.meta["val"].dtype != torch.int8:
            found = str(source.meta["val"].dtype).removeprefix("torch.")
            return WhyNot(node, f"'{source.name}' is {found}", f"'{source.name}' were int8")
        known = [parameters_of(user) for user in source.users if is_dequantize(user)]
        if is_quantize(source):
            known.append(parameters_of(source))
        if any(other != parameters_of(node) for other in known):
            return WhyNot(
                node,
                f"'{source.name}' is quantized or dequantized with other parameters elsewhere",
                "scale and zero point were the same",
            )
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One conversion."""
        builder.define(
            node, builder.like("Convert", [builder.value(node.args[0])], node, dtype=torch.float32)
        )


class DequantizeWeight(Config):
    """`dequantize` by channel or group: nothing by itself, a part of the layer that reads it."""

    targets = (
        quantized.dequantize_per_channel.default,
        quantized.dequantize_per_channel_group.default,
    )
    precisions = frozenset({ConfigPrecisionType.STATIC_QUANT, ConfigPrecisionType.DYNAMIC_QUANT})

    def refusal(self, node: Node, context: Context) -> WhyNot | None:
        """It stays where no layer takes it along."""
        source: Any = node.args[0]
        if not context.is_constant(node):
            return WhyNot(
                node,
                f"'{source.name}' is computed at run time, and has a scale per channel",
                "it were constant",
            )
        return WhyNot(node, "no layer that XNNPACK takes reads it", "one did")

    def build(self, node: Node, builder: Builder) -> None:
        """Never asked for: it is constant."""
        raise AssertionError(f"{node.name} is no constant")


def is_constant_maker(node: Node) -> bool:
    """Whether a node that makes a constant has to go with those who read it."""
    return name_of(node) in MAKES_NUMBERS or is_quantize(node)


CONFIGS: tuple[Config, ...] = (Quantize(), Dequantize(), DequantizeWeight())
