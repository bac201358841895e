from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from workbench.errors import CalibrationError, QuantizationError
from workbench.export import export
from workbench.quantization import (
    XNNPACKQuantizer,
    calibrate,
    convert,
    get_symmetric_quantization_config,
    prepare,
    sensitivity,
)

SAMPLES = [torch.randn(1, 16, generator=torch.Generator().manual_seed(seed)) for seed in range(5)]


class Fragile(nn.Module):
    """Three layers, of which the second has a weight that 8 bits can't hold beside the others."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        with torch.no_grad():
            self.second.weight[0, 0] = 40.0

    def forward(self, x: Tensor) -> Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


@pytest.fixture(scope="module")
def calibrated() -> Any:
    torch.manual_seed(0)
    config = get_symmetric_quantization_config(is_per_channel=False, observer="min_max")
    program = export(Fragile().eval(), (SAMPLES[0],))
    return calibrate(prepare(program, XNNPACKQuantizer().set_global(config)), SAMPLES)


def _db(program: Any, reference: Any) -> float:
    signal = noise = 0.0
    with torch.no_grad():
        for sample in SAMPLES:
            wanted, value = reference.module()(sample).double(), program.module()(sample).double()
            signal += float(wanted.square().sum())
            noise += float((wanted - value).square().sum())
    return 10 * math.log10(signal / noise)


def test_what_if_is_what_the_converted_program_does(calibrated: Any) -> None:
    found = sensitivity(calibrated, SAMPLES)
    assert found.all_db == pytest.approx(_db(convert(calibrated), calibrated.program), abs=0.01)
    for _, row in found.table.iterrows():
        only = convert(calibrated, only={row["layer"]})
        without = convert(calibrated, without={row["layer"]})
        assert row["only_db"] == pytest.approx(_db(only, calibrated.program), abs=0.01)
        assert row["without_db"] == pytest.approx(_db(without, calibrated.program), abs=0.01)
        assert row["gain_db"] == pytest.approx(row["without_db"] - found.all_db)


def test_layer_that_breaks_the_model_comes_first(calibrated: Any) -> None:
    table = sensitivity(calibrated, SAMPLES).table
    assert table["module"][0] == "second"
    assert table["gain_db"].idxmax() == 0 and table["gain_db"][0] > 6
    assert table.set_index("module")["bytes"]["second"] == 4 * (16 * 16 + 16)
    assert all(len(handles) >= 1 for handles in table["handles"])


def test_values_are_reused(calibrated: Any) -> None:
    found = sensitivity(calibrated, SAMPLES, modes=("only",))
    assert 0.2 < found.reused < 1
    last = sensitivity(calibrated, SAMPLES, modes=("only",), layers=["linear_2"])
    assert last.reused > found.reused
    assert "without_db" not in found.table and list(last.table["layer"]) == ["linear_2"]


def test_metric_of_ones_own_stands_beside_the_ratio(calibrated: Any) -> None:
    def worst(outputs: list[Tensor], reference: list[Tensor]) -> float:
        return float((outputs[0] - reference[0]).abs().max())

    found = sensitivity(calibrated, SAMPLES, metric=worst)
    assert found.float_metric == 0 and found.all_metric > 0
    by_layer = found.table.set_index("module")
    assert by_layer["only_metric"].idxmax() == "second"
    assert by_layer.loc["second", "without_metric"] < found.all_metric


def test_progress_counts_all_trials(calibrated: Any, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(sensitivity(calibrated, SAMPLES, progress=True).table)
    total = len(SAMPLES) * (2 * count + 1)
    assert "sensitivity" in (shown := capsys.readouterr().err) and f"/{total}" in shown


def test_wrong_question_is_refused(calibrated: Any) -> None:
    with pytest.raises(QuantizationError, match="no quantized layer 'third'"):
        sensitivity(calibrated, SAMPLES, layers=["third"])
    with pytest.raises(QuantizationError, match="no such mode"):
        sensitivity(calibrated, SAMPLES, modes=["all"])  # type: ignore[list-item]
    with pytest.raises(CalibrationError, match="empty"):
        sensitivity(calibrated, iter(()))
