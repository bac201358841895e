"""The engine's attention against eager PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

import engine_harness

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

OUTER, INNER, COLUMNS = 0, 1, 2  # HeadOrder::Kind
LENGTHS = st.one_of(st.integers(0, 9), st.sampled_from([13, 14, 15, 16, 17, 31, 33, 64, 100, 257]))
KEYS = st.one_of(LENGTHS, st.sampled_from([511, 512, 513, 600]))
WIDTHS = st.one_of(st.integers(0, 9), st.sampled_from([15, 16, 17, 32, 33, 40, 64]))
INF = math.inf


def stored(x: torch.Tensor, kind: int) -> torch.Tensor:
    """A tensor [..., h, l, d] as the order of its heads has it in memory."""
    if kind == OUTER:
        return x.contiguous()
    rows = x.transpose(-2, -3).contiguous()
    return rows if kind == INNER else rows.flatten(-2)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    kinds: tuple[int, int, int, int] = (OUTER,) * 4,
) -> torch.Tensor:
    """softmax(q k^T scale + mask) v by the engine."""
    lead = (
        torch.broadcast_shapes(q.shape[:-2], v.shape[:-2])
        if q.shape[-3:-2] == v.shape[-3:-2]
        else q.shape[:-2]
    )
    out = torch.empty((*lead, q.shape[-2], v.shape[-1]))
    operands = [q, k, v, out]
    attributes = {
        "scale": q.shape[-1] ** -0.5 if scale is None else scale,
        "causal": int(causal),
        "head_orders.kind": list(kinds),
        "head_orders.count": [x.shape[-3] if x.dim() > 2 else 1 for x in operands],
        "head_orders.size": [x.shape[-1] for x in operands],
        "head_orders.begin": [0] * 4,
    }
    inputs = [stored(x, kind) for x, kind in zip(operands[:3], kinds, strict=False)]
    memory = stored(out, kinds[3])
    found = engine_harness.run("Attention", [*inputs, mask], [(memory.shape, torch.float32)], attributes)[0]
    assert found is not None
    if kinds[3] == OUTER:
        return found
    return found.reshape(*out.shape[:-3], out.shape[-2], out.shape[-3], out.shape[-1]).transpose(-2, -3)


def assert_agrees(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=3e-6, equal_nan=True)


@settings(max_examples=150, deadline=None)
@given(
    batch=st.integers(0, 3),
    heads=st.sampled_from([(1, 1), (3, 3), (4, 2), (6, 1)]),
    queries=LENGTHS,
    keys=KEYS,
    widths=st.tuples(WIDTHS, WIDTHS),
    kinds=st.tuples(*[st.sampled_from([OUTER, INNER, COLUMNS])] * 4),
    masked=st.sampled_from([None, "causal", "float", "bool", "row", "column", "head"]),
    seed=st.integers(0, 1000),
)
def test_attention_agrees_with_eager_for_any_sizes_masks_and_orders_of_heads(
    batch: int,
    heads: tuple[int, int],
    queries: int,
    keys: int,
    widths: tuple[int, int],
    kinds: tuple[int, int, int, int],
    masked: str | None,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    q = torch.randn(batch, heads[0], queries, widths[0])
    k, v = (torch.randn(batch, heads[1], keys, width) for width in widths)
    masks = {
        "float": (queries, keys),
        "bool": (batch, 1, queries, keys),
        "row": (1, keys),
        "column": (queries, 1),
        "head": (1, heads[0], queries, keys),
    }
    mask = torch.randn(masks[masked]) if masked in masks else None
    if masked == "bool" and mask is not None:
        mask = mask > 0.5
    causal = masked == "causal"
    expected = scaled_dot_product_attention(
        q, k, v, mask, is_causal=causal, scale=0.3, enable_gqa=heads[0] != heads[1]
    )
    assert_agrees(attend(q, k, v, mask, causal=causal, scale=0.3, kinds=kinds), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_long_sequences_agree_over_many_blocks_of_keys(causal: bool, threads: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 1100, 24) for _ in range(3))
    engine_harness.set_threads(threads)
    try:
        assert_agrees(attend(q, k, v, causal=causal), scaled_dot_product_attention(q, k, v, is_causal=causal))
    finally:
        engine_harness.set_threads(1)


def test_rows_with_infinite_and_missing_scores_are_as_in_pytorch() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, rows, 8) for rows in (9, 21, 21))
    mask = torch.zeros(9, 21)
    mask[3] = -INF
    mask[4, 5:] = -INF
    mask[5] = torch.finfo(torch.float32).min
    mask[6, 3] = INF
    mask[7, 2] = math.nan
    found = attend(q, k, v, mask)
    assert_agrees(found, scaled_dot_product_attention(q, k, v, mask))
    assert bool((found[:, :, 3] == 0).all())
    assert bool(found[:, :, 7].isnan().all())


@pytest.mark.parametrize("value", [math.nan, INF, -INF])
def test_a_query_that_is_not_finite_spoils_only_its_row(value: float) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, rows, 16) for rows in (20, 30, 30))
    q[0, 0, 7, 3] = value
    found = attend(q, k, v)
    assert_agrees(found, scaled_dot_product_attention(q, k, v))
    assert found[0, 0].isfinite().all(-1).sum() == 19


@pytest.mark.parametrize("factor", [10.0, 100.0, -100.0])
def test_scores_far_from_zero_err_as_their_rounding_explains(factor: float) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 40, 16) for _ in range(3))
    exact = scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=factor)
    largest = (q.double() @ k.double().transpose(-1, -2)).abs().max().item() * abs(factor)
    bound = 4 * torch.finfo(torch.float32).eps * largest * v.abs().max().item()
    torch.testing.assert_close(attend(q, k, v, scale=factor).double(), exact, rtol=0, atol=bound)


@pytest.mark.parametrize(
    "shapes", [((5, 8), (7, 8)), ((2, 5, 8), (2, 7, 8)), ((2, 3, 4, 5, 8), (2, 3, 4, 7, 8))]
)
def test_any_number_of_leading_dimensions(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(shapes[0]), torch.randn(shapes[1]), torch.randn(shapes[1])
    assert_agrees(attend(q, k, v), scaled_dot_product_attention(q, k, v))


def test_one_packed_tensor_serves_as_query_key_and_value() -> None:
    torch.manual_seed(0)
    packed = torch.randn(2, 33, 3 * 4 * 16)
    q, k, v = (x.unflatten(-1, (4, 16)).transpose(1, 2) for x in packed.chunk(3, dim=-1))
    attributes = {
        "scale": 0.25,
        "head_orders.kind": [COLUMNS] * 4,
        "head_orders.count": [4] * 4,
        "head_orders.size": [16] * 4,
        "head_orders.begin": [0, 64, 128, 0],
    }
    found = engine_harness.run("Attention", [packed] * 3, [((2, 33, 64), torch.float32)], attributes)[0]
    assert found is not None
    expected = scaled_dot_product_attention(q, k, v, scale=0.25).transpose(1, 2).flatten(2)
    assert_agrees(found, expected)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((1, 2, 5, 8), (1, 2, 7, 4), (1, 2, 7, 8)), "as many columns as a query has"),
        (((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 6, 8)), "as many values as keys"),
        (((1, 3, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)), "heads, which don't divide"),
        (((2, 2, 5, 8), (3, 2, 7, 8), (3, 2, 7, 8)), "leading dimension 0"),
    ],
)
def test_operands_that_do_not_fit_are_refused_with_a_reason(
    shapes: tuple[tuple[int, ...], ...], text: str
) -> None:
    with pytest.raises(engine_harness.OperatorError, match=text):
        engine_harness.run(
            "Attention", [torch.zeros(s) for s in shapes], [((1, 2, 5, 8), torch.float32)], {"scale": 1}
        )
