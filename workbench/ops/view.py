"""Operators that rearrange, select, repeat or join elements without computing on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from workbench.ops.entry import ALL, Make, OperatorEntry, Sample, Samples

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _cases(*cases: tuple[Sequence[int], tuple[Any, ...]]) -> Samples:
    """Samples from pairs of input sizes and further arguments."""

    def draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
        for sizes, tail in cases:
            yield Sample((make(*sizes), *tail), label=f"{list(sizes)} with {tail}")

    return draw


def _join(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample(([make(2, 3), make(2, 3)], 0), label="rows")
    yield Sample(([make(2, 3, 4), make(2, 5, 4), make(2, 1, 4)], 1), label="middle dimension")
    yield Sample(([make(2, 3), make(2, 7)], -1), label="columns")
    yield Sample(([make(3)],), label="one tensor")
    yield Sample(([make(2, 3), make(2, 0)], 1), label="one of them empty")


def _row(operator: torch._ops.OpOverload, rule: str, draw: Samples) -> OperatorEntry:
    return OperatorEntry(operator, "view", rule, ALL, draw, exact=True)


_CUBE = (3, 4, 5)

ENTRIES = [
    _row(
        aten.view_copy.default,
        "(*s) -> (*t), as many elements",
        _cases((_CUBE, ([12, 5],)), (_CUBE, ([-1],))),
    ),
    _row(
        aten.permute_copy.default,
        "(*s), order -> (s[order[i]] for each i)",
        _cases(
            (_CUBE, ([2, 0, 1],)),
            (_CUBE, ([0, 2, 1],)),
            ((33, 65), ([1, 0],)),
            ((2, 3, 4, 5), ([0, 2, 1, 3],)),
        ),
    ),
    _row(
        aten.expand_copy.default,
        "(*s), (*t) -> (*t), sizes of 1 repeated",
        _cases(((3, 1), ([3, 4],)), ((1, 3), ([2, -1, 3],)), ((), ([2, 3],))),
    ),
    _row(
        aten.slice_copy.Tensor,
        "(*s), dim, start, end, step -> s with s[dim] = ceil((end - start) / step)",
        _cases((_CUBE, (0, 1, 3)), (_CUBE, (1, -3, -1)), (_CUBE, (2, 0, 2**63 - 1, 2)), (_CUBE, (1, 3, 1))),
    ),
    _row(
        aten.select_copy.int,
        "(*s), dim, index -> (*s without dim)",
        _cases((_CUBE, (0, 1)), (_CUBE, (1, -1)), (_CUBE, (2, 0))),
    ),
    _row(aten.unsqueeze_copy.default, "(*s), dim -> s with 1 at dim", _cases((_CUBE, (0,)), (_CUBE, (-1,)))),
    _row(
        aten.squeeze_copy.dims,
        "(*s), dims -> s without the dims of size 1",
        _cases(((3, 1, 5, 1), ([1, 3],))),
    ),
    _row(aten.squeeze_copy.dim, "(*s), dim -> s without dim if of size 1", _cases(((3, 1, 5), (1,)))),
    _row(
        aten.split_with_sizes_copy.default,
        "(*s), sizes, dim -> one tensor per size",
        _cases(((7, 4), ([2, 4, 1],)), ((2, 6), ([3, 3], 1))),
    ),
    _row(
        aten.unbind_copy.int,
        "(*s), dim -> s[dim] tensors (*s without dim)",
        _cases((_CUBE, (0,)), (_CUBE, (1,))),
    ),
    _row(aten.alias_copy.default, "(*s) -> (*s)", _cases((_CUBE, ()))),
    _row(
        aten.diagonal_copy.default,
        "(*s) -> the diagonal of two dims, last",
        _cases(((4, 5), ()), (_CUBE, (1, 0, 2))),
    ),
    _row(aten.repeat.default, "(*s), (*r) -> (*r s)", _cases(((2, 3), ([2, 2],)), ((3,), ([2, 1, 2],)))),
    _row(aten.flip.default, "(*s), dims -> (*s)", _cases((_CUBE, ([0],)), (_CUBE, ([1, 2],)))),
    _row(aten.cat.default, "[(*s)], dim -> s with s[dim] summed", _join),
    _row(aten.pixel_shuffle.default, "(*s, c r^2, h, w) -> (*s, c, h r, w r)", _cases(((2, 12, 3, 5), (2,)))),
    _row(
        aten.pixel_unshuffle.default, "(*s, c, h r, w r) -> (*s, c r^2, h, w)", _cases(((2, 3, 4, 6), (2,)))
    ),
]
