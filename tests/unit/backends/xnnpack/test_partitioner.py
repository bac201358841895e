"""Which nodes `XnnpackPartitioner` takes, what its options do, and what it says about the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import workbench as wb
from workbench.backends import delegates_in, why_not
from workbench.backends.xnnpack import ConfigPrecisionType
from workbench.backends.xnnpack.configs import linear, unary
from workbench.errors import PartitionError
from xnnpack_samples import Function

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def lower(model: Any, *inputs: torch.Tensor, shapes: Any = None, **options: Any) -> Any:
    module = model if isinstance(model, nn.Module) else Function(model)
    if shapes is not None and isinstance(module, Function):
        shapes = (shapes,)  # it takes any number of inputs
    program = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes)
    return wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner(**options))


def operators(manager: Any) -> list[list[str]]:
    """The operators of each delegate."""
    graphs = [d.lowered.original_module.graph for d in delegates_in(manager.exported_program().graph_module)]
    return [[str(n.target) for n in graph.nodes if n.op == "call_function"] for graph in graphs]


def _r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def _indices(x: torch.Tensor) -> Any:
    return F.max_pool2d(x, 2, return_indices=True)


# The model, its input, the operator that stays, what is said of it, and what would make it eligible.
REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str, str, str | None]] = {
    "integers": (lambda x: x + 1, (torch.arange(3),), "add.Tensor", "is int64", "float32 or float16"),
    "seven_dimensions": (torch.abs, (_r(1, 1, 1, 1, 1, 1, 2),), "abs", "7 dimensions", "at most 6"),
    "empty": (torch.abs, (_r(0, 3),), "abs", "is empty, of sizes (0, 3)", "no size were 0"),
    "unknown": (torch.erf, (_r(3),), "erf", "XNNPACK has no aten.erf.default", None),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), (_r(3),), "gelu", "'tanh'", "'none'"),
    "power": (lambda x: x**3, (_r(3),), "pow", "exponent is 3", "2, 0.5 or -0.5"),
    "elu": (lambda x: F.selu(x), (_r(3),), "elu", "scales are 1.05", "both were 1"),
    "convolution_3d": (nn.Conv3d(2, 2, 1), (_r(1, 2, 2, 2, 2),), "convolution", "3 dimensions", "1 or 2"),
    "weight_is_computed": (
        lambda x, w: F.conv2d(x, w),
        (_r(1, 2, 4, 4), _r(3, 2, 2, 2)),
        "convolution",
        "its weight",
        "a constant",
    ),
    "linear_is_computed": (
        lambda x, w: F.linear(x, w),
        (_r(2, 3), _r(4, 3)),
        "mm",
        "second matrix",
        "force_non",
    ),
    "addmm_factor": (
        lambda x: torch.addmm(torch.ones(4), x, torch.ones(3, 4), alpha=2),
        (_r(2, 3),),
        "addmm",
        "are 2 and 1",
        "both were 1",
    ),
    "pool_stride": (
        lambda x: F.max_pool2d(x, 2, 3),
        (_r(1, 1, 7, 7),),
        "max_pool2d",
        "[3, 3] exceeds",
        "at most",
    ),
    "pool_indices": (_indices, (_r(1, 1, 4, 4),), "max_pool2d", "indices are used", "only its maxima"),
    "average_counts_padding": (
        lambda x: F.avg_pool2d(x, 3, 1, 1),
        (_r(1, 1, 4, 4),),
        "avg_pool2d",
        "counts the padding",
        "False",
    ),
    "max_over_channels": (lambda x: x.amax(1), (_r(1, 2, 3, 4),), "amax", "dimensions [1]", "2 or 3"),
    "mean_apart": (lambda x: x.mean((0, 2)), (_r(2, 3, 4),), "mean", "dimensions [0, 2]", "neighbours"),
    "softmax_first": (lambda x: x.softmax(0), (_r(2, 3),), "softmax", "dimension 0 of 2", "dimension 1"),
    "slice_step": (lambda x: x[::2], (_r(4),), "slice_copy", "step is 2", "it were 1"),
    "pad_cuts": (lambda x: F.pad(x, (-1, 0)), (_r(2, 4),), "constant_pad_nd", "cuts off", "negative"),
    "expand": (lambda x: x.expand(3, 4), (_r(1, 4),), "expand", "repeats elements", "the same"),
    "mask_at_run_time": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        (_r(1, 1, 4, 8), _r(4, 4)),
        "where",
        "no aten.where",
        None,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_reason_says_what_was_found_and_what_would_do(name: str) -> None:
    model, inputs, target, reason, eligible = REFUSED[name]
    manager = lower(model, *inputs)
    said = [r for r in why_not(manager.exported_program()) if target in r.target]
    assert said, why_not(manager.exported_program())
    assert reason in said[0].reason
    assert eligible in (said[0].eligible_if or "") if eligible else said[0].eligible_if is None
    assert said[0].by == "XnnpackBackend"


def test_dynamic_sizes_are_refused_where_the_library_needs_constants() -> None:
    batch = torch.export.Dim("N", min=1, max=8)
    both = ({0: batch, 1: torch.export.Dim("M", min=1, max=8)},)
    manager = lower(lambda x: x.unsqueeze(0), _r(3, 4), shapes=both)
    assert "2 dynamic sizes" in why_not(manager.exported_program())[0].reason
    manager = lower(lambda x: x[:, 1:], _r(3, 4), shapes=({0: batch},))
    assert "dynamic sizes" in why_not(manager.exported_program())[0].reason


def test_computed_attention_mask_leaves_the_decomposition_which_lowers_in_part() -> None:
    model = REFUSED["mask_at_run_time"][0]
    manager = lower(model, _r(1, 1, 4, 8), _r(4, 4))
    assert any("aten.bmm.default" in listed for listed in operators(manager))


def test_weight_exchanged_at_run_time_is_passed_in_on_request() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    manager = lower(model, _r(2, 3), force_non_static_weights_for_f32_linear=True)
    program = manager.exported_program()
    (call,) = [n for n in program.graph.nodes if "delegate" in str(n.target)]
    assert len(call.args) == 4  # the module, the input, weight and bias
    assert {str(node.target) for node in call.args[2:]} == {"p_0_weight", "p_0_bias"}


def test_computed_weight_of_linear_is_taken_on_request() -> None:
    manager = lower(
        lambda x, w: F.linear(x, w), _r(2, 3), _r(4, 3), force_non_static_weights_for_f32_linear=True
    )
    assert operators(manager) == [["aten.linear.default"]]


def test_partition_per_operator() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    manager = lower(model, _r(2, 3), per_op_mode=True)
    assert [len(listed) for listed in operators(manager)] == [1, 1, 1]


def test_chosen_configs_alone_are_asked() -> None:
    manager = lower(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), _r(2, 3), configs=[linear.Linear])
    assert operators(manager) == [["aten.linear.default"]]
    reasons = [r for r in why_not(manager.exported_program()) if "relu" in r.target]
    assert reasons[0].reason == "XNNPACK has no aten.relu.default"
    manager = lower(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), _r(2, 3), configs=[unary.Clamp()])
    assert operators(manager) == [["aten.relu.default"]]


@pytest.mark.parametrize("modules", [["encoder"], ["torch.nn.modules.conv.Conv2d"], [nn.Conv2d]])
def test_modules_limit_what_is_taken(modules: list[Any]) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 2, 3))
            self.head = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.encoder(x))

    manager = lower(Model(), _r(1, 1, 6, 6), modules=modules)
    assert operators(manager) == [["aten.convolution.default"]]
    reasons = [r for r in why_not(manager.exported_program()) if "addmm" in r.target or "mm" in r.target]
    assert "it comes from the module 'head'" in reasons[0].reason
    assert "`modules` named it" in (reasons[0].eligible_if or "")


def test_arithmetic_without_configs_is_an_error_that_names_those_that_there_are() -> None:
    wb.XnnpackPartitioner(config_precisions=ConfigPrecisionType.FP32)
    wb.XnnpackPartitioner(config_precisions=[ConfigPrecisionType.FP32, ConfigPrecisionType.STATIC_QUANT])
    with pytest.raises(PartitionError, match="config_precisions") as caught:
        wb.XnnpackPartitioner([unary.Clamp], ConfigPrecisionType.DYNAMIC_QUANT)
    assert "FP32" in str(caught.value)


def test_weight_shared_by_layers_of_several_partitions() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.erf(self.layer(x)))

    # Decomposed, both products read one transpose of the weight.
    program = torch.export.export(Tied().eval(), (_r(2, 4),))
    manager = wb.to_edge(program).to_backend(wb.XnnpackPartitioner())
    model, value = Tied().eval(), _r(2, 4)
    program = torch.export.export(model, (value,))
    manager = wb.to_edge(program).to_backend(wb.XnnpackPartitioner())
    targets = [r.target for r in why_not(manager.exported_program())]
    assert "aten.erf.default" in targets
    result = manager.exported_program().module()(value)
    torch.testing.assert_close(result, model(value))


def test_verbose_prints_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    lower(torch.erf, _r(3), verbose=True)
    assert "XNNPACK has no aten.erf.default" in capsys.readouterr().out
