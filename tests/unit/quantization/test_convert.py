"""The graphs that are written: conventions, identity, and lowering."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from networks import build
from workbench import provenance
from workbench.errors import QuantizationError
from workbench.export import export
from workbench.lowering import new_trace
from workbench.quantization import CalibratedProgram, calibrate, convert, prepare

STATIC = wb.get_symmetric_quantization_config(is_per_channel=True)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(x + self.second(x))
        return self.head(x.mean((2, 3)))


INPUTS = (torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(5)),)
DATA = [(torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(k)),) for k in range(4)]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return Residual().eval()


@pytest.fixture(scope="module")
def calibrated() -> CalibratedProgram:
    return calibrate(prepare(export(_model(), INPUTS), wb.XNNPACKQuantizer().set_global(STATIC)), DATA)


def _count(program: Any, text: str) -> int:
    return sum(text in str(node.target) for node in program.graph.nodes if node.op == "call_function")


def test_each_reader_has_a_dequantize_node_of_its_own(calibrated: CalibratedProgram) -> None:
    made = convert(calibrated)
    for node in made.graph.nodes:
        if "dequantize" in str(node.target):
            assert len(node.users) == 1
    # Input, the first relu, the second convolution, the sum, the mean, the result.
    assert _count(made, "quantize_per_tensor") - _count(made, "dequantize_per_tensor") == 6
    assert _count(made, "dequantize_per_channel") == 3
    assert _count(made, "dequantize_per_tensor") == 7
    assert not any(t.dtype == torch.float32 and t.dim() > 1 for t in made.state_dict.values())


def test_nodes_keep_names_handles_and_lines(calibrated: CalibratedProgram) -> None:
    made = convert(calibrated)
    before = {node.name: node for node in calibrated.program.graph.nodes}
    for node in made.graph.nodes:
        if node.op != "call_function":
            continue
        assert provenance.handles(node), node
        if node.name in before:
            assert provenance.handles(node) == provenance.handles(before[node.name])
            assert provenance.source_line(node) == provenance.source_line(before[node.name])
        else:
            assert "quantize" in str(node.target)
            assert provenance.module_path(node)[1], node
            assert provenance.source_line(node), node
    sources = provenance.source_map(made)
    convolution = next(node for node in made.graph.nodes if node.name == "conv2d")
    kinds = {source.target for source in sources.resolve(provenance.handles(convolution))}
    assert {"aten.conv2d.default", "aten.batch_norm.default"} <= kinds


def test_layers_can_be_chosen(calibrated: CalibratedProgram) -> None:
    layers = list(calibrated.plan.layers)
    assert layers == ["conv2d", "conv2d_1", "add", "mean", "linear"]
    nothing = convert(calibrated, only=())
    assert _count(nothing, "quantize") == 0
    with torch.no_grad():
        wanted = _model()(*INPUTS)
        torch.testing.assert_close(nothing.module()(*INPUTS), wanted, atol=1e-5, rtol=1e-4)
        errors = {}
        for layer in layers:
            errors[layer] = float((convert(calibrated, only=[layer]).module()(*INPUTS) - wanted).norm())
            assert errors[layer] > 0
        whole = float((convert(calibrated).module()(*INPUTS) - wanted).norm())
        assert max(errors.values()) < 2 * whole
    one = convert(calibrated, without=["conv2d", "linear"])
    assert _count(one, "dequantize_per_channel") == 1
    with pytest.raises(QuantizationError, match="no quantized layer 'conv3d'"):
        convert(calibrated, only=["conv3d"])


def test_weights_that_are_shared_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(torch.relu(self.a(x)))

    program = export(Tied().eval(), (torch.randn(1, 4),))
    quantizer = wb.XNNPACKQuantizer().set_global(STATIC)
    made = convert(calibrate(prepare(program, quantizer), [torch.randn(1, 4) for _ in range(3)]))
    assert sum(t.dtype == torch.int8 for t in made.constants.values()) == 1
    assert _count(made, "dequantize_per_channel") == 2


def test_shared_weight_is_quantized_for_each_reader_as_it_was_asked() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(32, 32) / 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            linear = nn.functional.linear
            return linear(torch.relu(linear(torch.relu(linear(x, self.weight)), self.weight)), self.weight)

    torch.manual_seed(0)
    model, x = Tied().eval(), torch.randn(4, 32)
    options = {"is_per_channel": True, "is_dynamic": True}
    quantizer = wb.XNNPACKQuantizer()
    for name, more in (("linear", {}), ("linear_1", {"group_size": 8}), ("linear_2", {"group_size": 16})):
        bits = 4 if more else 8
        config = wb.get_symmetric_quantization_config(**options, weight_bits=bits, **more)
        quantizer.set_node_name(name, config)
    made = convert(calibrate(prepare(export(model, (x,)), quantizer)))
    integers = [t for t in made.constants.values() if t.dtype == torch.int8]
    assert len(integers) == 3
    assert sorted(int(t.abs().max()) for t in integers) in ([7, 7, 127], [7, 8, 127], [8, 8, 127])
    with torch.no_grad():
        assert float((made.module()(x) - model(x)).norm() / model(x).norm()) < 0.3


def test_dynamic_shapes_are_kept() -> None:
    batch = torch.export.Dim("n", min=1, max=16)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    for config in (STATIC, wb.get_symmetric_quantization_config(is_dynamic=True)):
        quantizer = wb.XNNPACKQuantizer().set_global(config)
        recipe = wb.Recipe(quantizer=quantizer, calibration=[torch.randn(n, 4) for n in (1, 3)])
        lowering = wb.lower(model, (torch.randn(2, 4),), recipe=recipe, dynamic_shapes=({0: batch},))
        for n in (1, 7, 16):
            x = torch.randn(n, 4).clamp(-2, 2)
            with torch.no_grad():
                assert lowering.execute(x)[0].shape == (n, 2)
                assert float((lowering.execute(x)[0] - model(x)).abs().max()) < 0.25


def test_buffers_that_the_model_writes_are_kept() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(1)
            return self.linear(x) + self.seen

    recipe = wb.Recipe(
        quantizer=wb.XNNPACKQuantizer().set_global(STATIC), calibration=[torch.rand(1, 4) for _ in range(3)]
    )
    x = torch.rand(1, 4)
    model = Counts().eval()
    lowering = wb.lower(model, (x,), recipe=recipe)
    assert float(model.seen) == 0, "calibration wrote the model's buffer"
    assert lowering.exported.intact()
    first, second = (lowering.execute(x)[0].clone() for _ in range(2))
    torch.testing.assert_close(second - first, torch.ones(1, 2), atol=1e-5, rtol=0)


def test_values_that_are_written_in_place_are_read_as_written() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            z = torch.relu_(y)
            return self.b(y + z.mul_(2.0))

    torch.manual_seed(0)
    model = Written().eval()
    data = [torch.randn(2, 4) for _ in range(4)]
    prepared = prepare(export(model, (data[0],)), wb.XNNPACKQuantizer().set_global(STATIC))
    assert (prepared.report["state"] == "quantized").all(), prepared.report.to_string()
    made = convert(calibrate(prepared, data))
    with torch.no_grad():
        wanted = model(data[0])
        torch.testing.assert_close(prepared.program.module()(data[0]), wanted)
        assert float((made.module()(data[0]) - wanted).norm() / wanted.norm()) < 0.05


def test_foreign_quantizers_are_taken() -> None:
    from torchao.quantization.pt2e.quantizer.embedding_quantizer import EmbeddingQuantizer
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    made = calibrate(prepare(export(_model(), INPUTS), quantizer), DATA)
    assert (made.report["state"] == "quantized").any()
    assert made.report["how"].str.contains("X86InductorQuantizer").any()
    assert made.report["why"].str.contains("X86InductorQuantizer left it").any()
    assert made.observer_report["min"].notna().all()
    with torch.no_grad():
        wanted = _model()(*INPUTS)
        assert float((convert(made).module()(*INPUTS) - wanted).norm() / wanted.norm()) < 0.1
    table = nn.Sequential(nn.Embedding(8, 4)).eval()
    tokens = (torch.tensor([[1, 2]]),)
    floats = convert(calibrate(prepare(export(table, tokens), EmbeddingQuantizer())))
    assert float((floats.module()(*tokens) - table(*tokens)).abs().max()) < 0.1


def test_quantizer_that_contradicts_itself_is_told() -> None:
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, Quantizer, SharedQuantizationSpec

    class Circle(Quantizer):
        def annotate(self, model: Any) -> Any:
            nodes = [node for node in model.graph.nodes if node.op == "call_function"]
            for one, other in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
                one.meta["quantization_annotation"] = QuantizationAnnotation(
                    output_qspec=SharedQuantizationSpec(other), _annotated=True
                )
            return model

        def validate(self, model: Any) -> None:
            pass

    class Broken(Circle):
        def annotate(self, model: Any) -> Any:
            raise KeyError("conv")

    with pytest.raises(QuantizationError, match="in a circle"):
        prepare(export(_model(), INPUTS), Circle())
    with pytest.raises(QuantizationError, match=r"Broken\.annotate failed: KeyError"):
        prepare(export(_model(), INPUTS), Broken())


def test_numeric_gap_of_a_quantized_lowering_is_that_of_the_runtime() -> None:
    recipe = wb.Recipe(quantizer=wb.XNNPACKQuantizer().set_global(STATIC), calibration=DATA)
    lowering = wb.lower(_model(), INPUTS, recipe=recipe)
    trace = new_trace(values=True)
    lowering.execute(*INPUTS, trace=trace)
    gap = lowering.profile(trace).inspector.calculate_numeric_gap("MAX_ERROR", INPUTS)
    assert len(gap) > 20
    assert float(gap["gap"].max()) < 0.05
    assert gap["module"].notna().any()


def test_comparison_with_the_float_lowering_joins_on_handles() -> None:
    recipe = wb.Recipe(quantizer=wb.XNNPACKQuantizer().set_global(STATIC), calibration=DATA)
    quantized = wb.lower(_model(), INPUTS, recipe=recipe)
    floats = quantized.relower(wb.Recipe())
    table = wb.compare(
        floats.run(*INPUTS, profile=True, values=True), quantized.run(*INPUTS, profile=True, values=True)
    ).table
    assert len(table) >= 5
    assert table["source"].notna().all()


def test_eager_and_runtime_agree_on_a_network() -> None:
    network = build("dscnn")
    data = [(torch.randn(1, 1, 49, 10),) for _ in range(4)]
    recipe = wb.Recipe(quantizer=wb.XNNPACKQuantizer().set_global(STATIC), calibration=data)
    lowering = wb.lower(network.model, network.inputs, recipe=recipe)
    wanted, quantized = network.eager(), lowering.quantized.exported_program()
    found = lowering.execute(*network.inputs)[0]
    with torch.no_grad():
        torch.testing.assert_close(found, quantized.module()(*network.inputs), atol=2e-3, rtol=0)
    assert float((found - wanted).norm() / wanted.norm()) < 0.02
    floats = wb.lower(network.model, network.inputs)
    assert len(lowering.program.buffer) < 0.55 * len(floats.program.buffer)
