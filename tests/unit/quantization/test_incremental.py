"""Accuracy that is measured again after an edit: the same numbers as measured anew, with less computed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from workbench.errors import CalibrationError
from workbench.quantization import (
    CalibratedProgram,
    LayerEdit,
    XNNPACKQuantizer,
    calibrate,
    get_symmetric_quantization_config,
    prepare,
)
from workbench.quantization.accuracy import accuracy
from workbench.quantization.accuracy.incremental import Measurement


class Branches(nn.Module):
    """A residual, a concatenation, and an operator that works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(8 * 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu_(self.first(x))
        z = torch.cat([self.second(y) + y, y], 1)
        return torch.softmax(self.head(z.flatten(1)), -1)


@pytest.fixture(scope="module")
def exported() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    return torch.export.export(Branches().eval(), (torch.randn(1, 2, 4, 4),))


@pytest.fixture(scope="module")
def data() -> list[tuple[torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(1, 2, 4, 4),) for _ in range(3)]


def calibrated(exported: Any, data: Any, *edits: LayerEdit) -> CalibratedProgram:
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    return calibrate(prepare(exported, quantizer, edits=edits), data, progress=False)


def same(measurement: Measurement, calibrated: CalibratedProgram, data: Any) -> None:
    expected = accuracy(calibrated, data, progress=False)
    found = measurement.report
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found.sqnr_db == expected.sqnr_db and found.samples == expected.samples


def test_first_measurement_is_that_of_accuracy(exported: Any, data: Any) -> None:
    told: list[tuple[int, int]] = []
    plain = calibrated(exported, data)
    same(Measurement.of(plain, data, tell=lambda *state: told.append(state)), plain, data)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert Measurement.of(plain, iter(data), most=2).report.samples == 2
    with pytest.raises(CalibrationError, match="empty"):
        Measurement.of(plain, [])


EDITS = {
    "last layer in floats": LayerEdit(config=None, node="linear"),
    "first layer in floats": LayerEdit(config=None, node="conv2d"),
    "another observer": LayerEdit(config={"observer": "moving_average"}, node="conv2d_1"),
    "scales at run time": LayerEdit(config={"is_dynamic": True}, node="linear"),
    "coarse weights": LayerEdit(config={"is_per_channel": False, "weight_bits": 4}, node="linear"),
    "residual in floats": LayerEdit(config=None, node="add"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edit_is_measured_as_if_anew_and_so_is_its_undoing(exported: Any, data: Any, name: str) -> None:
    plain, edited = calibrated(exported, data), calibrated(exported, data, EDITS[name])
    before = Measurement.of(plain, data)
    after = before.again(edited)
    same(after, edited, data)
    assert after.affected and after.computed <= before.computed
    same(after.again(plain), plain, data)


def test_only_what_lies_behind_an_edit_is_computed(exported: Any, data: Any) -> None:
    before = Measurement.of(calibrated(exported, data), data)
    after = before.again(calibrated(exported, data, EDITS["coarse weights"]))
    assert after.affected == {"linear", "softmax"}
    assert 0 < after.computed < before.computed / 2
    nothing = before.again(calibrated(exported, data))
    assert not nothing.affected and nothing.computed == 0
    pd.testing.assert_frame_equal(nothing.report.table, before.report.table)


def test_everything_is_measured_where_nothing_could_be_kept(exported: Any, data: Any) -> None:
    edited = calibrated(exported, data, EDITS["last layer in floats"])
    before = Measurement.of(calibrated(exported, data), data, budget=1000)
    after = before.again(edited)
    same(after, edited, data)
    assert "conv2d" in after.affected


def test_everything_is_measured_where_the_floats_are_others(exported: Any, data: Any) -> None:
    torch.manual_seed(5)
    other = torch.export.export(Branches().eval(), (torch.randn(1, 2, 4, 4),))
    edited = calibrated(other, data)
    after = Measurement.of(calibrated(exported, data), data).again(edited)
    same(after, edited, data)
    assert "conv2d" in after.affected
