"""Small models for the XNNPACK delegate, for each operator that ExecuTorch's partitioner takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CASES", "Case", "Function"]


class Function(nn.Module):
    """A function, perhaps of parameters, as a module."""

    def __init__(self, function: Callable[..., Any], **parameters: Tensor) -> None:
        super().__init__()
        self.function = function
        for name, value in parameters.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, *inputs: Tensor) -> Any:
        parameters = dict(self.named_parameters())
        return self.function(*inputs, **parameters)


@dataclass(frozen=True)
class Case:
    """A model that one delegate runs.

    Attributes:
        name: Unique.
        covers: The configs of ExecuTorch's partitioner that take its operators.
        make: Makes the model; the seed is set before.
        inputs: Makes the inputs.
        half: Whether the partitioner takes it in float16, too.
    """

    name: str
    covers: tuple[str, ...]
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    half: bool = True


def _normal(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(shape),)


def _positive(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.rand(shape) * 4 + 0.05,)


def _pair(first: tuple[int, ...], second: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(first), torch.randn(second).abs() + 0.3)


def _function(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    return lambda: Function(function)


def _elementwise() -> list[Case]:
    unary: dict[str, tuple[str, Callable[..., Any], Callable[[], tuple[Tensor, ...]]]] = {
        "abs": ("AbsConfig", torch.abs, _normal(3, 7)),
        "ceil": ("CeilConfig", torch.ceil, _normal(5, 3, 2)),
        "floor": ("FloorConfig", torch.floor, _normal(17)),
        "exp": ("ExpConfig", torch.exp, _normal(2, 33)),
        "log": ("LogConfig", torch.log, _positive(2, 33)),
        "neg": ("NegConfig", torch.neg, _normal(3, 7)),
        "sqrt": ("SquareRootConfig", torch.sqrt, _positive(3, 31)),
        "rsqrt": ("ReciprocalSquareRootConfig", torch.rsqrt, _positive(3, 31)),
        "square": ("PowConfig", lambda x: x**2, _normal(4, 5)),
        "sin": ("SinConfig", torch.sin, lambda: (torch.randn(4, 9) * 3,)),
        "cos": ("CosConfig", torch.cos, lambda: (torch.randn(4, 9) * 3,)),
        "tanh": ("TanhConfig", torch.tanh, lambda: (torch.randn(2, 3, 9) * 3,)),
        "sigmoid": ("SigmoidConfig", torch.sigmoid, lambda: (torch.randn(2, 3, 9) * 3,)),
        "hardswish": ("HardswishConfig", F.hardswish, lambda: (torch.randn(2, 3, 9) * 3,)),
        "hardtanh": ("HardtanhConfig", lambda x: F.hardtanh(x, -0.5, 0.75), _normal(2, 3, 9)),
        "relu": ("ReLUConfig", torch.relu, _normal(1, 19)),
        "clamp": ("ClampConfig", lambda x: torch.clamp(x, -0.3, 0.4), _normal(3, 9)),
        "clamp_below": ("ClampConfig", lambda x: torch.clamp(x, min=0.1), _normal(3, 9)),
        "clamp_above": ("ClampConfig", lambda x: torch.clamp(x, max=0.1), _normal(3, 9)),
        "leaky_relu": ("LeakyReLUConfig", lambda x: F.leaky_relu(x, 0.2), _normal(3, 9)),
        "clone": ("CloneDimOrderConfig", lambda x: torch.neg(x.clone()), _normal(3, 9)),
    }
    cases = [Case(name, (config,), _function(f), inputs) for name, (config, f, inputs) in unary.items()]
    # XNNPACK computes it by erf whatever the approximation is that the model asks for.
    cases += [Case("gelu", ("GeluConfig",), _function(F.gelu), _normal(3, 29), half=False)]
    binary: dict[str, tuple[str, Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
        "add": ("AddConfig", torch.add, (2, 3, 4), (2, 3, 4)),
        "add_broadcast": ("AddConfig", torch.add, (2, 1, 4), (3, 1)),
        "add_relu": ("AddConfig", lambda x, y: torch.relu(x + y), (2, 3), (2, 3)),
        "sub": ("SubConfig", torch.sub, (5, 7), (7,)),
        "mul": ("MulConfig", torch.mul, (1, 6, 3, 3), (1, 6, 1, 1)),
        "div": ("DivConfig", torch.div, (5, 7), (5, 1)),
        "maximum": ("MaximumConfig", torch.maximum, (5, 7), (5, 7)),
        "minimum": ("MinimumConfig", torch.minimum, (5, 7), (1, 7)),
    }
    cases += [Case(n, (config,), _function(f), _pair(a, b)) for n, (config, f, a, b) in binary.items()]
    cases.append(Case("prelu", ("PreluConfig",), lambda: nn.PReLU(6), _normal(2, 6, 4, 5)))
    cases.append(Case("prelu_one", ("PreluConfig",), lambda: nn.PReLU(1), _normal(2, 6, 3, 5)))
    return cases


def _matmul() -> list[Case]:
    def weights(*shape: int) -> Tensor:
        return torch.randn(shape) * 0.2

    return [
        Case("linear", ("LinearConfig",), lambda: nn.Linear(17, 9), _normal(4, 17)),
        Case("linear_images", ("LinearConfig",), lambda: nn.Linear(8, 5, bias=False), _normal(2, 3, 7, 8)),
        Case("linear_vector", ("LinearConfig",), lambda: nn.Linear(8, 5), _normal(8)),
        Case(
            "linear_relu",
            ("LinearConfig", "ReLUConfig"),
            lambda: nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 3), nn.ReLU6()),
            _normal(5, 12),
        ),
        Case(
            "addmm",
            ("AddmmConfig",),
            lambda: Function(lambda x, w, b: torch.addmm(b, x, w), w=weights(6, 11), b=weights(11)),
            _normal(3, 6),
        ),
        Case(
            "mm",
            ("MMConfig",),
            lambda: Function(lambda x, w: torch.mm(x, w), w=weights(6, 11)),
            _normal(3, 6),
        ),
        Case(
            "bmm", ("BMMConfig",), _function(torch.bmm), lambda: (torch.randn(3, 4, 6), torch.randn(3, 6, 5))
        ),
    ]


def _conv(*args: Any, **options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Conv2d(*args, **options)


def _convolution() -> list[Case]:
    conv = ("ConvolutionConfig",)
    plain = {
        "conv": (_conv(3, 8, 3), (1, 3, 9, 11)),
        "conv_odd": (_conv(7, 17, (2, 5), stride=(3, 1), padding=(1, 2), dilation=(2, 1)), (2, 7, 14, 12)),
        "conv_1x1": (_conv(5, 12, 1, bias=False), (1, 5, 6, 7)),
        "conv_stride": (_conv(4, 8, 3, stride=2, padding=1), (1, 4, 15, 16)),
        "conv_groups": (_conv(6, 9, 3, groups=3, padding=1), (1, 6, 7, 8)),
        "conv_depthwise": (_conv(8, 8, 3, groups=8, padding=1), (1, 8, 9, 7)),
        "conv_depthwise_multiplied": (_conv(5, 15, (3, 2), groups=5, stride=2, bias=False), (2, 5, 9, 8)),
        "conv_one_input": (_conv(1, 6, 3), (1, 1, 8, 9)),
        "conv_7x7": (_conv(3, 4, 7, stride=2, padding=3), (1, 3, 21, 20)),
    }
    cases = [Case(name, conv, make, _normal(*shape)) for name, (make, shape) in plain.items()]
    cases += [
        Case("conv1d", conv, lambda: nn.Conv1d(4, 6, 3, padding=1, dilation=1), _normal(2, 4, 13)),
        Case("conv_transposed", conv, lambda: nn.ConvTranspose2d(4, 6, 3), _normal(1, 4, 5, 6)),
        Case(
            "conv_transposed_stride",
            conv,
            lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            _normal(2, 4, 5, 6),
        ),
        Case(
            "conv_transposed_dilated",
            conv,
            lambda: nn.ConvTranspose2d(3, 5, (2, 3), stride=(1, 2), dilation=(2, 1), bias=False),
            _normal(1, 3, 4, 5),
        ),
        Case(
            "conv_relu6",
            ("ConvolutionConfig", "HardtanhConfig"),
            lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU6(), nn.Conv2d(8, 4, 1), nn.ReLU()),
            _normal(1, 3, 8, 8),
        ),
        Case(
            "conv_batch_norm",
            ("ConvolutionConfig", "BatchNormConfig"),
            lambda: nn.Sequential(nn.Conv2d(3, 8, 3), _trained(nn.BatchNorm2d(8)), nn.ReLU()),
            _normal(1, 3, 8, 8),
        ),
        Case("batch_norm", ("BatchNormConfig",), lambda: _trained(nn.BatchNorm2d(5)), _normal(2, 5, 4, 3)),
        Case(
            "residual",
            ("ConvolutionConfig", "AddConfig"),
            lambda: Function(
                lambda x, w: torch.relu(F.conv2d(x, w, padding=1) + x), w=torch.randn(6, 6, 3, 3) * 0.1
            ),
            _normal(1, 6, 9, 9),
        ),
    ]
    return cases


def _trained(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    for value in (norm.weight, norm.running_var):
        assert value is not None
        nn.init.uniform_(value, 0.5, 1.5)
    for value in (norm.bias, norm.running_mean):
        assert value is not None
        nn.init.normal_(value)
    return norm


def _pools() -> list[Case]:
    return [
        Case("max_pool", ("MaxPool2dConfig",), lambda: nn.MaxPool2d(3, 2, 1), _normal(1, 5, 9, 10)),
        Case(
            "max_pool_ceil",
            ("MaxPool2dConfig",),
            lambda: nn.MaxPool2d((3, 2), 2, ceil_mode=True),
            _normal(2, 3, 10, 9),
        ),
        Case(
            "max_pool_dilated",
            ("MaxPool2dConfig",),
            lambda: nn.MaxPool2d(2, 1, dilation=(2, 3)),
            _normal(1, 3, 7, 8),
        ),
        Case("avg_pool", ("AvgPoolingConfig",), lambda: nn.AvgPool2d((3, 2)), _normal(1, 5, 9, 10)),
        Case(
            "avg_pool_padded",
            ("AvgPoolingConfig",),
            lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
            _normal(2, 3, 9, 10),
        ),
        Case("mean", ("MeanDimConfig",), _function(lambda x: x.mean((-1, -2), True)), _normal(2, 7, 5, 6)),
        Case("max_dim", ("MaxDimConfig",), _function(lambda x: x.max(3, True)[0]), _normal(2, 7, 5, 6)),
        Case("max_dim_2", ("MaxDimConfig",), _function(lambda x: x.max(2, True)[0]), _normal(2, 3, 5, 6)),
        Case("softmax", ("SoftmaxConfig",), lambda: nn.Softmax(-1), _normal(2, 3, 37)),
        Case(
            "upsample",
            ("UpsampleBilinear2dConfig",),
            lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
            _normal(1, 5, 4, 6),
        ),
        Case(
            "upsample_corners",
            ("UpsampleBilinear2dConfig",),
            lambda: nn.Upsample((7, 11), mode="bilinear", align_corners=True),
            _normal(2, 3, 4, 6),
        ),
    ]


def _moves() -> list[Case]:
    def images(count: int, dim: int) -> Callable[[], tuple[Tensor, ...]]:
        def make() -> tuple[Tensor, ...]:
            shapes = [[2, 3, 4, 5] for _ in range(count)]
            for index, shape in enumerate(shapes):
                shape[dim] = index + 1
            return tuple(torch.randn(shape) for shape in shapes)

        return make

    cases = [
        Case(f"cat_{count}", ("CatConfig",), _function(lambda *x, d=dim: torch.cat(x, d)), images(count, dim))
        for count, dim in ((2, 1), (3, 3), (4, 0), (5, 2), (7, 1))
    ]
    cases += [
        Case("pad", ("ConstantPadConfig",), lambda: nn.ConstantPad2d((1, 2, 3, 0), 1.5), _normal(1, 3, 4, 5)),
        Case("pad_rows", ("ConstantPadConfig",), lambda: nn.ConstantPad1d((2, 1), 0.0), _normal(3, 4)),
        Case("permute", ("PermuteConfig",), _function(lambda x: x.permute(2, 0, 3, 1)), _normal(2, 3, 4, 5)),
        Case("permute_3", ("PermuteConfig",), _function(lambda x: x.transpose(1, 2)), _normal(5, 3, 4)),
        Case("slice", ("SliceCopyConfig",), _function(lambda x: x[:, 1:-1]), _normal(3, 7, 2)),
        Case(
            "slice_image",
            ("SliceCopyConfig", "ConvolutionConfig"),
            lambda: nn.Sequential(nn.Conv2d(3, 6, 1), Function(lambda x: x[:, 2:5, 1:, :-1])),
            _normal(1, 3, 5, 6),
        ),
        Case("view", ("ViewCopyConfig",), _function(lambda x: x.view(6, 10)), _normal(3, 4, 5)),
        Case(
            "view_inferred",
            ("ViewCopyConfig",),
            _function(lambda x: torch.abs(x).view(-1, 4)),
            _normal(3, 4, 5),
        ),
        Case("unsqueeze", ("UnsqueezeCopyConfig",), _function(lambda x: x.unsqueeze(-1)), _normal(3, 4)),
        Case(
            "channels_last",
            ("ToDimOrderCopyConfig", "ConvolutionConfig"),
            lambda: nn.Sequential(
                Function(lambda x: x.to(memory_format=torch.channels_last)),
                nn.Conv2d(3, 4, 3),
                Function(lambda x: x.to(memory_format=torch.contiguous_format)),
            ),
            _normal(1, 3, 6, 7),
        ),
    ]
    return cases


CASES = {case.name: case for case in (*_elementwise(), *_matmul(), *_convolution(), *_pools(), *_moves())}
