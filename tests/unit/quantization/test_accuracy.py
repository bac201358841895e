from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import digits
import workbench as wb
from workbench.errors import CalibrationError, QuantizationError
from workbench.export import export
from workbench.quantization import (
    XNNPACKQuantizer,
    accuracy,
    calibrate,
    convert,
    get_symmetric_quantization_config,
    prepare,
)
from workbench.quantization.accuracy import Simulation


class Mixed(nn.Module):
    """Convolutions with a residual addition in place, a concatenation, a pool and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.out = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.a(x))
        y = self.norm(self.b(x))
        y += x
        pooled = torch.cat([y, x.clamp(max=0.5)], 1).mean((2, 3))
        return torch.softmax(self.out(pooled), -1)


SAMPLES = [torch.randn(1, 2, 8, 8, generator=torch.Generator().manual_seed(s)) for s in range(4)]
CONFIGS: dict[str, dict[str, Any]] = {
    "static": {"is_per_channel": True},
    "per tensor": {"observer": "min_max"},
    "dynamic": {"is_per_channel": True, "is_dynamic": True},
    "4 bits": {"group_size": 4, "weight_bits": 4, "is_dynamic": True},
    "weights": {"is_per_channel": True, "weights_only": True},
}


def calibrated(config: str = "static", model: nn.Module | None = None) -> Any:
    torch.manual_seed(0)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**CONFIGS[config]))
    program = export((model or Mixed()).eval(), (SAMPLES[0],))
    return calibrate(prepare(program, quantizer), SAMPLES)


@pytest.mark.parametrize("config", CONFIGS)
def test_simulation_computes_what_the_converted_program_does(config: str) -> None:
    found = calibrated(config)
    simulation = Simulation(found)
    layers = frozenset(simulation.layers)
    assert layers
    chosen = [layers, frozenset(), *({layer} for layer in layers), *(layers - {layer} for layer in layers)]
    for sample in SAMPLES[:2]:
        floats = simulation.run(sample, None)
        whole = simulation.rerun(floats, layers)
        for active in chosen:
            program = convert(found, only=active)
            with torch.no_grad():
                expected = program.module()(sample)
            for made in (
                simulation.run(sample, active),
                simulation.rerun(floats, active),
                simulation.rerun(whole, active),
            ):
                assert torch.equal(simulation.outputs(made)[0], expected), active


def test_run_again_computes_only_what_the_change_reaches() -> None:
    simulation = Simulation(calibrated())
    floats = simulation.run(SAMPLES[0], None)
    assert floats.steps == len(simulation.steps)
    assert simulation.rerun(floats, None).steps == 0
    last = simulation.rerun(floats, {"linear"})
    assert 0 < last.steps <= 3
    before = {name: value.clone() for name, value in floats.raw.items() if isinstance(value, Tensor)}
    simulation.rerun(floats, frozenset(simulation.layers))
    assert all(torch.equal(floats.raw[name], value) for name, value in before.items()), "a base was written"


def test_own_error_is_apart_from_the_inherited() -> None:
    found = calibrated()
    table = accuracy(found, SAMPLES).table.set_index("node")
    first = table.loc["relu"]
    assert math.isinf(first["inherited_db"]) or first["inherited_db"] > first["own_db"]
    # A node in floats makes no error of its own.
    for name, row in table.iterrows():
        if not row["layer"] and row["target"] != "input":
            assert math.isinf(row["own_db"]), name
            assert row["sqnr_db"] == pytest.approx(row["inherited_db"]), name
    assert set(table["handles"].map(len)) >= {1}
    assert table.loc["linear", "module"] == "out" and "test_accuracy.py" in table.loc["linear", "source"]


def test_errors_are_those_of_converted_programs() -> None:
    found = calibrated()
    table = accuracy(found, SAMPLES).table.set_index("node")

    def values(program: Any, name: str) -> list[Tensor]:
        seen: list[Tensor] = []

        class Tap(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                value = super().run_node(n)
                if n.name == name:
                    seen.append(value.clone())
                return value

        for sample in SAMPLES:
            table = {**program.state_dict, **program.constants}
            inputs = [table.get(str(s.target), sample) for s in program.graph_signature.input_specs]
            with torch.no_grad():
                Tap(program.graph_module).run(*inputs)
        return seen

    name = "conv2d"  # its result is rounded behind the activation only
    reference = torch.cat(values(found.program, name))
    for column, program in (("sqnr_db", convert(found)), ("own_db", convert(found, only={name}))):
        noise = (torch.cat(values(program, name)) - reference).double().square().sum()
        expected = 10 * torch.log10(reference.double().square().sum() / noise)
        assert table.loc[name, column] == pytest.approx(float(expected), abs=0.01), column


def test_saturation_is_the_share_of_clipped_values() -> None:
    found = calibrated("per tensor")
    table = accuracy(found, SAMPLES).table.set_index("node")
    assert table["saturation"].dropna().max() < 0.02  # the data of the calibration is not clipped
    larger = accuracy(found, [5 * sample for sample in SAMPLES]).table.set_index("node")
    row = larger.loc["relu"]
    simulation = Simulation(found)
    low, high = simulation.results["relu"].limits  # type: ignore[misc]
    raw = torch.cat([simulation.run(5 * sample, frozenset(simulation.layers))["relu"] for sample in SAMPLES])
    assert row["saturation"] == pytest.approx(float(((raw < low) | (raw > high)).double().mean()))
    assert row["saturation"] > 0.001
    assert accuracy(calibrated("dynamic"), SAMPLES).table["saturation"].isna().all()


def test_lowering_is_measured_by_its_stages() -> None:
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    recipe = wb.Recipe(quantizer=quantizer, calibration=digits.calibration)
    lowering = wb.lower(digits.trained(), (torch.zeros(1, 1, 8, 8),), recipe=recipe)
    data = list(digits.calibration(8))
    reports = [accuracy(item, data) for item in (lowering, lowering.calibrated, lowering.quantized)]
    assert reports[0].table.equals(reports[1].table) and reports[0].table.equals(reports[2].table)
    assert 20 < reports[0].sqnr_db < 60
    layers = reports[0].layers
    assert layers["own_db"].is_monotonic_increasing and set(layers["layer"]) <= set(reports[0].table["layer"])
    lowering.selection = reports[0].worst(2)  # rows can be selected in the views
    assert lowering.selection.handles == frozenset().union(*map(frozenset, reports[0].worst(2)["handles"]))
    assert "dB" in reports[0]._repr_html_()


@pytest.mark.parametrize("partitioner", [(), "workbench.backends.xnnpack:XnnpackPartitioner"])
def test_digits_in_8_bits_are_read_within_half_a_point_of_floats(partitioner: Any) -> None:
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    recipe = wb.Recipe(quantizer=quantizer, calibration=digits.calibration, partitioner=partitioner)
    lowering = wb.lower(digits.trained(), (torch.zeros(1, 1, 8, 8),), recipe=recipe)
    data = digits.load()
    with torch.no_grad():
        floats = digits.accuracy(digits.trained()(data.test_images), data.test_labels)
    outputs = torch.cat([lowering.execute(image)[0] for image, _ in digits.evaluation()])
    assert floats > 0.98
    assert digits.accuracy(outputs, data.test_labels) >= floats - 0.005


def test_progress_counts_samples(capsys: pytest.CaptureFixture[str]) -> None:
    accuracy(calibrated(), SAMPLES, progress=True)
    assert "measuring" in (shown := capsys.readouterr().err) and "/4" in shown


@pytest.mark.parametrize(
    ("data", "words"), [([], "empty"), ([torch.zeros(1, 3)], "does not fit"), (5, "no calibration data")]
)
def test_data_that_is_of_no_use_is_refused(data: Any, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        accuracy(calibrated(), data)


def test_what_is_not_quantized_is_refused() -> None:
    torch.manual_seed(0)
    lowering = wb.lower(Mixed().eval(), (SAMPLES[0],))
    with pytest.raises(QuantizationError):
        accuracy(lowering, SAMPLES)
    with pytest.raises(QuantizationError, match="nothing quantized"):
        accuracy(3, SAMPLES)
