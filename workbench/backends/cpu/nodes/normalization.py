"""Softmax, and the normalizations by mean and variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Emit, Entry, Refusal, no
from workbench.backends.cpu.graph import Fn, Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _softmax(log: bool) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        value, output = emitter.value(call["self"]), emitter.result(call)
        given = {"log": True} if log else {}
        if emitter.dims(value):
            emitter.add(Op.Softmax, [value], [output], axis=call.dim(), **given)
            return
        made = emitter.temporary(call.result().dtype, [1])
        emitter.add(Op.Softmax, [emitter.reshaped(value, [1])], [made], axis=0, **given)
        emitter.reshaped(made, [], output)

    return emit


def _check_softmax(call: Call) -> Refusal | None:
    if call.args.get("half_to_float"):
        return no("it turns float16 into float32 on the way", "half_to_float were False")
    return None


def _layer_norm(emitter: Emitter, call: Call) -> None:
    values = [emitter.value(call[name]) for name in ("input", "weight", "bias")]
    emitter.add(
        Op.LayerNorm, values, [emitter.result(call)], axis=len(call["normalized_shape"]), eps=call["eps"]
    )


def _rms_norm(emitter: Emitter, call: Call) -> None:
    values = [emitter.value(call[name]) for name in ("input", "weight")]
    epsilon = call["eps"]
    if epsilon is None:
        epsilon = torch.finfo(call.tensor("input").dtype).eps
    emitter.add(Op.RmsNorm, values, [emitter.result(call)], axis=len(call["normalized_shape"]), eps=epsilon)


def _group_norm(emitter: Emitter, call: Call) -> None:
    names = ("input", "weight", "bias")
    value, weight, bias = (emitter.value(call[name]) for name in names)
    output, rank = emitter.result(call), len(emitter.dims(value))
    groups = call["group"] if "group" in call.args else call["num_groups"]
    to_last = (0, *range(2, rank), 1)
    dims = emitter.dims(output)
    made = emitter.temporary(call.result().dtype, [dims[d] for d in to_last])
    given = emitter.transposed(value, to_last)
    emitter.add(Op.GroupNorm, [given, weight, bias], [made], groups=groups, eps=call["eps"])
    emitter.transposed(made, (0, rank - 1, *range(1, rank - 1)), output)


def _check_group(call: Call) -> Refusal | None:
    if call.tensor("input").dim() < 2:
        return no("its input has no channels", "it had two dimensions or more")
    return None


def _batch_norm(emitter: Emitter, call: Call) -> None:
    """What no convolution took: `x scale + shift` for each channel."""
    value, output = emitter.value(call["input"]), emitter.result(call)
    mean, variance = (emitter.tensor(call[name]).double() for name in ("running_mean", "running_var"))
    scale = (variance + call["eps"]).rsqrt()
    if call["weight"] is not None:
        scale = scale * emitter.tensor(call["weight"]).double()
    shift = -mean * scale
    if call["bias"] is not None:
        shift = shift + emitter.tensor(call["bias"]).double()
    dtype, dims = call.result().dtype, emitter.dims(output)
    sizes = [len(scale), *[1] * (len(dims) - 2)]
    factors = [emitter.constant(item.to(torch.float32).to(dtype).reshape(sizes)) for item in (scale, shift)]
    product = emitter.pointwise(Fn.Mul, [value, factors[0]], emitter.temporary(dtype, dims))
    emitter.pointwise(Fn.Add, [product, factors[1]], output)


def _check_batch(call: Call) -> Refusal | None:
    names = ("weight", "bias", "running_mean", "running_var")
    if not all(call[name] is None or call.constant(name) for name in names):
        return no("its statistics or factors are computed while the program runs", "they were constants")
    return None


def _layer_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 17), [17], torch.randn(17), torch.randn(17), 1e-5
    yield torch.randn(4, 3, 5), [3, 5], None, None, 1e-3
    yield torch.randn(1, 384), [384], torch.randn(384), None, 1e-12


def _rms_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 17), [17], torch.randn(17), 1e-5
    yield torch.randn(4, 64), [64], None, None


def _group_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 6, 4, 5), 3, torch.randn(6), torch.randn(6), 1e-5
    yield torch.randn(2, 8, 7), 2, None, None, 1e-3


ENTRIES = [
    Entry((aten._softmax.default,), _softmax(False), _check_softmax),
    Entry((aten._log_softmax.default,), _softmax(True), _check_softmax),
    Entry((aten.native_layer_norm.default,), _layer_norm, results=(0,), samples=_layer_samples),
    Entry((aten.layer_norm.default,), _layer_norm, keep=True, samples=_layer_samples),
    Entry((aten.rms_norm.default,), _rms_norm, keep=True, samples=_rms_samples),
    Entry((aten.group_norm.default,), _group_norm, _check_group, keep=True, samples=_group_samples),
    Entry((aten.native_group_norm.default,), _group_norm, _check_group, results=(0,)),
    Entry((aten._native_batch_norm_legit_no_training.default,), _batch_norm, _check_batch, results=(0,)),
]
