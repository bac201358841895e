"""Eager-mode quantized models (`torch.ao.quantization.prepare` and `convert`) as models that can be exported.

Their modules hold packed weights that `torch.export` can't see into. Each is replaced by one that computes
the same out of integers and q/dq operators; what stands between them (views, pooling, ReLU) runs on the
dequantized values, which is the same function.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from workbench.errors import ExportError
from workbench.quantization import pt2e  # noqa: F401  # defines the operators

__all__ = ["from_eager"]

quantized = torch.ops.quantized_decomposed
functional = torch.nn.functional
_ADVICE = (
    "quantize the float model instead: "
    "wb.lower(model, inputs, recipe=wb.Recipe(quantizer=..., calibration=...))"
)


def from_eager(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of an eager-mode quantized model with modules that can be exported.

    Raises:
        ExportError: A module of it has no counterpart (recurrent layers, quantized norms with state, fp16).
    """
    own = copy.deepcopy(model)
    if _is_quantized(own):
        return _replaced("", own)
    for name, module in list(own.named_modules()):
        if name and _is_quantized(module):
            owner, _, last = name.rpartition(".")
            setattr(own.get_submodule(owner) if owner else own, last, _replaced(name, module))
    return own


def _is_quantized(module: torch.nn.Module) -> bool:
    home = type(module).__module__
    known = home.startswith(("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized."))
    return known and not type(module).__name__.endswith("PackedParams")


def _replaced(name: str, module: Any) -> torch.nn.Module:
    kind = type(module).__name__
    dynamic = ".dynamic" in type(module).__module__
    if kind == "Quantize":
        return _Rounded(_Identity(), module.scale, module.zero_point, module.dtype)
    if kind == "DeQuantize":
        return _Identity()
    if kind in ("QFunctional", "FXFloatFunctional"):
        return _Functional(module.scale, module.zero_point)
    if kind in ("Linear", "LinearReLU") and module.weight().dtype == torch.qint8:
        layer: torch.nn.Module = _Linear(module, kind.endswith("ReLU"), dynamic)
        return layer if dynamic else _Rounded(layer, module.scale, module.zero_point)
    if kind.startswith("Conv") and not dynamic and hasattr(module, "stride"):
        return _Rounded(_Convolution(module, "ReLU" in kind), module.scale, module.zero_point)
    if kind == "Embedding":
        return _Embedding(module)
    inner = _activation(module)
    if inner is not None and hasattr(module, "scale"):
        return _Rounded(inner, module.scale, module.zero_point)
    if kind == "ReLU6":
        return torch.nn.ReLU6()
    if kind == "Dropout":
        return _Identity()
    raise ExportError(
        f"module `{name or 'the model'}` is an eager-mode quantized {kind}, "
        "which has no counterpart in q/dq operators",
        stage="export",
        expected="Quantize, DeQuantize, Linear, Conv, Embedding, activations, layer norm, QFunctional",
        found=f"{type(module).__module__}.{kind}",
        hint=_ADVICE,
    )


def _activation(module: Any) -> torch.nn.Module | None:
    kind = type(module).__name__
    if kind == "LayerNorm":
        made = torch.nn.LayerNorm(module.normalized_shape, module.eps)
        made.weight, made.bias = module.weight, module.bias
        return made
    options = {"ELU": ("alpha",), "LeakyReLU": ("negative_slope",), "Softmax": ("dim",)}
    if kind in ("Hardswish", "Sigmoid", "ELU", "LeakyReLU", "Softmax"):
        given = {name: getattr(module, name) for name in options.get(kind, ()) if hasattr(module, name)}
        built: torch.nn.Module = getattr(torch.nn, kind)(**given)
        return built
    return None


