"""Borders round a tensor; negative ones cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import ANY, Call, Emit, Entry, Refusal, no
from workbench.backends.cpu.graph import Op, PadMode

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _pad(mode: int) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        value, output = emitter.value(call["self"]), emitter.result(call)
        rank, listed = len(emitter.dims(value)), call["pad" if "pad" in call.args else "padding"]
        before, after = [0] * rank, [0] * rank
        for position in range(len(listed) // 2):
            before[rank - 1 - position] = int(listed[2 * position])
            after[rank - 1 - position] = int(listed[2 * position + 1])
        given: dict[str, Any] = {"before": tuple(before), "after": tuple(after)}
        if mode != PadMode.CONSTANT:
            given["pad_mode"] = mode
        elif call["value"]:
            given["fill"] = float(call["value"])
        emitter.add(Op.Pad, [value], [output], **given)

    return emit


def _check(call: Call) -> Refusal | None:
    listed = call["pad" if "pad" in call.args else "padding"]
    if not all(type(count) is int for count in listed):
        return no("how much it pads is computed", "the padding were numbers")
    if not isinstance(call.args.get("value", 0), (int, float)):
        return no("what it pads with is computed", "the value were a number")
    return None


def _samples(*pads: list[int]) -> Any:
    def samples() -> Iterator[tuple[Any, ...]]:
        for listed in pads:
            yield torch.randn(2, 3, 6, 7), listed

    return samples


_REFLECT = (aten.reflection_pad1d.default, aten.reflection_pad2d.default)
_REPLICATE = (aten.replication_pad1d.default, aten.replication_pad2d.default)

ENTRIES = [
    Entry((aten.constant_pad_nd.default,), _pad(PadMode.CONSTANT), _check, dtypes=ANY),
    Entry(_REFLECT, _pad(PadMode.REFLECT), _check, keep=True),
    Entry(_REPLICATE, _pad(PadMode.REPLICATE), _check, keep=True),
]
