"""Small models that ExecuTorch's quantizer and partitioner take, an operator each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xnnpack_cases import Function

__all__ = ["CASES", "Case", "GroupedLinear"]


@dataclass(frozen=True)
class Case:
    """A model, and how it is quantized.

    Attributes:
        name: Unique.
        make: Makes the model; the seed is set before.
        shapes: Of the inputs.
        dynamic: Activations are quantized at run time, by rows.
        per_channel: Weights have a scale for each output channel.
        weights: The smallest and the largest integer of a weight.
        manual: The model says itself where it quantizes.
    """

    name: str
    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    dynamic: bool = False
    per_channel: bool = True
    weights: tuple[int, int] = (-127, 127)
    manual: bool = False

    def inputs(self) -> tuple[Tensor, ...]:
        """Random inputs."""
        return tuple(torch.randn(shape) for shape in self.shapes)


class GroupedLinear(nn.Module):
    """A linear layer of 4-bit weights with a scale for each group of a row, on rows quantized at run time.

    Args:
        inputs: Features.
        outputs: Features.
        group: Neighbours in a row that share a scale; 0: a whole row.
        bias: Whether there is one.
    """

    def __init__(self, inputs: int, outputs: int, group: int, *, bias: bool = True) -> None:
        super().__init__()
        self.group = group
        self.register_buffer("weight", torch.randint(-8, 8, (outputs, inputs), dtype=torch.int8))
        count = inputs // group if group else 1
        scales = (torch.rand(outputs, count) * 0.1 + 0.01).bfloat16().float()
        self.register_buffer("scales", scales if group else scales[:, 0].contiguous())
        self.register_buffer(
            "zeros", torch.zeros(self.scales.shape, dtype=torch.int32 if group else torch.int64)
        )
        self.bias = nn.Parameter(torch.randn(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x [..., inputs] -> [..., outputs]."""
        ops: Any = torch.ops.quantized_decomposed
        scales, zeros = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
        x = ops.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        x = ops.dequantize_per_token(x, scales, zeros, -128, 127, torch.int8, torch.float32)
        if self.group:
            weight = ops.dequantize_per_channel_group(
                self.weight, self.scales, self.zeros, -8, 7, torch.int8, self.group, torch.float32
            )
        else:
            weight = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -8, 7, torch.int8)
        return F.linear(x, weight, self.bias)


def _function(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    return lambda: Function(function)


def _dense() -> list[Case]:
    relu = nn.ReLU
    image = ((2, 8, 9, 10),)
    return [
        Case("linear", lambda: nn.Linear(16, 12), ((5, 16),)),
        Case("linear-tensor", lambda: nn.Linear(19, 7), ((4, 19),), per_channel=False),
        Case("linear-plain", lambda: nn.Linear(33, 12, bias=False), ((2, 3, 33),)),
        Case("linear-relu", lambda: nn.Sequential(nn.Linear(16, 12), relu()), ((5, 16),)),
        Case("convolution", lambda: nn.Conv2d(8, 12, 3, stride=2, padding=1), image),
        Case("convolution-tensor", lambda: nn.Conv2d(8, 5, 3), image, per_channel=False),
        Case("convolution-relu", lambda: nn.Sequential(nn.Conv2d(8, 16, 1), relu()), image),
        Case("convolution-relu6", lambda: nn.Sequential(nn.Conv2d(8, 16, 1), nn.ReLU6()), image),
        Case("convolution-dilated", lambda: nn.Conv2d(8, 6, 3, dilation=2, padding=2), image),
        Case("depthwise", lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), image),
        Case("depthwise-more", lambda: nn.Conv2d(8, 16, 3, stride=2, groups=8), image),
        Case("grouped", lambda: nn.Conv2d(8, 12, 3, groups=2), image),
        Case("transposed", lambda: nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1), image),
        Case("convolution-1d", lambda: nn.Conv1d(8, 6, 3), ((2, 8, 20),)),
    ]


def _others() -> list[Case]:
    image = (2, 4, 8, 10)
    one: dict[str, Callable[..., Any]] = {
        "add": lambda x: x + x.neg(),
        "relu": lambda x: F.relu(x + x),
        "clamp": lambda x: F.hardtanh(x + x),
        "max-pool": lambda x: F.max_pool2d(x + x, 2),
        "mean": lambda x: F.adaptive_avg_pool2d(x + x, 1),
        "permute": lambda x: (x + x).permute(0, 2, 3, 1),
        "slice": lambda x: (x + x)[:, 1:3],
        "view": lambda x: (x + x).reshape(2, 4, 80),
        "softmax": lambda x: (x + x).softmax(-1) + 1,
    }
    two: dict[str, Callable[..., Any]] = {
        "add-two": lambda x, y: x + y * 5,
        "add-relu": lambda x, y: F.relu(x + y),
        "mul": lambda x, y: x * y,
        "mul-relu": lambda x, y: F.relu(x * y),
        "cat": lambda x, y: torch.cat([x + x, y], 1),
        "sub": lambda x, y: x - y,
    }
    cases = [Case(name, _function(f), (image,)) for name, f in one.items()]
    cases += [Case(name, _function(f), (image, image)) for name, f in two.items()]
    cases.append(Case("mul-gate", _function(lambda x, y: x * y), (image, (2, 4, 1, 1))))
    return cases


def _dynamic() -> list[Case]:
    return [
        Case("dynamic-linear", lambda: nn.Linear(48, 20), ((3, 7, 48),), dynamic=True),
        Case("dynamic-linear-plain", lambda: nn.Linear(30, 9, bias=False), ((6, 30),), dynamic=True),
        Case("dynamic-convolution", lambda: nn.Conv2d(8, 12, 3, padding=1), ((2, 8, 9, 10),), dynamic=True),
        Case("four-bit", lambda: nn.Linear(48, 20), ((3, 48),), dynamic=True, weights=(-8, 7)),
        Case("four-bit-rows", lambda: GroupedLinear(64, 24, 0), ((3, 64),), manual=True),
        Case("four-bit-groups", lambda: GroupedLinear(128, 24, 32), ((3, 128),), manual=True),
        Case("four-bit-plain", lambda: GroupedLinear(64, 8, 64, bias=False), ((2, 5, 64),), manual=True),
    ]


CASES = {case.name: case for case in (*_dense(), *_others(), *_dynamic())}
