"""Reductions over dimensions, and the indices of extremes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import ANY, BOOL, FLOATS, Call, Emit, Entry, Refusal, Samples, Size, no
from workbench.backends.cpu.graph import Fn, Op, ReduceFn

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_INT64 = (torch.int64,)


def _dimensions(call: Call) -> list[int]:
    """The dimensions that are reduced; none named means all."""
    rank = call.tensor("self").dim()
    given = call.args.get("dim")
    if given is None or given == []:
        return list(range(rank))
    listed = given if isinstance(given, (tuple, list)) else [given]
    return sorted({int(d) % max(rank, 1) for d in listed}) if rank else []


def _mask(dimensions: Sequence[int]) -> int:
    return sum(1 << d for d in dimensions)


def _reduce(emitter: Emitter, call: Call, fn: int, output: int, *, correction: float | None = None) -> None:
    """Reduce; a number has nothing to reduce but counts as one element."""
    """Reduce; a number has nothing to reduce but counts as one element."""
    truth = fn in (ReduceFn.ANY, ReduceFn.ALL)
    value = emitter.truth(call["self"]) if truth else emitter.value(call["self"])
    dims = emitter.dims(value)
    keep = bool(call.args.get("keepdim", False))
    given: dict[str, Any] = {} if correction is None else {"correction": correction}
    if not dims:
        value, dims, keep = emitter.reshaped(value, [1]), (1,), False
        emitter.add(Op.Reduce, [value], [output], reduce=fn, mask=1, keep=False, **given)
        return
    mask = _mask(_dimensions(call))
    emitter.add(Op.Reduce, [value], [output], reduce=fn, mask=mask, keep=keep, **given)


def _plain(fn: int) -> Emit:
    return lambda emitter, call: _reduce(emitter, call, fn, emitter.result(call))


def _correction(call: Call) -> float:
    given = call.args.get("correction", 1)
    if "unbiased" in call.args:
        return float(bool(call["unbiased"]))
    return 1.0 if given is None else float(given)


def _var(emitter: Emitter, call: Call) -> None:
    _reduce(emitter, call, ReduceFn.VARIANCE, emitter.result(call), correction=_correction(call))


def _std(emitter: Emitter, call: Call) -> None:
    output = emitter.result(call)
    variance = emitter.temporary(call.result().dtype, emitter.dims(output))
    _reduce(emitter, call, ReduceFn.VARIANCE, variance, correction=_correction(call))
    emitter.pointwise(Fn.Sqrt, [variance], output)


def _var_mean(emitter: Emitter, call: Call) -> None:
    used = call.used()
    if 0 in used:
        _reduce(emitter, call, ReduceFn.VARIANCE, emitter.result(call, 0), correction=_correction(call))
    if 1 in used:
        _reduce(emitter, call, ReduceFn.MEAN, emitter.result(call, 1))


def _arg_node(emitter: Emitter, value: int, axis: int, largest: bool, keep: bool, output: int) -> None:
    if not emitter.dims(value):
        value, keep = emitter.reshaped(value, [1]), False
    emitter.add(Op.ArgReduce, [value], [output], axis=axis, largest=largest, keep=keep)


def _arg(largest: bool) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        value, output = emitter.value(call["self"]), emitter.result(call)
        dims = emitter.dims(value)
        if call["dim"] is not None or len(dims) < 2:
            axis = 0 if call["dim"] is None else call.dim()
            _arg_node(emitter, value, axis, largest, bool(call["keepdim"]), output)
            return
        flat = emitter.reshaped(value, [_product(dims)])
        if call["keepdim"]:
            made = emitter.temporary(torch.int64, [1])
            _arg_node(emitter, flat, 0, largest, True, made)
            emitter.reshaped(made, emitter.dims(output), output)
        else:
            _arg_node(emitter, flat, 0, largest, False, output)

    return emit


def _product(dims: Sequence[Size]) -> Size:
    total: Size = 1
    for size in dims:
        total = total * size
    return total


def _extreme(fn: int, largest: bool) -> Emit:
    """Values and indices along a dimension."""

    def emit(emitter: Emitter, call: Call) -> None:
        used = call.used()
        if 0 in used:
            _reduce(emitter, call, fn, emitter.result(call, 0))
        if 1 in used:
            value = emitter.value(call["self"])
            _arg_node(emitter, value, call.dim(), largest, bool(call["keepdim"]), emitter.result(call, 1))

    return emit


def _check_type(call: Call) -> Refusal | None:
    if call.args.get("dtype") not in (None, call.tensor("self").dtype):
        return no(f"its result is {call['dtype']}", "it kept the type of its operand")
    return _check_empty(call)


def _check_empty(call: Call) -> Refusal | None:
    if call.tensor("self").dim() and any(size == 0 for size in call.sizes("self")):
        return no("it reduces an empty tensor", "the tensor had elements")
    return None


def _samples(*options: Any) -> Callable[[], Iterator[tuple[Any, ...]]]:
    def samples() -> Iterator[tuple[Any, ...]]:
        for sizes, dim in (((3, 33), 1), ((2, 3, 4, 5), -3), ((17,), 0)):
            yield torch.randn(sizes), dim, *options

    return samples


def _arg_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(3, 33), 1
    yield torch.randn(2, 3, 4), -2, True
    yield (torch.randn(2, 3, 4),)
    yield (torch.randn(17),)


def _whole() -> Iterator[tuple[Any, ...]]:
    yield (torch.randn(3, 33),)
    yield (torch.randn(()),)


def _truths(targets: Sequence[OpOverload]) -> dict[OpOverload, Samples]:
    def one() -> Iterator[tuple[Any, ...]]:
        yield torch.rand(3, 33) > 0.01, 1
        yield torch.rand(4, 5, 6) > 0.9, -2, True

    def several() -> Iterator[tuple[Any, ...]]:
        yield torch.rand(4, 5, 6) > 0.9, [0, 2]
        yield torch.rand(4, 5) > 0.1, [1], True

    def whole() -> Iterator[tuple[Any, ...]]:
        yield (torch.rand(3, 33) > 0.5,)
        yield (torch.zeros(2, 2) > 0,)

    return dict(zip(targets, (one, several, whole), strict=True))


_SIMPLE = {
    ReduceFn.SUM: (aten.sum.dim_IntList,),
    ReduceFn.MEAN: (aten.mean.dim, aten.mean.default),
    ReduceFn.MAX: (aten.amax.default, aten.max.default),
    ReduceFn.MIN: (aten.amin.default, aten.min.default),
    ReduceFn.PROD: (aten.prod.dim_int, aten.prod.default),
}
_TRUTH = {
    ReduceFn.ANY: (aten.any.dim, aten.any.dims, aten.any.default),
    ReduceFn.ALL: (aten.all.dim, aten.all.dims, aten.all.default),
}

ENTRIES = [
    *(
        Entry(targets, _plain(fn), _check_type, samples={aten.mean.default: _whole})
        for fn, targets in _SIMPLE.items()
    ),
    *(
        Entry(targets, _plain(fn), _check_empty, dtypes=ANY, operands={"->": BOOL}, samples=_truths(targets))
        for fn, targets in _TRUTH.items()
    ),
    Entry((aten.var.correction,), _var, _check_empty),
    Entry((aten.std.correction,), _std, _check_empty, samples=_samples()),
    Entry((aten.var_mean.correction,), _var_mean, _check_empty, samples=_samples()),
    Entry((aten.argmax.default,), _arg(True), _check_empty, operands={"->": _INT64}, samples=_arg_samples),
    Entry((aten.argmin.default,), _arg(False), _check_empty, operands={"->": _INT64}, samples=_arg_samples),
    Entry(
        (aten.max.dim,),
        _extreme(ReduceFn.MAX, True),
        _check_empty,
        operands={"->": (*FLOATS, *_INT64)},
        samples=_samples(True),
    ),
    Entry(
        (aten.min.dim,),
        _extreme(ReduceFn.MIN, False),
        _check_empty,
        operands={"->": (*FLOATS, *_INT64)},
        samples=_samples(),
    ),
]
