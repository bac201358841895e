"""Quantized graphs: what is fused, what stays on floats and why, what is left behind and why."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import workbench as wb
from workbench.backends import delegates_in, unfused, why_not
from workbench.backends.xnnpack import ConfigPrecisionType
from workbench.backends.xnnpack.read import read
from workbench.backends.xnnpack.serialize import nibbles
from xnnpack_quantized import Rows, fake, integers, layer, numbers
from xnnpack_samples import Function

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
quantized = torch.ops.quantized_decomposed


def lower(model: Any, *inputs: Tensor, **options: Any) -> Any:
    module = model if isinstance(model, nn.Module) else Function(model)
    program = torch.export.export(module.eval(), inputs)
    return wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner(**options))


def blobs(manager: Any) -> list[Any]:
    found = delegates_in(manager.exported_program().graph_module)
    return [read(memoryview(delegate.lowered.processed_bytes)) for delegate in found]


def steps(manager: Any) -> list[list[str]]:
    return [[step.name for step in blob.steps] for blob in blobs(manager)]


def texts(manager: Any) -> list[str]:
    return [value.text for blob in blobs(manager) for value in blob.values]


def _r(*shape: int) -> Tensor:
    return torch.randn(*shape)


# ---- what stays on floats ----------------------------------------------------------------------------------


class ZeroPoint(nn.Module):
    """A linear layer whose weight has a zero point."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-9, 9, (4, 5), dtype=torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        return fake(F.linear(fake(x, 0.03), numbers(self.weight, 0.02, 3)), 0.1)


class Unquantized(nn.Module):
    """A layer with a quantized weight and input, whose result is not quantized."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-9, 9, (4, 3, 2, 2), dtype=torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(fake(x, 0.03), numbers(self.weight, 0.02)).sigmoid()


# The model, its inputs, the operator that stays on floats, what is said of it, and what would help.
UNFUSED: dict[str, tuple[Any, tuple[Tensor, ...], str, str, str]] = {
    "no_integer_form": (
        lambda x: fake(fake(x, 0.03).softmax(-1), 0.004, -128),
        (_r(3, 6),),
        "_softmax",
        "no Softmax on integers",
        "left on floats",
    ),
    "scales_too_far_apart": (
        lambda x, y: fake(fake(x, 1e-6) + fake(y, 0.03), 0.03),
        (_r(3), _r(3)),
        "add",
        "3.33333e-05",
        "at least 0.000976562 and below 256",
    ),
    "slope_too_steep": (
        lambda x: fake(F.leaky_relu(fake(x, 0.03), -200.0), 0.03),
        (_r(3),),
        "leaky_relu",
        "times the slope, is 200",
        "below 128",
    ),
    "zero_point_of_second_matrix": (
        lambda x, y: fake(torch.bmm(fake(x, 0.03), fake(y, 0.02, -5)), 0.1),
        (_r(1, 2, 3), _r(1, 3, 2)),
        "bmm",
        "zero point -5",
        "symmetrically",
    ),
    "one_operand_is_float": (
        lambda x, y: fake(fake(x, 0.03) + y, 0.03),
        (_r(3), _r(3)),
        "add",
        "not all of its operands are quantized",
        "each operand came from dequantize_per_tensor",
    ),
    "constant_is_float": (
        lambda x: fake(fake(x, 0.03) * torch.tensor([1.0, 2.0, 3.0]), 0.03),
        (_r(3),),
        "mul",
        "a constant operand is not quantized",
        "int8, or a single number",
    ),
    "weight_has_a_zero_point": (ZeroPoint(), (_r(2, 5),), "linear", "has the zero point 3", "zero point 0"),
    "result_is_not_quantized": (
        Unquantized(),
        (_r(1, 3, 4, 4),),
        "convolution",
        "its result is not quantized",
        "quantize_per_tensor alone read it",
    ),
}


@pytest.mark.parametrize("name", UNFUSED)
def test_operator_on_floats_between_integers_is_reported_and_agrees(name: str) -> None:
    model, inputs, target, reason, eligible = UNFUSED[name]
    manager = lower(model, *inputs)
    assert not [r for r in why_not(manager.exported_program()) if r.target != "getitem"]
    (found,) = unfused(manager.exported_program())
    assert target in found.target
    assert "quantized but not fused by the backend" in found.reason
    assert reason in found.reason
    assert eligible in (found.eligible_if or "")
    assert found.by == "XnnpackBackend"
    (delegate,) = delegates_in(manager.exported_program().graph_module)
    assert "1 on floats between integers" in str(delegate.lowered.meta["delegate_info"])
    module = model if isinstance(model, nn.Module) else Function(model)
    torch.testing.assert_close(manager.exported_program().module()(*inputs), module(*inputs))


def test_operators_on_floats_beside_integers_are_not_reported() -> None:
    manager = lower(lambda x: torch.tanh(fake(torch.exp(x), 0.03)), _r(3))
    assert not unfused(manager.exported_program())


# ---- what is left behind -----------------------------------------------------------------------------------


def _through(dtype: torch.dtype, low: int, high: int, scale: float = 0.03) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        made = quantized.quantize_per_tensor.default(x, scale, 0, low, high, dtype)
        return quantized.dequantize_per_tensor.default(made, scale, 0, low, high, dtype)

    return function


class Volume(nn.Module):
    """A convolution that XNNPACK does not have, with a quantized weight."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-9, 9, (2, 2, 1, 1, 1), dtype=torch.int8))
        self.register_buffer("scales", torch.tensor([0.1, 0.2]))

    def forward(self, x: Tensor) -> Tensor:
        zeros = torch.zeros(2, dtype=torch.int64)
        weight = quantized.dequantize_per_channel.default(
            self.weight, self.scales, zeros, 0, -127, 127, torch.int8
        )
        return F.conv3d(x, weight)


