"""Comparisons; the result is boolean."""

from __future__ import annotations

import torch

from workbench.ops.binary import pairs, with_number
from workbench.ops.entry import ALL, REALS, OperatorEntry

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_PACKETS = (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)

ENTRIES = [
    *(
        OperatorEntry(
            packet.Tensor, "compare", "(*s), (*t) -> bool broadcast(s, t)", ALL, pairs(-0.5, 0.5), exact=True
        )
        for packet in _PACKETS
    ),
    *(
        OperatorEntry(
            packet.Scalar, "compare", "(*s), number -> bool (*s)", REALS, with_number(0, 1), exact=True
        )
        for packet in _PACKETS
    ),
]
