"""The operators that the backend takes, a family a file; each file ends with its `ENTRIES`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from torch._ops import OpOverload

from workbench.backends.cpu.entry import Entry
from workbench.backends.cpu.nodes import (
    attention,
    cast,
    compare,
    convolution,
    dense,
    elementwise,
    index,
    joining,
    normalization,
    padding,
    pooling,
    quantize,
    recurrent,
    reduction,
    upsample,
    view,
)
from workbench.errors import LoweringError

__all__ = ["FAMILIES", "entries"]

FAMILIES = (
    dense,
    convolution,
    pooling,
    elementwise,
    compare,
    reduction,
    normalization,
    attention,
    recurrent,
    view,
    joining,
    padding,
    upsample,
    index,
    cast,
    quantize,
)


@cache
def entries() -> Mapping[OpOverload, Entry]:
    """All entries, by operator.

    Raises:
        LoweringError: An operator has two entries.
    """
    found: dict[OpOverload, Entry] = {}
    for family in FAMILIES:
        for entry in family.ENTRIES:
            for target in entry.targets:
                if target in found:
                    raise LoweringError(f"{target} has two entries in the CPU backend")
                found[target] = entry
    return MappingProxyType(found)
