"""What the passes make of small models: fewer calls. That the result stays, the interop tests hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import workbench as wb
from workbench.backends.xnnpack.builder import build_graph
from workbench.backends.xnnpack.configs import ALL_CONFIGS, spec_of
from workbench.backends.xnnpack.graph import Graph
from workbench.backends.xnnpack.passes import run_passes
from xnnpack_samples import Function

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def calls(model: Any, *inputs: torch.Tensor, fold: bool = True) -> Graph:
    """The graph of a model that is delegated whole, after all passes."""
    module = model if isinstance(model, nn.Module) else Function(model)
    program = torch.export.export(module.eval(), inputs)
    config = wb.EdgeCompileConfig(fold_batch_norm=fold, _check_ir_validity=False)
    preserved, _ = wb.XnnpackPartitioner().ops_to_not_decompose(program)
    config.preserve_ops = preserved
    graph = build_graph(wb.to_edge(program, compile_config=config).exported_program(), spec_of(ALL_CONFIGS))
    run_passes(graph)
    return graph


def kinds(graph: Graph) -> list[str]:
    return [call.kind for call in graph.calls]


def _r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


@pytest.mark.parametrize(
    ("activation", "bounds"),
    [
        (nn.ReLU(), (0.0, float("inf"))),
        (nn.ReLU6(), (0.0, 6.0)),
        (nn.Hardtanh(-2, 3), (-2.0, 3.0)),
        (nn.Sequential(nn.ReLU6(), nn.Hardtanh(-1, 2)), (0.0, 2.0)),
    ],
)
def test_activation_goes_into_its_producer(activation: nn.Module, bounds: tuple[float, float]) -> None:
    graph = calls(nn.Sequential(nn.Linear(3, 4), activation), _r(2, 3))
    assert kinds(graph) == ["FullyConnected"]
    assert graph.calls[0].bounds == bounds
    assert {str(node.target) for node in graph.calls[0].origins} >= {"aten.linear.default"}
    assert len(graph.calls[0].origins) >= 2


def test_activation_of_a_value_that_others_read_stays() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            return y.relu() * y

    assert sorted(kinds(calls(Model(), _r(2, 3)))) == ["Clamp", "FullyConnected", "Multiply"]


def test_activation_of_what_cannot_clamp_stays() -> None:
    assert kinds(calls(lambda x: x.tanh().relu(), _r(3))) == ["Tanh", "Clamp"]


def test_zero_padding_goes_into_the_convolution_side_by_side() -> None:
    model = nn.Sequential(nn.ZeroPad2d((1, 2, 3, 4)), nn.Conv2d(1, 2, 3, padding=1))
    graph = calls(model, _r(1, 1, 5, 5))
    (conv,) = [call for call in graph.calls if call.kind == "Conv2d" or call.kind == "DepthwiseConv2d"]
    assert [conv.fields[f"padding_{side}"] for side in ("left", "right", "top", "bottom")] == [2, 3, 4, 5]
    assert "StaticConstantPad" not in kinds(graph)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.ConstantPad2d(1, 2.0), nn.Conv2d(2, 2, 3)),
        nn.Sequential(nn.ZeroPad2d(1), nn.ConvTranspose2d(2, 2, 3)),
        nn.Sequential(nn.ZeroPad2d(1), nn.MaxPool2d(3)),
        Function(lambda x: F.conv2d(F.pad(x, (0, 0, 0, 0, 1, 0)), torch.ones(1, 3, 1, 1))),
    ],
)
def test_other_padding_stays(model: nn.Module) -> None:
    assert "StaticConstantPad" in kinds(calls(model, _r(1, 2, 5, 5)))


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (1, 3, 5, 5)),
        (nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)), (1, 4, 5, 5)),
        (nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.BatchNorm2d(4)), (1, 4, 5, 5)),
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (2, 3)),
    ],
)
def test_batch_norm_goes_into_the_weights(model: nn.Module, shape: tuple[int, ...]) -> None:
    graph = calls(model, _r(*shape), fold=False)
    assert not {"Multiply", "Add"} & set(kinds(graph))


def test_scale_of_attention_goes_into_the_projection_and_the_key_is_not_transposed() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (p(x).view(1, 5, 2, 4).transpose(1, 2) for p in (self.q, self.k, self.v))
            return F.scaled_dot_product_attention(q, k, v)

    counts = Counter(kinds(calls(Attention(), _r(1, 5, 8))))
    assert counts["Multiply"] == 0
    assert counts["BatchMatrixMultiply"] == 2
    assert counts["StaticTranspose"] == 3


def test_convolutions_over_one_dimension_are_reshaped_at_the_ends_only() -> None:
    model = nn.Sequential(
        nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.GELU(), nn.Conv1d(3, 3, 3), nn.Tanh(), nn.Conv1d(3, 2, 1)
    )
    counts = Counter(kinds(calls(model, _r(1, 2, 12), fold=False)))
    assert counts["StaticReshape"] <= 2
    assert counts["StaticTranspose"] == 2
    assert counts["Multiply"] == counts["Add"] == 0


def test_product_of_a_residual_is_not_folded_into_a_layer_that_others_read() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            return y * 2 + y

    assert sorted(kinds(calls(Model(), _r(2, 3)))) == ["Add", "FullyConnected", "Multiply"]


def test_inverse_and_repeated_permutations_go() -> None:
    graph = calls(lambda x: x.permute(2, 0, 1).permute(1, 2, 0) + 1, _r(2, 3, 4))
    assert kinds(graph) == ["Add"]
    graph = calls(lambda x: x.permute(2, 0, 1) * x.permute(2, 0, 1).tanh(), _r(2, 3, 4))
    assert Counter(kinds(graph))["StaticTranspose"] == 1
    graph = calls(lambda x: x.permute(2, 0, 1).permute(2, 0, 1) * 1.5, _r(2, 3, 4))
    assert Counter(kinds(graph))["StaticTranspose"] == 1


def test_input_that_is_handed_out_and_value_handed_out_twice_are_copied() -> None:
    graph = calls(lambda x: (x.view(3, 1, 2).view(3, 2).clone(), x + 1), _r(3, 2))
    assert len(set(graph.outputs)) == 2
    assert not set(graph.outputs) & set(graph.inputs)
    assert all(value.producer is not None for value in graph.outputs)


def test_repeated_computation_is_done_once() -> None:
    graph = calls(lambda x: x.sigmoid() * x.sigmoid(), _r(3))
    assert kinds(graph) == ["Sigmoid", "Multiply"]