class _Identity(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class _Rounded(torch.nn.Module):
    """A module whose result is quantized; unsigned numbers become signed ones of the same meaning."""

    def __init__(self, inner: torch.nn.Module, scale: Any, zero: Any, dtype: Any = torch.quint8) -> None:
        super().__init__()
        self.inner = inner
        self.scale, self.zero = float(scale), int(zero) - (128 if dtype == torch.quint8 else 0)

    def forward(self, *inputs: Any) -> torch.Tensor:
        return _round(self.inner(*inputs), self.scale, self.zero)


def _round(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    limits = (scale, zero, -128, 127, torch.int8)
    integers = quantized.quantize_per_tensor.default(x, *limits)
    return quantized.dequantize_per_tensor.default(integers, *limits)  # type: ignore[no-any-return]


class _Weight(torch.nn.Module):
    """A weight as integers with scales."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("integers", weight.int_repr())
        self.axis: int | None = None
        if weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric):
            self.axis = weight.q_per_channel_axis()
            self.register_buffer("scales", weight.q_per_channel_scales().float())
            self.register_buffer("zeros", weight.q_per_channel_zero_points().to(torch.int64))
        else:
            self.scale, self.zero = float(weight.q_scale()), int(weight.q_zero_point())

    def forward(self) -> torch.Tensor:
        limits = (-128, 127, torch.int8)
        if self.axis is not None:
            return quantized.dequantize_per_channel.default(  # type: ignore[no-any-return]
                self.integers, self.scales, self.zeros, self.axis, *limits
            )
        return quantized.dequantize_per_tensor.default(  # type: ignore[no-any-return]
            self.integers, self.scale, self.zero, *limits
        )


class _Linear(torch.nn.Module):
    def __init__(self, module: Any, relu: bool, dynamic: bool) -> None:
        super().__init__()
        self.weight = _Weight(module.weight())
        self.bias = _kept(module.bias())
        self.relu, self.dynamic = relu, dynamic

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dynamic:
            limits = (-128, 127, torch.int8)
            scale, zero = quantized.choose_qparams.tensor(x, -128, 127, 2.0**-23, torch.int8)
            integers = quantized.quantize_per_tensor.tensor(x, scale, zero, *limits)
            x = quantized.dequantize_per_tensor.tensor(integers, scale, zero, *limits)
        result = functional.linear(x, self.weight(), self.bias)
        return functional.relu(result) if self.relu else result


class _Convolution(torch.nn.Module):
    def __init__(self, module: Any, relu: bool) -> None:
        super().__init__()
        self.weight = _Weight(module.weight())
        self.bias = _kept(module.bias())
        self.relu = relu
        self.transposed = "Transpose" in type(module).__name__
        self.rank = len(module.kernel_size)
        self.options = {
            "stride": module.stride,
            "padding": module.padding,
            "dilation": module.dilation,
            "groups": module.groups,
        }
        if self.transposed:
            self.options["output_padding"] = module.output_padding
        if getattr(module, "padding_mode", "zeros") != "zeros":
            raise ExportError(
                "an eager-mode quantized convolution pads otherwise than with zeros",
                stage="export",
                found=module.padding_mode,
                hint=_ADVICE,
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        name = f"conv{'_transpose' if self.transposed else ''}{self.rank}d"
        result: torch.Tensor = getattr(functional, name)(x, self.weight(), self.bias, **self.options)
        return functional.relu(result) if self.relu else result


class _Embedding(torch.nn.Module):
    def __init__(self, module: Any) -> None:
        super().__init__()
        weight = module.weight()
        self.table = torch.nn.Buffer(weight.dequantize().float())

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return functional.embedding(indices, self.table)


class _Functional(torch.nn.Module):
    """Sums, products and joins whose results are quantized."""

    def __init__(self, scale: Any, zero: Any) -> None:
        super().__init__()
        self.scale, self.zero = float(scale), int(zero) - 128

    def _round(self, x: torch.Tensor) -> torch.Tensor:
        return _round(x, self.scale, self.zero)

    def add(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._round(torch.add(x, y))

    def add_relu(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._round(functional.relu(torch.add(x, y)))

    def mul(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._round(torch.mul(x, y))

    def cat(self, parts: Any, dim: int = 0) -> torch.Tensor:
        return self._round(torch.cat(parts, dim))

    def matmul(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._round(torch.matmul(x, y))

    def add_scalar(self, x: torch.Tensor, y: float) -> torch.Tensor:
        return torch.add(x, y)

    def mul_scalar(self, x: torch.Tensor, y: float) -> torch.Tensor:
        return torch.mul(x, y)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ExportError("a QFunctional is not called itself", stage="export", hint="use its add, mul, cat")


def _kept(bias: Any) -> Any:
    return None if bias is None else torch.nn.Parameter(bias.detach().float())
