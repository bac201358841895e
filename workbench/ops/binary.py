"""Operators on the elements of two tensors (broadcast against each other), or of a tensor and a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.ops.entry import ALL, FLOATS, INTEGERS, REALS, Make, OperatorEntry, Sample, Samples

__all__ = ["ENTRIES", "pairs", "with_number"]

aten = torch.ops.aten
_BROADCAST = "(*s), (*t) -> broadcast(s, t)"
_SIZES = (
    ((), ()),
    ((7,), (7,)),
    ((0,), (0,)),
    ((3, 33), (3, 33)),
    ((3, 33), (33,)),
    ((3, 1), (1, 5)),
    ((2, 3, 4), ()),
    ((4, 1, 6), (5, 1)),
)


def pairs(low: float = -2.0, high: float = 2.0, *, low2: float | None = None, **kwargs: Any) -> Samples:
    """Samples of two tensors: equal, broadcast, scalar, empty, channels-last."""
    least = low if low2 is None else low2

    def draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
        for first, second in _SIZES:
            args = make(*first, low=low, high=high), make(*second, low=least, high=high)
            yield Sample(args, kwargs, f"{list(first)} and {list(second)}")
        image = {"channels_last": True}
        args = make(2, 3, 4, 5, low=low, high=high, **image), make(2, 3, 4, 5, low=least, high=high, **image)
        yield Sample(args, kwargs, "channels-last")

    return draw


def with_number(*numbers: Any, low: float = -2.0, high: float = 2.0, **kwargs: Any) -> Samples:
    """Samples of a tensor and a number."""

    def draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
        for number in numbers:
            yield Sample((make(3, 33, low=low, high=high), number), kwargs, f"number {number}")

    return draw


def _pair(
    operator: torch._ops.OpOverload,
    dtypes: tuple[torch.dtype, ...],
    draw: Samples | None = None,
    *,
    exact: bool = False,
) -> OperatorEntry:
    return OperatorEntry(operator, "binary", _BROADCAST, dtypes, draw or pairs(), exact=exact)


def _number(
    operator: torch._ops.OpOverload, dtypes: tuple[torch.dtype, ...], draw: Samples, *, exact: bool = False
) -> OperatorEntry:
    return OperatorEntry(operator, "binary", "(*s), number -> (*s)", dtypes, draw, exact=exact)


_BITS = (*INTEGERS, torch.bool)
_POSITIVE = pairs(0.5, 4)

ENTRIES = [
    _pair(aten.add.Tensor, ALL),
    _number(aten.add.Scalar, REALS, with_number(2)),
    _pair(aten.sub.Tensor, REALS),
    _number(aten.sub.Scalar, REALS, with_number(2)),
    _pair(aten.mul.Tensor, ALL),
    _number(aten.mul.Scalar, REALS, with_number(2)),
    _pair(aten.div.Tensor, REALS, _POSITIVE),
    _number(aten.div.Scalar, FLOATS, with_number(2, 0.3)),
    _pair(aten.div.Tensor_mode, REALS, pairs(0.5, 4, rounding_mode="floor")),
    _pair(aten.maximum.default, ALL, exact=True),
    _pair(aten.minimum.default, ALL, exact=True),
    _pair(aten.fmod.Tensor, REALS, pairs(-3, 4, low2=1)),
    _number(aten.fmod.Scalar, REALS, with_number(3)),
    _pair(aten.remainder.Tensor, REALS, pairs(-3, 4, low2=1)),
    _number(aten.remainder.Scalar, REALS, with_number(3)),
    _pair(aten.floor_divide.default, REALS, pairs(-3, 4, low2=1)),
    _pair(aten.pow.Tensor_Tensor, FLOATS, _POSITIVE),
    _number(aten.pow.Tensor_Scalar, FLOATS, with_number(2, 3, 0.5, -1, low=0.5)),
    OperatorEntry(
        aten.pow.Scalar,
        "binary",
        "number, (*s) -> (*s)",
        FLOATS,
        lambda dtype, make: iter([Sample((2, make(3, 33)))]),
    ),
    _pair(aten.atan2.default, FLOATS),
    _pair(aten.logical_and.default, ALL, exact=True),
    _pair(aten.logical_or.default, ALL, exact=True),
    _pair(aten.logical_xor.default, ALL, exact=True),
    _pair(aten.bitwise_and.Tensor, _BITS, exact=True),
    _pair(aten.bitwise_or.Tensor, _BITS, exact=True),
    _pair(aten.bitwise_xor.Tensor, _BITS, exact=True),
    _number(aten.bitwise_and.Scalar, INTEGERS, with_number(5), exact=True),
    _number(aten.bitwise_or.Scalar, INTEGERS, with_number(5), exact=True),
    _number(aten.bitwise_xor.Scalar, INTEGERS, with_number(5), exact=True),
    _pair(aten.bitwise_left_shift.Tensor, INTEGERS, pairs(0, 0.6), exact=True),
    _pair(aten.bitwise_right_shift.Tensor, INTEGERS, pairs(0, 0.6), exact=True),
    _number(aten.bitwise_left_shift.Tensor_Scalar, INTEGERS, with_number(1, 3, low=0), exact=True),
    _number(aten.bitwise_right_shift.Tensor_Scalar, INTEGERS, with_number(1, 3), exact=True),
]
