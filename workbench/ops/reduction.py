"""Operators that reduce dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.ops.entry import ALL, FLOATS, REALS, Make, OperatorEntry, Sample, Samples

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_RULE = "(*s), dims -> (*s without dims), dims kept as 1 with keepdim"


def _over(*dims: Any, **kwargs: Any) -> Samples:
    """Samples over inner, outer, middle, several and all dimensions."""

    def draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
        for dim in dims:
            for keep in (False, True):
                yield Sample((make(3, 4, 33), dim, keep), kwargs, f"dim {dim}, keepdim {keep}")

    return draw


def _all(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for sizes in ((1,), (7,), (3, 4, 33)):
        yield Sample((make(*sizes),), label=f"sizes {list(sizes)}")


_LISTS = ([0], [1], [-1], [0, 2], [0, 1, 2])
_SINGLES = (0, 1, -1)


def _variance(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4, 33), [1]), {"correction": 1, "keepdim": False}, "sample variance")
    yield Sample((make(3, 4, 33), [0, 2]), {"correction": 0, "keepdim": True}, "population variance")


def _row(
    operator: torch._ops.OpOverload, dtypes: tuple[torch.dtype, ...], draw: Samples, *, exact: bool = False
) -> OperatorEntry:
    return OperatorEntry(operator, "reduction", _RULE, dtypes, draw, exact=exact)


ENTRIES = [
    _row(aten.sum.dim_IntList, ALL, _over(*_LISTS)),
    _row(aten.mean.dim, FLOATS, _over(*_LISTS)),
    _row(aten.amax.default, REALS, _over(*_LISTS), exact=True),
    _row(aten.amin.default, REALS, _over(*_LISTS), exact=True),
    _row(aten.any.dim, ALL, _over(*_SINGLES), exact=True),
    _row(aten.any.default, ALL, _all, exact=True),
    _row(aten.argmax.default, REALS, _over(None, *_SINGLES), exact=True),
    _row(aten.argmin.default, REALS, _over(None, *_SINGLES), exact=True),
    _row(aten.max.dim, REALS, _over(*_SINGLES), exact=True),
    _row(aten.min.dim, REALS, _over(*_SINGLES), exact=True),
    _row(aten.max.default, REALS, _all, exact=True),
    _row(aten.min.default, REALS, _all, exact=True),
    _row(aten.prod.default, FLOATS, _all),
    _row(aten.prod.dim_int, FLOATS, _over(*_SINGLES)),
    _row(aten.var.correction, FLOATS, _variance),
]
