"""Several tensors, one behind the other."""

from __future__ import annotations

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import ANY, Call, Entry, Refusal, no
from workbench.backends.cpu.graph import Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _parts(call: Call) -> list[torch.fx.Node]:
    """The operands but for empty vectors, which PyTorch lets pass among tensors of any shape."""
    return [item for item in call["tensors"] if tuple(item.meta["val"].shape) != (0,)] or [call["tensors"][0]]


def _cat(emitter: Emitter, call: Call) -> None:
    rank = max(call.result().dim(), 1)
    values = [emitter.value(item) for item in _parts(call)]
    emitter.add(Op.Concat, values, [emitter.result(call)], axis=int(call["dim"]) % rank)


def _check(call: Call) -> Refusal | None:
    types = {item.meta["val"].dtype for item in call["tensors"]}
    if len(types) > 1:
        return no("its operands have different types", "they had one")
    return None


ENTRIES = [Entry((aten.cat.default,), _cat, _check, dtypes=ANY)]
