"""Quantization simulated in training: rounded values forwards, gradients as if nothing were rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from workbench.quantization.observers.moving_average import MovingAverage
from workbench.quantization.observers.weights import Weights as WeightObserver
from workbench.quantization.plan import Group

__all__ = ["FakeQuantize", "fake_quantize_of"]


def fake_quantize_of(group: Group) -> FakeQuantize:
    """The module that simulates the quantization of a group."""
    return FakeQuantize(group)


class FakeQuantize(torch.nn.Module):
    """Simulates the quantization of one group of tensors.

    Scales of activations follow a moving average of their extremes while the module is in training mode;
    those of weights are those of the weight as it is now.

    Args:
        group: The group.
        averaging_constant: Weight of the newest batch in the average.
    """

    def __init__(self, group: Group, averaging_constant: float = 0.01) -> None:
        super().__init__()
        self.group = group
        self.fake_quant_enabled = True
        self.observer: Any = None
        spec = group.spec
        if group.constant and spec.observe is not None:
            self.observer = spec.observe()
            if not isinstance(self.observer, WeightObserver):
                self.observer = _weights(group)
        elif group.observed:
            self.observer = MovingAverage(
                averaging_constant,
                dtype=spec.dtype,
                quant_min=spec.quant_min,
                quant_max=spec.quant_max,
                qscheme=torch.per_tensor_symmetric if spec.symmetric else torch.per_tensor_affine,
                histogram=False,
            )
        if self.observer is not None:
            self.observer.name = group.name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The tensor with the values that its numbers stand for; any shape.

        Raises:
            CalibrationError: It holds NaN or infinities.
        """
        if not self.fake_quant_enabled:
            return x
        spec = self.group.spec
        if spec.dynamic:
            return x + (_dynamic(x.detach(), spec) - x.detach())
        if self.observer is not None and (self.training or self.group.constant or not self.observer.elements):
            self.observer(x.detach())
        scale, zero = self.calculate_qparams()
        limits = (spec.quant_min, spec.quant_max)
        if spec.group_size is not None:
            flat = x.reshape(-1, spec.group_size)
            ones = torch.fake_quantize_per_channel_affine(
                flat, scale.reshape(-1), zero.reshape(-1).to(torch.int32), 0, *limits
            )
            return ones.reshape(x.shape)
        if spec.axis is not None:
            return torch.fake_quantize_per_channel_affine(x, scale, zero.to(torch.int32), spec.axis, *limits)
        return torch.fake_quantize_per_tensor_affine(x, float(scale), int(zero), *limits)

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale and zero point, as an observer gives them.

        Raises:
            CalibrationError: The module was never run.
        """
        spec = self.group.spec
        if spec.scale is not None:
            return torch.tensor([spec.scale]), torch.tensor([spec.zero_point])
        found: tuple[torch.Tensor, torch.Tensor] = self.observer.calculate_qparams()
        return found


def _weights(group: Group) -> WeightObserver:
    """The workbench's observer of weights in the place of somebody else's."""
    spec = group.spec
    channel = spec.axis is not None
    schemes = {
        (True, True): torch.per_channel_symmetric,
        (True, False): torch.per_channel_affine,
        (False, True): torch.per_tensor_symmetric,
        (False, False): torch.per_tensor_affine,
    }
    return WeightObserver(
        spec.dtype, spec.quant_min, spec.quant_max, schemes[channel, spec.symmetric], spec.axis or 0
    )


def _dynamic(x: torch.Tensor, spec: Any) -> torch.Tensor:
    """Quantized and back, with scales chosen for each row or for the whole tensor."""
    axes = (-1,) if spec.dynamic == "token" else tuple(range(x.dim()))
    low = x.amin(axes, keepdim=True).clamp(max=0)
    high = x.amax(axes, keepdim=True).clamp(min=0)
    scale = ((high - low) / (spec.quant_max - spec.quant_min)).clamp(min=float(np.finfo(np.float32).eps))
    zero = (spec.quant_min - torch.round(low / scale)).clamp(spec.quant_min, spec.quant_max)
    numbers = (torch.round(x / scale) + zero).clamp(spec.quant_min, spec.quant_max)
    back: torch.Tensor = (numbers - zero) * scale
    return back
