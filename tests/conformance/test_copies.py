"""Views, joins, splits, borders and other operators that move elements, against eager."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernel_harness import KernelError, Out, call
from kernel_samples import LAYOUTS, check, check_list, sample

DTYPES = (torch.float32, torch.float16, torch.uint8, torch.int64, torch.bool)
SHAPES = ((2, 3, 4, 5), (3, 20, 33), (1, 5, 1, 7), (0, 3), (2, 16, 18, 20))
CASES = [(dtype, shape, layout) for dtype in DTYPES for shape in SHAPES for layout in LAYOUTS]


def range_of(size: int) -> list[int]:
    """Where parts of two elements begin, but the first."""
    return list(range(2, size, 2))


cases = pytest.mark.parametrize(("dtype", "shape", "layout"), CASES)


@pytest.mark.parametrize("out", LAYOUTS)
@cases
def test_views_agree(dtype: torch.dtype, shape: tuple[int, ...], layout: str, out: str) -> None:
    x, rank = sample(shape, dtype, layout), len(shape)
    for dims in (list(range(rank))[::-1], [*range(1, rank), 0], [-1, *range(rank - 1)]):
        check("aten::permute_copy.out", x.permute(dims), x, dims, layout=out)
    check("aten::transpose_copy.int_out", x.transpose(0, -1), x, 0, -1, layout=out)
    check("aten::unsqueeze_copy.out", x.unsqueeze(-1), x, -1, layout=out)
    check("aten::squeeze_copy.dims_out", x.squeeze((0, 1)), x, [0, 1], layout=out)
    check("aten::squeeze_copy.dim_out", x.squeeze(0), x, 0, layout=out)
    check("aten::slice_copy.Tensor_out", x[:, 1:3], x, 1, 1, 3, 1, layout=out)
    check("aten::slice_copy.Tensor_out", x[:, ::2], x, 1, None, None, 2, layout=out)
    check("aten::slice_copy.Tensor_out", x[..., -3:-1], x, -1, -3, -1, 1, layout=out)
    check("aten::select_copy.int_out", x.select(1, -1), x, 1, -1, layout=out)
    check("aten::flip.out", x.flip(0, -1), x, [0, -1], layout=out)
    check("aten::expand_copy.out", x.expand(3, *shape), x, [3, *[-1] * rank], False, layout=out)
    check("aten::diagonal_copy.out", x.diagonal(1, 0, 1), x, 1, 0, 1, layout=out)
    check("aten::unfold_copy.out", x.unfold(1, 2, 1), x, 1, 2, 1, layout=out)
    check("aten::view_copy.out", x.reshape(x.numel()), x, [x.numel()], layout=out)
    if x.numel():
        check("aten::view_copy.out", x.reshape(shape[-1], -1), x, [shape[-1], -1], layout=out)


@pytest.mark.parametrize("out", LAYOUTS)
@cases
def test_copies_agree(dtype: torch.dtype, shape: tuple[int, ...], layout: str, out: str) -> None:
    x, y = sample(shape, dtype, layout), sample(shape, dtype, "reversed")
    check("aten::clone.out", x, x, None, layout=out)
    check("dim_order_ops::_clone_dim_order.out", x, x, False, None, layout=out)
    for other in (torch.float32, torch.int32, torch.bool, torch.bfloat16):
        check("dim_order_ops::_to_dim_order_copy.out", x.to(other), x, False, None, layout=out)
        check("aten::copy.out", y.to(other).copy_(x), y.to(other), x, False, layout=out)
    repeats = [2, 1, 3, 1, 2][: len(shape) + 1]
    check("aten::repeat.out", x.repeat(repeats), x, repeats, layout=out)
    check("aten::roll.out", x.roll((1, -2), (0, 1)), x, [1, -2], [0, 1], layout=out)
    for dim in (0, 1, -1):
        check("aten::cat.out", torch.cat([x, y, x], dim), [x, y, x], dim, layout=out)
        check("aten::cat.out", torch.cat([x, y.double()], dim), [x, y.double()], dim, layout=out)
        check("aten::stack.out", torch.stack([x, y], dim), [x, y], dim, layout=out)
    check_list(
        "aten::split_with_sizes_copy.out", torch.tensor_split(x, [1], 1), x, [1, shape[1] - 1], 1, layout=out
    )
    check_list(
        "aten::split_copy.Tensor_out", torch.tensor_split(x, range_of(shape[1]), 1), x, 2, 1, layout=out
    )
    check_list("aten::unbind_copy.int_out", x.unbind(1), x, 1, layout=out)
    part = sample((shape[0], 1, *shape[2:]), dtype)
    check("aten::slice_scatter.out", x.slice_scatter(part, 1, 0, 1), x, part, 1, 0, 1, 1, layout=out)
    flat = part.squeeze(1)
    check("aten::select_scatter.out", x.select_scatter(flat, 1, -1), x, flat, 1, -1, layout=out)
    check("aten::tril.out", x.tril(1), x, 1, layout=out)
    check("aten::triu.out", x.triu(-1), x, -1, layout=out)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out", LAYOUTS)
def test_borders_agree(layout: str, out: str) -> None:
    x = sample((2, 3, 5, 6), torch.float32, layout)
    for pad in ([1, 2], [1, 2, 0, 3], [-1, 1, 2, -1], [0, 0, 0, 0, 1, 1]):
        check("aten::constant_pad_nd.out", functional.pad(x, pad, value=1.5), x, pad, 1.5, layout=out)
    pad = [1, 2, 3, 0]
    check("aten::reflection_pad2d.out", functional.pad(x, pad, "reflect"), x, pad, layout=out)
    check("aten::replication_pad2d.out", functional.pad(x, pad, "replicate"), x, pad, layout=out)


def test_view_agrees_where_sizes_have_no_common_factors_in_another_dim_order() -> None:
    x = sample((4, 6), torch.float32, "reversed")
    check("aten::view_copy.out", x.reshape(6, 4), x, [6, 4], layout="reversed")


def test_cat_leaves_out_flat_empty_tensors() -> None:
    x = torch.rand(2, 3)
    check("aten::cat.out", x, [torch.empty(0), x], 0)


def test_as_strided_reads_memory() -> None:
    x = torch.arange(20.0)
    check("aten::as_strided_copy.out", x.as_strided((3, 4), (4, 2), 1), x, [3, 4], [4, 2], 1)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("permute_copy.out", (torch.rand(2, 3), [0, 0], Out((2, 3)))),
        ("permute_copy.out", (torch.rand(2, 3), [0, 5], Out((2, 3)))),
        ("select_copy.int_out", (torch.rand(2, 3), 0, 2, Out((3,)))),
        ("view_copy.out", (torch.rand(2, 3), [4, -1], Out((4, 1)))),
        ("view_copy.out", (torch.rand(2, 3), [2**40, 2**40], Out((2, 3)))),
        ("expand_copy.out", (torch.rand(2, 3), [4, 3], False, Out((4, 3)))),
        ("as_strided_copy.out", (torch.rand(6), [3, 4], [4, 2], 1, Out((3, 4)))),
        ("cat.out", ([torch.rand(2, 3), torch.rand(2, 4)], 0, Out((4, 3)))),
        ("split_with_sizes_copy.out", (torch.rand(4), [1, 9], 0, [Out((1,)), Out((9,))])),
        ("slice_copy.Tensor_out", (torch.rand(4), 0, 0, 4, 0, Out((4,)))),
        ("clone.out", (torch.rand(4), None, Out((5,)))),
        ("constant_pad_nd.out", (torch.rand(4), [-3, -3], 0.0, Out((4,)))),
    ],
)
def test_copies_refuse_what_does_not_fit(name: str, args: tuple[object, ...]) -> None:
    with pytest.raises(KernelError):
        call(f"aten::{name}", *args)
