"""Softmax and normalizations against eager."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from kernel_harness import KernelError, Out, call, ordered

TOLERANCES = {
    torch.float32: (1e-4, 1e-4),
    torch.float64: (1e-9, 1e-9),
    torch.float16: (5e-3, 5e-3),
    torch.bfloat16: (3e-2, 3e-2),
}
ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)]
SHAPES = [(2, 3, 4, 5), (1, 17, 1, 33), (2, 16, 3, 16), (1, 4, 2, 2)]

aten = torch.ops.aten
each_dtype = pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
each_order = pytest.mark.parametrize("order", ORDERS, ids=str)
each_out_order = pytest.mark.parametrize("out_order", ORDERS, ids=str)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
Sizes = tuple[int, ...]


def values(shape: Sizes, dtype: torch.dtype, order: Sizes = ORDERS[0], seed: int = 0) -> torch.Tensor:
    order = order[: len(shape)]
    return ordered((torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype), order)


def check(found: tuple[torch.Tensor, ...], wanted: tuple[torch.Tensor, ...]) -> None:
    for a, b in zip(found, wanted, strict=True):
        rtol, atol = TOLERANCES[a.dtype]
        assert_close(a, b.to(a.dtype), rtol=rtol, atol=atol)


@each_dtype
@each_order
@each_out_order
@pytest.mark.parametrize("shape", [*SHAPES, (0, 2, 3, 4)], ids=str)
def test_softmax_agrees_along_each_dimension(
    dtype: torch.dtype, order: Sizes, out_order: Sizes, shape: Sizes
) -> None:
    x = values(shape, dtype, order)
    for dim in range(-4, 4):
        out = Out(shape, dtype, out_order)
        check((call("aten::_softmax.out", x, dim, False, out),), (aten._softmax(x, dim, False),))
        check((call("aten::_log_softmax.out", x, dim, False, out),), (aten._log_softmax(x, dim, False),))


def test_softmax_agrees_on_extreme_values() -> None:
    inf = float("inf")
    x = torch.tensor([[1e30, -1e30, 0], [-inf, 0, 1], [-200, -201, -202], [88, 89, 90]])
    check((call("aten::_softmax.out", x, 1, False, Out(x.shape)),), (x.softmax(1),))


def test_softmax_refuses_a_dimension_out_of_range() -> None:
    with pytest.raises(KernelError, match="dim"):
        call("aten::_softmax.out", torch.ones(2, 2), 2, False, Out((2, 2)))


@each_dtype
@each_order
@each_out_order
@each_shape
def test_layer_norm_agrees(dtype: torch.dtype, order: Sizes, out_order: Sizes, shape: Sizes) -> None:
    x = values(shape, dtype, order)
    for count in (1, 2, 3):
        sizes = list(shape[-count:])
        w, b = (
            values(shape[-count:], dtype, tuple(range(count)), 1),
            values(shape[-count:], dtype, tuple(range(count)), 2),
        )
        for weight, bias in ((w, b), (None, None), (w, None), (None, b)):
            wanted = aten.native_layer_norm(x, sizes, weight, bias, 1e-5)
            outs = [Out(shape, dtype, out_order), Out(wanted[1].shape, dtype), Out(wanted[2].shape, dtype)]
            check(call("aten::native_layer_norm.out", x, sizes, weight, bias, 1e-5, *outs), wanted)


@each_dtype
@each_order
@each_out_order
@each_shape
def test_batch_norm_agrees(dtype: torch.dtype, order: Sizes, out_order: Sizes, shape: Sizes) -> None:
    c = shape[1]
    x = values(shape, dtype, order)
    w, b, mean = (values((c,), dtype, seed=seed) for seed in (1, 2, 3))
    var = values((c,), dtype, seed=4).abs() + 0.1
    wanted = aten._native_batch_norm_legit_no_training(x, w, b, mean, var, 0.1, 1e-5)
    outs = [Out(shape, dtype, out_order), Out((0,), dtype), Out((0,), dtype)]
    found = call("aten::_native_batch_norm_legit_no_training.out", x, w, b, mean, var, 0.1, 1e-5, *outs)
    check(found[:1], wanted[:1])
    outs = [Out(shape, dtype, out_order), Out((c,), dtype), Out((c,), dtype)]
    running, wanted_running = (mean.clone(), var.clone()), (mean.clone(), var.clone())
    wanted = aten._native_batch_norm_legit(x, w, b, *wanted_running, True, 0.1, 1e-5)
    found = call("aten::_native_batch_norm_legit.out", x, w, b, *running, True, 0.1, 1e-5, *outs)
    check((*found, *running), (*wanted, *wanted_running))
    wanted = aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5)
    check(call("aten::_native_batch_norm_legit.no_stats_out", x, w, b, True, 0.1, 1e-5, *outs), wanted)


@each_dtype
@each_order
@each_out_order
@each_shape
def test_group_norm_agrees(dtype: torch.dtype, order: Sizes, out_order: Sizes, shape: Sizes) -> None:
    n, c, h, width = shape
    x = values(shape, dtype, order)
    w, b = values((c,), dtype, seed=1), values((c,), dtype, seed=2)
    wanted = aten.native_group_norm(x.contiguous(), w, b, n, c, h * width, 1, 1e-5)
    outs = [Out(shape, dtype, out_order), Out((n, 1), dtype), Out((n, 1), dtype)]
    check(call("aten::native_group_norm.out", x, w, b, n, c, h * width, 1, 1e-5, *outs), wanted)


def test_group_norm_refuses_groups_that_do_not_divide() -> None:
    with pytest.raises(KernelError, match="groups"):
        outs = [Out((1, 4, 2)), Out((1, 3)), Out((1, 3))]
        call("aten::native_group_norm.out", torch.ones(1, 4, 2), None, None, 1, 4, 2, 3, 1e-5, *outs)


@each_dtype
@each_order
@each_out_order
def test_glu_agrees(dtype: torch.dtype, order: Sizes, out_order: Sizes) -> None:
    x = values((2, 6, 4, 34), dtype, order)
    for dim in range(-4, 4):
        wanted = aten.glu(x, dim)
        check((call("aten::glu.out", x, dim, Out(wanted.shape, dtype, out_order)),), (wanted,))
