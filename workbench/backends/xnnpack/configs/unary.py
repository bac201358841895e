"""Operators on one tensor, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, Context, argument
from workbench.edge.dim_order_ops import CLONE, TO_COPY

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS"]

aten = torch.ops.aten


class Plain(Config):
    """An operator that one call computes, without options."""

    kind: ClassVar[str]

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        builder.define(node, builder.like(self.kind, [builder.value(node.args[0])], node))


def _plain(name: str, kind: str, target: Any, *, whole: bool = False) -> Config:
    kept = (target,) if whole else ()
    fields = {"kind": kind, "targets": (target,), "whole": kept, "__doc__": f"`{name.lower()}`."}
    made: Config = type(name, (Plain,), fields)()
    return made


class Gelu(Plain):
    """`gelu`, in its exact form."""

    kind = "Gelu"
    targets = (aten.gelu.default,)
    dtypes = (torch.float32,)  # no kernel for halves

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The approximation by tanh is another function."""
        approximate = argument(node, "approximate", "none")
        if approximate != "none":
            return WhyNot(node, f"it approximates by {approximate!r}", "approximate were 'none'")
        return None


class LeakyRelu(Config):
    """`leaky_relu`."""

    targets = (aten.leaky_relu.default,)

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        slope = float(argument(node, "negative_slope", 0.01))
        value = builder.value(node.args[0])
        builder.define(node, builder.like("LeakyReLU", [value], node, negative_slope=slope))


class Elu(Config):
    """`elu` with a slope for negative values only."""

    targets = (aten.elu.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The scales must be 1, alpha positive."""
        scales = float(argument(node, "scale", 1)), float(argument(node, "input_scale", 1))
        if scales != (1.0, 1.0):
            return WhyNot(node, f"its scales are {scales[0]} and {scales[1]}", "both were 1")
        alpha = float(argument(node, "alpha", 1))
        if not (math.isfinite(alpha) and alpha > 0):
            return WhyNot(node, f"its alpha is {alpha}", "it were positive and finite")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        value = builder.value(node.args[0])
        builder.define(node, builder.like("ELU", [value], node, alpha=float(argument(node, "alpha", 1))))


class Clamp(Config):
    """`relu`, `hardtanh` and `clamp` with constant bounds."""

    targets = (aten.relu.default, aten.hardtanh.default, aten.clamp.default)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The bounds must be numbers, in order."""
        bounds = self._bounds(node)
        if any(not isinstance(bound, (int, float)) for bound in bounds):
            return WhyNot(node, "its bounds are not known before the program runs", "they were constants")
        low, high = bounds
        if not low < high:
            return WhyNot(node, f"its bounds are {low} and {high}", "min were less than max")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        low, high = self._bounds(node)
        result = builder.like("Clamp", [builder.value(node.args[0])], node)
        assert result.producer is not None
        result.producer.bounds = float(low), float(high)
        builder.define(node, result)

    @staticmethod
    def _bounds(node: Node) -> tuple[Any, Any]:
        if node.target is aten.relu.default:
            return 0.0, math.inf
        if node.target is aten.hardtanh.default:
            return argument(node, "min_val", -1.0), argument(node, "max_val", 1.0)
        low, high = argument(node, "min"), argument(node, "max")
        return (-math.inf if low is None else low), (math.inf if high is None else high)


class Power(Config):
    """`pow` with the exponents that are calls of their own: 2, 1/2, -1/2."""

    targets = (aten.pow.Tensor_Scalar,)
    _kinds: ClassVar = {2.0: "Square", 0.5: "SquareRoot", -0.5: "ReciprocalSquareRoot"}

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Other exponents have no call."""
        if not isinstance(node.args[1], (int, float)) or float(node.args[1]) not in self._kinds:
            return WhyNot(node, f"its exponent is {node.args[1]}", "it were 2, 0.5 or -0.5")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        kind = self._kinds[float(node.args[1])]  # type: ignore[arg-type]
        builder.define(node, builder.like(kind, [builder.value(node.args[0])], node))


class Reciprocal(Config):
    """`reciprocal`."""

    targets = (aten.reciprocal.default,)

    def build(self, node: Node, builder: Builder) -> None:
        """One divided by the value."""
        builder.define(node, builder.like("Divide", [builder.value(1.0), builder.value(node.args[0])], node))


class Copy(Config):
    """Copies: nothing inside of a delegate, where the type stays, and else a conversion between floats."""

    targets = (aten.clone.default, aten._to_copy.default, aten.alias_copy.default, CLONE, TO_COPY)

    def build(self, node: Node, builder: Builder) -> None:
        """The same value, or one call; an output gets its dim order when it is written."""
        value = builder.value(node.args[0])
        dtype = builder.result_dtype
        if value.data is not None:
            value = builder.constant(value.data.to(dtype))
        elif value.dtype != dtype:
            value = builder.call("Convert", [value], value.shape, value.free, dtype=dtype)
        builder.define(node, value)


class Silu(Config):
    """`silu`, kept whole: x times sigmoid(x)."""

    targets = (aten.silu.default,)
    whole = (aten.silu.default,)

    def build(self, node: Node, builder: Builder) -> None:
        """Two calls."""
        value = builder.value(node.args[0])
        gate = builder.like("Sigmoid", [value], node)
        builder.define(node, builder.like("Multiply", [value, gate], node))


CONFIGS: tuple[Config, ...] = (
    _plain("Abs", "Abs", aten.abs.default),
    _plain("Ceil", "Ceiling", aten.ceil.default),
    _plain("Cos", "Cos", aten.cos.default),
    _plain("Exp", "Exp", aten.exp.default),
    _plain("Floor", "Floor", aten.floor.default),
    _plain("Hardswish", "Hardswish", aten.hardswish.default, whole=True),
    _plain("Log", "Log", aten.log.default),
    _plain("Neg", "Negate", aten.neg.default),
    _plain("Rsqrt", "ReciprocalSquareRoot", aten.rsqrt.default),
    _plain("Sigmoid", "Sigmoid", aten.sigmoid.default),
    _plain("Sin", "Sin", aten.sin.default),
    _plain("Sqrt", "SquareRoot", aten.sqrt.default),
    _plain("Square", "Square", aten.square.default),
    _plain("Tanh", "Tanh", aten.tanh.default),
    Gelu(),
    LeakyRelu(),
    Elu(),
    Clamp(),
    Power(),
    Reciprocal(),
    Copy(),
    Silu(),
)
