"""Normalization by statistics of the data, or by given ones."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.ops.entry import FLOATS, Make, OperatorEntry, Sample

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _layer(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 5, 33), [33], make(33), make(33), 1e-5), label="last dimension")
    yield Sample((make(2, 5, 33), [5, 33], make(5, 33), make(5, 33), 1e-5), label="two dimensions")
    yield Sample((make(2, 5, 33), [33], None, None, 1e-5), label="no weight")


def _group(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 6, 4, 5), make(6), make(6), 2, 6, 20, 3, 1e-5), label="three groups")
    yield Sample((make(2, 6, 4, 5), None, None, 2, 6, 20, 1, 1e-5), label="one group, no weight")


def _batch(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
    statistics = make(6), make(6, low=0.1)
    yield Sample((make(2, 6, 4, 5), make(6), make(6), *statistics, 0.1, 1e-5), label="image")
    yield Sample((make(3, 6), None, None, *statistics, 0.1, 1e-5), label="matrix, no weight")


ENTRIES = [
    OperatorEntry(
        aten.native_layer_norm.default,
        "normalization",
        "(*s, *n), (*n)?, (*n)? -> (*s, *n), mean (*s, 1...), rstd (*s, 1...)",
        FLOATS,
        _layer,
    ),
    OperatorEntry(
        aten.native_group_norm.default,
        "normalization",
        "(n, c, *i), (c)?, (c)? -> (n, c, *i), mean (n, groups), rstd (n, groups)",
        FLOATS,
        _group,
    ),
    OperatorEntry(
        aten._native_batch_norm_legit_no_training.default,
        "normalization",
        "(n, c, *i), (c)?, (c)?, mean (c), var (c) -> (n, c, *i), (0), (0)",
        FLOATS,
        _batch,
    ),
]
