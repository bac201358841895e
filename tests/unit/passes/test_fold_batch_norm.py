from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.passes.dead_code import DeadCode
from workbench.passes.fold_batch_norm import FoldBatchNorm


def _trained(*layers):
    model = nn.Sequential(*layers)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_()
            module.running_var.uniform_(0.2, 3)
            if module.affine:
                module.weight.data.normal_()
                module.bias.data.normal_()
    return model


@pytest.mark.parametrize(
    ("layers", "sizes"),
    [
        ((nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)), (2, 3, 8, 8)),
        ((nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6, affine=False)), (2, 3, 8, 8)),
        ((nn.Conv2d(6, 12, 3, groups=6), nn.BatchNorm2d(12)), (2, 6, 8, 8)),
        ((nn.Conv1d(3, 6, 3), nn.BatchNorm1d(6)), (2, 3, 8)),
        ((nn.ConvTranspose2d(4, 6, 3), nn.BatchNorm2d(6)), (2, 4, 5, 5)),
        ((nn.ConvTranspose2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)), (2, 4, 5, 5)),
    ],
    ids=["plain", "no bias", "depthwise", "1d", "transposed", "transposed groups"],
)
def test_norm_behind_a_convolution_is_folded(lab, count, layers, sizes):
    program = lab.edge(_trained(*layers), torch.randn(*sizes))
    result = lab.run(program, FoldBatchNorm(), DeadCode())
    assert set(count(program)) == {"convolution.default"}
    assert result.counts["constants"] > 0


def test_folded_weights_are_those_of_the_norm_in_double_precision(lab):
    model = _trained(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
    program = lab.edge(model, torch.randn(2, 3, 8, 8))
    lab.run(program, FoldBatchNorm())
    lab.model, lab.inputs = model.double(), tuple(item.double() for item in lab.inputs)
    exact = lab.model(*lab.inputs)
    found = program.module()(lab.inputs[0].float())
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)


def test_norm_stays_where_the_convolution_has_other_readers(lab, count):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)

        def forward(self, x):
            y = self.convolution(x)
            return y, self.norm(y)

    program = lab.edge(Both(), torch.randn(1, 3, 8, 8))
    assert not lab.run(program, FoldBatchNorm()).modified


def test_norm_without_a_convolution_stays(lab):
    program = lab.edge(_trained(nn.BatchNorm2d(3)), torch.randn(1, 3, 8, 8))
    assert not lab.run(program, FoldBatchNorm()).modified


def test_weights_that_were_given_are_not_written(lab):
    model = _trained(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    lab.run(lab.edge(model, torch.randn(2, 3, 8, 8)), FoldBatchNorm(), DeadCode())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
