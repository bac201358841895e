"""Comparisons, logic on booleans, and the choice between two tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import OpOverload

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import ANY, BOOL, FLOATS, INDICES, Call, Emit, Entry
from workbench.backends.cpu.graph import Fn

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _compare(fn: int) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        dtype = call.tensor("self").dtype
        operands = [emitter.value(call[name], dtype) for name in ("self", "other")]
        emitter.pointwise(fn, operands, emitter.result(call))

    return emit


def _logic(fn: int) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        operands = [emitter.truth(item) for item in call.args.values()]
        emitter.pointwise(fn, operands, emitter.result(call))

    return emit


def _is_nan(emitter: Emitter, call: Call) -> None:
    emitter.pointwise(Fn.IsNan, [emitter.value(call["self"])], emitter.result(call))


def _is_infinite(emitter: Emitter, call: Call) -> None:
    value = emitter.value(call["self"])
    dtype = call.tensor("self").dtype
    size = emitter.pointwise(Fn.Abs, [value], emitter.temporary(dtype, emitter.dims(value)))
    emitter.pointwise(Fn.Eq, [size, emitter.value(math.inf, dtype)], emitter.result(call))


def _where(emitter: Emitter, call: Call) -> None:
    dtype = call.result().dtype
    operands = [emitter.value(call["condition"])]
    operands += [emitter.value(call[name], dtype) for name in ("self", "other")]
    emitter.pointwise(Fn.Where, operands, emitter.result(call))


def _masked_fill(emitter: Emitter, call: Call) -> None:
    dtype = call.result().dtype
    operands = [emitter.value(call["mask"]), emitter.value(call["value"], dtype), emitter.value(call["self"])]
    emitter.pointwise(Fn.Where, operands, emitter.result(call))


def _where_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.rand(3, 33) > 0.5, torch.randn(3, 33), torch.randn(3, 33)
    yield torch.rand(4, 1) > 0.5, torch.randn(1, 7), torch.randn(())
    yield torch.rand(2, 3, 1, 5) > 0.5, torch.randn(2, 3, 4, 5), torch.randn(4, 1)


def _masked_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(3, 33), torch.rand(3, 33) > 0.5, -1.5
    yield torch.randn(2, 4, 5), torch.rand(4, 1) > 0.5, float("-inf")


def _bool_samples(fn: int) -> Any:
    count = 1 if fn == Fn.LogicalNot else 2

    def samples() -> Iterator[tuple[Any, ...]]:
        for sizes in ((), (17,), (3, 33)):
            yield tuple(torch.rand(sizes) > 0.5 for _ in range(count))
        if count == 2:
            yield torch.rand(3, 1) > 0.5, torch.rand(5) > 0.5

    return samples


_COMPARE: dict[str, int] = {
    "eq": Fn.Eq, "ne": Fn.Ne, "lt": Fn.Lt, "le": Fn.Le, "gt": Fn.Gt, "ge": Fn.Ge,
}  # fmt: skip
_LOGIC: dict[OpOverload, int] = {
    aten.logical_and.default: Fn.LogicalAnd,
    aten.logical_or.default: Fn.LogicalOr,
    aten.logical_xor.default: Fn.LogicalXor,
    aten.logical_not.default: Fn.LogicalNot,
}
# On booleans these are the same.
_BITS: dict[OpOverload, int] = {
    aten.bitwise_and.Tensor: Fn.LogicalAnd,
    aten.bitwise_or.Tensor: Fn.LogicalOr,
    aten.bitwise_xor.Tensor: Fn.LogicalXor,
    aten.bitwise_not.default: Fn.LogicalNot,
}

ENTRIES = [
    *(
        Entry(
            (getattr(aten, name).Tensor, getattr(aten, name).Scalar),
            _compare(fn),
            dtypes=(*FLOATS, *INDICES),
            operands={"->": BOOL},
        )
        for name, fn in _COMPARE.items()
    ),
    *(
        Entry((target,), _logic(fn), dtypes=ANY, operands={"->": BOOL}, samples=_bool_samples(fn))
        for target, fn in _LOGIC.items()
    ),
    *(Entry((target,), _logic(fn), dtypes=BOOL, samples=_bool_samples(fn)) for target, fn in _BITS.items()),
    Entry((aten.isnan.default,), _is_nan, operands={"->": BOOL}),
    Entry((aten.isinf.default,), _is_infinite, operands={"->": BOOL}),
    Entry((aten.where.self,), _where, dtypes=ANY, operands={"condition": BOOL}, samples=_where_samples),
    Entry((aten.masked_fill.Scalar,), _masked_fill, operands={"mask": BOOL}, samples=_masked_samples),
]
