"""Quantization-aware training: what is simulated is what is converted, and training helps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import CalibrationError, QuantizationError
from workbench.export import export
from workbench.quantization import calibrate, convert, prepare, prepare_qat

CONFIG = wb.get_symmetric_quantization_config(is_per_channel=True, is_qat=True)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.deep, self.deep_norm = nn.Conv2d(8, 8, 3, groups=8), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        x = torch.relu(self.deep_norm(self.deep(x)))
        return self.head(x.mean((2, 3)))


def _data(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of three kinds of stripes, with noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=generator)
    grid = torch.arange(8.0)
    kinds = torch.stack([grid.expand(8, 8), grid.expand(8, 8).t(), grid + grid[:, None]])
    images = torch.sin(kinds * 1.6)[labels].unsqueeze(1)
    return images + 0.4 * torch.randn(images.shape, generator=generator), labels


def _train(module: nn.Module, steps: int, rate: float, parameters: Any = None) -> list[float]:
    optimizer = torch.optim.Adam(module.parameters() if parameters is None else parameters, rate)
    losses = []
    for step in range(steps):
        x, y = _data(32, seed=step)
        loss = nn.functional.cross_entropy(module(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def _accuracy(module: Any) -> float:
    x, y = _data(256, seed=999)
    with torch.no_grad():
        return float((module(x).argmax(1) == y).double().mean())


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    torch.manual_seed(0)
    model = Small()
    _train(model, 60, 1e-2)
    return model.eval()


def _program(model: nn.Module) -> Any:
    batch = torch.export.Dim("n", min=2, max=512)
    return export(model, (_data(4)[0],), dynamic_shapes=({0: batch},))


def test_training_starts_from_the_model_and_leaves_it_alone(trained: nn.Module) -> None:
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    program = prepare_qat(_program(trained), wb.XNNPACKQuantizer().set_global(CONFIG))
    x, _ = _data(64)
    program.module.train()
    losses = _train(program.module, 12, 1e-3)
    assert all(map(torch.isfinite, torch.tensor(losses)))
    program.module.eval()
    with torch.no_grad():
        assert float((program.module(x) - trained(x)).norm() / trained(x).norm()) < 0.5
    assert all(bool((tensor == before[name]).all()) for name, tensor in trained.state_dict().items())


def test_converted_program_computes_what_was_simulated(trained: nn.Module) -> None:
    program = prepare_qat(_program(trained), wb.XNNPACKQuantizer().set_global(CONFIG))
    program.module.train()
    _train(program.module, 8, 1e-3)
    program.module.eval()
    made = program.convert()
    x, _ = _data(16, seed=5)
    with torch.no_grad():
        simulated, found = program.module(x), made.module()(x)
    step = float(program.calibrated().report.set_index("node").loc["linear", "scale"])
    assert float((simulated - found).abs().max()) <= 1.01 * step
    assert not any("batch_norm" in str(node.target) for node in made.graph.nodes)
    lowering = wb.lower(made)
    assert float((lowering.execute(x)[0] - found).abs().max()) <= 1.01 * step


def test_training_repairs_what_rounding_broke(trained: nn.Module) -> None:
    coarse = wb.get_symmetric_quantization_config(is_qat=True, weight_qmin=-1, weight_qmax=1)
    quantizer = wb.XNNPACKQuantizer().set_global(coarse)
    after = convert(calibrate(prepare(_program(trained), quantizer), [(_data(32)[0],)] * 2))
    program = prepare_qat(_program(trained), quantizer)
    program.module.train()
    _train(program.module, 60, 5e-3)
    program.module.eval()
    assert _accuracy(trained) > 0.95
    assert _accuracy(program.convert().module()) > max(_accuracy(after.module()) + 0.02, 0.8)


def test_dynamic_and_4_bit_layers_are_trained() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    config = wb.get_symmetric_quantization_config(
        is_per_channel=True, is_qat=True, is_dynamic=True, weight_bits=4, group_size=16
    )
    program = prepare_qat(export(model, (torch.randn(2, 16),)), wb.XNNPACKQuantizer().set_global(config))
    x, wanted = torch.randn(2, 16), torch.randn(2, 4)
    optimizer = torch.optim.Adam(program.module.parameters(), 1e-2)
    program.module.train()
    losses = []
    for _ in range(30):
        loss = (program.module(x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0]
    with torch.no_grad():
        torch.testing.assert_close(program.convert().module()(x), program.module(x), atol=2e-2, rtol=0)


def test_module_that_was_never_run_can_not_be_converted(trained: nn.Module) -> None:
    program = prepare_qat(_program(trained), wb.XNNPACKQuantizer().set_global(CONFIG))
    with pytest.raises(CalibrationError, match="saw no value"):
        program.convert()


def test_program_that_changes_its_buffers_is_refused() -> None:
    with pytest.warns(UserWarning, match="training mode"):
        program = export(Small().train(), (_data(4)[0],))
    with pytest.raises(QuantizationError, match="changes its buffers"):
        prepare_qat(program, wb.XNNPACKQuantizer().set_global(CONFIG))
