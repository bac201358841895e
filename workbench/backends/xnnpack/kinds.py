"""What there is to know about each kind of call: its table, its inputs, layouts, clamps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["KINDS", "Kind", "Layout"]


class Layout(Enum):
    """How a call depends on the order of dimensions in memory.

    Attributes:
        CHANNELS_LAST: Its tensors are NHWC.
        ANY: It does the same in every order; inputs and output have the same.
        FIXED: It is defined on PyTorch's order.
    """

    CHANNELS_LAST = "channels last"
    ANY = "any"
    FIXED = "fixed"


@dataclass(frozen=True)
class Kind:
    """A kind of call.

    Attributes:
        table: Name of the schema's table.
        inputs: Fields of that table that name inputs.
        layout: How it depends on layouts.
        clamps: Whether it can clamp its result on the way.
        axes: Fields whose value is an axis.
        by_axis: Fields that have an entry per dimension.
    """

    table: str
    inputs: tuple[str, ...]
    layout: Layout = Layout.ANY
    clamps: bool = False
    axes: tuple[str, ...] = ()
    by_axis: tuple[str, ...] = ()


_UNARY = Kind("Unary", ("input_id",))
_BINARY = Kind("Binary", ("input1_id", "input2_id"))
_ARITHMETIC = Kind("Binary", ("input1_id", "input2_id"), clamps=True)
_CONV = Kind("Conv", ("input1_id", "filter_id", "bias_id"), Layout.CHANNELS_LAST, clamps=True)
_POOLING = Kind("Pooling2D", ("input_id",), Layout.CHANNELS_LAST, clamps=True)


def _concatenate(count: int) -> Kind:
    return Kind("Concatenate", tuple(f"input{i + 1}_id" for i in range(count)), axes=("axis",))


KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "Sigmoid", "Floor", "SquareRoot", "Ceiling", "Hardswish", "Negate", "Square", "Abs",
            "ReciprocalSquareRoot", "Log", "Gelu", "Tanh", "Exp", "Sin", "Cos", "Copy", "Convert",
        ),
        _UNARY,
    ),
    "Clamp": Kind("Unary", ("input_id",), clamps=True),
    "ELU": Kind("ELU", ("input_id",)),
    "LeakyReLU": Kind("LeakyReLU", ("input_id",)),
    **dict.fromkeys(("Add", "Subtract", "Multiply", "Divide"), _ARITHMETIC),
    **dict.fromkeys(("Minimum", "Maximum", "PReLU"), _BINARY),
    "Softmax": Kind("Unary", ("input_id",), Layout.FIXED),
    "FullyConnected": Kind(
        "FullyConnected", ("input1_id", "filter_id", "bias_id"), Layout.FIXED, clamps=True
    ),
    "BatchMatrixMultiply": Kind("Binary", ("input1_id", "input2_id"), Layout.FIXED),
    **dict.fromkeys(("Conv2d", "DepthwiseConv2d", "ConvTranspose2d"), _CONV),
    **dict.fromkeys(("AvgPooling2d", "MaxPooling2d"), _POOLING),
    "GlobalAvgPooling2d": Kind("Unary", ("input_id",), Layout.CHANNELS_LAST, clamps=True),
    "StaticResizeBilinear2D": Kind("ResizeBilinear2D", ("input_id",), Layout.CHANNELS_LAST),
    "StaticTranspose": Kind("Transpose", ("input_id",), Layout.FIXED),
    "StaticReshape": Kind("Reshape", ("input_id",), Layout.FIXED),
    "StaticSlice": Kind("Slice", ("input_id",), by_axis=("offsets", "sizes")),
    "StaticConstantPad": Kind("ConstantPad", ("input_id",), by_axis=("pre_paddings", "post_paddings")),
    **{f"Concatenate{count}": _concatenate(count) for count in range(2, 6)},
}  # fmt: skip
