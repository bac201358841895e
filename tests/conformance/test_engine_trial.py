"""Trials: each method of a convolution against eager PyTorch, and that the quickest one is taken."""

from __future__ import annotations

import time
from collections import Counter

import pytest
import torch

import engine_harness
import workbench as wb
from engine_convolutions import Case, assert_near, convolve
from engine_harness import INPUT, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

METHODS = (
    "product",
    "winograd 2",
    "winograd 4",
    "winograd 2, weights in each run",
    "winograd 4, weights in each run",
)


def quickest(method: str) -> dict[str, int]:
    """Times with which this method wins."""
    return {other: 1 if other == method else 1_000_000_000 for other in METHODS}


def same(side: int | tuple[int, int], cin: int, cout: int, batch: int = 1) -> Case:
    """A 3x3 kernel with stride 1."""
    size = side if isinstance(side, tuple) else (side, side)
    return Case(batch, size, cin, cout, (3, 3), padding=(1, 1, 1, 1))


CASES = [
    same(2, 3, 7),
    same((5, 3), 17, 33),
    same(7, 64, 40),
    same((9, 14), 1, 17),
    same(14, 130, 96, batch=2),
    same(7, 512, 64),  # rows of weights in several parts
    Case(1, (8, 11), 24, 24, (3, 3), padding=(0, 2, 3, 0)),
    Case(2, (13, 9), 20, 100, (3, 3), padding=(-1, 1, 0, -2)),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_method_that_wins_the_trial_agrees_with_eager(method: str, case: Case, threads: int) -> None:
    x, weight, bias = case.tensors()
    shape = case.expected(x, weight, bias).shape
    engine_harness.set_threads(threads)
    try:
        with engine_harness.trial(quickest(method)) as measured:
            found = convolve(case, x, weight, bias, shape)
            tried = [name for name, _ in measured()]
    finally:
        engine_harness.set_threads(1)
    assert method in tried
    assert_near(case, found, x, weight, bias)


@pytest.mark.parametrize("order", ["torch", "xnnpack", "outer_last", "columns_first"])
@pytest.mark.parametrize("method", METHODS)
def test_method_takes_weights_in_any_order_and_an_epilogue(method: str, order: str) -> None:
    case = same(6, 19, 35)
    x, weight, bias = case.tensors()
    expected = case.expected(x, weight, bias)
    residual = torch.randn(expected.shape)
    post = (Step("Add", (0, INPUT)), Step("Gelu", (1,)), Step("Clamp", (2,), a=-0.1, b=2.0))
    with engine_harness.trial(quickest(method)):
        found = convolve(
            case, x, weight, bias, expected.shape, order=order, post=post, post_inputs=(residual,)
        )
    wanted = torch.nn.functional.gelu(expected + residual).clamp(-0.1, 2.0)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=2e-4)


def test_results_show_that_the_winner_computes() -> None:
    case = same(12, 64, 64)
    x, weight, bias = case.tensors()
    shape = case.expected(x, weight, bias).shape
    found = {}
    for method in METHODS:
        with engine_harness.trial(quickest(method)):
            found[method] = convolve(case, x, weight, bias, shape)
    # They round differently; when weights are transformed makes no difference to what is computed.
    direct, two, four, two_late, four_late = (found[method] for method in METHODS)
    assert not torch.equal(direct, two)
    assert not torch.equal(direct, four)
    assert not torch.equal(two, four)
    assert torch.equal(two, two_late)
    assert torch.equal(four, four_late)


def test_trial_without_injection_measures_within_its_limit() -> None:
    case = same(112, 128, 256)
    x, weight, bias = case.tensors()
    shape = case.expected(x, weight, bias).shape
    start = time.perf_counter()
    convolve(case, x, weight, bias, shape)
    untried = time.perf_counter() - start
    with engine_harness.trial() as measured:
        start = time.perf_counter()
        found = convolve(case, x, weight, bias, shape)
        tried = time.perf_counter() - start
        times = dict(measured())
    assert_near(case, found, x, weight, bias)
    assert {"winograd 2", "winograd 4"} <= set(times)
    assert all(ns > 0 for ns in times.values())
    # 20 ms for the runs; packing, and other processes beside this one, are not in them.
    assert tried - untried < 0.5


def test_nothing_is_measured_unless_asked() -> None:
    case = same(8, 16, 16)
    x, weight, bias = case.tensors()
    with engine_harness.trial() as measured:
        pass
    convolve(case, x, weight, bias, case.expected(x, weight, bias).shape)
    assert measured() == []


def test_equal_layers_of_a_program_are_tried_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(32, 32, 3, padding=1) for _ in range(3)]
    model = torch.nn.Sequential(*layers, torch.nn.Conv2d(32, 48, 3, padding=1)).eval()
    inputs = (torch.randn(1, 32, 16, 16),)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner(trial=True))
    monkeypatch.setenv("LOWERING_WORKBENCH_DESCRIBE", "1")
    lowering = wb.lower(model, inputs, recipe=recipe)
    found = lowering.execute(*inputs)[0]
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("trial: ")]
    layers_tried = Counter(line.split(": ")[1] for line in lines)
    methods = Counter(line.split(": ")[2].rpartition(" us")[0].rpartition(" ")[0] for line in lines)
    assert set(layers_tried) == {"16 x 16, 32 -> 32 channels", "16 x 16, 32 -> 48 channels"}
    assert methods["winograd 4"] == 2
    with torch.no_grad():
        torch.testing.assert_close(found, model(*inputs), rtol=1e-4, atol=1e-4)
