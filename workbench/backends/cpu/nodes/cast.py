"""Other element types and other orders in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import ANY, Call, Entry
from workbench.backends.cpu.graph import Op
from workbench.edge.dim_order_ops import TO_COPY

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _cast(emitter: Emitter, call: Call) -> None:
    """The order in memory is no matter of the graph: values are in the source graph's order of dimensions."""
    if call.result().dtype == call.tensor("self").dtype:
        emitter.define(call, emitter.value(call["self"]))
    else:
        emitter.add(Op.Convert, [emitter.value(call["self"])], [emitter.result(call)])


def _samples() -> Iterator[tuple[Any, ...]]:
    for dtype in (torch.float16, torch.int32, torch.int64, torch.bool):
        yield torch.tensor([[-2.5, -1.0, 0.0], [0.5, 1.5, 100.25]]), {"dtype": dtype}
    yield torch.tensor([3, 0, -7]), {"dtype": torch.float32}
    yield torch.tensor([True, False]), {"dtype": torch.float32}


ENTRIES = [Entry((aten._to_copy.default, TO_COPY), _cast, dtypes=ANY, samples=_samples)]
