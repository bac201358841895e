"""What the quantizer annotates, and what it says about the rest."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import workbench as wb
from networks import small
from workbench.errors import QuantizationError, RecipeError
from workbench.export import export
from workbench.quantization import LayerEdit, PreparedProgram, calibrate, convert, prepare

STATIC = wb.get_symmetric_quantization_config(is_per_channel=True)
DYNAMIC = wb.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)


class Function(nn.Module):
    """A function between two linear layers or convolutions."""

    def __init__(self, function: Any, first: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.first, self.last, self.function = first, last, function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.function(self.first(x)))


def _prepared(model: nn.Module, inputs: tuple[Any, ...], config: Any = STATIC) -> PreparedProgram:
    return prepare(export(model.eval(), inputs), wb.XNNPACKQuantizer().set_global(config))


def _states(prepared: PreparedProgram) -> dict[str, str]:
    return dict(zip(prepared.report["target"], prepared.report["state"], strict=True))


def _checked(model: nn.Module, inputs: tuple[Any, ...], config: Any = STATIC, decibels: float = 25) -> Any:
    """Quantize, and hold the result to the float model."""
    prepared = _prepared(model, inputs, config)
    made = convert(calibrate(prepared, [inputs, inputs]))
    with torch.no_grad():
        wanted, found = model(*inputs), made.module()(*inputs)
    noise = float((wanted - found).square().sum())
    assert noise < float(wanted.square().sum()) * 10 ** (-decibels / 10)
    return prepared


IMAGES = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "leaky_relu": functional.leaky_relu,
    "softmax": lambda x: torch.softmax(x, 1),
    "add": lambda x: x + x.flip(3),
    "mul": lambda x: x * torch.sigmoid(x),
    "scalar": lambda x: x * 3.0,
    "cat": lambda x: torch.cat([x[:, :4], x[:, 4:]], 1),
    "max_pool": lambda x: functional.max_pool2d(x, 2),
    "avg_pool": lambda x: functional.avg_pool2d(x, 2),
    "mean": lambda x: x.mean((2, 3), keepdim=True),
    "adaptive": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "pad": lambda x: functional.pad(x, (1, 1, 1, 1)),
    "moves": lambda x: x.permute(0, 1, 3, 2).reshape(1, 8, 4, 9).transpose(2, 3),
    "upsample": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
}


@pytest.mark.filterwarnings("ignore:calibrated with one sample")
@pytest.mark.parametrize("name", IMAGES)
def test_operator_between_convolutions_is_quantized(name: str) -> None:
    torch.manual_seed(0)
    model = Function(IMAGES[name], nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1))
    prepared = _checked(model.eval(), (torch.randn(1, 3, 8, 8),))
    report = prepared.report
    assert (report["state"] == "quantized").all(), report[["target", "why"]].to_string()
    assert (report["how"] != "").all()


LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(8, 6), (3, 8)),
    "linear without bias": (lambda: nn.Linear(8, 6, bias=False), (2, 3, 8)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3), (1, 4, 9)),
    "conv1d batch norm": (lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6)), (1, 4, 9)),
    "conv2d relu": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3, padding="same"), nn.ReLU()), (1, 4, 9, 9)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), (1, 4, 9, 9)),
    "batch norm relu6": (
        lambda: nn.Sequential(nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU6()),
        (1, 4, 9, 9),
    ),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), (1, 4, 5, 5)),
    "transposed 1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), (1, 4, 5)),
    "weight norm": (lambda: torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), (1, 4, 9)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_quantized_with_its_norm_and_activation(name: str) -> None:
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    prepared = _checked(make().eval(), (torch.randn(shape),), decibels=30)
    assert (prepared.report["state"] == "quantized").all(), prepared.report[["target", "why"]].to_string()
    (weight,) = (group for group in prepared.plan.groups if group.constant)
    assert weight.spec.axis == (1 if "transposed" in name else 0)


def test_products_of_activations_are_quantized() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2))
            return self.o(torch.matmul(torch.softmax(scores, -1), self.v(x)))

    torch.manual_seed(0)
    prepared = _checked(Attention().eval(), (torch.randn(2, 5, 16),))
    assert (prepared.report["state"] == "quantized").all()
    softmax = next(group for group in prepared.plan.groups if group.values == ("softmax",))
    assert softmax.spec.scale == 1 / 256 and softmax.spec.zero_point == -128


def test_embedding_is_quantized_on_request_only() -> None:
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4)).eval()
    tokens = (torch.tensor([[1, 2, 3]]),)
    report = _prepared(model, tokens).report
    row = report[report["target"] == "aten.embedding.default"].iloc[0]
    assert row["state"] == "float" and "on request" in row["why"]
    quantizer = wb.XNNPACKQuantizer().set_global(STATIC).set_object_type(nn.Embedding, STATIC)
    prepared = prepare(export(model, tokens), quantizer)
    assert (prepared.report["state"] == "quantized").all()
    made = convert(calibrate(prepared, [tokens, (torch.tensor([[4, 5, 6]]),)]))
    with torch.no_grad():
        assert float((made.module()(*tokens) - model(*tokens)).abs().max()) < 0.05


def test_residual_in_floats_stays_there_with_the_reason() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.linear(self.norm(x))

    report = _prepared(Block(), (torch.randn(2, 8),)).report.set_index("target")
    assert report.loc["aten.linear.default", "state"] == "quantized"
    assert "operand `x` is in floats" in report.loc["aten.add.Tensor", "why"]
    assert "normalization" in report.loc["aten.layer_norm.default", "why"]


@pytest.mark.parametrize(
    ("options", "operator"),
    [
        ({}, "quantize_per_token"),
        ({"per_token": False}, "choose_qparams"),
        ({"weight_bits": 4}, "dequantize_per_channel"),
        ({"weight_bits": 4, "group_size": 16}, "dequantize_per_channel_group"),
        ({"weights_only": True, "weight_bits": 4, "group_size": 16}, "dequantize_per_channel_group"),
    ],
)
def test_dynamic_and_4_bit_linear_layers(options: dict[str, Any], operator: str) -> None:
    torch.manual_seed(0)
    config = wb.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True, **options)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8)).eval()
    inputs = (torch.randn(3, 32),)
    prepared = _prepared(model, inputs, config)
    made = convert(calibrate(prepared))
    with torch.no_grad():
        wanted, found = model(*inputs), made.module()(*inputs)
    ratio = float((wanted - found).norm() / wanted.norm())
    assert ratio < (0.15 if options.get("weight_bits") == 4 else 0.02)
    targets = [str(node.target) for node in made.graph.nodes]
    assert any(operator in target for target in targets)
    integers = [t for t in made.constants.values() if t.dtype == torch.int8]
    assert not any(t.dim() == 2 for t in made.state_dict.values()), "the float weights are still there"
    assert len(integers) == 2
    if options.get("weight_bits") == 4:
        assert min(int(t.min()) for t in integers) >= -8 and max(int(t.max()) for t in integers) <= 7


def test_quantizer_without_settings_leaves_everything_with_a_reason() -> None:
    network = small("arange_index")  # pytorch/executorch #22062
    prepared = prepare(export(network.model, network.inputs), wb.XNNPACKQuantizer())
    assert (prepared.report["state"] == "float").all()
    assert (prepared.report["why"] == "no setting is about it").all()
    made = convert(calibrate(prepared, [network.inputs]))
    torch.testing.assert_close(made.module()(*network.inputs), network.eager())
    lowering = wb.lower(network.model, network.inputs, recipe=wb.Recipe(quantizer=wb.XNNPACKQuantizer()))
    torch.testing.assert_close(lowering.execute(*network.inputs)[0], network.eager())


def test_every_operator_has_a_decision() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
            y = torch.cond(flag, lambda x: x.sin(), lambda x: x.cos(), (x,))
            return y.cumsum(0) / 2

    report = _prepared(Model(), (torch.randn(3), torch.tensor(True))).report
    assert len(report) >= 5
    assert (report["why"] != "").all()
    branch = report[report["target"] == "aten.sin.default"].iloc[0]
    assert "branch" in branch["why"]


def test_most_specific_setting_holds() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.c(self.b(self.a(x)))

    program = export(Model().eval(), (torch.randn(2, 4),))
    quantizer = (
        wb.XNNPACKQuantizer()
        .set_global(None)
        .set_object_type(nn.Linear, STATIC)
        .set_module_name("c", DYNAMIC)
        .set_module_name("b", None)
    )
    report = prepare(program, quantizer).report.set_index("module")
    assert report.loc["a", "how"].startswith("int8 activations")
    assert "at run time" in report.loc["c.0", "how"]
    assert report.loc["b", "why"] == "the setting of module b keeps it in floats"
    again = wb.Component.of(quantizer).make()
    assert prepare(program, again).report.equals(prepare(program, quantizer).report)
    by_function = wb.XNNPACKQuantizer().set_object_type(functional.linear, STATIC)
    assert (prepare(program, by_function).report["state"] == "quantized").all()
    filtered = wb.XNNPACKQuantizer().set_global(STATIC).set_filter(lambda node: node.name == "linear_1")
    assert list(prepare(program, filtered).report["state"]) == ["float", "quantized", "float"]
    with pytest.raises(RecipeError, match="filter function"):
        filtered.recipe_options()


def test_settings_about_nothing_are_errors() -> None:
    program = export(nn.Sequential(nn.Linear(4, 4)).eval(), (torch.randn(2, 4),))
    with pytest.raises(QuantizationError, match="module 'hed'"):
        prepare(program, wb.XNNPACKQuantizer().set_module_name("hed", STATIC))
    with pytest.raises(QuantizationError, match="no config"):
        wb.XNNPACKQuantizer().set_global("int8")
    with pytest.raises(QuantizationError, match="no type of operator"):
        wb.XNNPACKQuantizer().set_object_type(len, STATIC)
    with pytest.raises(QuantizationError, match="no quantizer"):
        prepare(program, object())
    for options in ({"act_qmin": -300}, {"weight_bits": 3}, {"group_size": 1}, {"observer": "kl"}):
        with pytest.raises(QuantizationError):
            wb.get_symmetric_quantization_config(is_per_channel=True, **options)
    with pytest.raises(RecipeError, match="per_chanel"):
        wb.get_symmetric_quantization_config(per_chanel=True)


def test_edits_decide_over_the_quantizer() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
    program = export(model, (torch.randn(2, 4),))
    quantizer = wb.XNNPACKQuantizer().set_global(STATIC)
    edits = [
        LayerEdit({"observer": "percentile"}, node="linear"),
        LayerEdit(None, module="2"),
    ]
    report = prepare(program, quantizer, edits=edits).report.set_index("node")
    assert "percentile" in report.loc["linear", "how"]
    assert report.loc["linear_1", "state"] == "float"
    assert not quantizer.node_configs, "the quantizer itself was changed"
    with pytest.raises(RecipeError, match="not there"):
        prepare(program, quantizer, edits=[LayerEdit(None, node="linear_7")])
    with pytest.raises(RecipeError, match="observr"):
        LayerEdit({"observr": "mse"}, node="linear")
    with pytest.raises(RecipeError, match="one thing"):
        LayerEdit(None)
    assert LayerEdit.from_data(edits[0].to_data()) == edits[0]
