"""Smoothing: outliers of activations move into the weights that read them.

Behind a layer norm some channels are much larger than the others, and one scale has to hold them all.
Dividing channel j of the norm by s_j = max|X_j|^a / max|W_j|^(1 - a) and multiplying the weights that read
it by s_j leaves the function as it is. Xiao, Lin, Seznec, Wu, Demouth, Han, "SmoothQuant", ICML 2023,
equation 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.quantization.layers import Weights

__all__ = ["Smoothable", "smooth", "smoothable"]

aten = torch.ops.aten
# Operators whose last step is a product with a weight of one number a channel -> positions of weight and
# bias.
_PRODUCERS: dict[Any, tuple[int, int | None]] = {
    aten.layer_norm.default: (2, 3),
    aten.rms_norm.default: (2, None),
    aten.linear.default: (1, 2),
}


@dataclass(frozen=True)
class Smoothable:
    """A value whose channels can be scaled.

    Attributes:
        producer: Name of the operator that makes it.
        readers: Names of all linear layers that read it; nobody else does.
    """

    producer: str
    readers: tuple[str, ...]


def smoothable(program: ExportedProgram) -> list[Smoothable]:
    """What can be smoothed in a program."""
    weights = Weights(program)
    found = []
    for node in program.graph.nodes:
        positions = _PRODUCERS.get(node.target)
        if positions is None or weights.of(node, positions[0]) is None:
            continue
        bias = positions[1]
        given = bias is not None and len(node.args) > bias and node.args[bias] is not None
        if given and weights.of(node, bias) is None:  # type: ignore[arg-type]
            continue
        if node.target is not aten.linear.default and len(node.args[1]) != 1:
            continue  # a norm over several axes
        readers = list(node.users)
        linear = [r for r in readers if r.target is aten.linear.default and r.args[0] is node]
        if readers and len(linear) == len(readers) and all(weights.of(r, 1) is not None for r in linear):
            found.append(Smoothable(node.name, tuple(reader.name for reader in linear)))
    return found


def smooth(
    program: ExportedProgram, most: Mapping[str, np.ndarray[Any, Any]], share: float, what: list[Smoothable]
) -> int:
    """Smooth in place.

    Args:
        program: A copy of one's own; its function in floats stays the same up to rounding.
        most: By the name of its producer, the largest absolute value of each channel, (c,).
        share: The `a` above: 0 moves nothing into the weights, 1 everything.
        what: What `smoothable` found.

    Returns:
        How many values were smoothed.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    weights = Weights(program)
    count = 0
    for item in what:
        if item.producer not in most or share <= 0:
            continue
        readers = [nodes[name] for name in item.readers]
        found = [weights.of(reader, 1) for reader in readers]
        columns = torch.stack([w.abs().amax(0) for w in found if w is not None]).amax(0)
        seen = torch.from_numpy(np.asarray(most[item.producer])).to(columns.dtype)
        factor = seen.clamp(min=1e-5) ** share / columns.clamp(min=1e-5) ** (1 - share)
        # Only what exceeds the ordinary channel is moved; the mean factor changes nothing and is taken out.
        factor = factor / torch.exp(torch.log(factor).mean())
        factor = torch.where(seen > 0, factor.clamp(1e-3, 1e3), torch.ones_like(factor))
        _divide(nodes[item.producer], factor, weights)
        for reader, weight in zip(readers, found, strict=True):
            assert weight is not None
            weights.set(reader, 1, weight * factor)
        count += 1
    return count


def _divide(producer: Node, factor: torch.Tensor, weights: Weights) -> None:
    position, bias = _PRODUCERS[producer.target]
    weight = weights.of(producer, position)
    assert weight is not None
    shaped = factor.unsqueeze(1) if weight.dim() == 2 else factor
    weights.set(producer, position, weight / shaped)
    added = None if bias is None else weights.of(producer, bias)
    if bias is not None and added is not None:
        weights.set(producer, bias, added / factor)
