"""Inference batch norms of an exported program are folded into the layer before them.

The edge dialect has a pass of the same kind; quantization comes before it, and has to see the weights that
will be quantized.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.edge.fake import fake_mode
from workbench.edge.program import add_constant, constant_tensor, remove_inputs

__all__ = ["BATCH_NORM", "FoldedNorm", "fold_batch_norms", "foldable", "folded"]

aten = torch.ops.aten
BATCH_NORM = aten.batch_norm.default
# Layer -> whether its weight has the output channels along axis 1.
_LAYERS: dict[Any, bool] = {
    aten.conv1d.default: False,
    aten.conv2d.default: False,
    aten.conv3d.default: False,
    aten.conv1d.padding: False,
    aten.conv2d.padding: False,
    aten.linear.default: False,
    aten.conv_transpose1d.default: True,
    aten.conv_transpose2d.input: True,
}


@dataclass(frozen=True)
class FoldedNorm:
    """What a batch norm was before it was folded: training needs it again.

    Attributes:
        layer: Name of the layer that it was folded into.
        weight: The layer's weight.
        bias: The layer's bias, or None.
        gamma: The norm's weight, or None.
        beta: The norm's bias, or None.
        mean: Running mean.
        variance: Running variance.
        momentum: Weight of the newest batch in them.
        epsilon: Added to the variance.
        transposed: The layer's output channels lie along axis 1 of its weight.
    """

    layer: str
    weight: torch.Tensor
    bias: torch.Tensor | None
    gamma: torch.Tensor | None
    beta: torch.Tensor | None
    mean: torch.Tensor
    variance: torch.Tensor
    momentum: float
    epsilon: float
    transposed: bool


def foldable(node: Node) -> Node | None:
    """The layer that a batch norm can be folded into, or None."""
    if node.target is not BATCH_NORM or node.args[5]:
        return None
    layer = node.args[0]
    if not isinstance(layer, Node) or layer.target not in _LAYERS or len(layer.users) != 1:
        return None
    if _LAYERS[layer.target] and _groups(layer) != 1:
        return None
    if layer.target is aten.linear.default and len(layer.meta["val"].shape) != 2:
        return None  # the norm's channels are axis 1, the layer's the last
    return layer


def fold_batch_norms(program: ExportedProgram) -> list[FoldedNorm]:
    """Fold in place.

    Args:
        program: A copy of one's own.

    Returns:
        What was folded.
    """
    found = []
    mode = fake_mode(program.graph_module)
    for norm in list(program.graph.nodes):
        layer = foldable(norm)
        if layer is None:
            continue
        given = [_tensor(program, item) for item in (layer.args[1], _bias(layer), *norm.args[1:5])]
        present = [item is not None for item in (layer.args[1], _bias(layer), *norm.args[1:5])]
        if any(there and value is None for there, value in zip(present, given, strict=True)):
            continue
        weight, bias, gamma, beta, mean, variance = given
        if weight is None or mean is None or variance is None:
            continue
        old = FoldedNorm(
            layer.name,
            weight,
            bias,
            gamma,
            beta,
            mean,
            variance,
            momentum=float(norm.args[6]),
            epsilon=float(norm.args[7]),
            transposed=_LAYERS[layer.target],
        )
        _replace(program, layer, norm, *folded(old), mode)
        found.append(old)
    return found


def _replace(
    program: ExportedProgram, layer: Node, norm: Node, weight: torch.Tensor, bias: torch.Tensor, mode: Any
) -> None:
    new_weight = add_constant(program, weight, mode, stem="_folded_weight")
    new_bias = add_constant(program, bias, mode, stem="_folded_bias")
    old = [item for item in (layer.args[1], _bias(layer), *norm.args[1:5]) if isinstance(item, Node)]
    provenance.transfer(old[:1], new_weight)
    provenance.transfer(old[1:2] if _bias(layer) is not None else norm.args[2:3], new_bias)  # type: ignore[arg-type]
    if len(layer.args) > 2:
        layer.args = (layer.args[0], new_weight, new_bias, *layer.args[3:])
    else:
        layer.args = (layer.args[0], new_weight, new_bias)
        layer.kwargs = {name: item for name, item in layer.kwargs.items() if name != "bias"}
    provenance.transfer((norm,), layer)
    norm.replace_all_uses_with(layer)
    program.graph.erase_node(norm)
    remove_inputs(program, [item for item in dict.fromkeys(old) if not item.users])


def _groups(layer: Node) -> int:
    return int(layer.args[6]) if len(layer.args) > 6 else int(layer.kwargs.get("groups", 1))  # type: ignore[arg-type]


def _bias(layer: Node) -> Any:
    return layer.args[2] if len(layer.args) > 2 else layer.kwargs.get("bias")


def _tensor(program: ExportedProgram, node: Any) -> torch.Tensor | None:
    return constant_tensor(program, node) if isinstance(node, Node) else None


def folded(norm: FoldedNorm) -> tuple[torch.Tensor, torch.Tensor]:
    """The weight and the bias of the layer with the norm in it."""
    weight = norm.weight.detach().double()
    scale = (norm.variance.detach().double() + norm.epsilon).rsqrt()
    if norm.gamma is not None:
        scale = scale * norm.gamma.detach().double()
    shift = -norm.mean.detach().double()
    if norm.bias is not None:
        shift = shift + norm.bias.detach().double()
    shift = shift * scale
    if norm.beta is not None:
        shift = shift + norm.beta.detach().double()
    shape = [1] * weight.dim()
    shape[1 if norm.transposed else 0] = -1
    dtype = norm.weight.dtype
    return (weight * scale.reshape(shape)).to(dtype).contiguous(), shift.to(dtype)
