"""Matrix products against eager: dtypes, orders in memory, broadcast addends, empty and odd sizes."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from kernel_harness import KernelError, Out, call, ordered

TOLERANCES = {
    torch.float32: (1e-4, 1e-4),
    torch.float64: (1e-9, 1e-9),
    torch.float16: (2e-3, 1e-2),
    torch.bfloat16: (2e-2, 1e-1),
}
SIZES = [
    (1, 1, 1),
    (1, 40, 7),
    (3, 300, 65),
    (13, 33, 20),
    (30, 70, 401),
    (0, 3, 4),
    (3, 4, 0),
    (100, 1, 50),
    (2, 1, 9),
]
ORDERS = [(0, 1), (1, 0)]
DTYPES = [*TOLERANCES, torch.int64, torch.int8]


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(-5, 5, shape, generator=generator).to(dtype)


def check(found: torch.Tensor, wanted: torch.Tensor) -> None:
    rtol, atol = TOLERANCES.get(wanted.dtype, (0, 0))
    assert_close(found, wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_mm_agrees_for_all_orders(dtype: torch.dtype, size: tuple[int, int, int]) -> None:
    m, n, k = size
    for order_a in ORDERS:
        for order_b in ORDERS:
            for order in ORDERS:
                a = ordered(values((m, k), dtype), order_a)
                b = ordered(values((k, n), dtype, 1), order_b)
                check(call("aten::mm.out", a, b, Out((m, n), dtype, order)), a @ b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("factors", [(1, 1), (2, 3), (0, 1)], ids=str)
def test_addmm_agrees_for_all_addends(
    dtype: torch.dtype, size: tuple[int, int, int], factors: tuple[int, int]
) -> None:
    m, n, k = size
    beta, alpha = factors
    a, b = values((m, k), dtype), values((k, n), dtype, 1)
    for shape in ((n,), (m, 1), (1, n), (m, n)):
        c = values(shape, dtype, 2)
        wanted = torch.addmm(c, a, b, beta=beta, alpha=alpha)
        check(call("aten::addmm.out", c, a, b, beta, alpha, Out((m, n), dtype)), wanted)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2)], ids=str)
def test_bmm_agrees_for_all_orders(order: tuple[int, ...]) -> None:
    a, b = values((3, 10, 20), torch.float32), values((3, 20, 30), torch.float32, 1)
    c = values((10, 30), torch.float32, 2)
    found = call("aten::bmm.out", ordered(a, order), ordered(b, order), Out((3, 10, 30), order=order))
    check(found, a @ b)
    found = call("aten::baddbmm.out", c, a, ordered(b, order), 1, 2, Out((3, 10, 30), order=order))
    check(found, torch.baddbmm(c, a, b, alpha=2))


@pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
@pytest.mark.parametrize("shape", [(7,), (1, 7), (2, 5, 7), (0, 7)], ids=str)
def test_linear_agrees(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, weight, bias = values(shape, dtype), values((9, 7), dtype, 1), values((9,), dtype, 2)
    for b in (bias, None):
        found = call("aten::linear.out", x, weight, b, Out((*shape[:-1], 9), dtype))
        check(found, torch.nn.functional.linear(x, weight, b))


def test_mm_agrees_below_its_upper_bound() -> None:
    a, b = values((5, 33), torch.float16), values((33, 17), torch.float16, 1)
    found = call("aten::mm.out", a, b, Out((5, 17), torch.float16), upper=[(50, 40), (40, 17), (50, 17)])
    check(found, a @ b)


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        ((2, 3), (4, 5), (2, 5)),
        ((2, 3), (3, 5), (2, 6)),
        ((2, 3, 1), (3, 5), (2, 5)),
        ((2, 3), (3,), (2, 5)),
    ],
)
def test_mm_refuses_sizes_that_do_not_fit(
    a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]
) -> None:
    with pytest.raises(KernelError):
        call("aten::mm.out", torch.ones(a), torch.ones(b), Out(out))


def test_mm_refuses_mixed_dtypes() -> None:
    with pytest.raises(KernelError, match="float32"):
        call("aten::mm.out", torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64), Out((2, 2)))
