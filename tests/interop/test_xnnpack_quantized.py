"""Quantized graphs that we write for XNNPACK, in ExecuTorch's own runtime: against the graph in eager."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import workbench as wb
from networks import build
from quantized_fixtures import quantize
from workbench.backends import delegates_in, unfused, why_not
from workbench.backends.xnnpack.read import read
from workbench.errors import ExecutionError
from xnnpack_quantized import DYNAMIC, LAYERS, OPERATORS, Rows, layer

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore::UserWarning")]

Run = Callable[..., list[Any]]
MOVES = ("convert", "transpose", "reshape", "copy")


def lower(model: nn.Module, *inputs: Tensor) -> Any:
    program = torch.export.export(model.eval(), inputs)
    return wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner())


def blobs(manager: Any) -> list[Any]:
    found = delegates_in(manager.exported_program().graph_module)
    return [read(memoryview(delegate.lowered.processed_bytes)) for delegate in found]


def computing(manager: Any) -> list[str]:
    """The calls that compute."""
    return [step.name for blob in blobs(manager) for step in blob.steps if step.name not in MOVES]


def types(manager: Any) -> set[str]:
    return {value.text.split()[0] for blob in blobs(manager) for value in blob.values}


def left_behind(manager: Any) -> list[str]:
    return [r.target for r in why_not(manager.exported_program()) if r.target != "getitem"]


def assert_one_step(found: list[Tensor], expected: Tensor, step: float) -> None:
    """At most one integer apart, and mostly the same."""
    (value,) = found
    assert value.dtype == expected.dtype
    assert value.shape == expected.shape
    steps = ((value.double() - expected.double()) / step).abs()
    assert float(steps.max()) < 1.01
    assert float((steps < 0.01).float().mean()) > 0.8


@cache
def _our_runtime_reads_integers() -> bool:
    sample = OPERATORS["relu"]
    try:
        in_ours(bytes(lower(sample.model(), *sample.inputs()).to_executorch().buffer), sample.inputs())
    except ExecutionError as error:
        assert "quantized" in str(error)  # another fault is no reason to skip
        return False
    return True


def in_ours(program: bytes, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    found: list[Tensor] = (
        wb.runtime.Runtime.get().load_program(program).load_method("forward").execute(list(inputs))
    )
    return found


def everywhere(run_in_executorch: Run, manager: Any, *inputs: Tensor) -> list[list[Tensor]]:
    """The results in ExecuTorch's runtime, and in ours once it reads integers."""
    program = bytes(manager.to_executorch().buffer)
    results = [run_in_executorch(program, inputs)]
    if _our_runtime_reads_integers():
        results.append(in_ours(program, inputs))
    return results


# ---- one small model per kind of call ----------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_one_call_on_integers_and_at_most_a_step_off(name: str, run_in_executorch: Run) -> None:
    sample = OPERATORS[name]
    model, inputs = sample.model(), sample.inputs()
    manager = lower(model, *inputs)
    assert not left_behind(manager)
    assert not unfused(manager.exported_program())
    assert tuple(computing(manager)) == sample.calls
    for found in everywhere(run_in_executorch, manager, *inputs):
        assert_one_step(found, model(*inputs), sample.step)


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_one_call_on_integers_and_at_most_a_step_off(
    name: str, per_channel: bool, run_in_executorch: Run
) -> None:
    model, value = layer(name, per_channel=per_channel)
    manager = lower(model, value)
    assert not left_behind(manager)
    assert not unfused(manager.exported_program())
    assert len(computing(manager)) == 1
    weights = {"qcint8", "qcint32"} if per_channel else {"qint8", "qint32"}
    assert weights - types(manager) <= ({"qint32", "qcint32"} if model.layer.bias is None else set())
    for found in everywhere(run_in_executorch, manager, value):
        assert_one_step(found, model(value).detach(), model.made[0])


