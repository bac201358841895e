"""Eager-mode quantized models are taken in."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import ExportError

pytestmark = pytest.mark.filterwarnings("ignore:.*")


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from torch.ao.quantization import DeQuantStub, QuantStub

        self.begin, self.end = QuantStub(), DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
        self.sum = torch.ao.nn.quantized.FloatFunctional()
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(8 * 9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.norm(self.conv(self.begin(x))))
        x = self.pool(self.sum.add(x, x))
        return self.end(self.head(x.flatten(1)))


def _quantized() -> tuple[nn.Module, torch.Tensor]:
    import torch.ao.quantization as ao

    torch.manual_seed(0)
    model = ao.fuse_modules(Small().eval(), [["conv", "norm", "relu"]])
    model.qconfig = ao.get_default_qconfig("fbgemm")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        ao.prepare(model, inplace=True)
        model(torch.randn(8, 3, 8, 8))
        ao.convert(model, inplace=True)
    return model, torch.randn(1, 3, 8, 8)


def test_static_model_lowers_and_agrees_within_one_step() -> None:
    model, x = _quantized()
    lowering = wb.lower(model, (x,))
    with torch.no_grad():
        wanted = model(x)
    step: Any = model.head.scale
    assert float((lowering.execute(x)[0] - wanted).abs().max()) <= step * 1.01
    operators = set(lowering.edge.table["op"])
    assert any("quantize_per_tensor" in item for item in operators)
    assert any("dequantize_per_channel" in item for item in operators)
    sizes = lowering.program.buffer
    assert len(sizes) < 16_000


def test_dynamic_model_lowers_and_agrees() -> None:
    import torch.ao.quantization as ao

    torch.manual_seed(0)
    model = ao.quantize_dynamic(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)), {nn.Linear})
    x = torch.randn(3, 16)
    found = wb.lower(model, (x,)).execute(x)[0]
    assert float((found - model(x)).abs().max()) < 0.02


def test_recurrent_model_is_refused_with_what_to_do() -> None:
    import torch.ao.quantization as ao

    model = ao.quantize_dynamic(nn.Sequential(nn.LSTM(4, 4)), {nn.LSTM})
    with pytest.raises(ExportError, match="eager-mode quantized LSTM") as caught:
        wb.lower(model, (torch.randn(2, 1, 4),))
    assert "quantizer=" in str(caught.value)
