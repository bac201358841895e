"""Rows that indices pick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import FLOATS, INDICES, Call, Entry, Refusal, no
from workbench.backends.cpu.graph import Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _embedding(emitter: Emitter, call: Call) -> None:
    values = [emitter.value(call["weight"]), emitter.value(call["indices"])]
    emitter.add(Op.Embedding, values, [emitter.result(call)])


def _index_select(emitter: Emitter, call: Call) -> None:
    values = [emitter.value(call["self"]), emitter.value(call["index"])]
    emitter.add(Op.Gather, values, [emitter.result(call)], axis=call.dim())


def _check_select(call: Call) -> Refusal | None:
    if call.tensor("self").dim() == 0 or call.tensor("index").dim() != 1:
        return no("a number has no rows, or its index is no vector", "the index were a vector")
    return None


def _index(emitter: Emitter, call: Call) -> None:
    indices = call["indices"]
    axis = next(i for i, item in enumerate(indices) if item is not None)
    values = [emitter.value(call["self"]), emitter.value(indices[axis])]
    emitter.add(Op.Gather, values, [emitter.result(call)], axis=axis)


def _check_index(call: Call) -> Refusal | None:
    given = [item for item in call["indices"] if item is not None]
    if len(given) != 1:
        return no(f"it indexes {len(given)} dimensions at once", "it indexed one")
    index = given[0].meta["val"]
    if index.dtype not in INDICES or index.dim() != 1:
        return no("its index is no vector of int64 or int32", "it were")
    return None


def _embedding_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(10, 17), torch.randint(0, 10, (2, 5))
    yield torch.randn(4, 64), torch.randint(0, 4, (7,), dtype=torch.int32)
    yield torch.randn(4, 3), torch.tensor(2)


def _select_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(5, 3, 4), 0, torch.tensor([4, 0, 0])
    yield torch.randn(5, 3, 4), 1, torch.tensor([2])
    yield torch.randn(5, 3, 4), -1, torch.tensor([1, 3, 2, 2, 0])


def _index_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(5, 3, 4), [torch.tensor([4, 0, -1])]
    yield torch.randn(5, 3, 4), [None, torch.tensor([2, -3])]


ENTRIES = [
    Entry((aten.embedding.default,), _embedding, operands={"indices": INDICES}, samples=_embedding_samples),
    Entry(
        (aten.index_select.default,),
        _index_select,
        _check_select,
        operands={"index": INDICES},
        samples=_select_samples,
    ),
    Entry(
        (aten.index.Tensor,),
        _index,
        _check_index,
        operands={"indices": (*FLOATS, *INDICES, torch.bool)},
        samples=_index_samples,
    ),
]
