"""Small models for each kind of operator that the XNNPACK configs take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from networks import Network

__all__ = ["SAMPLES", "sample"]


class Function(nn.Module):
    """A function with modules as a model."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def _r(*shape: int) -> Tensor:
    return torch.randn(*shape)


def _positive(*shape: int) -> Tensor:
    return torch.rand(*shape) + 0.25


def _nhwc(*shape: int) -> Tensor:
    return torch.randn(*shape).to(memory_format=torch.channels_last)


_Made = tuple[nn.Module | Callable[..., Any], tuple[Tensor, ...]]


def _norm(module: Any) -> Any:
    with torch.no_grad():
        module.running_mean.normal_()
        module.running_var.uniform_(0.5, 2)
        module.weight.normal_()
        module.bias.normal_()
    return module


_SAMPLES: dict[str, Callable[[], _Made]] = {
    "abs": lambda: (torch.abs, (_r(3, 7),)),
    "ceil": lambda: (torch.ceil, (_r(3, 7) * 3,)),
    "cos": lambda: (torch.cos, (_r(3, 7) * 3,)),
    "exp": lambda: (torch.exp, (_r(3, 7),)),
    "floor": lambda: (torch.floor, (_r(3, 7) * 3,)),
    "hardswish": lambda: (F.hardswish, (_r(3, 7) * 4,)),
    "log": lambda: (torch.log, (_positive(3, 7),)),
    "neg": lambda: (torch.neg, (_r(3, 7),)),
    "rsqrt": lambda: (torch.rsqrt, (_positive(3, 7),)),
    "sigmoid": lambda: (torch.sigmoid, (_r(3, 7) * 4,)),
    "sin": lambda: (torch.sin, (_r(3, 7) * 3,)),
    "sqrt": lambda: (torch.sqrt, (_positive(3, 7),)),
    "square": lambda: (torch.square, (_r(3, 7),)),
    "tanh": lambda: (torch.tanh, (_r(3, 7) * 2,)),
    "gelu": lambda: (F.gelu, (_r(3, 7) * 2,)),
    "leaky_relu": lambda: (lambda x: F.leaky_relu(x, 0.3), (_r(3, 7),)),
    "elu": lambda: (lambda x: F.elu(x, 0.7), (_r(3, 7),)),
    "relu": lambda: (torch.relu, (_r(3, 7),)),
    "relu6": lambda: (F.relu6, (_r(3, 7) * 6,)),
    "hardtanh": lambda: (lambda x: F.hardtanh(x, -0.5, 2.0), (_r(3, 7) * 2,)),
    "clamp": lambda: (lambda x: torch.clamp(x, -0.5, 0.75), (_r(3, 7),)),
    "clamp_below": lambda: (lambda x: torch.clamp(x, min=-0.25), (_r(3, 7),)),
    "clamp_above": lambda: (lambda x: torch.clamp(x, max=0.25), (_r(3, 7),)),
    "hardsigmoid": lambda: (F.hardsigmoid, (_r(3, 7) * 4,)),
    "silu": lambda: (F.silu, (_r(3, 7) * 2,)),
    "pow_2": lambda: (lambda x: x**2, (_r(3, 7),)),
    "pow_half": lambda: (lambda x: x**0.5, (_positive(3, 7),)),
    "pow_minus_half": lambda: (lambda x: x**-0.5, (_positive(3, 7),)),
    "reciprocal": lambda: (torch.reciprocal, (_positive(3, 7),)),
    "clone": lambda: (lambda x: torch.clone(x + 1), (_r(2, 3, 4, 5),)),
    "to_channels_last": lambda: (
        lambda x: (x + 1).to(memory_format=torch.channels_last), (_r(2, 3, 4, 5),)
    ),
    "scalar": lambda: (lambda x: x * 2 + 1, (torch.tensor(1.5),)),
    "six_dimensions": lambda: (torch.sigmoid, (_r(2, 1, 3, 2, 2, 3),)),
    "add": lambda: (lambda x, y: x + y, (_r(2, 3, 4), _r(3, 1))),
    "add_number": lambda: (lambda x: x + 1.5, (_r(2, 3),)),
    "add_alpha": lambda: (lambda x, y: torch.add(x, y, alpha=10), (_r(3, 4), _r(4))),
    "sub": lambda: (lambda x, y: x - y, (_r(2, 3, 4), _r(2, 1, 4))),
    "sub_alpha": lambda: (lambda x, y: torch.sub(x, y, alpha=0.5), (_r(3, 4), _r(3, 4))),
    "rsub": lambda: (lambda x: 1 - x, (_r(3, 4),)),
    "rsub_alpha": lambda: (lambda x: torch.rsub(x, 2.0, alpha=3), (_r(3, 4),)),
    "mul": lambda: (lambda x, y: x * y, (_r(2, 3, 4, 5), _r(3, 1, 5))),
    "mul_number": lambda: (lambda x: x * 0.5, (_r(2, 3),)),
    "div": lambda: (lambda x, y: x / y, (_r(2, 3), _positive(2, 3))),
    "div_number": lambda: (lambda x: x / 3, (_r(2, 3),)),
    "maximum": lambda: (torch.maximum, (_r(3, 4), _r(3, 4))),
    "minimum": lambda: (torch.minimum, (_r(3, 4), _r(4))),
    "prelu": lambda: (nn.PReLU(5), (_r(2, 5, 3, 4),)),
    "prelu_one": lambda: (nn.PReLU(1), (_r(2, 3, 4),)),
    "prelu_matrix": lambda: (nn.PReLU(7), (_r(4, 7),)),
    "linear": lambda: (nn.Linear(5, 7), (_r(3, 5),)),
    "linear_no_bias": lambda: (nn.Linear(5, 7, bias=False), (_r(2, 3, 5),)),
    "linear_vector": lambda: (nn.Linear(5, 7), (_r(5),)),
    "linear_four": lambda: (nn.Linear(5, 1), (_r(2, 3, 4, 5),)),
    "linear_relu": lambda: (nn.Sequential(nn.Linear(5, 7), nn.ReLU6()), (_r(3, 5) * 9,)),
    "linear_norm": lambda: (nn.Sequential(nn.Linear(5, 7), _norm(nn.BatchNorm1d(7))), (_r(3, 5),)),
    "bmm": lambda: (torch.bmm, (_r(2, 3, 5), _r(2, 5, 4))),
    "bmm_transposed": lambda: (lambda x, y: torch.bmm(x, y.transpose(1, 2)), (_r(2, 3, 5), _r(2, 4, 5))),
    "conv": lambda: (nn.Conv2d(3, 5, 3, padding=1), (_r(1, 3, 6, 7),)),
    "conv_channels_last": lambda: (nn.Conv2d(3, 5, 3, stride=2), (_nhwc(2, 3, 8, 7),)),
    "conv_dilated": lambda: (nn.Conv2d(3, 5, (3, 2), dilation=(2, 1), padding=(2, 0)), (_r(1, 3, 9, 7),)),
    "conv_groups": lambda: (nn.Conv2d(6, 4, 3, groups=2, bias=False), (_r(1, 6, 6, 7),)),
    "conv_one": lambda: (nn.Conv2d(1, 1, 1), (_r(1, 1, 1, 1),)),
    "conv_one_channel": lambda: (nn.Conv2d(1, 4, 3), (_r(1, 1, 6, 7),)),
    "conv_depthwise": lambda: (nn.Conv2d(7, 7, 3, padding=1, groups=7), (_r(1, 7, 6, 5),)),
    "conv_multiplier": lambda: (nn.Conv2d(3, 6, 3, stride=2, groups=3), (_r(2, 3, 9, 7),)),
    "conv_transposed": lambda: (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (_r(1, 4, 5, 3),)
    ),
    "conv_transposed_groups": lambda: (
        nn.ConvTranspose2d(4, 6, (3, 2), groups=2, stride=(2, 1)), (_r(1, 4, 5, 3),)
    ),
    "conv_norm_relu": lambda: (
        nn.Sequential(nn.Conv2d(3, 5, 3), _norm(nn.BatchNorm2d(5)), nn.ReLU()), (_r(1, 3, 6, 7),)
    ),
    "conv_padded": lambda: (
        nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(3, 5, 3)), (_r(1, 3, 6, 7),)
    ),
    "conv1d": lambda: (nn.Conv1d(4, 6, 3, padding=1), (_r(2, 4, 9),)),
    "conv1d_chain": lambda: (
        nn.Sequential(
            nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.GELU(), nn.Conv1d(6, 6, 3, groups=6), nn.Tanh(),
            nn.Conv1d(6, 2, 1),
        ),
        (_r(1, 4, 12),),
    ),
    "conv1d_transposed": lambda: (nn.ConvTranspose1d(4, 6, 3, stride=2), (_r(1, 4, 5),)),
    "weight_norm": lambda: (
        nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 3)), (_r(1, 8, 20),)
    ),
    "spectral_norm": lambda: (nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)), (_r(2, 6),)),
    "batch_norm": lambda: (_norm(nn.BatchNorm2d(3)), (_r(2, 3, 4, 5),)),
    "layer_norm": lambda: (nn.LayerNorm(6), (_r(2, 5, 6) * 3 + 1,)),
    "layer_norm_two": lambda: (nn.LayerNorm((5, 6), elementwise_affine=False), (_r(2, 5, 6),)),
    "max_pool": lambda: (nn.MaxPool2d(3, 2, 1), (_r(1, 3, 8, 9),)),
    "max_pool_dilated": lambda: (nn.MaxPool2d(2, 1, dilation=2), (_r(1, 3, 8, 9),)),
    "max_pool_ceil": lambda: (nn.MaxPool2d(3, 2, ceil_mode=True), (_r(1, 3, 8, 10),)),
    "max_pool_ceil_padded": lambda: (nn.MaxPool2d(3, 2, 1, ceil_mode=True), (_r(1, 3, 7, 10),)),
    "avg_pool": lambda: (nn.AvgPool2d(2), (_r(1, 3, 8, 9),)),
    "avg_pool_padded": lambda: (nn.AvgPool2d(3, 2, 1, count_include_pad=False), (_r(1, 3, 8, 9),)),
    "adaptive_avg_pool": lambda: (nn.AdaptiveAvgPool2d(1), (_r(2, 3, 5, 4),)),
    "max_dim": lambda: (lambda x: torch.max(x, 3, keepdim=True)[0], (_r(1, 3, 4, 5),)),
    "amax": lambda: (lambda x: torch.amax(x, (2, 3)), (_r(2, 3, 4, 5),)),
    "mean": lambda: (lambda x: x.mean((2, 3), keepdim=True), (_r(2, 3, 4, 5),)),
    "mean_dropped": lambda: (lambda x: x.mean((-1, -2)), (_r(2, 3, 4, 5),)),
    "mean_last": lambda: (lambda x: x.mean(-1), (_r(2, 3, 5),)),
    "mean_middle": lambda: (lambda x: x.mean(1, keepdim=True), (_r(2, 3, 5),)),
    "mean_first": lambda: (lambda x: x.mean(0), (_r(4, 3),)),
    "mean_all": lambda: (lambda x: x.mean((0, 1, 2)), (_r(4, 3, 2),)),
    "sum": lambda: (lambda x: x.sum(1), (_r(2, 3, 4),)),
    "upsample": lambda: (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (_r(1, 3, 4, 5),)
    ),
    "upsample_aligned": lambda: (
        lambda x: F.interpolate(x, (7, 9), mode="bilinear", align_corners=True), (_r(1, 3, 4, 5),)
    ),
    "softmax": lambda: (lambda x: x.softmax(-1), (_r(2, 3, 7),)),
    "softmax_channels": lambda: (lambda x: x.softmax(1), (_r(2, 5, 3, 4),)),
    "attention": lambda: (F.scaled_dot_product_attention, (_r(1, 2, 5, 8), _r(1, 2, 6, 8), _r(1, 2, 6, 4))),
    "attention_causal": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (_r(1, 2, 5, 8), _r(1, 2, 5, 8), _r(1, 2, 5, 8)),
    ),
    "attention_masked": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(5, 6).tril() > 0, scale=0.3),
        (_r(2, 5, 8), _r(2, 6, 8), _r(2, 6, 8)),
    ),
    "view": lambda: (lambda x: x.view(4, -1) * 2, (_r(2, 2, 3, 5),)),
    "squeeze": lambda: (lambda x: x.squeeze(1) * 2, (_r(2, 1, 3),)),
    "unsqueeze": lambda: (lambda x: x.unsqueeze(1).unsqueeze(-1) * 2, (_r(2, 3),)),
    "permute": lambda: (lambda x: x.permute(2, 0, 1) * 2, (_r(2, 3, 4),)),
    "permute_alone": lambda: (lambda x: x.permute(0, 3, 1, 2).contiguous(), (_r(2, 3, 4, 5),)),
    "transpose": lambda: (lambda x: x.transpose(1, 3) * 2, (_r(2, 3, 4, 5),)),
    "slice": lambda: (lambda x: x[1:, :, -3:-1] * 2, (_r(2, 3, 4),)),
    "select": lambda: (lambda x: x[:, -1] * 2, (_r(2, 3, 4),)),
    "split": lambda: (lambda x: [part * 2 for part in x.split([1, 2, 1], -1)], (_r(2, 4),)),
    "chunk": lambda: (lambda x: x.chunk(2, 1)[1] * 2, (_r(2, 6),)),
    "unbind": lambda: (lambda x: x.unbind(1)[0] - x.unbind(1)[2], (_r(2, 3, 4),)),
    "cat": lambda: (lambda x, y: torch.cat([x, y, x], 1), (_r(2, 3, 4), _r(2, 1, 4))),
    "cat_many": lambda: (lambda x, y: torch.cat([x, y] * 6 + [x], -1), (_r(2, 3), _r(2, 1))),
    "stack": lambda: (lambda x, y: torch.stack([x, y], 1), (_r(2, 3), _r(2, 3))),
    "pad": lambda: (lambda x: F.pad(x, (1, 0, 2, 3), value=1.5), (_r(2, 3, 4),)),
}  # fmt: skip


class Mixed(nn.Module):
    """Residual sums, gates, concatenation and softmax between convolutions: everything stays NHWC."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(10, 6, 1)
        self.gate = nn.Conv2d(6, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        z = self.second(torch.cat([y, x], 1))
        gate = torch.sigmoid(self.gate(z.mean((2, 3), keepdim=True)))
        mixed = F.pad(y + z * gate, (1, 1, 0, 0), value=0.5)[:, :, 1:, :-1]
        return mixed.softmax(1) * torch.linspace(0, 1, 6).reshape(6, 1, 1)


_SAMPLES["mixed_layouts"] = lambda: (Mixed(), (_r(1, 4, 6, 6),))


class Lstm(nn.Module):
    """Gates as splits, sigmoids and products."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


_SAMPLES["lstm"] = lambda: (Lstm(), (_r(3, 1, 5),))
SAMPLES = tuple(_SAMPLES)


def sample(name: str, dtype: torch.dtype = torch.float32) -> Network:
    """A sample by its name, its parameters and inputs in an element type."""
    torch.manual_seed(0)
    made, inputs = _SAMPLES[name]()
    model = made if isinstance(made, nn.Module) else Function(made)
    return Network(name, model.eval().to(dtype), tuple(x.to(dtype) for x in inputs))
