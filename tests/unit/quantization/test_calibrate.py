"""Calibration: any iterable, resumable, and loud about bad data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import CalibrationError, CalibrationWarning
from workbench.export import export
from workbench.quantization import (
    PreparedProgram,
    calibrate,
    convert,
    load_calibration,
    prepare,
    save_calibration,
)

CONFIG = wb.get_symmetric_quantization_config(is_per_channel=True)


def _prepared(model: nn.Module, *inputs: Any, **options: Any) -> PreparedProgram:
    return prepare(export(model.eval(), inputs, **options), wb.XNNPACKQuantizer().set_global(CONFIG))


@pytest.fixture(scope="module")
def prepared() -> PreparedProgram:
    torch.manual_seed(0)
    return _prepared(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(1, 4))


def _scales(calibrated: Any) -> list[float]:
    return [float(scale) for scale in calibrated.observer_report["scale"].map(lambda s: s.sum())]


def test_data_may_come_in_any_form(prepared: PreparedProgram) -> None:
    tensors = [torch.randn(1, 4) for _ in range(3)]

    def generator() -> Iterator[tuple[torch.Tensor]]:
        yield from ((x,) for x in tensors)

    batches = torch.utils.data.DataLoader(torch.cat(tensors), batch_size=1)  # type: ignore[arg-type, var-annotated]
    forms: list[Any] = [
        tensors,
        [(x,) for x in tensors],
        [[x] for x in tensors],
        [{"input": x} for x in tensors],
        generator(),
        generator,
        {"forward": tensors},
        batches,
    ]
    wanted = _scales(calibrate(prepared, tensors))
    for form in forms:
        made = calibrate(prepared, form)
        assert made.samples == 3
        assert _scales(made) == wanted


def test_more_data_can_be_added(prepared: PreparedProgram, tmp_path: Path) -> None:
    first, second = ([torch.randn(1, 4) * k for _ in range(3)] for k in (1, 5))
    whole = calibrate(prepared, [*first, *second])
    begun = calibrate(prepared, first)
    before = _scales(begun)
    save_calibration(begun, tmp_path / "state.pt")
    resumed = calibrate(load_calibration(prepared, tmp_path / "state.pt"), second)
    assert resumed.samples == whole.samples == 6
    assert _scales(resumed) == _scales(whole)
    assert _scales(begun) == before, "what was calibrated before was changed"
    assert _scales(calibrate(load_calibration(prepared, tmp_path / "state.pt"))) == before


def test_file_of_something_else_is_refused(prepared: PreparedProgram, tmp_path: Path) -> None:
    other = _prepared(nn.Sequential(nn.Linear(4, 2)), torch.randn(1, 4))
    save_calibration(calibrate(other, [torch.randn(1, 4)] * 2), tmp_path / "other.pt")
    with pytest.raises(CalibrationError, match="something else"):
        load_calibration(prepared, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("no calibration")
    with pytest.raises(CalibrationError, match="holds no calibration"):
        load_calibration(prepared, tmp_path / "text.pt")


BAD: dict[str, tuple[Any, str, str]] = {
    "empty": ([], "is empty", "at least one sample"),
    "one tensor": (torch.randn(3, 1, 4), "no calibration data", "iterable"),
    "text": ("data.pt", "no calibration data", "iterable"),
    "number": (3, "no calibration data", "iterable"),
    "pair with label": ([(torch.randn(1, 4), torch.tensor(1))], "another number of inputs", "1: input"),
    "shape": ([torch.randn(1, 5)], "does not fit", "(1, 4)"),
    "rank": ([torch.randn(4)], "does not fit", "(1, 4)"),
    "type": ([torch.ones(1, 4, dtype=torch.int64)], "does not fit", "float32"),
    "array": ([[[1.0, 2, 3, 4]]], "another number of inputs", "1: input"),
    "nan": ([torch.ones(1, 4), torch.full((1, 4), torch.nan)], "sample 2 is not finite", "finite"),
    "infinite": ([torch.full((1, 4), torch.inf)], "sample 1 is not finite", "finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_says_what_and_where(prepared: PreparedProgram, name: str) -> None:
    data, said, expected = BAD[name]
    with pytest.raises(CalibrationError, match=said) as caught:
        calibrate(prepared, data)
    assert expected in str(caught.value.expected)
    assert caught.value.found and caught.value.hint and caught.value.stage == "calibrate"


def test_no_data_is_an_error_only_where_scales_need_it(prepared: PreparedProgram) -> None:
    with pytest.raises(CalibrationError, match="need calibration data"):
        calibrate(prepared)
    dynamic = wb.get_symmetric_quantization_config(is_dynamic=True)
    program = export(nn.Sequential(nn.Linear(4, 2)).eval(), (torch.randn(1, 4),))
    convert(calibrate(prepare(program, wb.XNNPACKQuantizer().set_global(dynamic))))


def test_one_sample_warns(prepared: PreparedProgram) -> None:
    with pytest.warns(CalibrationWarning, match="one sample"):
        calibrate(prepared, [torch.randn(1, 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrate(prepared, [torch.randn(1, 4) for _ in range(2)])


def test_constant_data_warns_by_name_and_stays_right(prepared: PreparedProgram) -> None:
    with pytest.warns(CalibrationWarning, match="input -> linear: all 8 values"):
        made = convert(calibrate(prepared, [torch.zeros(1, 4)] * 2))
    with torch.no_grad():
        wanted = prepared.program.module()(torch.zeros(1, 4))
        torch.testing.assert_close(made.module()(torch.zeros(1, 4)), wanted, atol=0.02, rtol=0)


def test_value_that_overflows_inside_names_node_sample_and_line() -> None:
    class Overflows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(torch.exp(x) * 1e30)

    made = _prepared(Overflows(), torch.randn(1, 4))
    with pytest.raises(CalibrationError, match="sample 2") as caught:
        calibrate(made, [torch.zeros(1, 4), torch.full((1, 4), 80.0)])
    assert caught.value.node == "mul"
    assert "infinities" in str(caught.value.found)
    assert caught.value.source is not None and "test_calibrate.py" in caught.value.source


def test_weight_that_is_not_finite_is_named() -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    made = _prepared(model, torch.randn(1, 4))
    with pytest.raises(CalibrationError, match="not finite"):
        calibrate(made, [torch.ones(1, 4)] * 2)


def test_observer_that_sees_no_element_is_an_error() -> None:
    batch = torch.export.Dim("n", min=0, max=8)
    made = _prepared(nn.Sequential(nn.Linear(4, 2)), torch.randn(3, 4), dynamic_shapes=({0: batch},))
    with pytest.raises(CalibrationError, match="saw no value in 2 samples"):
        calibrate(made, [torch.empty(0, 4)] * 2)
    calibrate(made, [torch.empty(0, 4), torch.randn(2, 4)])


def test_errors_of_the_users_data_come_through(prepared: PreparedProgram) -> None:
    def broken() -> Iterator[torch.Tensor]:
        yield torch.randn(1, 4)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        calibrate(prepared, broken)


def test_known_observers_are_not_run_again(prepared: PreparedProgram) -> None:
    data = [torch.randn(1, 4) for _ in range(2)]
    first = calibrate(prepared, data)
    again = calibrate(
        prepared, iter(()), known={g.name: first.observers[g.name] for g in prepared.plan.groups}
    )
    assert _scales(again) == _scales(first)


def test_progress_is_shown_on_request(prepared: PreparedProgram, capsys: pytest.CaptureFixture[str]) -> None:
    calibrate(prepared, [torch.randn(1, 4)] * 2, progress=True)
    assert "calibrating" in capsys.readouterr().err
    calibrate(prepared, [torch.randn(1, 4)] * 2, progress=False)
    assert capsys.readouterr().err == ""
