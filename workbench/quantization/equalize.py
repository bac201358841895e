"""Cross-layer equalization: channels of two layers in a row get equal ranges.

Between two layers with nothing but a positively homogeneous function in between (`f(s x) = s f(x)`), a
channel can be divided by a factor in the first and multiplied by it in the second. With the factor sqrt(r1
/ r2), r1 and r2 the ranges of the channel in both weights, both become sqrt(r1 r2). Nagel, van Baalen,
Blankevoort, Welling, "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019,
section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.quantization.layers import Weights, groups_of_layer, input_axis, output_axis

__all__ = ["equalize"]

aten = torch.ops.aten
# Functions of one channel at a time that a positive factor passes through.
_HOMOGENEOUS = frozenset(
    {
        aten.relu.default,
        aten.relu_.default,
        aten.leaky_relu.default,
        aten.leaky_relu_.default,
        aten.dropout.default,
        aten.max_pool2d.default,
        aten.avg_pool2d.default,
        aten.adaptive_avg_pool2d.default,
        aten.max_pool1d.default,
        aten.avg_pool1d.default,
    }
)


@dataclass(frozen=True)
class _Pair:
    first: Node
    second: Node


def equalize(program: ExportedProgram, *, rounds: int = 20, tolerance: float = 1e-3) -> int:
    """Equalize in place.

    Args:
        program: A copy of one's own; its function in floats stays the same up to rounding.
        rounds: How often all pairs are gone through at most: a layer may be part of two.
        tolerance: Ends when no factor differs from 1 by more.

    Returns:
        How many pairs of layers were equalized.
    """
    weights = Weights(program)
    pairs = [pair for node in program.graph.nodes if (pair := _pair(node, weights)) is not None]
    for _ in range(rounds):
        if max((_equalize(pair, weights) for pair in pairs), default=0.0) <= tolerance:
            break
    return len(pairs)


def _pair(first: Node, weights: Weights) -> _Pair | None:
    """The pair that begins with a layer."""
    if output_axis(first) is None or weights.of(first, 1) is None or not weights.alone(first, 1):
        return None
    if output_axis(first) == 1 and groups_of_layer(first) != 1:
        return None
    if len(first.args) > 2 and first.args[2] is not None and weights.of(first, 2) is None:
        return None
    node = first
    while True:
        if len(node.users) != 1:
            return None
        node = next(iter(node.users))
        if node.target in _HOMOGENEOUS:
            continue
        if output_axis(node) is None or node.args[0] is None or weights.of(node, 1) is None:
            return None
        known = weights.alone(node, 1) and (input_axis(node) is not None or _depthwise(node, weights))
        both_rows = (first.target is aten.linear.default) == (node.target is aten.linear.default)
        return _Pair(first, node) if known and both_rows else None


def _depthwise(layer: Node, weights: Weights) -> bool:
    weight = weights.of(layer, 1)
    return (
        weight is not None
        and output_axis(layer) == 0
        and groups_of_layer(layer) == weight.shape[0]
        and weight.shape[1] == 1
    )


def _equalize(pair: _Pair, weights: Weights) -> float:
    """Equalize one pair; returns how far the factors were from 1."""
    first, second = weights.of(pair.first, 1), weights.of(pair.second, 1)
    assert first is not None and second is not None
    out = output_axis(pair.first)
    assert out is not None
    entry = 0 if _depthwise(pair.second, weights) else input_axis(pair.second)
    assert entry is not None
    one, other = _ranges(first, out), _ranges(second, entry)
    factor = torch.sqrt(one / other)
    # Channels that do nothing on one side stay as they are; a factor beyond this would cost float precision.
    usable = (one > 0) & (other > 0) & torch.isfinite(factor)
    factor = torch.where(usable, factor.clamp(1e-4, 1e4), torch.ones_like(factor))
    away = float((factor - 1).abs().max())
    if away == 0:
        return 0.0
    weights.set(pair.first, 1, first / _shaped(factor, first, out))
    bias = weights.of(pair.first, 2)
    if bias is not None:
        weights.set(pair.first, 2, bias / factor)
    weights.set(pair.second, 1, second * _shaped(factor, second, entry))
    return away


def _ranges(weight: torch.Tensor, axis: int) -> torch.Tensor:
    return weight.movedim(axis, 0).reshape(weight.shape[axis], -1).abs().amax(1)


def _shaped(factor: torch.Tensor, like: torch.Tensor, axis: int) -> Any:
    shape = [1] * like.dim()
    shape[axis] = -1
    return factor.reshape(shape)
