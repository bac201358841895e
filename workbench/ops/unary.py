"""Operators on each element of one tensor."""

from __future__ import annotations

import torch

from workbench.ops.entry import ALL, FLOATS, INTEGERS, REALS, OperatorEntry, each_size

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_SAME = "(*s) -> (*s)"


def _row(
    operator: torch._ops.OpOverload,
    dtypes: tuple[torch.dtype, ...],
    low: float = -2.0,
    high: float = 2.0,
    *tail: object,
    exact: bool = False,
    **kwargs: object,
) -> OperatorEntry:
    return OperatorEntry(operator, "unary", _SAME, dtypes, each_size(low, high, *tail, **kwargs), exact=exact)


_MATH = (*FLOATS, torch.int64, torch.int32)

ENTRIES = [
    _row(aten.abs.default, REALS, exact=True),
    _row(aten.acos.default, _MATH, -1, 1),
    _row(aten.acosh.default, _MATH, 1, 4),
    _row(aten.asin.default, _MATH, -1, 1),
    _row(aten.asinh.default, _MATH),
    _row(aten.atan.default, _MATH),
    _row(aten.atanh.default, _MATH, -0.9, 0.9),
    _row(aten.bitwise_not.default, (*INTEGERS, torch.bool), exact=True),
    _row(aten.ceil.default, REALS, exact=True),
    _row(aten.cos.default, _MATH),
    _row(aten.cosh.default, _MATH),
    _row(aten.elu.default, FLOATS),
    _row(aten.erf.default, _MATH),
    _row(aten.exp.default, _MATH),
    _row(aten.expm1.default, _MATH),
    _row(aten.floor.default, REALS, exact=True),
    _row(aten.gelu.default, FLOATS),
    _row(aten.hardtanh.default, FLOATS, -2.0, 2.0, -1.0, 1.0, exact=True),
    _row(aten.isinf.default, ALL, exact=True),
    _row(aten.isnan.default, ALL, exact=True),
    _row(aten.leaky_relu.default, FLOATS, -2.0, 2.0, 0.1),
    _row(aten.log.default, _MATH, 0.1, 4),
    _row(aten.log10.default, _MATH, 0.1, 4),
    _row(aten.log1p.default, _MATH, -0.5, 4),
    _row(aten.log2.default, _MATH, 0.1, 4),
    _row(aten.logical_not.default, ALL, exact=True),
    _row(aten.logit.default, FLOATS, 0.05, 0.95, 0.01),
    _row(aten.neg.default, REALS, exact=True),
    _row(aten.reciprocal.default, _MATH, 0.5, 4),
    _row(aten.relu.default, REALS, exact=True),
    _row(aten.round.default, REALS, exact=True),
    _row(aten.rsqrt.default, _MATH, 0.1, 4),
    _row(aten.sigmoid.default, _MATH),
    _row(aten.sign.default, ALL, exact=True),
    _row(aten.sin.default, _MATH),
    _row(aten.sinh.default, _MATH),
    _row(aten.sqrt.default, _MATH, 0, 4),
    _row(aten.tan.default, _MATH, -1, 1),
    _row(aten.tanh.default, _MATH),
    _row(aten.trunc.default, REALS, exact=True),
]
