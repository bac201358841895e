"""Numbers as integers and back. The engine computes on the integers where it has a method for that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.fx import Node

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import FLOATS, Call, Entry, Refusal, no
from workbench.backends.cpu.graph import NO_VALUE, Fn, Op, Quantization, QuantizationKind
from workbench.backends.cpu.integers import range_of

__all__ = ["ENTRIES"]

ops = torch.ops.quantized_decomposed
_BYTES = (torch.int8, torch.uint8)
_ANY = (*FLOATS, *_BYTES, torch.int32, torch.int64, torch.float64)
_ROWS = (ops.choose_qparams_per_token_asymmetric.default,)
_WHOLE = (ops.choose_qparams.tensor,)


def _number(call: Call, name: str) -> float | int | None:
    """A parameter that is a number, or a constant of one element."""
    given = call[name]
    if isinstance(given, (int, float)):
        return given
    stored = call.context.stored(given) if isinstance(given, Node) else None
    return stored.item() if stored is not None and stored.numel() == 1 else None


def _parameters(call: Call) -> Quantization:
    scale, zero = _number(call, "scale"), _number(call, "zero_point")
    assert scale is not None and zero is not None
    return Quantization(QuantizationKind.PER_TENSOR, scale=float(scale), zero_point=int(zero))


def _check_parameters(call: Call) -> Refusal | None:
    scale, zero = _number(call, "scale"), _number(call, "zero_point")
    if scale is None or zero is None:
        return no("its scale or zero point is computed while the program runs", "they were constants")
    dtype = call["dtype"]
    if dtype not in _BYTES:
        return no(f"it is of {str(dtype).removeprefix('torch.')}", "it were of int8 or uint8")
    low, high = range_of(dtype)
    # Below the smallest normal float32 there is no reciprocal.
    if not (
        math.isfinite(scale) and torch.finfo(torch.float32).tiny <= scale <= torch.finfo(torch.float32).max
    ):
        return no(f"its scale is {scale:g}", "it were a positive, finite number")
    if not low <= zero <= high:
        return no(f"its zero point is {zero:g}", f"it were from {low} to {high}")
    return None


def _source(node: object) -> tuple[Any, int]:
    """The operator whose result an operand is, and which of its results."""
    if isinstance(node, Node) and getattr(node.target, "__name__", "") == "getitem":
        return node.args[0], int(node.args[1])  # type: ignore[arg-type]
    return node, 0


# ---- quantize ----------------------------------------------------------------------------------------------


def _quantize(emitter: Emitter, call: Call) -> None:
    chosen = _chosen(call)
    if chosen is not None:
        _quantize_at_run_time(emitter, call)
        return
    q, value = _parameters(call), emitter.value(call["input"])
    low, high = range_of(call["dtype"])
    if (call["quant_min"], call["quant_max"]) != (low, high):
        # Fewer integers than the type has: the numbers are cut to what these stand for.
        ends = [(end - q.zero_point) * q.scale for end in (call["quant_min"], call["quant_max"])]
        made = emitter.temporary(torch.float32, emitter.dims(value))
        value = emitter.pointwise(Fn.Clamp, [value], made, a=ends[0], b=ends[1])
    output = emitter.result(call)
    emitter.graph.values[output].quantization = q
    emitter.add(Op.Quantize, [value], [output])


def _check_quantize(call: Call) -> Refusal | None:
    chosen = _chosen(call)
    if chosen is not None:
        return _check_run_time(call, chosen)
    low, high = range_of(call["dtype"]) if call["dtype"] in _BYTES else (0, 0)
    if call["dtype"] in _BYTES and not low <= call["quant_min"] <= call["quant_max"] <= high:
        return no(
            f"its integers go from {call['quant_min']} to {call['quant_max']}",
            f"they were in {low} to {high}",
        )
    return _check_parameters(call)


# ---- dequantize --------------------------------------------------------------------------------------------


def _dequantize(emitter: Emitter, call: Call) -> None:
    given = emitter.value(call["input"])
    output = emitter.result(call)
    found = emitter.graph.values[given].quantization
    if _rows_of(call) is not None:
        whole = emitter.graph.values[given].sizes != tuple(call.sizes("input"))
        if not whole:
            emitter.add(Op.Dequantize, [given], [output])
            return
        made = emitter.temporary(torch.float32, emitter.dims(given))
        emitter.add(Op.Dequantize, [given], [made])
        emitter.reshaped(made, emitter.dims(output), output)
        return
    q = _parameters(call)
    if found != q:
        dtype = emitter.graph.values[given].dtype
        if found is not None:  # the integers themselves, which stand for other numbers here
            plain = emitter.temporary(dtype, emitter.dims(given))
            emitter.add(Op.Copy, [given], [plain])
            given = plain
        meant = emitter.temporary(dtype, emitter.dims(given))
        emitter.graph.values[meant].quantization = q
        emitter.add(Op.Copy, [given], [meant])
        given = meant
    emitter.add(Op.Dequantize, [given], [output])


def _check_constant(call: Call) -> Refusal | None:
    """Of constants, whose integers stay in the file (`workbench/backends/cpu/integers.py`)."""
    if not all(call.context.is_constant(item) for item in call.args.values()):
        return no("its input or its scales are computed while the program runs", "they were constants")
    return None


def _constant(emitter: Emitter, call: Call) -> None:
    """Whoever reads the numbers takes them from the integers."""


def _check_dequantize(call: Call) -> Refusal | None:
    if call.constant("input"):
        return _check_constant(call)
    if call.tensor("input").dtype not in _BYTES:
        return no("its integers are not of 8 bits", "they were, or it were a constant")
    quantize, _ = _source(call["input"])
    if _rows_of(call) is not None:
        same = all(
            _source(call[ours])[0] is _source(quantize.args[place])[0]
            for place, ours in enumerate(_names(call), 1)
        )
        return None if same else no("its scales are not those that its input was quantized with", "they were")
    if call.tensor("input").dtype != call["dtype"]:
        return no("its input is not of the type that it says", "both were of int8 or uint8")
    return _check_parameters(call)


# ---- scales that are found while the program runs ----------------------------------------------------------


def _names(call: Call) -> tuple[str, str]:
    return ("scales", "zero_points") if "scales" in call.args else ("scale", "zero_point")


def _chosen(call: Call) -> Node | None:
    """The operator that chose the scales of a quantization, if one did."""
    found, _ = _source(call[_names(call)[0]])
    return found if isinstance(found, Node) and found.target in (*_ROWS, *_WHOLE) else None


def _rows_of(call: Call) -> Node | None:
    """The same of a dequantization, by the operator that quantized its input."""
    quantize, _ = _source(call["input"])
    if not isinstance(quantize, Node) or quantize.op != "call_function" or len(quantize.args) < 3:
        return None
    if quantize.target not in (ops.quantize_per_token.default, ops.quantize_per_tensor.tensor):
        return None
    found, _ = _source(quantize.args[1])
    return found if isinstance(found, Node) and found.target in (*_ROWS, *_WHOLE) else None


def _choose(emitter: Emitter, call: Call) -> None:
    """The engine finds the scales when it quantizes: they are no values."""
    for index in range(2):
        emitter.define(call, NO_VALUE, index)


def _check_choose(call: Call) -> Refusal | None:
    for user in call.node.users:
        for reader in user.users:
            target = str(reader.target)
            if "quantize_per_token" not in target and "quantize_per_tensor" not in target:
                return no(
                    "its scales are read by other operators than quantize and dequantize", "they were not"
                )
    if call.node.target in _WHOLE and (call["quant_min"], call["quant_max"]) != (-128, 127):
        return no("its integers are not from -128 to 127", "they were")
    if call["dtype"] != torch.int8:
        return no("it chooses scales of other integers than int8", "they were of int8")
    return None


def _check_run_time(call: Call, chosen: Node) -> Refusal | None:
    if chosen.args[0] is not call["input"]:
        return no("its scales are those of another tensor", "they were chosen of what it quantizes")
    if (call["quant_min"], call["quant_max"], call["dtype"]) != (-128, 127, torch.int8):
        return no("its integers are not those of int8", "they were")
    if call.tensor("input").dim() == 0:
        return no("it quantizes a single number", "its input had dimensions")
    for user in call.node.users:
        if "dequantize" not in str(user.target):
            return no("its integers are read by other operators than dequantize", "they were not")
    return None


def _quantize_at_run_time(emitter: Emitter, call: Call) -> None:
    value, dims = emitter.value(call["input"]), emitter.dims(emitter.value(call["input"]))
    chosen = _chosen(call)
    assert chosen is not None
    if chosen.target in _WHOLE:
        count: Any = math.prod(dims)
        dims = (1, count)
        value = emitter.reshaped(value, dims)
    made = emitter.temporary(torch.int8, dims)
    emitter.graph.values[made].quantization = Quantization(QuantizationKind.PER_ROW)
    emitter.add(Op.Quantize, [value], [made])
    emitter.define(call, made)


# ---- samples -----------------------------------------------------------------------------------------------


def _quantize_samples() -> Iterator[tuple[Any, ...]]:
    x = torch.tensor([[-1.0, -0.25, 0.0, 0.1], [0.125, 0.375, 3.0, 100.0]])
    yield x, 0.25, 3, -128, 127, torch.int8
    yield x, 0.1, 128, 0, 255, torch.uint8
    yield x, 0.25, 0, -7, 7, torch.int8


def _dequantize_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.tensor([[-128, -1, 0], [1, 100, 127]], dtype=torch.int8), 0.25, 3, -128, 127, torch.int8
    yield torch.tensor([0, 1, 128, 255], dtype=torch.uint8), 0.1, 128, 0, 255, torch.uint8


_OPERANDS = {"scale": _ANY, "zero_point": _ANY, "scales": _ANY, "zero_points": _ANY}

ENTRIES = [
    Entry(
        (ops.quantize_per_tensor.default,),
        _quantize,
        _check_quantize,
        operands={**_OPERANDS, "->": _BYTES},
        samples=_quantize_samples,
    ),
    Entry(
        (ops.quantize_per_tensor.tensor, ops.quantize_per_token.default),
        _quantize,
        _check_quantize,
        operands={**_OPERANDS, "->": _BYTES},
    ),
    Entry(
        (ops.dequantize_per_tensor.default,),
        _dequantize,
        _check_dequantize,
        operands={**_OPERANDS, "input": (*_BYTES, torch.int32)},
        samples=_dequantize_samples,
    ),
    Entry(
        (ops.dequantize_per_tensor.tensor, ops.dequantize_per_token.default),
        _dequantize,
        _check_dequantize,
        operands={**_OPERANDS, "input": (*_BYTES, torch.int32)},
    ),
    Entry(
        (ops.dequantize_per_channel.default, ops.dequantize_per_channel_group.default),
        _constant,
        _check_constant,
        operands={**_OPERANDS, "input": (*_BYTES, torch.int32)},
    ),
    Entry((*_ROWS, *_WHOLE), _choose, _check_choose, operands={"->": _ANY}),
]
