"""Layers whose input is quantized at run time: `choose_qparams -> quantize -> dequantize -> layer`.

The library has one conversion for the first two, with a scale and zero point per row, and computes the layer
on its integers. That is finer than one scale for the tensor, which the graph may ask for.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, config_of
from workbench.backends.xnnpack.configs.constants import name_of
from workbench.backends.xnnpack.graph import Value
from workbench.backends.xnnpack.quantization import PerRow

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS", "Chain", "chain_of", "numbers_of_rows", "reshaped_rows"]

_CHOOSE = frozenset(
    {
        "quantized_decomposed.choose_qparams.tensor",
        "quantized_decomposed.choose_qparams_symmetric.tensor",
        "quantized_decomposed.choose_qparams_per_token.default",
        "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
        "torchao.choose_qparams_affine.default",
    }
)
_QUANTIZE = frozenset(
    {
        "quantized_decomposed.quantize_per_tensor.tensor",
        "quantized_decomposed.quantize_per_token.default",
        "torchao.quantize_affine.default",
    }
)
_DEQUANTIZE = frozenset(
    {
        "quantized_decomposed.dequantize_per_tensor.tensor",
        "quantized_decomposed.dequantize_per_token.default",
        "torchao.dequantize_affine.default",
    }
)
_CONVOLUTION = torch.ops.aten.convolution.default
_DYNAMIC = frozenset({ConfigPrecisionType.DYNAMIC_QUANT})


@dataclass(frozen=True)
class Chain:
    """What quantizes at run time.

    Attributes:
        choose: Finds scale and zero point.
        parameters: Take them apart.
        quantize: Makes the integers.
        dequantize: Make numbers of them again.
        readers: The layers' operands: what reads those numbers, through reshapes of rows.
    """

    choose: Node
    parameters: tuple[Node, ...]
    quantize: Node
    dequantize: tuple[Node, ...]
    readers: tuple[tuple[Node, Node], ...]

    @property
    def source(self) -> Node:
        """What is quantized."""
        found: Any = self.choose.args[0]
        assert isinstance(found, Node)
        return found

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All of them."""
        return (self.choose, *self.parameters, self.quantize, *self.dequantize)


def chain_of(node: Node) -> Chain | None:
    """The chain that a node belongs to: any of its nodes; None where there is no complete one."""
    choose: Any = node
    for names in (_DEQUANTIZE, _QUANTIZE):
        if name_of(choose) in names and choose.args and isinstance(choose.args[0], Node):
            choose = choose.args[0] if names is _DEQUANTIZE else _parameter(choose)
    if isinstance(choose, Node) and choose.target is operator.getitem:
        choose = choose.args[0]
    if name_of(choose) not in _CHOOSE:
        return None
    assert isinstance(choose, Node)
    parameters = tuple(user for user in choose.users if user.target is operator.getitem)
    quantize = [user for item in parameters for user in item.users if name_of(user) in _QUANTIZE]
    if len(set(quantize)) != 1 or len(parameters) != len(choose.users):
        return None
    dequantize = tuple(quantize[0].users)
    expected = {quantize[0], *dequantize}
    complete = (
        all(name_of(item) in _DEQUANTIZE for item in dequantize)
        and quantize[0].args[0] is choose.args[0]
        and all(set(item.users) <= expected for item in parameters)
    )
    if not complete:
        return None
    readers = tuple(pair for item in dequantize for pair in _readers(item))
    return Chain(choose, parameters, quantize[0], dequantize, readers)


def _parameter(node: Node) -> Any:
    """The first operand that takes scale and zero point apart."""
    return next(
        (s for s in node.all_input_nodes if s.target is operator.getitem and name_of(s.args[0]) in _CHOOSE),
        None,
    )


def _readers(numbers: Node) -> Iterator[tuple[Node, Node]]:
    for user in numbers.users:
        if _keeps_rows(user):
            yield from _readers(user)
        else:
            yield user, numbers


