"""Passes that make quantization better, on cases made for them; the function in floats stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends.programs import copy_program
from workbench.errors import CalibrationError
from workbench.export import export
from workbench.quantization import calibrate, convert, correct_bias, equalize, prepare

TENSOR = wb.get_symmetric_quantization_config()
CHANNEL = wb.get_symmetric_quantization_config(is_per_channel=True)


def _error(model: nn.Module, program: Any, inputs: list[Any]) -> float:
    module = program.module()
    with torch.no_grad():
        pairs = [(model(*x), module(*x)) for x in inputs]
    noise = sum(float((a - b).square().sum()) for a, b in pairs)
    return noise / sum(float(a.square().sum()) for a, _ in pairs)


def _inputs(*shape: int, count: int = 6, seed: int = 0) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(shape, generator=generator),) for _ in range(count)]


def _uneven() -> nn.Module:
    """Convolutions whose channels differ by orders of magnitude, which cancel out."""
    torch.manual_seed(0)
    first, depthwise, last = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 4, 1)
    factor = torch.logspace(-2, 2, 16)
    with torch.no_grad():
        first.weight.mul_(factor.reshape(-1, 1, 1, 1))
        assert first.bias is not None
        first.bias.mul_(factor)
        last.weight.div_(factor.reshape(1, -1, 1, 1))
    return nn.Sequential(first, nn.ReLU(), depthwise, nn.ReLU(), last).eval()


def test_equalizing_keeps_the_function_and_helps() -> None:
    model, data = _uneven(), _inputs(1, 3, 10, 10)
    program = export(model, data[0])
    own = copy_program(program)
    assert equalize(own) == 2
    assert _error(model, own, data) < 1e-10
    weight = next(iter(own.constants.values()))
    assert float(weight.abs().amax()) < 50
    quantizer = wb.XNNPACKQuantizer().set_global(TENSOR)
    plain = convert(calibrate(prepare(program, quantizer), data))
    better = convert(calibrate(prepare(program, quantizer, equalized=True), data))
    assert _error(model, better, data) < 0.1 * _error(model, plain, data)


def test_equalizing_leaves_what_it_can_not_change() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.sigmoid(self.a(x))  # not homogeneous
            y = self.b(x)
            return self.c(torch.relu(y)) + y  # two readers

    program = copy_program(export(Model().eval(), (torch.randn(1, 4),)))
    before = str(program.graph)
    assert equalize(program) == 0
    assert str(program.graph) == before


class Outliers(nn.Module):
    """A norm with two channels that are far larger than the others."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(32), nn.Linear(32, 32), nn.Linear(32, 8)
        with torch.no_grad():
            self.norm.weight[3], self.norm.weight[17] = 200.0, 90.0
            self.a.weight[:, [3, 17]] *= 0.01
            self.b.weight[:, [3, 17]] *= 0.01

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.norm(x)
        return self.a(x), self.b(x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_smoothing_keeps_the_function_and_helps(dynamic: bool) -> None:
    torch.manual_seed(0)
    model, data = Outliers().eval(), _inputs(4, 32)
    config = wb.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    prepared = prepare(export(model, data[0]), wb.XNNPACKQuantizer().set_global(config))
    errors, floats = {}, {}
    for share in (0.0, 0.5):
        made = calibrate(prepared, data, smoothed=share)
        module = convert(made).module()
        floats[share] = made.program.module()
        with torch.no_grad():
            found = [(model(*x)[0], module(*x)[0], floats[share](*x)[0]) for x in data]
        errors[share] = sum(float((a - b).square().sum()) for a, b, _ in found)
        assert sum(float((a - c).square().sum()) for a, _, c in found) < 1e-7 * sum(
            float(a.square().sum()) for a, _, _ in found
        )
    assert errors[0.5] < 0.3 * errors[0.0]
    with pytest.raises(CalibrationError, match="can't be smoothed"):
        calibrate(calibrate(prepared, data), data, smoothed=0.5)


def test_bias_correction_helps() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1))
    model.eval()
    data = [(x.abs() + 1,) for (x,) in _inputs(2, 3, 12, 12, count=10)]  # means that are not zero
    config = wb.get_symmetric_quantization_config(weight_qmin=-7, weight_qmax=7)
    program = export(model, data[0])
    made = calibrate(prepare(program, wb.XNNPACKQuantizer().set_global(config)), data[:6])
    plain = convert(made)
    before = {name: tensor.clone() for name, tensor in plain.state_dict.items()}
    corrected = correct_bias(made.program, plain, data[:6])
    assert _error(model, corrected, data[6:]) < 0.7 * _error(model, plain, data[6:])
    assert all(bool((tensor == plain.state_dict[name]).all()) for name, tensor in before.items())


def test_bias_correction_adds_a_bias_where_there_is_none() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16, bias=False), nn.ReLU(), nn.Linear(16, 4, bias=False)).eval()
    data = [(x.abs() + 1,) for (x,) in _inputs(8, 16)]
    config = wb.get_symmetric_quantization_config(weight_qmin=-7, weight_qmax=7)
    recipe = wb.Recipe(quantizer=wb.XNNPACKQuantizer().set_global(config), calibration=data)
    plain = wb.lower(model, data[0], recipe=recipe)
    better = plain.relower(recipe.replace(quantization={"correct_bias": True}))
    assert _error(model, better.quantized.exported_program(), data) < 0.8 * _error(
        model, plain.quantized.exported_program(), data
    )
    assert len(better.execute(*data[0])[0]) == 8


def test_recipe_equalizes_and_smooths() -> None:
    model, data = _uneven(), _inputs(1, 3, 10, 10)
    recipe = wb.Recipe(quantizer=wb.XNNPACKQuantizer().set_global(TENSOR), calibration=data)
    plain = wb.lower(model, data[0], recipe=recipe)
    better = plain.relower(recipe.replace(quantization={"equalize": True, "smooth": 0.5}))
    wanted = model(*data[0]).detach()
    errors = [float((item.execute(*data[0])[0] - wanted).norm()) for item in (plain, better)]
    assert errors[1] < 0.5 * errors[0]
