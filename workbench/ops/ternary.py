"""Operators on three operands: selection, clamping, masked filling."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import ALL, REALS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _where(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    mask = {"dtype": torch.bool}
    yield Sample((make(3, 33, **mask), make(3, 33), make(3, 33)), label="equal sizes")
    yield Sample((make(3, 1, **mask), make(33), make(1, 33)), label="broadcast")
    yield Sample((make(3, 33, **mask), make(), make(3, 33)), label="scalar operand")


def _clamp(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 33), -1, 1), label="both bounds")
    yield Sample((make(7), None, 1), label="upper bound")
    yield Sample((make(7), 0, None), label="lower bound")
    yield Sample((make(2, 3, 4, 5, channels_last=True), -1, 1), label="channels-last")


def _clamp_tensor(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 33), make(33, high=0.0), make(3, 1, low=0.0)), label="broadcast bounds")


def _masked_fill(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 33), make(3, 33, dtype=torch.bool), 1), label="equal sizes")
    yield Sample((make(3, 33), make(33, dtype=torch.bool), 0), label="broadcast mask")


ENTRIES = [
    OperatorEntry(
        aten.where.self, "ternary", "bool (*m), (*s), (*t) -> broadcast(m, s, t)", ALL, _where, exact=True
    ),
    OperatorEntry(aten.clamp.default, "ternary", "(*s), number?, number? -> (*s)", REALS, _clamp, exact=True),
    OperatorEntry(
        aten.clamp.Tensor, "ternary", "(*s), (*l)?, (*h)? -> broadcast", REALS, _clamp_tensor, exact=True
    ),
    OperatorEntry(
        aten.masked_fill.Scalar, "ternary", "(*s), bool (*m), number -> (*s)", ALL, _masked_fill, exact=True
    ),
]