def _keeps_rows(node: Node) -> bool:
    """Whether a node only regroups rows."""
    if node.target not in (torch.ops.aten.view_copy.default, torch.ops.aten._unsafe_view.default):
        return False
    source: Any = node.args[0]
    before, after = source.meta["val"].shape, node.meta["val"].shape
    return len(before) > 0 and len(after) > 0 and before[-1] == after[-1]


def numbers_of_rows(node: Any) -> Chain | None:
    """The chain whose numbers an operand is, through reshapes of rows; None for other operands."""
    while isinstance(node, Node) and _keeps_rows(node):
        node = node.args[0]
    return chain_of(node) if name_of(node) in _DEQUANTIZE else None


class Dynamic(Config):
    """The nodes of a chain; they are taken if every layer that reads it is."""

    targets = tuple(sorted(_CHOOSE | _QUANTIZE | _DEQUANTIZE))
    precisions = _DYNAMIC

    def refusal(self, node: Node, context: Context) -> WhyNot | None:
        """The chain must be complete, of int8, and each reader a layer with quantized weights."""
        chain = chain_of(node)
        if chain is None:
            if context.is_constant(node):
                return WhyNot(node, "no layer that XNNPACK takes reads it", "one did")
            return WhyNot(
                node,
                "its scale is not found at run time by choose_qparams of the same tensor",
                "choose_qparams, quantize and dequantize stood in a row, read by layers only",
            )
        if chain.source.meta["val"].dtype != torch.float32:
            found = str(chain.source.meta["val"].dtype).removeprefix("torch.")
            return WhyNot(node, f"it quantizes {found}", "it quantized float32")
        if chain.quantize.meta["val"].dtype != torch.int8:
            found = str(chain.quantize.meta["val"].dtype).removeprefix("torch.")
            return WhyNot(node, f"its integers are {found}", "they were int8")
        for reader, operand in chain.readers:
            config = config_of(context.configs, reader)
            if config is None or not config.takes_rows(reader, operand, context):
                return WhyNot(
                    node,
                    f"'{reader.name}' reads it, and has no form on integers quantized at run time",
                    "only linear layers and plain two-dimensional convolutions read it, whose weights are "
                    "quantized symmetrically per channel (of linear layers also per group of 32, 4 bits)",
                )
        if len({reader.target is _CONVOLUTION for reader, _ in chain.readers}) > 1:
            return WhyNot(node, "linear layers and convolutions read it", "each read numbers of its own")
        return None if chain.readers else WhyNot(node, "nothing reads it", "a layer did")

    def together(self, node: Node, context: Context) -> tuple[Node, ...]:
        """The whole chain."""
        chain = chain_of(node)
        return () if chain is None else chain.nodes

    def build(self, node: Node, builder: Builder) -> None:
        """The conversion, and another one back, which goes when the layer reads the integers."""
        chain = chain_of(node)
        assert chain is not None
        if node is chain.choose:
            for item in chain.parameters:
                builder.define(item, builder.value(chain.source))  # nobody reads it as such
            builder.define(node, builder.value(chain.source))
        elif node is chain.quantize:
            reader, _ = chain.readers[0]
            rows = PerRow(3 if reader.target is _CONVOLUTION else 1)
            value = builder.value(chain.source)
            builder.define(node, builder.like("Convert", [value], node, dtype=torch.int8, quantization=rows))
        else:
            value = builder.value(chain.quantize)
            builder.define(
                node, builder.call("Convert", [value], value.shape, value.free, dtype=torch.float32)
            )


def reshaped_rows(value: Value, shape: Any, free: Any, builder: Builder) -> Value | None:
    """Numbers of rows in other groups, quantized after the reshape; None for other values."""
    back = value.producer
    rows = back.given[0].producer if back is not None and back.kind == "Convert" else None
    if rows is None or not isinstance(rows.output.quantization, PerRow):
        return None
    source = builder.reshape(rows.given[0], shape, free)
    made = builder.call(
        "Convert", [source], shape, free, dtype=torch.int8, quantization=rows.output.quantization
    )
    return builder.call("Convert", [made], shape, free, dtype=torch.float32)


CONFIGS: tuple[Config, ...] = (Dynamic(),)
