"""A layer with its batch norm, trained as it will be computed: with the norm in its quantized weights.

The weight is scaled by gamma / running deviation before it is rounded, as folding will do, and the result
is scaled back for the norm, which uses the statistics of the batch. Krishnamoorthi, "Quantizing deep
convolutional networks for efficient inference", 2018, section 3.2.2.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.fake_quantize import FakeQuantize
from workbench.quantization.fold_batch_norm import FoldedNorm

__all__ = ["LayerWithNorm"]


class LayerWithNorm(torch.nn.Module):
    """A convolution or linear layer with its batch norm.

    Args:
        norm: What was folded.
        layer: The layer's node, with the folded weight and bias.
        simulated: The simulation of the weight's quantization; None where it stays in floats.

    Attributes:
        targets: Names of the program's attributes that hold the folded weight and bias.
    """

    def __init__(self, norm: FoldedNorm, layer: Node, simulated: FakeQuantize | None) -> None:
        super().__init__()
        self._norm = norm
        self._operator: Any = layer.target
        self._more, self._options = tuple(layer.args[3:]), dict(layer.kwargs)
        self.targets = tuple(str(item.target) for item in layer.args[1:3])  # type: ignore[union-attr]
        self.simulated = simulated
        channels = norm.mean.shape[0]
        self.weight = _parameter(norm.weight)
        self.bias = None if norm.bias is None else _parameter(norm.bias)
        self.gamma = _parameter(torch.ones(channels) if norm.gamma is None else norm.gamma)
        self.beta = _parameter(torch.zeros(channels) if norm.beta is None else norm.beta)
        self.mean = torch.nn.Buffer(norm.mean.detach().clone())
        self.variance = torch.nn.Buffer(norm.variance.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The normalized result of the layer."""
        factor = self.gamma / torch.sqrt(self.variance + self._norm.epsilon)
        shape = [1] * self.weight.dim()
        shape[1 if self._norm.transposed else 0] = -1
        weight = self.weight * factor.reshape(shape)
        if self.simulated is not None:
            weight = self.simulated(weight)
        if not self.training:
            shift = self.beta - self.mean * factor
            if self.bias is not None:
                shift = shift + self.bias * factor
            return self._layer(x, weight, shift)
        # A channel that the norm has switched off stays off: its weight is zero either way.
        back = torch.where(factor.abs() < 1e-8, torch.ones_like(factor), factor)
        raw = self._layer(x, weight, None)
        raw = raw / back.reshape(1, -1, *[1] * (raw.dim() - 2))
        if self.bias is not None:
            raw = raw + self.bias.reshape(1, -1, *[1] * (raw.dim() - 2))
        return torch.nn.functional.batch_norm(
            raw,
            self.mean,
            self.variance,
            self.gamma,
            self.beta,
            True,
            self._norm.momentum,
            self._norm.epsilon,
        )

    def _layer(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        result: torch.Tensor = self._operator(x, weight, bias, *self._more, **self._options)
        return result

    def norm_now(self, layer: str) -> FoldedNorm:
        """What is to be folded into the layer now."""
        return dataclasses.replace(
            self._norm,
            layer=layer,
            weight=self.weight.detach(),
            bias=None if self.bias is None else self.bias.detach(),
            gamma=self.gamma.detach(),
            beta=self.beta.detach(),
            mean=self.mean.detach(),
            variance=self.variance.detach(),
        )


def _parameter(tensor: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(tensor.detach().clone())