@pytest.mark.parametrize(
    "after", [nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-0.25, 0.5)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("name", ["conv", "conv_depthwise", "conv1d", "linear"])
def test_clamp_behind_a_layer_is_part_of_it(name: str, after: nn.Module, run_in_executorch: Run) -> None:
    model, value = layer(name, per_channel=True, after=after)
    manager = lower(model, value)
    assert len(computing(manager)) == 1
    assert any("clamp" in step.detail for blob in blobs(manager) for step in blob.steps)
    for found in everywhere(run_in_executorch, manager, value):
        assert_one_step(found, model(value).detach(), model.made[0])


@pytest.mark.parametrize("name", DYNAMIC)
def test_linear_layer_on_rows_quantized_at_run_time_agrees(name: str, run_in_executorch: Run) -> None:
    make, inputs, weight, given, tolerance = DYNAMIC[name]
    model, value = make(), inputs()
    manager = lower(model, value)
    assert not left_behind(manager)
    assert {weight, given} <= types(manager)
    expected = model(value).detach()
    for (found,) in everywhere(run_in_executorch, manager, value):
        torch.testing.assert_close(
            found, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())
        )


def test_decomposed_linear_layers_are_taken_too(run_in_executorch: Run) -> None:
    # Views around the product, and a transpose of the weight before it.
    model, value = nn.Sequential(Rows(34, 18), nn.ReLU(), Rows(18, 5, bits=4)).eval(), torch.randn(2, 5, 34)
    edge = wb.to_edge(torch.export.export(model, (value,)))
    manager = edge.to_backend(wb.XnnpackPartitioner())
    assert not left_behind(manager)
    assert {"qdint8", "qcint8", "qcint4"} <= types(manager)
    for (found,) in everywhere(run_in_executorch, manager, value):
        torch.testing.assert_close(found, model(value).detach(), rtol=1e-4, atol=1e-4)


def test_layers_that_share_rows_share_their_conversion(run_in_executorch: Run) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Rows(34, 6), Rows(34, 5, bits=4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            rows = self.first.rows(x)
            linear = nn.functional.linear
            return linear(rows, self.first.weight()), linear(rows, self.second.weight(), self.second.bias)

    model, value = Shared(), torch.randn(3, 34)
    manager = lower(model, value)
    assert [step.name for blob in blobs(manager) for step in blob.steps] == [
        "convert",
        *["fully connected"] * 2,
    ]
    for found in everywhere(run_in_executorch, manager, value):
        for item, expected in zip(found, model(value), strict=True):
            torch.testing.assert_close(item, expected.detach(), rtol=1e-4, atol=1e-4)


# ---- ExecuTorch's quantizer --------------------------------------------------------------------------------


class Convolutions(nn.Module):
    """A residual block, pooling, and a head, as networks have them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 9, 3, stride=2, padding=1), nn.BatchNorm2d(9), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(9, 9, 3, padding=1, groups=9), nn.ReLU6())
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.head = nn.Linear(9, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = torch.relu(x + self.second(x))
        return self.head(self.pool(x).mean((2, 3)))


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
def test_network_of_their_quantizer_is_one_subgraph_on_integers(
    per_channel: bool, run_in_executorch: Run
) -> None:
    value = torch.randn(1, 3, 13, 15)
    model = quantize(Convolutions().eval(), [(value,)], per_channel=per_channel)
    manager = lower_converted(model, value)
    assert not left_behind(manager)
    assert len(blobs(manager)) == 1
    expected = model(value).detach()
    for (found,) in everywhere(run_in_executorch, manager, value):
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-2 * float(expected.abs().max()))


def lower_converted(model: Any, *inputs: Tensor) -> Any:
    program = torch.export.export(model, inputs)
    return wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner())


# Of ExecuTorch 1.5.1 with its own partitioner, measured: subgraphs, operators left behind, bytes of the file.
THEIRS = {"mlp": (1, 0, 686504), "dscnn": (1, 0, 44464)}


@pytest.mark.parametrize("name", THEIRS)
def test_benchmark_network_has_no_more_subgraphs_leftovers_and_bytes_than_theirs(
    name: str, run_in_executorch: Run
) -> None:
    network = build(name)
    model = quantize(network.model, [network.inputs])
    manager = lower_converted(model, *network.inputs)
    size = len(manager.to_executorch().buffer)
    subgraphs, left, theirs = THEIRS[name]
    assert (len(blobs(manager)), len(left_behind(manager))) == (subgraphs, left)
    assert size <= 1.01 * theirs
    expected = model(*network.inputs)
    for (found,) in everywhere(run_in_executorch, manager, *network.inputs):
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-2 * float(expected.abs().max()))
