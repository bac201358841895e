"""Reductions, softmax and normalizations of the engine against eager PyTorch."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F

import engine_harness
from engine_harness import Step, enumerators

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

F32 = torch.float32
NAN, INF = float("nan"), float("inf")
SHAPES = [
    (2, 3, 4, 5), (7,), (1,), (0, 3), (3, 0), (4, 1000), (3, 2, 2049), (1000, 3), (5, 1, 130), (2, 1, 1, 64),
    (17, 129), (2, 7, 7, 65), (1, 49, 17), (6, 1, 5, 1, 33), (3000, 2),
]  # fmt: skip


def _run(
    op: str,
    inputs: list[torch.Tensor | None],
    expected: torch.Tensor,
    attributes: dict[str, object],
    post: tuple[Step, ...] = (),
) -> torch.Tensor:
    found = engine_harness.run(op, inputs, [(expected.shape, expected.dtype)], attributes, post=post)[0]
    assert found is not None
    return found


def _data(shape: tuple[int, ...], special: tuple[float, ...] = (NAN,)) -> torch.Tensor:
    x = torch.randn(shape)
    if x.numel() and random.random() < 0.3:
        x.view(-1)[random.randrange(x.numel())] = random.choice(special)
    return x


def _subsets(rank: int) -> list[list[int]]:
    return [[d for d in range(rank) if mask >> d & 1] for mask in range(1, 1 << rank)]


def _expected(name: str, x: torch.Tensor, dims: list[int], keep: bool) -> torch.Tensor:
    y = x.double()
    if name == "Prod":
        for d in reversed(dims):
            y = y.prod(d, keep)
    elif name == "Variance":
        y = y.var(dims, correction=1, keepdim=keep)
    elif name in ("L1", "L2"):
        y = torch.linalg.vector_norm(y, int(name[1]), dims, keep)
    else:
        function = {"Sum": torch.sum, "Mean": torch.mean, "Max": torch.amax, "Min": torch.amin}[name]
        y = function(y, dims, keep)
    return y.float()


@pytest.mark.filterwarnings("ignore:var\\(\\)")
@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "Prod", "Variance", "L1", "L2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_reduction_agrees_over_any_dimensions(name: str, shape: tuple[int, ...]) -> None:
    random.seed(0)
    torch.manual_seed(0)
    for dims in _subsets(len(shape)):
        if name in ("Max", "Min") and any(shape[d] == 0 for d in dims):
            continue
        # A product of parts may be 0 before it meets an infinity.
        x = _data(shape, (NAN,) if name == "Prod" else (NAN, INF, -INF))
        keep = random.random() < 0.5
        attributes: dict[str, object] = {
            "mask": sum(1 << d for d in dims),
            "keep": keep,
            "reduce": enumerators("ReduceFn")[name],
            "correction": 1,
        }
        expected = _expected(name, x, dims, keep)
        found = _run("Reduce", [x], expected, attributes)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_of_truth_values_and_integers_are_exact(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    functions = enumerators("ReduceFn")
    for dims in _subsets(len(shape)):
        mask = sum(1 << d for d in dims)
        x = torch.randn(shape) > 0.5
        for name, function in (("Any", torch.any), ("All", torch.all)):
            expected = function(x, dims)
            assert torch.equal(
                _run("Reduce", [x], expected, {"mask": mask, "reduce": functions[name]}), expected
            )
        numbers = (torch.randn(shape) * 1e15).long()
        expected = numbers.sum(dims)
        assert torch.equal(_run("Reduce", [numbers], expected, {"mask": mask, "reduce": 0}), expected)


def test_sum_of_many_elements_stays_accurate() -> None:
    torch.manual_seed(0)
    x = torch.rand(2_000_000)
    expected = x.double().sum().float()
    found = _run("Reduce", [x], expected, {"mask": 1, "reduce": 0})
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=0)
    columns = x.view(-1, 4)
    expected = columns.double().sum(0).float()
    found = _run("Reduce", [columns], expected, {"mask": 1, "reduce": 0})
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=0)


def test_reduction_takes_an_epilogue() -> None:
    x = torch.randn(2, 7, 7, 65)
    expected = (x.sum((1, 2)) * 2).clamp(-1, 1)
    post = (Step("MulScalar", (0,), a=2.0), Step("Clamp", (1,), a=-1.0, b=1.0))
    found = _run("Reduce", [x], expected, {"mask": 6, "reduce": 0}, post)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [F32, torch.int32, torch.float16])
@pytest.mark.parametrize("shape", SHAPES)
def test_place_of_the_extreme_is_the_first(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    random.seed(1)
    torch.manual_seed(1)
    for axis in (d for d in range(len(shape)) if shape[d]):
        x = _data(shape).round()
        x = x.nan_to_num().to(dtype) if dtype == torch.int32 else x.to(dtype)
        for largest, function in ((1, torch.argmax), (0, torch.argmin)):
            expected = function(x, axis)
            found = _run("ArgReduce", [x], expected, {"axis": axis, "largest": largest})
            assert torch.equal(found, expected), axis


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, (3, 255), (3, 256), (3, 257), (2, 5000)])
def test_softmax_agrees_along_any_axis(shape: tuple[int, ...], log: bool) -> None:
    random.seed(2)
    torch.manual_seed(2)
    function = torch.log_softmax if log else torch.softmax
    for axis in range(len(shape)):
        for scale in (1.0, 30.0):
            x = _data(shape, (NAN, INF, -INF)) * scale
            expected = function(x.double(), axis).float()
            found = _run("Softmax", [x], expected, {"axis": axis, "log": log})
            torch.testing.assert_close(found, expected, rtol=4e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s])
def test_normalizations_of_rows_agree(shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    for first in range(len(shape)):
        tail = shape[first:]
        x = torch.randn(shape) * 3 + 5
        weight, bias = torch.randn(tail), torch.randn(tail)
        # Of a few elements, the deviation may be nearly 0: the result is as accurate as the mean.
        tolerance = 1e-3 if weight.numel() <= 4 else 2e-5
        attributes: dict[str, object] = {"axis": len(tail), "eps": 1e-5}
        for w in (weight, None):
            for b in (bias, None):
                doubles = [None if t is None else t.double() for t in (w, b)]
                expected = F.layer_norm(x.double(), tail, *doubles, 1e-5).float()
                found = _run("LayerNorm", [x, w, b], expected, attributes)
                torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
            doubled = None if w is None else w.double()
            expected = F.rms_norm(x.double(), list(tail), doubled, 1e-5).float()
            found = _run("RmsNorm", [x, w], expected, attributes)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 7, 7, 65), (1, 49, 17), (3, 5, 64), (1, 6, 6, 320), (2, 300, 12)])
def test_group_norm_agrees(shape: tuple[int, ...]) -> None:
    torch.manual_seed(4)
    channels = shape[-1]
    x = torch.randn(shape) * 2 + 3
    weight, bias = torch.randn(channels), torch.randn(channels)
    for groups in (g for g in (1, 2, 4, 5, 13, channels) if channels % g == 0):
        planes = x.double().movedim(-1, 1)
        expected = F.group_norm(planes, groups, weight.double(), bias.double(), 1e-5).movedim(1, -1).float()
        found = _run("GroupNorm", [x, weight, bias], expected, {"groups": groups, "eps": 1e-5})
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_threads_change_nothing() -> None:
    torch.manual_seed(5)
    x = torch.randn(4, 300, 320)
    cases: list[tuple[str, dict[str, object], torch.Tensor]] = [
        ("Softmax", {"axis": 2}, x),
        ("Softmax", {"axis": 1}, x),
        ("LayerNorm", {"axis": 1, "eps": 1e-5}, x),
        ("GroupNorm", {"groups": 32, "eps": 1e-5}, x),
        ("Reduce", {"mask": 2, "reduce": 1}, x[:, 0]),
        ("Reduce", {"mask": 4, "reduce": 1}, x[:, :, 0]),
    ]
    for op, attributes, like in cases:
        alone = _run(op, [x], like, attributes)
        engine_harness.set_threads(2)
        try:
            together = _run(op, [x], like, attributes)
        finally:
            engine_harness.set_threads(1)
        assert torch.equal(alone, together), op
