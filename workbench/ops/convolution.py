"""Convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_RULE = "(n, c, *i), (o, c / groups, *k), (o)? -> (n, o, *(i + 2 pad - dilation (k - 1) - 1) / stride + 1)"


def _case(make: Make, image: Any, weight: Any, **options: Any) -> Sample:
    rank = len(image) - 2
    groups, transposed = options.get("groups", 1), options.get("transposed", False)
    outputs = weight[1] * groups if transposed else weight[0]
    spread = [
        [options.get(name, default)] * rank if isinstance(options.get(name, default), int) else options[name]
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    ]
    channels_last = options.get("channels_last", False)
    bias = make(outputs) if options.get("bias", True) else None
    args = (
        make(*image, channels_last=channels_last),
        make(*weight),
        bias,
        *spread,
        transposed,
        [options.get("output_padding", 0)] * rank,
        groups,
    )
    return Sample(args, label=f"{list(image)} with {list(weight)} {options}")


def _draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    image = (2, 6, 9, 11)
    yield _case(make, image, (8, 6, 3, 3))
    yield _case(make, image, (8, 6, 3, 3), padding=1, stride=2, bias=False)
    yield _case(make, image, (8, 6, 1, 1))
    yield _case(make, image, (6, 1, 3, 3), groups=6, padding=1)
    yield _case(make, image, (12, 1, 3, 3), groups=6, padding=1, stride=2)
    yield _case(make, image, (8, 3, 3, 3), groups=2)
    yield _case(make, image, (8, 6, 3, 2), dilation=2, padding=[1, 0])
    yield _case(make, image, (8, 6, 3, 3), padding=1, channels_last=True)
    yield _case(make, image, (6, 4, 3, 3), transposed=True, stride=2, output_padding=1)
    yield _case(make, image, (6, 4, 3, 3), transposed=True, groups=2)
    yield _case(make, (1, 16, 20, 20), (33, 16, 3, 3), padding=1)
    yield _case(make, (2, 5, 17), (7, 5, 3), padding=1)
    yield _case(make, (2, 6, 17), (6, 1, 3), groups=6, stride=2)


ENTRIES = [OperatorEntry(aten.convolution.default, "convolution", _RULE, FLOATS, _draw)]