class Both(Rows):
    """Rows that a layer reads, and another operator."""

    def forward(self, x: Tensor) -> Any:
        rows = self.rows(x)
        return F.linear(rows, self.weight(), self.bias), torch.tanh(rows)


LEFT: dict[str, tuple[Any, Tensor, str, str, str]] = {
    "unsigned": (_through(torch.uint8, 0, 255), _r(3), "quantize_per_tensor", "is uint8", "int8"),
    "wide": (_through(torch.int16, -999, 999), _r(3), "quantize_per_tensor", "is int16", "int8"),
    "narrow": (_through(torch.int8, -8, 7), _r(3), "quantize_per_tensor", "from -8 to 7", "-128 to 127"),
    "tiny": (_through(torch.int8, -128, 127, 1e-40), _r(3), "quantize_per_tensor", "scale is 1", "normal"),
    "halves": (lambda x: integers(x, 0.03), _r(3).half(), "quantize_per_tensor", "float16", "float32"),
    "other_parameters": (
        lambda x: numbers(integers(x, 0.03), 0.04),
        _r(3),
        "dequantize_per_tensor",
        "other parameters elsewhere",
        "the same",
    ),
    "weight_of_an_unknown_layer": (
        Volume(),
        _r(1, 2, 2, 2, 2),
        "dequantize_per_channel",
        "no layer that XNNPACK takes reads it",
        "one did",
    ),
    "rows_read_by_another": (Both(), _r(3, 34), "quantize_per_token", "'tanh' reads it", "only linear"),
    "eight_bits_in_groups": (
        Rows(64, group=32),
        _r(3, 64),
        "choose_qparams_per_token",
        "has no form on integers",
        "group of 32, 4 bits",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_reason_says_what_was_found_and_what_would_do(name: str) -> None:
    model, value, target, reason, eligible = LEFT[name]
    manager = lower(model, value)
    said = [r for r in why_not(manager.exported_program()) if target in r.target]
    assert said
    assert reason in said[0].reason
    assert eligible in (said[0].eligible_if or "")
    module = model if isinstance(model, nn.Module) else Function(model)
    torch.testing.assert_close(manager.exported_program().module()(value), module(value))


# ---- partitions --------------------------------------------------------------------------------------------


def test_layer_computes_on_integers_where_an_undelegated_operator_reads_its_input_too() -> None:
    made, value = layer("linear_no_bias", per_channel=True)

    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.made = made

        def forward(self, x: Tensor) -> Tensor:
            x = fake(torch.erf(x), *made.given)
            side = torch.erf(x).sum(-1, keepdim=True)
            return made(x) * torch.erf(side)

    manager = lower(Split(), value)
    assert {r.target for r in why_not(manager.exported_program())} == {"aten.erf.default"}
    assert any("qcint8" in text for text in texts(manager))
    assert not unfused(manager.exported_program())


def test_partition_per_operator_keeps_groups_together() -> None:
    made, value = layer("conv", per_channel=True, after=nn.ReLU())
    manager = lower(made, value, per_op_mode=True)
    expected = made(value)
    assert len(blobs(manager)) >= 2
    torch.testing.assert_close(manager.exported_program().module()(value), expected)


@pytest.mark.parametrize(
    ("precision", "kinds"),
    [
        (ConfigPrecisionType.STATIC_QUANT, {"qint8", "qcint8", "qcint32"}),
        (ConfigPrecisionType.DYNAMIC_QUANT, {"qdint8", "qcint8"}),
        (ConfigPrecisionType.FP32, set()),
    ],
)
def test_precisions_limit_what_is_taken(precision: ConfigPrecisionType, kinds: set[str]) -> None:
    static, value = layer("linear", per_channel=True)
    model = nn.Sequential(static, nn.GELU(), Rows(17, 6, bias=False))
    manager = lower(model, value, config_precisions=precision)
    found = {text.split()[0] for text in texts(manager)}
    assert kinds <= found
    if precision is not ConfigPrecisionType.FP32:
        reasons = why_not(manager.exported_program())
        (gelu,) = (r for r in reasons if "gelu" in r.target)
        assert (gelu.reason, gelu.eligible_if) == ("it computes in FP32", "config_precisions held FP32")
        assert any("config_precisions held" in str(r.eligible_if) for r in reasons if "mm" in r.target)
    torch.testing.assert_close(manager.exported_program().module()(value), model(value))


# ---- what is written ---------------------------------------------------------------------------------------


def test_values_say_what_their_integers_stand_for() -> None:
    made, value = layer("conv_depthwise", per_channel=True)
    found = texts(lower(made, value))
    scale, zero = made.made
    assert f"qint8 [1, 6, 5, 7], scale {torch.tensor(scale).item():g}, zero point {zero}" in found
    assert "qcint8 [1, 3, 3, 7], 7 scales along dimension 3" in found
    assert "qcint32 [7], 7 scales along dimension 0" in found
    found = texts(lower(Rows(64, 6, bits=4, group=32), _r(2, 64)))
    assert "qbint4 [6, 64], 12 scales, each for 32 neighbours" in found
    assert "qdint8 [2, 64], scales found at run time, shared along the last 1 dimensions" in found


def test_scales_are_named_data_called_by_their_hash_and_shared_between_methods() -> None:
    rows, value = Rows(34, 6), _r(2, 34)
    programs = {
        name: torch.export.export(model.eval(), (value,))
        for name, model in (("plain", rows), ("active", nn.Sequential(rows, nn.ReLU())))
    }
    manager = wb.to_edge_transform_and_lower(programs, partitioner=wb.XnnpackPartitioner())
    names = [
        {item.data for item in read(memoryview(d.lowered.processed_bytes)).values if item.data}
        for method in programs
        for d in delegates_in(manager.exported_program(method).graph_module)
    ]
    assert names[0] == names[1]
    for method in programs:
        (delegate,) = delegates_in(manager.exported_program(method).graph_module)
        output = delegate.lowered.named_data_store_output
        assert f"scale_{hashlib.sha256(rows.scales.numpy().tobytes()).hexdigest()}" in output.pte_data


@pytest.mark.parametrize("columns", [1, 2, 7, 8])
def test_four_bits_stand_two_in_a_byte_the_first_low_each_row_from_a_byte(columns: int) -> None:
    given = torch.randint(-8, 8, (3, columns), dtype=torch.int8)
    packed = nibbles(given)
    assert packed.shape == (3, (columns + 1) // 2)
    for row in range(3):
        for column in range(columns):
            byte = int(packed[row, column // 2])
            assert (byte >> 4 if column % 2 else byte & 15) - 8 == given[row, column]


def test_bias_becomes_integers_of_the_scale_of_input_times_weight() -> None:
    made, value = layer("linear", per_channel=True)
    manager = lower(made, value)
    (delegate,) = delegates_in(manager.exported_program().graph_module)
    scales = made.scales * torch.tensor(made.given[0])
    expected = (made.layer.bias.detach().double() / scales.double()).round().to(torch.int32)
    named = delegate.lowered.named_data_store_output.pte_data
    assert hashlib.sha256(expected.numpy().tobytes()).hexdigest() in named
