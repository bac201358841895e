"""Quantization as a part of a recipe."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import CalibrationWarning, QuantizationError, RecipeError

CONFIG = wb.get_symmetric_quantization_config(is_per_channel=True)
ALL = ("prepare", "calibrate", "quantize", "edge", "partition", "lower", "plan", "program")
INPUTS = (torch.randn(1, 8, generator=torch.Generator().manual_seed(7)),)
runs: list[int] = []


def samples() -> Any:
    """Calibration data that counts how often it is read."""
    runs.append(1)
    return [torch.randn(1, 8, generator=torch.Generator().manual_seed(k)) for k in range(4)]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def _quantizer() -> Any:
    return wb.XNNPACKQuantizer().set_global(CONFIG)


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    recipe = wb.Recipe(quantizer=_quantizer(), calibration=samples)
    return wb.lower(_model(), INPUTS, recipe=recipe)


def test_stages_stand_between_capture_and_edge(lowering: wb.Lowering) -> None:
    assert lowering.ran == ("export", *ALL)
    assert list(lowering._result.stages)[:4] == ["export", "prepare", "calibrate", "quantize"]
    for stage in (lowering.prepared, lowering.calibrated, lowering.quantized):
        assert stage.owner is lowering
        assert stage.intact()
        assert len(stage.table)
        assert "text/html" in stage._repr_mimebundle_()
        assert (stage.report["state"] == "quantized").all()
    assert len({stage.fingerprint for stage in lowering._result.stages.values()}) == 9
    observers = lowering.calibrated.observers
    assert {"scale", "zero_point", "counts", "edges", "clipped", "channel_min"} <= set(observers)
    with torch.no_grad():
        wanted = _model()(*INPUTS)
    assert float((lowering.execute(*INPUTS)[0] - wanted).norm() / wanted.norm()) < 0.1


def test_without_a_quantizer_there_is_neither_stage_nor_step() -> None:
    lowering = wb.lower(_model(), INPUTS)
    assert not {"prepare", "calibrate", "quantize"} & set(lowering.ran)
    with pytest.raises(QuantizationError, match="not quantized") as caught:
        lowering.quantized  # noqa: B018
    assert "quantizer=" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "ran"),
    [
        ({}, ()),
        ({"memory": {"alignment": 64}}, ("plan", "program")),
        ({"quantizer": None, "calibration": None}, ALL[3:]),
        ({"edits": [wb.LayerEdit(None, node="linear_1")]}, ALL),
        ({"quantization": {"correct_bias": True}}, ALL[2:]),
    ],
    ids=["nothing", "memory", "none", "edit", "bias"],
)
def test_only_what_changed_runs_again(lowering: wb.Lowering, changes: Any, ran: tuple[str, ...]) -> None:
    again = lowering.relower(lowering.recipe.replace(**changes))
    assert again.ran == ran
    assert lowering.relower(lowering.recipe).ran == ()
    assert again.relower(lowering.recipe).program.buffer == lowering.program.buffer


def test_edit_of_one_layer_needs_no_data_again(lowering: wb.Lowering) -> None:
    edits = [wb.LayerEdit({"observer": "percentile"}, node="linear_1"), wb.LayerEdit(None, node="linear_2")]
    before = len(runs)
    again = lowering.relower(lowering.recipe.replace(edits=edits))
    report = again.quantized.report.set_index("node")
    assert "percentile" in report.loc["linear_1", "how"]
    assert "keeps it in floats" in report.loc["linear_2", "why"]
    observers = again.calibrated.observers.set_index("name")
    assert observers.loc["relu", "observer"] == "Histogram"
    assert observers.loc["relu_1", "observer"] == "Percentile"
    assert observers.loc["relu_1", "tensors"] == 4
    assert len(runs) <= before + 1, "the function is asked, but nothing is run"
    first, second = (item.calibrated.parts["forward"].observers for item in (lowering, again))
    assert second["relu"] is first["relu"] and second["relu_1"] is not first["relu_1"]
    fresh = wb.lower(_model(), INPUTS, recipe=again.recipe)
    assert fresh.program.buffer == again.program.buffer


def test_recipe_is_data(lowering: wb.Lowering) -> None:
    recipe = wb.Recipe(
        quantizer=_quantizer().set_module_name("2", None),
        calibration="data.of:mine",
        quantization={"smooth": 0.5, "equalize": True},
        edits=[wb.LayerEdit({"observer": "mse"}, module="4")],
    )
    again = wb.Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert eval(recipe.to_python(), {"wb": wb}) == recipe
    for bad in ({"quantization": {"smooth": 1.5}}, {"quantization": {"equalise": True}}):
        with pytest.raises(RecipeError):
            wb.Recipe(quantizer=_quantizer(), **bad)
    for lonely in ({"quantization": {"equalize": True}}, {"edits": [wb.LayerEdit(None, node="a")]}):
        with pytest.raises(RecipeError, match="quantizer"):
            wb.Recipe(**lonely)


def test_progress_of_calibration_follows_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    data = [torch.randn(1, 8) for _ in range(3)]
    recipe = wb.Recipe(quantizer=_quantizer(), calibration=data)
    lowering = wb.lower(_model(), INPUTS, recipe=recipe, progress=True)
    shown = capsys.readouterr().err
    assert "calibrating" in shown and "sample/s" in shown
    lowering.relower(recipe.replace(calibration=data[:2]), progress=False)
    assert capsys.readouterr().err == ""


def test_example_inputs_calibrate_with_a_warning() -> None:
    with pytest.warns(CalibrationWarning, match="one sample"):
        wb.lower(_model(), INPUTS, recipe=wb.Recipe(quantizer=_quantizer()))


def test_errors_name_their_stage() -> None:
    with pytest.raises(QuantizationError) as caught:
        wb.lower(_model(), INPUTS, recipe=wb.Recipe(quantizer=_quantizer(), calibration=[]))
    assert caught.value.stage == "calibrate"
    with pytest.raises(QuantizationError) as caught:
        wb.lower(_model(), INPUTS, recipe=wb.Recipe(quantizer="workbench.recipe:MemoryOptions"))
    assert caught.value.stage == "prepare"


def test_several_methods_have_data_of_their_own() -> None:
    one = torch.export.export(_model(), INPUTS)
    four = torch.export.export(_model(), (torch.randn(4, 8),))
    data = {"forward": samples, "batch": [torch.randn(4, 8) for _ in range(3)]}
    lowering = wb.lower(
        {"forward": one, "batch": four}, recipe=wb.Recipe(quantizer=_quantizer(), calibration=data)
    )
    assert lowering.calibrated.parts["forward"].samples == 4
    assert lowering.calibrated.parts["batch"].samples == 3
    assert set(lowering.quantized.report["method"]) == {"forward", "batch"}


def test_report_says_what_the_backend_made_of_each_node() -> None:
    recipe = wb.Recipe(
        quantizer=_quantizer(),
        calibration=samples,
        partitioner="workbench.backends.xnnpack:XnnpackPartitioner",
    )
    lowering = wb.lower(_model(), INPUTS, recipe=recipe)
    report = lowering.quantization_report
    assert list(report["fused"]) == [True] * 5, report[["node", "backend_why"]].to_string()
    floats = wb.lower(_model(), INPUTS, recipe=recipe.replace(partitioner=()))
    report = floats.quantization_report
    assert set(report["state"]) == {"quantized, not fused"}
    assert set(report["backend_why"]) == {"no partitioner was asked"}


def test_torchao_that_is_missing_is_an_error_that_says_what_to_do() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['torchao'] = None\n"
        "import workbench as wb\n"
        "try:\n    wb.XNNPACKQuantizer()\n"
        "except wb.WorkbenchError as error:\n    print(type(error).__name__, error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith("QuantizationError") and "lowering-workbench[quantization]" in found
