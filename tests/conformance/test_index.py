"""Indexing, gathering, scattering, masks and searches, against eager."""

from __future__ import annotations

import pytest
import torch

from kernel_harness import KernelError, Out, call
from kernel_samples import LAYOUTS, check, sample

DTYPES = (torch.float32, torch.int64, torch.uint8, torch.bool)
SHAPE = (4, 5, 6, 7)


def index_lists() -> list[list[torch.Tensor | None]]:
    i, j = torch.randint(-4, 4, (3,)), torch.randint(-5, 5, (2, 1, 3))
    k = torch.randint(0, 6, (3,), dtype=torch.int32)
    full: list[torch.Tensor | None] = [torch.randint(0, n, (2, 2)) for n in SHAPE]
    return [
        [i],
        [i, j],
        [None, j],
        [i, None, k],
        [None, None, None, torch.randint(0, 7, (4, 2))],
        [None, j, k],
        full,
    ]


def eager_index(entries: list[torch.Tensor | None]) -> tuple[slice | torch.Tensor, ...]:
    return tuple(slice(None) if entry is None else entry.long() for entry in entries)


@pytest.mark.parametrize("out", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_index_and_index_put_agree(dtype: torch.dtype, layout: str, out: str) -> None:
    x = sample(SHAPE, dtype, layout)
    for entries in index_lists():
        expected = x[eager_index(entries)]
        check("aten::index.Tensor_out", expected, x, entries, layout=out)
        if dtype != torch.bool:
            values = sample(tuple(expected.shape), dtype)
            put = x.double().index_put(eager(entries), values.double(), accumulate=True).to(dtype)
            if dtype != torch.uint8:  # eager's sum wraps, that in double does not
                check("aten::index_put.out", put, x, entries, values, True, layout=out)
    rows, values = torch.tensor([2, 0, 3]), sample((1, 6, 7), dtype)
    check("aten::index_put.out", x.index_put((rows,), values), x, [rows], values, False, layout=out)
    check("aten::index_select.out", x.index_select(1, rows), x, 1, rows, layout=out)


def eager(entries: list[torch.Tensor | None]) -> tuple[torch.Tensor, ...]:
    """index_put takes no None: a range along the dimension, shaped to be broadcast, stands for it."""
    given = [entry for entry in entries if entry is not None]
    picked = sum(given[1:], given[0]).shape  # what they broadcast to
    kept = [d for d in range(len(SHAPE)) if d >= len(entries) or entries[d] is None]
    used = [d for d in range(len(SHAPE)) if d not in kept]
    adjacent = used == list(range(used[0], used[-1] + 1))
    before = [d for d in kept if adjacent and d < used[0]]
    rank = len(picked) + len(kept)
    result: list[torch.Tensor] = []
    for d, size in enumerate(SHAPE):
        if d in kept:
            place = kept.index(d) + (0 if d in before else len(picked))
            shape = [size if r == place else 1 for r in range(rank)]
            result.append(torch.arange(size).view(shape))
        else:
            entry = entries[d]
            assert entry is not None
            own = entry.long().expand(picked)
            result.append(own.reshape(*[1] * len(before), *picked, *[1] * (len(kept) - len(before))))
    return tuple(result)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_masks_index(layout: str) -> None:
    x = sample(SHAPE, torch.float32, layout)
    mask, last = sample((4, 5), torch.bool), sample((7,), torch.bool)
    check("aten::index.Tensor_out", x[mask], x, [mask])
    check("aten::index.Tensor_out", x[..., last], x, [None, None, None, last])
    check("aten::masked_select.out", x[x > 0] if layout == "contiguous" else x.masked_select(x > 0), x, x > 0)
    check("aten::nonzero.out", mask.nonzero(), mask)
    source = sample((x.numel(),), torch.float32)
    check("aten::masked_scatter.out", x.masked_scatter(x > 0, source), x, x > 0, source, layout=layout)


@pytest.mark.parametrize("out", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter_agree(dtype: torch.dtype, layout: str, out: str) -> None:
    x, source = sample(SHAPE, dtype, layout), sample(SHAPE, dtype, "reversed")
    for dim in (0, 1, -1):
        index = torch.randint(0, 4, (3, 4, 2, 3))
        check("aten::gather.out", x.gather(dim, index), x, dim, index, False, layout=out)
        check("aten::scatter_add.out", x.scatter_add(dim, index, source), x, dim, index, source, layout=out)
        check("aten::scatter.value_out", x.scatter(dim, index, 1), x, dim, index, 1, layout=out)
        once = torch.full((1, 1, 1, 1), 3)
        check("aten::scatter.src_out", x.scatter(dim, once, source), x, dim, once, source, layout=out)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
def test_searches_agree(dtype: torch.dtype, narrow: bool, right: bool) -> None:
    edges, values = sample((9,), dtype).sort()[0], sample((3, 4, 5, 6), dtype, "channels_last")
    expected = torch.bucketize(values, edges, out_int32=narrow, right=right)
    check("aten::bucketize.Tensor_out", expected, values, edges, narrow, right, layout="channels_last")
    rows, own = sample((3, 9), dtype).sort(-1)[0], sample((3, 5), dtype)
    expected = torch.searchsorted(rows, own, out_int32=narrow, right=right)
    check("aten::searchsorted.Tensor_out", expected, rows, own, narrow, right, None, None)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("index.Tensor_out", (torch.rand(3), [torch.tensor([3])], Out((1,)))),
        ("index.Tensor_out", (torch.rand(3), [torch.tensor([-4])], Out((1,)))),
        ("index_select.out", (torch.rand(3), 0, torch.tensor([7]), Out((1,)))),
        ("gather.out", (torch.rand(3), 0, torch.tensor([9]), False, Out((1,)))),
        ("scatter.value_out", (torch.rand(3), 0, torch.tensor([-9]), 1, Out((3,)))),
        ("index.Tensor_out", (torch.rand(3), [torch.tensor([0.5])], Out((1,)))),
        ("index.Tensor_out", (torch.rand(3), [torch.ones(4, dtype=torch.bool)], Out((4,)))),
    ],
)
def test_indices_out_of_range_are_errors(name: str, args: tuple[object, ...]) -> None:
    with pytest.raises(KernelError):
        call(f"aten::{name}", *args)
