"""All operators that the workbench knows, and the kernels that its runtime has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from torch._ops import OpOverload

from workbench.errors import LoweringError
from workbench.ops import (
    binary,
    cast,
    compare,
    convolution,
    fill,
    index,
    matmul,
    normalization,
    pad,
    pooling,
    quantized,
    reduction,
    scan,
    softmax,
    ternary,
    unary,
    upsample,
    view,
)
from workbench.ops.entry import OperatorEntry

__all__ = ["FAMILIES", "entries", "entry_of", "runtime_kernels"]

FAMILIES = (
    unary,
    binary,
    compare,
    ternary,
    reduction,
    matmul,
    convolution,
    pooling,
    normalization,
    softmax,
    view,
    index,
    pad,
    fill,
    scan,
    upsample,
    cast,
    quantized,
)


@cache
def entries() -> Mapping[OpOverload, OperatorEntry]:
    """All entries, by functional operator.

    Raises:
        LoweringError: An operator has two entries.
    """
    found: dict[OpOverload, OperatorEntry] = {}
    for entry in _all():
        if entry.operator in found:
            raise LoweringError(f"{entry.name} has two entries in the operator registry")
        found[entry.operator] = entry
    return MappingProxyType(found)


def entry_of(operator: OpOverload) -> OperatorEntry | None:
    """The entry of an operator, or None."""
    return entries().get(operator)


@cache
def runtime_kernels() -> frozenset[str]:
    """Names of all kernels of our runtime, as in `.pte` files: `aten::add.out`.

    Read from `kernels.txt`, which a test compares with the native module, so that lowering does not need it.
    """
    text = resources.files("workbench.ops").joinpath("kernels.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def _all() -> Iterator[OperatorEntry]:
    for family in FAMILIES:
        yield from family.ENTRIES
