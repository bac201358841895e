"""Reductions, scans and sorts, against eager."""

from __future__ import annotations

import pytest
import torch

from kernel_harness import KernelError, Out, call
from kernel_samples import DTYPES, FLOATS, LAYOUTS, agree, check, sample

SHAPES = ((2, 3, 4, 5), (3, 70, 33), (4, 700, 2), (1, 64, 7, 7), (2000,), (0, 3))


def dims_of(rank: int) -> list[list[int]]:
    picks = [[0], [-1], [0, -1], [1, 2], [2, 3], list(range(rank))]
    return [d for d in picks if len({i % rank for i in d}) == len(d) and max(d) < rank]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_dims_agree(dtype: torch.dtype, shape: tuple[int, ...], layout: str) -> None:
    x = sample(shape, dtype, layout)
    if dtype in FLOATS:
        x = x / 4
    for dims in dims_of(len(shape)):
        for keep in (True, False):
            args, out = (x, dims, keep), LAYOUTS[2 * keep]
            check("aten::sum.IntList_out", x.sum(dims, keepdim=keep), *args, None, layout=out)
            check("aten::any.dims_out", x.any(dims, keepdim=keep), *args, layout=out)
            check("aten::all.dims_out", x.bool().all(dims, keepdim=keep).to(x.any().dtype), *args, layout=out)
            if dtype in FLOATS:
                mean = x.double().mean(dims, keepdim=keep).to(dtype)
                check("aten::mean.out", mean, *args, None, layout=out)
            if x.numel():
                check("aten::amax.out", x.amax(dims, keepdim=keep), *args, layout=out)
                check("aten::amin.out", x.amin(dims, keepdim=keep), *args, layout=out)
            if dtype in (torch.float32, torch.float64) and x.numel():
                for c in (1, 0):
                    var = x.var(dims, correction=c, keepdim=keep)
                    check("aten::var.correction_out", var, x, dims, c, keep, layout=out)
                both = torch.var_mean(x, dims, correction=1, keepdim=keep)
                check("aten::var_mean.correction_out", both, x, dims, None, keep, layout=out)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_with_indices_agree(dtype: torch.dtype, layout: str) -> None:
    for shape in ((2, 3, 4, 5), (3, 70, 33), (700,)):
        x = sample(shape, dtype, layout)
        for dim in range(len(shape)):
            for keep in (True, False):
                check("aten::max.dim_max", x.max(dim, keepdim=keep), x, dim, keep)
                check("aten::min.dim_min", x.min(dim, keepdim=keep), x, dim, keep)
                if dtype != torch.bool:
                    check("aten::argmax.out", x.argmax(dim, keepdim=keep), x, dim, keep)
                    check("aten::argmin.out", x.argmin(dim, keepdim=keep), x, dim, keep)
        if dtype != torch.bool:
            check("aten::argmax.out", x.argmax(), x, None, False)
        check("aten::max.unary_out", x.max(), x)
        check("aten::min.unary_out", x.min(), x)
        check("aten::any.all_out", x.any(), x)
        check("aten::all.all_out", x.all(), x)


def test_sum_and_var_are_accurate_over_a_million_elements_with_an_offset() -> None:
    x = torch.randn(1_000_000) + 1000
    check("aten::sum.IntList_out", x.double().sum().float(), x, None, False, None)
    check("aten::var.correction_out", x.double().var().float(), x, None, 1, False)


def test_nan_wins_in_maxima() -> None:
    x = torch.tensor([1.0, float("nan"), 3.0])
    check("aten::amax.out", x.amax(), x, [], False)
    check("aten::argmax.out", x.argmax(), x, None, False)
    check("aten::max.dim_max", x.max(0), x, 0, False)


def test_maximum_of_nothing_is_refused() -> None:
    with pytest.raises(KernelError, match="no element"):
        call("aten::amax.out", torch.empty(0, 3), [0], False, Out((3,)))


def test_reduced_dimensions_may_not_repeat() -> None:
    with pytest.raises(KernelError, match="twice"):
        call("aten::sum.IntList_out", torch.rand(2, 3), [0, -2], False, None, Out((3,)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool])
def test_scans_agree(dtype: torch.dtype, layout: str) -> None:
    x = sample((4, 5, 600), dtype, layout)
    for dim in (0, 1, -1):
        check("aten::cumsum.out", torch.cumsum(x, dim), x, dim, None, layout=layout)
        signs = x.sign() if dtype.is_floating_point else x
        check("aten::cumprod.out", torch.cumprod(signs, dim), signs, dim, None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool])
def test_sorts_agree(dtype: torch.dtype, layout: str) -> None:
    x = sample((3, 40, 5), dtype, layout)
    for dim in (0, 1, 2):
        for descending in (True, False):
            expected = torch.sort(x, dim=dim, descending=descending, stable=True)
            check("aten::sort.values_stable", expected, x, True, dim, descending, layout=layout)
            check("aten::sort.values", expected, x, dim, descending)
        values = x.long().topk(2, dim)[0].to(dtype) if dtype == torch.bool else x.topk(2, dim)[0]
        shape = tuple(values.shape)
        found, index = call(
            "aten::topk.values", x, 2, dim, True, True, Out(shape, dtype), Out(shape, torch.int64)
        )
        agree(found, values)  # which of equal elements is taken is free
        agree(x.gather(dim, index), values)


def test_topk_of_more_than_there_are_is_refused() -> None:
    with pytest.raises(KernelError):
        call("aten::topk.values", torch.rand(3), 4, 0, True, True, Out((4,)), Out((4,), torch.int64))
