"""Functions of each element, and of the elements of tensors that broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload

from workbench.backends.cpu.emitter import Emitter, same_sizes
from workbench.backends.cpu.entry import Call, Emit, Entry, Refusal, Samples, no
from workbench.backends.cpu.graph import Fn, Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


# ---- one operand -------------------------------------------------------------------------------------------


def _unary(fn: int, *, a: float = 0.0, b: float = 0.0) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        operand = next(iter(call.args.values()))
        emitter.pointwise(fn, [emitter.value(operand)], emitter.result(call), a=a, b=b)

    return emit


def _with(fn: int, numbers: Callable[[Call], tuple[float, float]]) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        a, b = numbers(call)
        operand = next(iter(call.args.values()))
        emitter.pointwise(fn, [emitter.value(operand)], emitter.result(call), a=a, b=b)

    return emit


def _range(low: Any, high: Any) -> tuple[float, float]:
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high))


def _scaled(before: float | None, fn: int, after: float | None) -> Emit:
    """`after * fn(before * x)`."""

    def emit(emitter: Emitter, call: Call) -> None:
        output = emitter.result(call)
        dims, dtype = emitter.dims(output), call.result().dtype
        value = emitter.value(call["self"])
        if before is not None:
            value = emitter.pointwise(Fn.MulScalar, [value], emitter.temporary(dtype, dims), a=before)
        if after is None:
            emitter.pointwise(fn, [value], output)
            return
        value = emitter.pointwise(fn, [value], emitter.temporary(dtype, dims))
        emitter.pointwise(Fn.MulScalar, [value], output, a=after)

    return emit


def _elu(call: Call) -> tuple[float, float]:
    return float(call["alpha"]), 0.0


def _check_elu(call: Call) -> Refusal | None:
    if call["scale"] != 1 or call["input_scale"] != 1:
        return no(f"it scales by {call['scale']} and {call['input_scale']}", "both scales were 1")
    return None


def _gelu(emitter: Emitter, call: Call) -> None:
    fn = Fn.Gelu if call["approximate"] == "none" else Fn.GeluTanh
    emitter.pointwise(fn, [emitter.value(call["self"])], emitter.result(call))


def _pow_number(emitter: Emitter, call: Call) -> None:
    exponent, value, output = float(call["exponent"]), emitter.value(call["self"]), emitter.result(call)
    special = {2.0: Fn.Square, 1.0: Fn.Identity, 0.5: Fn.Sqrt, -1.0: Fn.Reciprocal, -0.5: Fn.Rsqrt}
    if exponent in special:
        emitter.pointwise(special[exponent], [value], output)
    else:
        emitter.pointwise(Fn.PowScalar, [value], output, a=exponent)


def _glu(emitter: Emitter, call: Call) -> None:
    value, axis, output = emitter.value(call["self"]), call.dim(), emitter.result(call)
    half = call.tensor("self").shape[axis] // 2
    dtype, dims = call.result().dtype, emitter.dims(output)
    parts = []
    for begin in (0, half):
        part = emitter.temporary(dtype, dims)
        emitter.add(Op.Slice, [value], [part], axis=axis, begin=begin, end=begin + half, step=1)
        parts.append(part)
    gate = emitter.pointwise(Fn.Sigmoid, [parts[1]], emitter.temporary(dtype, dims))
    emitter.pointwise(Fn.Mul, [parts[0], gate], output)


def _check_glu(call: Call) -> Refusal | None:
    if type(call.tensor("self").shape[call.dim()]) is not int:
        return no("it halves a dynamic size", "the halved size were static")
    return None


# ---- two operands ------------------------------------------------------------------------------------------


def _binary(fn: int, with_number: Callable[[float], tuple[int, float, float] | None] | None = None) -> Emit:
    """Two tensors; where the second is a number y, `with_number(y)` is the function of the first alone."""

    def emit(emitter: Emitter, call: Call) -> None:
        first, second = list(call.args.values())[:2]
        output = emitter.result(call)
        number = None if with_number is None else emitter.number(second)
        usable = number is not None and number == number  # a NaN is no parameter
        form = with_number(float(number)) if usable and with_number is not None else None  # type: ignore[arg-type]
        if form is not None:
            value = emitter.value(first)
            if same_sizes(emitter.dims(value), emitter.dims(output)):
                emitter.pointwise(form[0], [value], output, a=form[1], b=form[2])
                return
        dtype = call.result().dtype
        operands = [emitter.value(item, dtype) for item in (first, second)]
        emitter.pointwise(fn, operands, output)

    return emit


def _sum(sign: float) -> Emit:
    """`x + alpha y` or `x - alpha y`."""

    def emit(emitter: Emitter, call: Call) -> None:
        first, second = call["self"], call["other"]
        factor, output = sign * float(call["alpha"]), emitter.result(call)
        for one, other, reverse in ((first, second, False), (second, first, True)):
            number = emitter.number(other)
            if number is None or (reverse and abs(factor) != 1):
                continue
            value = emitter.value(one)
            if not same_sizes(emitter.dims(value), emitter.dims(output)):
                continue
            if reverse and factor < 0:
                emitter.pointwise(Fn.ReverseSubScalar, [value], output, a=float(number))
            else:
                added = float(number) if reverse else factor * float(number)
                emitter.pointwise(Fn.AddScalar, [value], output, a=added)
            return
        operands = [emitter.value(item, call.result().dtype) for item in (first, second)]
        if abs(factor) == 1:
            emitter.pointwise(Fn.Add if factor > 0 else Fn.Sub, operands, output)
        else:
            emitter.pointwise(Fn.AddScaled, operands, output, a=factor)

    return emit


def _check_alpha(call: Call) -> Refusal | None:
    if not isinstance(call["alpha"], (int, float)):
        return no("alpha is not known before the program runs", "alpha were a number")
    return None


def _mul(emitter: Emitter, call: Call) -> None:
    output = emitter.result(call)
    for one, other in ((call["self"], call["other"]), (call["other"], call["self"])):
        number = emitter.number(other)
        if number is None:
            continue
        value = emitter.value(one)
        if same_sizes(emitter.dims(value), emitter.dims(output)):
            emitter.pointwise(Fn.MulScalar, [value], output, a=float(number))
            return
    operands = [emitter.value(item, call.result().dtype) for item in (call["self"], call["other"])]
    emitter.pointwise(Fn.Mul, operands, output)


def _div(emitter: Emitter, call: Call) -> None:
    mode, output = _rounding(call), emitter.result(call)
    if mode == "floor":
        _floor_div(emitter, call, output)
        return
    dtype = call.result().dtype
    quotient = output if mode is None else emitter.temporary(dtype, emitter.dims(output))
    divisor, dividend = emitter.number(call["other"]), emitter.number(call["self"])
    left = None if divisor is None else emitter.value(call["self"])
    right = None if dividend is None else emitter.value(call["other"])
    # A product with the inverse is as exact as the quotient if the inverse is a power of two.
    if (
        left is not None
        and _is_power_of_two(divisor)
        and same_sizes(emitter.dims(left), emitter.dims(output))
    ):
        emitter.pointwise(Fn.MulScalar, [left], quotient, a=1.0 / float(divisor))  # type: ignore[arg-type]
    elif right is not None and same_sizes(emitter.dims(right), emitter.dims(output)):
        emitter.pointwise(Fn.ReverseDivScalar, [right], quotient, a=float(dividend))  # type: ignore[arg-type]
    else:
        operands = [emitter.value(item, dtype) for item in (call["self"], call["other"])]
        emitter.pointwise(Fn.Div, operands, quotient)
    if mode == "trunc":
        emitter.pointwise(Fn.Trunc, [quotient], output)


def _rounding(call: Call) -> Any:
    return "floor" if call.node.target is aten.floor_divide.default else call.args.get("rounding_mode")


def _floor_div(emitter: Emitter, call: Call, output: int) -> None:
    """As eager: `round((x - x mod y) / y)`. `floor(x / y)` is one too high where the quotient rounds up."""
    dims, dtype = emitter.dims(output), call.result().dtype
    dividend, divisor = emitter.value(call["self"], dtype), emitter.value(call["other"], dtype)
    rest = emitter.pointwise(Fn.Remainder, [dividend, divisor], emitter.temporary(dtype, dims))
    whole = emitter.pointwise(Fn.Sub, [dividend, rest], emitter.temporary(dtype, dims))
    quotient = emitter.pointwise(Fn.Div, [whole, divisor], emitter.temporary(dtype, dims))
    emitter.pointwise(Fn.Round, [quotient], output)


def _check_div(call: Call) -> Refusal | None:
    if _rounding(call) == "floor" and not call.constant("other"):
        return no("it rounds down and the divisor may be 0", "the divisor were a constant")
    return None


def _is_power_of_two(number: Any) -> bool:
    value = abs(float(number))
    return 2.0**-60 < value < 2.0**60 and math.frexp(value)[0] == 0.5


def _prelu(emitter: Emitter, call: Call) -> None:
    value, weight, output = emitter.value(call["self"]), emitter.value(call["weight"]), emitter.result(call)
    dims, slopes = emitter.dims(output), emitter.dims(weight)
    if len(slopes) == 1 and slopes[0] != 1 and len(dims) > 1:
        weight = emitter.reshaped(weight, [*slopes, *[1] * (len(dims) - 2)])
    emitter.pointwise(Fn.Prelu, [value, weight], output)


def _rsub(emitter: Emitter, call: Call) -> None:
    emitter.pointwise(
        Fn.ReverseSubScalar, [emitter.value(call["self"])], emitter.result(call), a=float(call["other"])
    )


def _clamp_tensor(emitter: Emitter, call: Call) -> None:
    value, output, dtype = emitter.value(call["self"]), emitter.result(call), call.result().dtype
    steps = [(fn, call[name]) for fn, name in ((Fn.Maximum, "min"), (Fn.Minimum, "max")) if call[name]]
    for position, (fn, bound) in enumerate(steps):
        last = position == len(steps) - 1
        target = output if last else emitter.temporary(dtype, emitter.dims(output))
        value = emitter.pointwise(fn, [value, emitter.value(bound)], target)


# ---- the table ---------------------------------------------------------------------------------------------


def _each(*arguments: Any, low: float = -3.0, high: float = 3.0) -> Samples:
    def samples() -> Iterator[tuple[Any, ...]]:
        for sizes in ((), (1,), (17,), (3, 33), (2, 3, 64), (0,)):
            yield (torch.rand(sizes) * (high - low) + low, *arguments)

    return samples


def _prelu_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 4, 5), torch.rand(3)
    yield torch.randn(2, 3, 4, 5), torch.rand(1)
    yield torch.randn(6, 7), torch.rand(7)


def _kernel_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 4, 5), torch.rand(1, 3, 1, 1)


def _glu_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 6, 5), 1
    yield (torch.randn(3, 34),)


_UNARY: dict[OpOverload, int] = {
    aten.abs.default: Fn.Abs,
    aten.neg.default: Fn.Neg,
    aten.ceil.default: Fn.Ceil,
    aten.floor.default: Fn.Floor,
    aten.round.default: Fn.Round,
    aten.trunc.default: Fn.Trunc,
    aten.sign.default: Fn.Sign,
    aten.sqrt.default: Fn.Sqrt,
    aten.rsqrt.default: Fn.Rsqrt,
    aten.reciprocal.default: Fn.Reciprocal,
    aten.exp.default: Fn.Exp,
    aten.expm1.default: Fn.Expm1,
    aten.log.default: Fn.Log,
    aten.log1p.default: Fn.Log1p,
    aten.sin.default: Fn.Sin,
    aten.cos.default: Fn.Cos,
    aten.tan.default: Fn.Tan,
    aten.asin.default: Fn.Asin,
    aten.acos.default: Fn.Acos,
    aten.atan.default: Fn.Atan,
    aten.sinh.default: Fn.Sinh,
    aten.cosh.default: Fn.Cosh,
    aten.tanh.default: Fn.Tanh,
    aten.erf.default: Fn.Erf,
    aten.sigmoid.default: Fn.Sigmoid,
}
_KEPT: dict[OpOverload, int] = {
    aten.silu.default: Fn.Silu,
    aten.hardsigmoid.default: Fn.HardSigmoid,
    aten.hardswish.default: Fn.HardSwish,
    aten.mish.default: Fn.Mish,
}


def _number_form(fn: int) -> Callable[[float], tuple[int, float, float]]:
    return lambda y: (fn, y, 0.0)


ENTRIES = [
    *(Entry((target,), _unary(fn)) for target, fn in _UNARY.items()),
    *(Entry((target,), _unary(fn), keep=True, samples=_each()) for target, fn in _KEPT.items()),
    Entry((aten.relu.default,), _unary(Fn.Clamp, a=0.0, b=math.inf)),
    Entry((aten.relu6.default,), _unary(Fn.Clamp, a=0.0, b=6.0), keep=True, samples=_each(high=9.0)),
    Entry(
        (aten.hardtanh.default,),
        _with(Fn.Clamp, lambda call: _range(call["min_val"], call["max_val"])),
        samples=_each(-1.5, 0.5),
    ),
    Entry((aten.clamp.default,), _with(Fn.Clamp, lambda call: _range(call["min"], call["max"]))),
    Entry((aten.clamp.Tensor,), _clamp_tensor),
    Entry((aten.elu.default,), _with(Fn.Elu, _elu), _check_elu),
    Entry((aten.leaky_relu.default,), _with(Fn.LeakyRelu, lambda call: (float(call["negative_slope"]), 0.0))),
    Entry(
        (aten.softplus.default,),
        _with(Fn.Softplus, lambda call: (float(call["beta"]), float(call["threshold"]))),
        keep=True,
        samples=_each(low=-30.0, high=30.0),
    ),
    Entry((aten.gelu.default,), _gelu),
    Entry((aten.log2.default,), _scaled(None, Fn.Log, 1 / math.log(2))),
    Entry((aten.log10.default,), _scaled(None, Fn.Log, 1 / math.log(10))),
    Entry((aten.exp2.default,), _scaled(math.log(2), Fn.Exp, None), samples=_each()),
    Entry((aten.glu.default,), _glu, _check_glu, samples=_glu_samples),
    Entry((aten.pow.Tensor_Scalar,), _pow_number),
    Entry((aten.pow.Tensor_Tensor,), _binary(Fn.Pow, _number_form(Fn.PowScalar))),
    Entry((aten.pow.Scalar,), _binary(Fn.Pow)),
    Entry((aten.add.Tensor, aten.add.Scalar), _sum(1.0), _check_alpha),
    Entry((aten.sub.Tensor, aten.sub.Scalar), _sum(-1.0), _check_alpha),
    Entry(
        (aten.rsub.Scalar,),
        _rsub,
        lambda call: None if call["alpha"] == 1 else no("alpha is not 1", "it were"),
        samples=_each(2.0),
    ),
    Entry((aten.mul.Tensor, aten.mul.Scalar), _mul),
    Entry(
        (aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.floor_divide.default), _div, _check_div
    ),
    Entry((aten.maximum.default,), _binary(Fn.Maximum, lambda y: (Fn.Clamp, y, math.inf))),
    Entry((aten.minimum.default,), _binary(Fn.Minimum, lambda y: (Fn.Clamp, -math.inf, y))),
    Entry((aten.fmod.Tensor, aten.fmod.Scalar), _binary(Fn.Fmod)),
    Entry((aten.remainder.Tensor, aten.remainder.Scalar), _binary(Fn.Remainder)),
    Entry((aten.atan2.default,), _binary(Fn.Atan2)),
    Entry(
        (aten.copysign.Tensor,),
        _binary(Fn.Copysign),
        samples=lambda: iter([(torch.randn(5), torch.randn(5))]),
    ),
    Entry((aten.prelu.default,), _prelu, keep=True, samples=_prelu_samples),
    Entry((aten._prelu_kernel.default,), _prelu, samples=_kernel_samples),
]
