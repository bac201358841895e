"""The graph that the engine of the runtime runs, as `schema/cpu.fbs` has it; `engine/graph.h` explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import torch

__all__ = [
    "INFER",
    "INPUT",
    "NO_VALUE",
    "Attributes",
    "Fn",
    "Graph",
    "Node",
    "Op",
    "PadMode",
    "Quantization",
    "QuantizationKind",
    "ReduceFn",
    "SizeRule",
    "Step",
    "UpsampleMode",
    "Value",
    "ValueKind",
    "WeightOrder",
    "Window",
]

NO_VALUE = 0xFFFFFFFF
"""Index of a value that is missing."""
INPUT = 128
"""Operands of a step from here on are the node's inputs."""
INFER = -1
"""Value of the one size that is what is left over."""


class ValueKind(IntEnum):
    """What a value is."""

    INPUT = 0
    OUTPUT = 1
    CONSTANT = 2
    TEMPORARY = 3


class ReduceFn(IntEnum):
    """What a reduction computes."""

    SUM, MEAN, MAX, MIN, PROD, ANY, ALL, VARIANCE, L1, L2 = range(10)


class QuantizationKind(IntEnum):
    """What of a value shares a scale."""

    NONE, PER_TENSOR, PER_CHANNEL, PER_GROUP, PER_ROW = range(5)


class PadMode(IntEnum):
    """What stands in the border."""

    CONSTANT, REFLECT, REPLICATE = range(3)


class UpsampleMode(IntEnum):
    """How elements between others are found."""

    NEAREST, BILINEAR = range(2)


# Operators and functions are numbered in this order.
Op = IntEnum(
    "Op",
    "Pointwise MatMul Convolution TransposedConvolution MaxPool AvgPool Reduce ArgReduce Softmax LayerNorm "
    "RmsNorm GroupNorm Attention Embedding Gather Lstm Gru Transpose Reshape Expand Concat Slice Pad "
    "Upsample Convert Copy Quantize Dequantize",
    start=0,
)
Fn = IntEnum(
    "Fn",
    "Identity Abs Neg Ceil Floor Round Trunc Sign Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos "
    "Tan Asin Acos Atan Sinh Cosh Tanh Erf Sigmoid Silu HardSigmoid HardSwish Gelu GeluTanh Mish Softplus "
    "Elu LeakyRelu Clamp PowScalar AddScalar MulScalar ReverseSubScalar ReverseDivScalar LogicalNot IsNan "
    "Add Sub Mul Div Maximum Minimum Pow SquaredDifference Prelu Copysign Atan2 Fmod Remainder AddScaled Eq "
    "Ne Lt Le Gt Ge LogicalAnd LogicalOr LogicalXor Where",
    start=0,
)


@dataclass(frozen=True)
class Quantization:
    """How the integers of a value stand for numbers: (integer - zero point) scale.

    Attributes:
        kind: What shares a scale.
        bits: 4 for constants with two integers in a byte, the first in its low half; each row begins a byte.
        axis: Of channels: the dimension along which they are counted.
        group: Of groups: neighbours in a row that share a scale.
        scale: Of the whole value.
        zero_point: Of the whole value, or of all channels where `zero_points` are not given.
        scales: Of channels and groups, where `scales_key` is not given.
        zero_points: Of channels.
        scales_key: The key of the scales, float32, in named data.
    """

    kind: int
    bits: int = 8
    axis: int = 0
    group: int = 0
    scale: float = 1.0
    zero_point: int = 0
    scales: tuple[float, ...] | None = None
    zero_points: tuple[int, ...] | None = None
    scales_key: str | None = None


@dataclass
class Value:
    """A dense tensor.

    Attributes:
        kind: What it is.
        dtype: Element type.
        sizes: In the order of memory; upper bounds where dynamic.
        dynamic: Bit d: dimension d may be smaller.
        external: Which argument of the delegate call, of inputs and outputs.
        key: Of constants: the key of their elements in named data.
        data: Of constants without a key: their elements, little-endian.
        quantization: Of integers that stand for numbers.
        name: What the source graph calls it; not written.
    """

    kind: ValueKind
    dtype: torch.dtype
    sizes: tuple[int, ...]
    dynamic: int = 0
    external: int = 0
    key: str | None = None
    data: bytes | None = None
    quantization: Quantization | None = None
    name: str = ""


@dataclass(frozen=True)
class Step:
    """One elementwise function. Operands are registers, or `INPUT` + the number of an input."""

    fn: int
    operands: tuple[int, ...]
    a: float = 0.0
    b: float = 0.0


@dataclass(frozen=True)
class Window:
    """Kernel, stride, dilation and padding of convolutions and pools, in elements."""

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0
    divisor: int = 0
    ceil_mode: bool = False
    count_include_pad: bool = False


@dataclass(frozen=True)
class WeightOrder:
    """Strides of a convolution's weight in elements: output channel, channel in a group, row, column."""

    cout: int
    cin: int
    h: int
    w: int


@dataclass(frozen=True)
class SizeRule:
    """A size of a result: a number, or a dimension of the first input (times the number, if positive)."""

    value: int = 0
    from_input: int = -1


@dataclass(frozen=True)
class Attributes:
    """What the operators read; see `schema/cpu.fbs`."""

    window: Window | None = None
    weight_order: WeightOrder | None = None
    groups: int = 1
    output_padding_h: int = 0
    output_padding_w: int = 0
    transpose_b: bool = False
    reduce: int = ReduceFn.SUM
    mask: int = 0
    keep: bool = False
    axis: int = 0
    log: bool = False
    largest: bool = True
    correction: float = 1.0
    eps: float = 0.0
    scale: float = 1.0
    causal: bool = False
    layers: int = 1
    hidden: int = 0
    bidirectional: bool = False
    batch_first: bool = False
    permutation: tuple[int, ...] = ()
    sizes: tuple[SizeRule, ...] = ()
    begin: int = 0
    end: int = 0
    step: int = 1
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    pad_mode: int = PadMode.CONSTANT
    fill: float = 0.0
    upsample_mode: int = UpsampleMode.BILINEAR
    align_corners: bool = False
    scale_h: float = 0.0
    scale_w: float = 0.0
    out_h: int = 0
    out_w: int = 0


@dataclass
class Node:
    """One operator on values, which are named by their index.

    Attributes:
        op: The operator.
        inputs: Indices of values, or `NO_VALUE`.
        outputs: The same.
        given: Attributes that differ from their defaults, by name.
        steps: Of pointwise nodes: what is computed.
        source: The node of the source graph, by the number that the trace names.
    """

    op: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    given: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    source: int = -1

    @property
    def attributes(self) -> Attributes:
        """All attributes."""
        return Attributes(**self.given)


@dataclass
class Graph:
    """Values, and nodes in an order in which every value is written before it is read.

    Attributes:
        values: The values.
        nodes: The nodes.
        inputs: Arguments of the delegate call, numbers among them included.
        outputs: Its results.
    """

    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: int = 0
    outputs: int = 0

    def shapes(self, indices: Sequence[int]) -> list[tuple[int, ...] | None]:
        """Sizes of some values; None for missing ones."""
        return [None if index == NO_VALUE else self.values[index].sizes for index in indices]
