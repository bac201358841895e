"""Operators of the engine that move, pick or convert elements, against eager PyTorch."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
import torch.nn.functional as F

import engine_harness
from engine_harness import INPUT, OperatorError, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

DTYPES = [torch.float32, torch.int64, torch.bool, torch.float16]
SHAPES = [
    (3, 5), (2, 3, 4), (1, 50, 30, 3), (1, 3, 50, 70), (2, 16, 33, 48), (4, 1, 7), (0, 3), (5,),
    (2, 3, 4, 5, 6), (64, 64), (17, 130), (2, 1, 3, 1, 4), (300, 2), (2, 300),
]  # fmt: skip


def _run(
    op: str, inputs: list[torch.Tensor], expected: torch.Tensor, attributes: dict[str, object] | None = None
) -> torch.Tensor:
    found = engine_harness.run(op, inputs, [(expected.shape, expected.dtype)], attributes or {})[0]
    assert found is not None
    return found


def _data(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(shape) * 10).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_transpose_agrees_for_every_permutation(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = _data(shape, dtype)
    for permutation in itertools.permutations(range(len(shape))):
        expected = x.permute(permutation).contiguous()
        assert torch.equal(_run("Transpose", [x], expected, {"permutation": permutation}), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_slice_concat_and_gather_agree_along_any_axis(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    random.seed(0)
    x = _data(shape, dtype)
    for axis in range(len(shape)):
        for _ in range(4):
            begin, end, step = random.randint(-8, 8), random.randint(-8, 300), random.randint(1, 3)
            at = [slice(None)] * len(shape)
            at[axis] = slice(begin, end, step)
            expected = x[tuple(at)].contiguous()
            attributes: dict[str, object] = {"axis": axis, "begin": begin, "end": end, "step": step}
            assert torch.equal(_run("Slice", [x], expected, attributes), expected)
        parts = [x]
        for _ in range(random.randint(0, 3)):
            sizes = list(shape)
            sizes[axis] = random.randint(0, 4)
            parts.append(_data(tuple(sizes), dtype))
        expected = torch.cat(parts, axis)
        assert torch.equal(_run("Concat", parts, expected, {"axis": axis}), expected)
        if shape[axis] == 0:
            continue
        index = torch.randint(-shape[axis], shape[axis], (random.randint(0, 7),))
        expected = x.index_select(axis, index % shape[axis])
        for indices in (index, index.int()):
            assert torch.equal(_run("Gather", [x, indices], expected, {"axis": axis}), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_expand_and_reshape_agree(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    random.seed(1)
    for _ in range(4):
        sizes = [size if random.random() < 0.5 else 1 for size in shape][random.randint(0, len(shape) - 1) :]
        x = _data(tuple(sizes), dtype)
        expected = x.expand((2, *shape)).contiguous()
        attributes: dict[str, object] = {"sizes": list(expected.shape), "rank": len(shape) + 1}
        assert torch.equal(_run("Expand", [x], expected, attributes), expected)
    x = _data(shape, dtype)
    assert torch.equal(_run("Reshape", [x], x.reshape(-1)), x.reshape(-1))


NUMBERS = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
def test_conversion_agrees(source: torch.dtype, target: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(1003) * 50
    if target == torch.uint8:
        x = x.abs()
    if source == torch.float32 and target.is_floating_point:
        edges = [float("nan"), float("inf"), -float("inf"), 1e-41, 65519.0, 65520.0, 6e-8, 3e-8, -0.0]
        x[: len(edges)] = torch.tensor(edges)
    x = x.to(source)
    expected = x.to(target)
    assert torch.equal(_run("Convert", [x], expected).nan_to_num(7), expected.nan_to_num(7))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_embedding_picks_rows_and_takes_an_epilogue(dtype: torch.dtype) -> None:
    table, positions = torch.randn(50, 37), torch.randn(3, 5, 37)
    ids = torch.randint(0, 50, (3, 5)).to(dtype)
    found = engine_harness.run(
        "Embedding",
        [table, ids],
        [((3, 5, 37), torch.float32)],
        post=[Step("Add", (0, INPUT))],
        post_inputs=[positions],
    )[0]
    assert found is not None
    assert torch.equal(found, F.embedding(ids, table) + positions)


@pytest.mark.parametrize("index", [50, -1, 2**31 - 1, -(2**31)])
def test_index_out_of_range_is_reported_and_reads_nothing(index: int) -> None:
    ids = torch.tensor([3, index, 4], dtype=torch.int32)
    with pytest.raises(OperatorError, match=f"index {index} of 50"):
        _run("Embedding", [torch.randn(50, 37), ids], torch.empty(3, 37))
    if index != -1:  # counts from the end
        with pytest.raises(OperatorError, match=f"index {index} of 50"):
            _run("Gather", [torch.randn(2, 50), ids], torch.empty(2, 3), {"axis": 1})


def test_threads_change_nothing() -> None:
    x = torch.randn(3, 400, 410)
    cases: list[tuple[str, torch.Tensor, dict[str, object]]] = [
        ("Transpose", x.permute(2, 1, 0).contiguous(), {"permutation": (2, 1, 0)}),
        ("Transpose", x.permute(1, 0, 2).contiguous(), {"permutation": (1, 0, 2)}),
        ("Slice", x[:, :, 1::2].contiguous(), {"axis": 2, "begin": 1, "end": 1000, "step": 2}),
        ("Reshape", x.view(-1), {}),
        ("Convert", x.half(), {}),
        ("Pad", F.pad(x, (1, 2, 3, 4)), {"before": [0, 3, 1], "after": [0, 4, 2]}),
    ]
    engine_harness.set_threads(2)
    try:
        for op, expected, attributes in cases:
            assert torch.equal(_run(op, [x], expected, attributes), expected), op
    finally:
        engine_harness.set_threads(1)
