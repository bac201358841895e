"""Matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Entry, Refusal, no
from workbench.backends.cpu.graph import NO_VALUE, Fn, Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _right(emitter: Emitter, node: Any) -> tuple[int, bool]:
    """The right operand, and whether it stands transposed: a constant is taken as it is stored."""
    integers = emitter.integers(node)
    if integers is not None:
        if (
            integers.tensor.dim() == 2
            and not integers.tensor.is_contiguous()
            and integers.channels is not None
        ):
            return emitter.numbers(integers.moved(lambda x: x.mT, 1 - integers.channels), node.name), True
        return emitter.value(node), False
    if emitter.is_constant(node):
        tensor = emitter.tensor(node)
        if tensor.dim() >= 2 and not tensor.is_contiguous() and tensor.mT.is_contiguous():
            return emitter.constant(tensor.mT, node.name), True
    return emitter.value(node), False


def _product(emitter: Emitter, left: int, right: tuple[int, bool], bias: int, output: int) -> None:
    value, transposed = right
    given = {"transpose_b": True} if transposed else {}
    emitter.add(Op.MatMul, [left, value, bias], [output], **given)


def _linear(emitter: Emitter, call: Call) -> None:
    left, output = emitter.value(call["input"]), emitter.result(call)
    weight, bias = emitter.value(call["weight"]), emitter.value(call["bias"])
    dims = emitter.dims(left)
    if len(dims) > 1:
        _product(emitter, left, (weight, True), bias, output)
        return
    made = emitter.temporary(call.result().dtype, [1, *emitter.dims(output)])
    _product(emitter, emitter.reshaped(left, [1, *dims]), (weight, True), bias, made)
    emitter.reshaped(made, emitter.dims(output), output)


def _check_linear(call: Call) -> Refusal | None:
    if call.tensor("input").dim() < 1 or call.tensor("weight").dim() != 2:
        return no("its input is a number or its weight no matrix", "the weight were a matrix")
    return None


def _matmul(emitter: Emitter, call: Call) -> None:
    first, second = list(call.args.values())[:2]
    _product(emitter, emitter.value(first), _right(emitter, second), NO_VALUE, emitter.result(call))


def _check_matmul(call: Call) -> Refusal | None:
    if min(call.tensor("self").dim(), call.tensor("other").dim()) < 2:
        return no("an operand is a vector", "both operands had two dimensions or more")
    return None


def _addmm(emitter: Emitter, call: Call) -> None:
    names = [name for name in call.args if name not in ("self", "beta", "alpha")]
    left, right = emitter.value(call[names[0]]), _right(emitter, call[names[1]])
    output, added = emitter.result(call), emitter.value(call["self"])
    beta, alpha = call["beta"], call["alpha"]
    columns = emitter.dims(output)[-1:]
    if beta == 1 and alpha == 1 and len(emitter.dims(added)) == 1 and emitter.dims(added) == columns:
        _product(emitter, left, right, added, output)
        return
    dtype, dims = call.result().dtype, emitter.dims(output)
    product = emitter.temporary(dtype, dims)
    _product(emitter, left, right, NO_VALUE, product)
    if alpha != 1:
        product = emitter.pointwise(Fn.MulScalar, [product], emitter.temporary(dtype, dims), a=float(alpha))
    emitter.pointwise(Fn.AddScaled, [product, added], output, a=float(beta))


def _check_addmm(call: Call) -> Refusal | None:
    if not all(isinstance(call[name], (int, float)) for name in ("beta", "alpha")):
        return no("beta or alpha is not known before the program runs", "they were numbers")
    if call["beta"] == 0:
        return no("beta is 0, which leaves even NaN out of the sum", "beta were not 0")
    return None


def _linear_samples() -> Iterator[tuple[Any, ...]]:
    for rows, k, n in (((1,), 8, 5), ((3,), 17, 33), ((2, 3), 64, 16), ((), 9, 4), ((4, 1, 7), 5, 3)):
        yield torch.randn(*rows, k), torch.randn(n, k) / k, torch.randn(n)
        yield torch.randn(*rows, k), torch.randn(n, k) / k, None


def _matmul_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(3, 4), torch.randn(4, 5)
    yield torch.randn(2, 1, 3, 4), torch.randn(5, 4, 6)
    yield torch.randn(7, 3, 4), torch.randn(4, 2)


def _batch_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    yield torch.randn(5), torch.randn(2, 3, 4), torch.randn(2, 4, 5), {"beta": 0.5, "alpha": 2}


ENTRIES = [
    Entry((aten.linear.default,), _linear, _check_linear, keep=True, samples=_linear_samples),
    Entry((aten.mm.default, aten.bmm.default), _matmul),
    Entry((aten.matmul.default,), _matmul, _check_matmul, keep=True, samples=_matmul_samples),
    Entry(
        (aten.addmm.default, aten.baddbmm.default),
        _addmm,
        _check_addmm,
        samples={aten.baddbmm.default: _batch_samples},
    ),
]
