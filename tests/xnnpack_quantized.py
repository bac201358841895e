"""Small quantized models by hand: one or more for each kind of call on integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.nn import functional as F

from xnnpack_samples import Function

__all__ = ["DYNAMIC", "LAYERS", "OPERATORS", "Rows", "Sample", "Static", "fake", "layer"]

quantized = torch.ops.quantized_decomposed


def integers(x: Tensor, scale: float, zero: int = 0) -> Tensor:
    """Integers of int8."""
    return quantized.quantize_per_tensor.default(x, scale, zero, -128, 127, torch.int8)


def numbers(x: Tensor, scale: float, zero: int = 0) -> Tensor:
    """Numbers of integers."""
    return quantized.dequantize_per_tensor.default(x, scale, zero, -128, 127, torch.int8)


def fake(x: Tensor, scale: float, zero: int = 0) -> Tensor:
    """Numbers as integers can say them: what a quantized graph has between operators."""
    return numbers(integers(x, scale, zero), scale, zero)


@dataclass(frozen=True)
class Sample:
    """A model and what it becomes.

    Attributes:
        function: The model.
        inputs: Its inputs.
        step: What one integer of the result is worth.
        calls: The calls of the delegate that compute, without those that convert or move.
    """

    function: Callable[..., Tensor]
    inputs: Callable[[], tuple[Tensor, ...]]
    step: float
    calls: tuple[str, ...]

    def model(self) -> nn.Module:
        """As a module."""
        return Function(self.function)


def _r(*shape: int) -> Tensor:
    return torch.randn(*shape)


def _two(operator: Callable[[Tensor, Tensor], Tensor], call: str, *shapes: tuple[int, ...]) -> Sample:
    first, second = shapes or ((2, 3, 5), (2, 3, 5))
    return Sample(
        lambda x, y: fake(operator(fake(x, 0.03, 3), fake(y, 0.02, -5)), 0.04, 7),
        lambda: (_r(*first), _r(*second)),
        0.04,
        (call,),
    )


def _one(
    operator: Callable[[Tensor], Tensor],
    *calls: str,
    shape: tuple[int, ...] = (2, 3, 5),
    to: tuple[float, int] = (0.03, 3),
    inputs: Callable[..., Tensor] = _r,
) -> Sample:
    return Sample(
        lambda x: fake(operator(fake(x, 0.03, 3)), *to), lambda: (inputs(*shape),), to[0], tuple(calls)
    )


def _positive(*shape: int) -> Tensor:
    return torch.rand(*shape) + 0.3


def _bytes(*shape: int) -> Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def _product(x: Tensor, y: Tensor) -> Tensor:
    return fake(torch.bmm(fake(x, 0.03, 3), fake(y, 0.02)), 0.1, 7)


_CONSTANT = torch.tensor([[3, -7, 120, 1, 0]], dtype=torch.int8)
_OTHER = (0.04, -5)

OPERATORS: dict[str, Sample] = {
    "add": _two(torch.add, "add"),
    "add_broadcasts": _two(torch.add, "add", (2, 3, 5), (3, 1)),
    "add_image": _two(torch.add, "add", (1, 3, 4, 5), (3, 1, 5)),
    "add_relu": Sample(
        lambda x, y: fake(F.relu(fake(x, 0.03, 3) + fake(y, 0.02, -5)), 0.04, -128),
        lambda: (_r(2, 3), _r(2, 3)),
        0.04,
        ("add",),
    ),
    "add_number": _one(lambda x: x + 1.5, "add", to=(0.1, 7)),
    "add_zero_number": _one(lambda x: x + torch.tensor(0.0), "add"),
    "sub": _two(torch.sub, "subtract", (2, 3, 5), (2, 1, 5)),
    "mul": _two(torch.mul, "multiply"),
    "mul_number": _one(lambda x: x * -2.5, "multiply", to=(0.1, 7)),
    "mul_constant": _one(lambda x: x * numbers(_CONSTANT, 0.01, 2), "multiply"),
    "cat": Sample(
        lambda x, y: fake(torch.cat([fake(x, 0.03, 3), fake(y, 0.03, 3)], 1), 0.03, 3),
        lambda: (_r(2, 3, 5), _r(2, 4, 5)),
        0.03,
        ("concatenate 2",),
    ),
    "cat_of_other_scales": Sample(
        lambda x, y, z: fake(torch.cat([fake(x, 0.03, 3), fake(y, 0.02, -3), fake(z, 0.05)], 1), 0.05, 1),
        lambda: (_r(2, 3, 5), _r(2, 4, 5), _r(2, 1, 5)),
        0.05,
        ("concatenate 3",),
    ),
    "relu": _one(F.relu, "clamp"),
    "relu_to_other_scale": _one(F.relu, "clamp", to=(0.02, -128)),
    "hardtanh": _one(lambda x: F.hardtanh(x, -0.5, 0.7), "clamp"),
    "clamp": _one(lambda x: torch.clamp(x, -0.5, 0.7), "clamp", to=(0.01, 0)),
    "max_pool": _one(lambda x: F.max_pool2d(x, 2), "max pooling 2d", shape=(2, 3, 6, 8)),
    "max_pool_to_other_scale": _one(
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        "max pooling 2d",
        shape=(1, 5, 7, 8),
        to=(0.02, -3),
    ),
    "mean": _one(
        lambda x: x.mean((2, 3), keepdim=True),
        "global average pooling 2d",
        shape=(2, 3, 7, 8),
        to=(0.01, -3),
    ),
    "mean_drops_sizes": _one(lambda x: x.mean((2, 3)), "global average pooling 2d", shape=(1, 5, 7, 8)),
    "mean_in_the_middle": _one(lambda x: x.mean(1), "global average pooling 2d", shape=(2, 5, 7)),
    "permute": _one(lambda x: x.permute(2, 0, 1)),
    "permute_to_other_scale": _one(lambda x: x.permute(0, 2, 1), to=_OTHER),
    "slice": _one(lambda x: x[:, 1:3], "slice"),
    "view": _one(lambda x: x.reshape(6, 5)),
    "unsqueeze": _one(lambda x: x.unsqueeze(-1)),
    "pad": _one(lambda x: F.pad(x, (1, 2)), "constant pad"),
    "batch_product": Sample(_product, lambda: (_r(2, 3, 5), _r(2, 5, 4)), 0.1, ("batch matrix multiply",)),
    "batch_product_transposed": Sample(
        lambda x, y: fake(fake(x, 0.03, 3) @ fake(y, 0.02).transpose(1, 2), 0.1, 7),
        lambda: (_r(2, 3, 5), _r(2, 4, 5)),
        0.1,
        ("batch matrix multiply",),
    ),
    "resize": _one(
        lambda x: F.interpolate(x, (5, 6), mode="bilinear"), "resize bilinear 2d", shape=(1, 3, 4, 5)
    ),
    "abs": _one(torch.abs, "abs", to=_OTHER),
    "elu": _one(F.elu, "ELU", to=_OTHER),
    "exp": _one(torch.exp, "exp", to=_OTHER),
    "gelu": _one(F.gelu, "GELU", to=_OTHER),
    "hardswish": _one(F.hardswish, "hard swish", to=_OTHER),
    "leaky_relu": _one(lambda x: F.leaky_relu(x, 0.2), "leaky ReLU", to=_OTHER),
    "log": _one(torch.log, "log", to=_OTHER, inputs=_positive),
    "neg": _one(torch.neg, "negate", to=_OTHER),
    "rsqrt": _one(torch.rsqrt, "reciprocal square root", to=_OTHER, inputs=_positive),
    "sigmoid": _one(torch.sigmoid, "sigmoid", to=(1 / 256, -128)),
    "sqrt": _one(torch.sqrt, "square root", to=_OTHER, inputs=_positive),
    "square": _one(torch.square, "square", to=_OTHER),
    "tanh": _one(torch.tanh, "tanh", to=(1 / 128, 0)),
    "quantize": Sample(lambda x: integers(x, 0.03, 3), lambda: (_r(2, 5) * 9,), 1, ()),
    "dequantize": Sample(lambda x: numbers(x, 0.03, 3), lambda: (_bytes(2, 5),), 0.03, ()),
    "integers_in_and_out": Sample(
        lambda x: integers(F.relu(numbers(x, 0.03, 3)), 0.03, 3), lambda: (_bytes(2, 3, 4, 5),), 1, ("clamp",)
    ),
    "channels_last_integers": Sample(
        lambda x: integers(F.max_pool2d(numbers(x, 0.03, 3), 2), 0.03, 3),
        lambda: (_bytes(2, 3, 4, 6).to(memory_format=torch.channels_last),),
        1,
        ("max pooling 2d",),
    ),
    "requantize": Sample(lambda x: integers(numbers(x, 0.03, 3), 0.05, -3), lambda: (_bytes(2, 5),), 1, ()),
}


class Static(nn.Module):
    """A layer with a quantized weight between quantized numbers, its clamp behind it."""

    def __init__(self, layer: nn.Module, value: Tensor, *, per_channel: bool, after: Any = None) -> None:
        super().__init__()
        self.layer, self.after = layer, after or nn.Identity()
        weight = layer.weight.detach()
        self.axis = int(isinstance(layer, (nn.ConvTranspose1d, nn.ConvTranspose2d)))
        self.per_channel = per_channel
        others = [axis for axis in range(weight.dim()) if axis != self.axis]
        scales = (weight.abs().amax(others) if per_channel else weight.abs().max()) / 127
        spread = [-1 if axis == self.axis else 1 for axis in range(weight.dim())] if per_channel else []
        rounded = (weight / scales.reshape(spread)).round().to(torch.int8)
        self.register_buffer("integers", rounded)
        self.register_buffer("scales", scales)
        self.scale = float(scales.max())
        self.register_buffer("zeros", torch.zeros(scales.shape, dtype=torch.int64))
        with torch.no_grad():
            self.given = _parameters(value)
            self.made = _parameters(self.after(layer(value)))

    def forward(self, x: Tensor) -> Tensor:
        if self.per_channel:
            weight = quantized.dequantize_per_channel.default(
                self.integers, self.scales, self.zeros, self.axis, -127, 127, torch.int8
            )
        else:
            weight = quantized.dequantize_per_tensor.default(
                self.integers, self.scale, 0, -127, 127, torch.int8
            )
        names = {"weight": weight}
        if self.layer.bias is not None:
            names["bias"] = self.layer.bias
        result = torch.func.functional_call(self.layer, names, (fake(x, *self.given),))
        return fake(self.after(result), *self.made)


def _parameters(value: Tensor) -> tuple[float, int]:
    low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
    scale = max((high - low) / 255, 1e-4)
    return scale, max(-128, min(127, -128 - round(low / scale)))


_Made = tuple[nn.Module, Tensor]
LAYERS: dict[str, Callable[[], _Made]] = {
    "conv": lambda: (nn.Conv2d(3, 5, 3, padding=1), _r(1, 3, 6, 7)),
    "conv_channels_last": lambda: (
        nn.Conv2d(3, 5, 3, stride=2, bias=False),
        _r(2, 3, 8, 7).to(memory_format=torch.channels_last),
    ),
    "conv_dilated": lambda: (nn.Conv2d(3, 5, (3, 2), dilation=(2, 1), padding=(2, 0)), _r(1, 3, 9, 7)),
    "conv_groups": lambda: (nn.Conv2d(6, 4, 3, groups=2), _r(1, 6, 6, 7)),
    "conv_one_channel": lambda: (nn.Conv2d(1, 17, 3), _r(1, 1, 6, 7)),
    "conv_pointwise": lambda: (nn.Conv2d(17, 7, 1), _r(1, 17, 5, 5)),
    "conv_depthwise": lambda: (nn.Conv2d(7, 7, 3, padding=1, groups=7), _r(1, 7, 6, 5)),
    "conv_depthwise_twice": lambda: (nn.Conv2d(5, 10, 5, stride=2, padding=2, groups=5), _r(1, 5, 9, 5)),
    "conv1d": lambda: (nn.Conv1d(3, 5, 3, padding=1), _r(2, 3, 9)),
    "conv1d_depthwise": lambda: (nn.Conv1d(3, 3, 3, groups=3, stride=2), _r(2, 3, 9)),
    "transposed": lambda: (
        nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
        _r(1, 3, 6, 7),
    ),
    "transposed_1d": lambda: (nn.ConvTranspose1d(3, 5, 3, stride=2), _r(1, 3, 6)),
    "linear": lambda: (nn.Linear(33, 17), _r(2, 5, 33)),
    "linear_no_bias": lambda: (nn.Linear(5, 7, bias=False), _r(3, 5)),
    "linear_vector": lambda: (nn.Linear(5, 7), _r(5)),
}


def layer(name: str, *, per_channel: bool, after: Any = None) -> tuple[Static, Tensor]:
    """One of the layers, quantized, and its input."""
    made, value = LAYERS[name]()
    return Static(made, value, per_channel=per_channel, after=after), value


class Rows(nn.Module):
    """A linear layer whose input is quantized at run time, with a scale per row or one for all.

    Args:
        inputs: Columns.
        outputs: Columns of the result.
        bits: Of the weight.
        group: Neighbours in a row of the weight that share a scale; 0: all.
        per_row: Whether rows of the input have scales of their own.
        dynamic: Whether the input is quantized.
        bias: Whether there is one.
    """

    def __init__(
        self,
        inputs: int = 34,
        outputs: int = 17,
        *,
        bits: int = 8,
        group: int = 0,
        per_row: bool = True,
        dynamic: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.low, self.high = (-8, 7) if bits == 4 else (-128, 127)
        self.group, self.per_row, self.dynamic = group, per_row, dynamic
        weight = torch.randn(outputs, inputs)
        grouped = weight.reshape(outputs, -1, group or inputs)
        scales = grouped.abs().amax(-1, keepdim=True) / self.high
        rounded = (grouped / scales).round().clamp(self.low, self.high)
        self.register_buffer("integers", rounded.reshape(weight.shape).to(torch.int8))
        self.register_buffer("scales", scales.squeeze(-1) if group else scales.flatten())
        self.register_buffer("zeros", torch.zeros(self.scales.shape, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(outputs)) if bias else None

    def rows(self, x: Tensor) -> Tensor:
        """The input as integers can say it."""
        if not self.dynamic:
            return x
        if self.per_row:
            found = quantized.choose_qparams_per_token_asymmetric.default(x, torch.int8)
            made = quantized.quantize_per_token.default(x, *found, -128, 127, torch.int8)
            return quantized.dequantize_per_token.default(made, *found, -128, 127, torch.int8, torch.float32)
        found = quantized.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8)
        made = quantized.quantize_per_tensor.tensor(x, *found, -128, 127, torch.int8)
        return quantized.dequantize_per_tensor.tensor(made, *found, -128, 127, torch.int8)

    def weight(self) -> Tensor:
        """The weight as integers can say it."""
        given = self.integers, self.scales, self.zeros
        if self.group:
            return quantized.dequantize_per_channel_group.default(
                *given, self.low, self.high, torch.int8, self.group, torch.float32
            )
        return quantized.dequantize_per_channel.default(*given, 0, self.low, self.high, torch.int8)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.rows(x), self.weight(), self.bias)


# The model, its input, the types of the weight and of the input in the blob, and how far results may be off.
DYNAMIC: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], str, str, float]] = {
    "rows": (Rows, lambda: _r(2, 5, 34), "qcint8", "qdint8", 1e-5),
    "rows_odd": (lambda: Rows(33, 7, bias=False), lambda: _r(3, 33), "qcint8", "qdint8", 1e-5),
    "vector": (lambda: Rows(33), lambda: _r(33), "qcint8", "qdint8", 1e-5),
    # The library has scales per row only, which are finer.
    "tensor": (lambda: Rows(per_row=False), lambda: _r(5, 34), "qcint8", "qdint8", 2e-2),
    "four_bits": (lambda: Rows(bits=4), lambda: _r(2, 5, 34), "qcint4", "qdint8", 1e-5),
    "four_bits_odd": (lambda: Rows(33, bits=4), lambda: _r(5, 33), "qcint8", "qdint8", 1e-5),
    # Scales of groups are rounded to bfloat16.
    "groups": (lambda: Rows(96, bits=4, group=32), lambda: _r(2, 5, 96), "qbint4", "qdint8", 5e-3),
    "one_group": (lambda: Rows(64, bits=4, group=64), lambda: _r(5, 64), "qcint4", "qdint8", 1e-5),
    "weight_only": (lambda: Rows(dynamic=False), lambda: _r(2, 5, 34), "qcint8", "fp32", 1e-5),
    "weight_only_four_bits": (
        lambda: Rows(bits=4, dynamic=False, bias=False),
        lambda: _r(5, 34),
        "qcint4",
        "fp32",
        1e-5,
    ),
}
