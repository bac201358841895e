"""Copies that change type or dim order."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.edge.dim_order_ops import CLONE, TO_COPY
from workbench.ops.entry import ALL, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

_CHANNELS_LAST = [0, 2, 3, 1]


def _copy(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    for target in ALL:
        # Negative numbers have no defined value in unsigned types, so there are none.
        yield Sample((make(3, 33, low=0.0),), {"dtype": target, "dim_order": [0, 1]}, f"to {target}")
    yield Sample((make(2, 3, 4, 5),), {"dim_order": _CHANNELS_LAST}, "to channels-last")
    yield Sample((make(2, 3, 4, 5, channels_last=True),), {"dim_order": [0, 1, 2, 3]}, "to contiguous")


def _clone(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 33),), {"dim_order": [0, 1]}, "contiguous")
    yield Sample((make(2, 3, 4, 5),), {"dim_order": _CHANNELS_LAST}, "to channels-last")
    yield Sample((make(2, 3, 4, 5, channels_last=True),), {"dim_order": _CHANNELS_LAST}, "channels-last")


ENTRIES = [
    OperatorEntry(TO_COPY, "dim_order", "(*s) -> (*s)", ALL, _copy, exact=True),
    OperatorEntry(CLONE, "dim_order", "(*s) -> (*s)", ALL, _clone, exact=True),
]
