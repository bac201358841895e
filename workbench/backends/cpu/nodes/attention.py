"""Scaled dot-product attention, whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter, same_sizes
from workbench.backends.cpu.entry import BOOL, FLOATS, Call, Entry, Refusal, no
from workbench.backends.cpu.graph import Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _attention(emitter: Emitter, call: Call) -> None:
    inputs = [emitter.value(call[name]) for name in ("query", "key", "value", "attn_mask")]
    scale = call["scale"]
    if scale is None:
        scale = 1 / math.sqrt(call.tensor("query").shape[-1])
    given: dict[str, Any] = {"scale": float(scale)}
    if call["is_causal"]:
        given["causal"] = True
    emitter.add(Op.Attention, inputs, [emitter.result(call)], **given)


def _check(call: Call) -> Refusal | None:
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    if call["dropout_p"] != 0:
        return no("it drops elements at random", "dropout_p were 0")
    if not query.dim() == key.dim() == value.dim() or query.dim() < 3:
        return no(
            "query, key and value have different ranks, or no batch", "all had three dimensions or more"
        )
    if type(query.shape[-1]) is not int:
        return no("the size of a head is dynamic", "it were static")
    batches = [item.shape[: -3 if query.dim() > 3 else -2] for item in (query, key, value)]
    if not all(same_sizes(batches[0], other) for other in batches[1:]):
        return no("query, key and value have different batch sizes", "they were equal")
    return _check_heads(call, query, key, value)


def _check_heads(call: Call, query: Any, key: Any, value: Any) -> Refusal | None:
    if query.dim() == 3:
        return None
    heads = [item.shape[-3] for item in (query, key, value)]
    if not all(type(count) is int for count in heads):
        return no("the number of heads is dynamic", "it were static")
    if heads[1] != heads[2] or (heads[0] != heads[1] and not call["enable_gqa"]):
        return no(f"query, key and value have {heads} heads", "they were equal, or enable_gqa were set")
    if heads[1] == 0 or heads[0] % heads[1]:
        return no(f"{heads[0]} heads don't share {heads[1]}", "one were a multiple of the other")
    return None


def _samples() -> Iterator[tuple[Any, ...]]:
    def heads(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes)

    yield heads(1, 3, 17, 64), heads(1, 3, 17, 64), heads(1, 3, 17, 64)
    yield heads(2, 2, 5, 8), heads(2, 2, 9, 8), heads(2, 2, 9, 12), torch.randn(5, 9)
    yield heads(2, 2, 5, 8), heads(2, 2, 9, 8), heads(2, 2, 9, 8), torch.rand(2, 1, 5, 9) > 0.3
    yield heads(1, 2, 7, 16), heads(1, 2, 7, 16), heads(1, 2, 7, 16), None, 0.0, True
    yield heads(3, 6, 8), heads(3, 7, 8), heads(3, 7, 8)


ENTRIES = [
    Entry(
        (aten.scaled_dot_product_attention.default,),
        _attention,
        _check,
        operands={"attn_mask": (*FLOATS, *BOOL)},
        keep=True,
        samples=_samples,
    )
]
