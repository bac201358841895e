"""Functions of one value: with 256 possible numbers, each is a table."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization import pt2e
from workbench.quantization.patterns.base import ACTIVATIONS, Context, Family, Outcome, float_tensor

__all__ = ["FAMILY"]

aten = torch.ops.aten

# Results whose range is known: low end and width.
_KNOWN: dict[Any, tuple[float, float]] = {
    aten.sigmoid.default: (0.0, 1.0),
    aten.sigmoid_.default: (0.0, 1.0),
    aten.hardsigmoid.default: (0.0, 1.0),
    aten.hardsigmoid_.default: (0.0, 1.0),
    aten.softmax.int: (0.0, 1.0),
    aten._softmax.default: (0.0, 1.0),
    aten.tanh.default: (-1.0, 2.0),
    aten.tanh_.default: (-1.0, 2.0),
}
_OBSERVED = (
    aten.hardswish.default,
    aten.hardswish_.default,
    aten.silu.default,
    aten.silu_.default,
    aten.gelu.default,
    aten.elu.default,
    aten.elu_.default,
    aten.leaky_relu.default,
    aten.leaky_relu_.default,
    aten.abs.default,
    aten.neg.default,
    *sorted(ACTIVATIONS, key=str),
)


def _pointwise(node: Node, config: Any, context: Context) -> Outcome:
    source = node.args[0]
    assert isinstance(source, Node)
    if config.output_activation is None:
        return Outcome(why="dynamic scales are for layers with weights")
    why = float_tensor(source)
    if not why and not context.explicit(node):
        if not context.quantized(source):
            why = f"its input `{source}` is in floats"
        elif node not in context.wanted:
            why = "no reader computes on integers"
    if why:
        return Outcome(why=why)
    output = config.output_activation
    if node.target in _KNOWN:
        output = _fixed(*_KNOWN[node.target], config)
    context.annotate(node, {source: config.input_activation}, output)
    return Outcome(how=f"int8 {node.target._opname}")  # type: ignore[union-attr]


def _fixed(low: float, width: float, config: Any) -> Any:
    quant_min, quant_max = config.output_activation.quant_min, config.output_activation.quant_max
    steps = quant_max - quant_min + 1
    scale = width / steps
    return pt2e.FixedQParamsQuantizationSpec(
        dtype=config.output_activation.dtype,
        scale=scale,
        zero_point=round(quant_min - low / scale),
        quant_min=quant_min,
        quant_max=quant_max,
        qscheme=torch.per_tensor_affine,
    )


FAMILY: dict[Any, Family] = dict.fromkeys([*_KNOWN, *_OBSERVED], _pointwise)
