"""The families of patterns that are quantized; one file each.

A new one: a file with a dictionary `FAMILY` from operators to a function, and its name in the list below.
"""

from __future__ import annotations

from typing import Any

from workbench.quantization.patterns import (
    binary,
    convolution,
    embedding,
    floats,
    linear,
    pointwise,
    pooling,
    shared,
)
from workbench.quantization.patterns.base import Context, Family, Outcome

__all__ = ["BINARY", "FAMILIES", "LAYERS", "TAKES_ALONG", "Context", "Outcome"]

FAMILIES: dict[Any, Family] = {
    operator: family
    for module in (linear, convolution, binary, pointwise, pooling, shared, embedding, floats)
    for operator, family in module.FAMILY.items()
}

# Operators of two values; operators that want integers by themselves, and those that only take them along
# where a reader wants them.
BINARY = frozenset(binary.FAMILY)
LAYERS = frozenset({*linear.FAMILY, *convolution.FAMILY})
TAKES_ALONG = frozenset({*binary.FAMILY, *pointwise.FAMILY, *pooling.FAMILY, *shared.FAMILY})
