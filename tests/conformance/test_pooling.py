"""Pools, upsampling, pixel shuffles and embeddings against eager."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from kernel_harness import KernelError, Out, call, ordered

TOLERANCES = {
    torch.float32: (1e-4, 1e-4),
    torch.float64: (1e-9, 1e-9),
    torch.float16: (5e-3, 5e-3),
    torch.bfloat16: (3e-2, 3e-2),
}
ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)]
aten = torch.ops.aten
tensors = st.tuples(
    st.tuples(st.integers(1, 2), st.sampled_from([1, 3, 17]), st.integers(1, 14), st.integers(1, 33)),
    st.sampled_from([*TOLERANCES, torch.int64, torch.uint8]),
    st.sampled_from(ORDERS),
)
orders = st.sampled_from(ORDERS)


def make(spec: tuple[tuple[int, ...], torch.dtype, tuple[int, ...]]) -> torch.Tensor:
    shape, dtype, order = spec
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return ordered(torch.randn(shape, generator=generator).to(dtype), order)
    return ordered(torch.randint(0, 9, shape, generator=generator).to(dtype), order)


def check(found: torch.Tensor, wanted: torch.Tensor) -> None:
    rtol, atol = TOLERANCES.get(wanted.dtype, (0, 0))
    assert_close(found, wanted, rtol=rtol, atol=atol)


@settings(max_examples=200, deadline=None)
@given(tensors, orders, st.data())
def test_pools_agree_for_random_windows(
    spec: tuple[tuple[int, ...], torch.dtype, tuple[int, ...]], order: tuple[int, ...], data: st.DataObject
) -> None:
    x = make(spec)
    kernel = [data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))]
    stride = data.draw(st.sampled_from([[], [1, 1], [2, 2], [2], [3, 1]]))
    padding = [data.draw(st.integers(0, k // 2)) for k in kernel]
    dilation = [data.draw(st.integers(1, 2)), 1]
    ceil_mode = data.draw(st.booleans())
    try:
        values, indices = aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil_mode)
    except RuntimeError:
        assume(False)
    outs = [Out(values.shape, x.dtype, order), Out(values.shape, torch.int64, order)]
    found = call("aten::max_pool2d_with_indices.out", x, kernel, stride, padding, dilation, ceil_mode, *outs)
    check(found[0], values)
    check(found[1], indices)
    if not x.dtype.is_floating_point:
        return
    count, divisor = data.draw(st.booleans()), data.draw(st.sampled_from([None, 5]))
    try:
        wanted = aten.avg_pool2d(x, kernel, stride, padding, ceil_mode, count, divisor)
    except RuntimeError:
        assume(False)
    out = Out(wanted.shape, x.dtype, order)
    check(call("aten::avg_pool2d.out", x, kernel, stride, padding, ceil_mode, count, divisor, out), wanted)


@settings(max_examples=100, deadline=None)
@given(tensors, orders, st.sampled_from([[1, 1], [3, 2], [7, 7], [8, 17]]), st.booleans())
def test_resampling_agrees(
    spec: tuple[tuple[int, ...], torch.dtype, tuple[int, ...]],
    order: tuple[int, ...],
    size: list[int],
    corners: bool,
) -> None:
    assume(spec[1].is_floating_point)
    x = make(spec)
    wanted = aten._adaptive_avg_pool2d(x, size)
    out = Out(wanted.shape, x.dtype, order)
    check(call("aten::_adaptive_avg_pool2d.out", x, size, out), wanted)
    wanted = aten.upsample_bilinear2d.vec(x, size, corners, None)
    check(call("aten::upsample_bilinear2d.vec_out", x, size, corners, None, out), wanted)
    check(
        call("aten::upsample_nearest2d.vec_out", x, size, None, out),
        aten.upsample_nearest2d.vec(x, size, None),
    )
    factors = [2.0, 1.5]
    wanted = aten.upsample_bilinear2d.vec(x, None, corners, factors)
    out = Out(wanted.shape, x.dtype, order)
    check(call("aten::upsample_bilinear2d.vec_out", x, None, corners, factors, out), wanted)
    wanted = aten.upsample_nearest2d.vec(x, None, factors)
    check(call("aten::upsample_nearest2d.vec_out", x, None, factors, out), wanted)


@pytest.mark.parametrize("factors", [(1.7, 2.3), (1.2, 1.1), (2.0, 2.9)], ids=str)
def test_nearest_takes_shortcuts_at_the_same_and_at_twice_the_size(factors: tuple[float, float]) -> None:
    x = torch.randn(2, 3, 11, 2)
    wanted = aten.upsample_nearest2d.vec(x, None, list(factors))
    out = Out(wanted.shape, x.dtype, ORDERS[0])
    check(call("aten::upsample_nearest2d.vec_out", x, None, list(factors), out), wanted)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("out_order", ORDERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool], ids=str)
def test_pixel_shuffles_agree(order: tuple[int, ...], out_order: tuple[int, ...], dtype: torch.dtype) -> None:
    x = ordered(torch.arange(288).reshape(2, 12, 3, 4).to(dtype), order)
    wanted = aten.pixel_shuffle(x, 2)
    check(call("aten::pixel_shuffle.out", x, 2, Out(wanted.shape, dtype, out_order)), wanted)
    x = ordered(torch.arange(144).reshape(2, 3, 6, 4).to(dtype), order)
    wanted = aten.pixel_unshuffle(x, 2)
    check(call("aten::pixel_unshuffle.out", x, 2, Out(wanted.shape, dtype, out_order)), wanted)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_embedding_agrees(dtype: torch.dtype) -> None:
    weight, indices = torch.randn(10, 7), torch.randint(0, 10, (3, 4)).to(dtype)
    found = call("aten::embedding.out", weight, indices, -1, False, False, Out((3, 4, 7)))
    check(found, aten.embedding(weight, indices))


@pytest.mark.parametrize("index", [10, -1])
def test_embedding_refuses_an_index_out_of_range(index: int) -> None:
    with pytest.raises(KernelError, match="out of range"):
        call("aten::embedding.out", torch.ones(10, 7), torch.tensor([index]), -1, False, False, Out((1, 7)))


@pytest.mark.parametrize("kernel", [[0, 1], [2**40, 1], [2, 2, 2], [], [9, 9]], ids=str)
def test_max_pool_refuses_impossible_kernels(kernel: list[int]) -> None:
    outs = [Out((1, 1, 4, 4)), Out((1, 1, 4, 4), torch.int64)]
    with pytest.raises(KernelError):
        call("aten::max_pool2d_with_indices.out", torch.ones(1, 1, 8, 8), kernel, [], [0], [1], False, *outs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_agree(dtype: torch.dtype, p: float) -> None:
    a, b = torch.randn(2, 5, 7).to(dtype), torch.randn(2, 4, 7).to(dtype)
    wanted = aten._cdist_forward(a, b, p, None)
    found = call(
        "aten::_cdist_forward.out", ordered(a, (0, 2, 1)), b, p, None, Out((2, 5, 4), dtype, (2, 0, 1))
    )
    check(found, wanted)
    check(call("aten::_pdist_forward.out", a[0], p, Out((10,), dtype)), aten._pdist_forward(a[0], p))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sampler_agrees(order: tuple[int, ...], mode: int, padding: int, corners: bool) -> None:
    x, grid = torch.randn(2, 3, 6, 5), torch.randn(2, 4, 7, 2) * 1.5
    wanted = aten.grid_sampler_2d(x, grid, mode, padding, corners)
    out = Out(wanted.shape, order=order)
    check(call("aten::grid_sampler_2d.out", ordered(x, order), grid, mode, padding, corners, out), wanted)
