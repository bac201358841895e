from __future__ import annotations

import torch
from torch import nn

from workbench.passes.constant_folding import ConstantFolding
from workbench.passes.dead_code import DeadCode
from workbench.passes.views_to_copies import ViewsToCopies


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("table", torch.arange(12.0).reshape(4, 3))
        self.register_buffer("state", torch.zeros(4, 3))

    def forward(self, x):
        self.state.add_(1)
        return x @ self.weight.t() + self.table.t().sum(0) + (self.state * 2).sum()


def test_operators_on_numbers_alone_are_computed(lab, count):
    program = lab.decomposed(lambda x: x[:, torch.arange(4) + 1], torch.randn(2, 8))
    lab.run(program, ViewsToCopies(), ConstantFolding(), DeadCode())
    assert set(count(program)) == {"index.Tensor"}


def test_buffers_are_folded_but_not_those_that_are_written(lab, count):
    program = lab.decomposed(Weighted(), torch.randn(2, 3))
    ViewsToCopies()(program)
    ConstantFolding()(program)
    found = count(program)
    assert found["sum.dim_IntList"] <= 1  # that of the state
    assert "b_state" in {node.name for node in program.graph.nodes}


def test_transpose_of_a_parameter_waits_for_layouts(lab, count):
    program = lab.decomposed(nn.Linear(3, 4), torch.randn(2, 3))
    lab.run(program, ViewsToCopies(), ConstantFolding())
    assert count(program)["permute_copy.default"] == 1
    lab.run(program, ConstantFolding(layouts=True), DeadCode())
    assert set(count(program)) == {"addmm.default"}
    assert "weight" not in program.state_dict


def test_weight_norm_is_folded_at_once(lab, count):
    model = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 3))
    program = lab.decomposed(model, torch.randn(1, 8, 20))
    lab.run(program, ViewsToCopies(), ConstantFolding(), DeadCode())
    assert set(count(program)) == {"convolution.default"}


def test_results_above_the_limit_are_left_to_run_time(lab, count):
    program = lab.decomposed(lambda x: x + torch.full((64, 64), 2.0).exp(), torch.randn(64, 64))
    lab.run(program, ConstantFolding(limit=1024))
    assert count(program)["exp.default"] == 1
    lab.run(program, ConstantFolding(limit=1 << 20))
    assert not count(program)["exp.default"]


def test_dequantize_of_a_weight_is_never_folded(lab, count):
    from torch.ao.quantization.fx import _decomposed  # noqa: F401

    class Quantized(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("q", torch.randint(-128, 127, (4, 3), dtype=torch.int8))

        def forward(self, x):
            dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
            return x + dequantize(self.q, 0.1, 0, -128, 127, torch.int8)

    program = lab.decomposed(Quantized(), torch.randn(4, 3))
    lab.run(program, ConstantFolding(layouts=True))
    assert count(program)["quantized_decomposed.dequantize_per_tensor.default"] == 1


def test_random_numbers_are_not_folded(lab, count):
    program = lab.decomposed(lambda x: x + torch.rand(3), torch.randn(3))
    ConstantFolding()(program)
    assert count(program)["rand.default"] == 1


def test_constant_result_of_the_program_is_computed_at_run_time(lab, count):
    program = lab.decomposed(lambda x: (x + 1, torch.arange(3)), torch.randn(3))
    lab.run(program, ConstantFolding())
    assert count(program)["arange.start_step"] == 1


def test_two_methods_share_a_folded_weight(lab):
    model, cache = nn.Linear(3, 4), {}
    folded = []
    for rows in (2, 5):
        program = lab.decomposed(model, torch.randn(rows, 3))
        lab.run(program, ViewsToCopies(), ConstantFolding(layouts=True, cache=cache))
        folded.append(next(iter(program.constants.values())))
    assert folded[0] is folded[1]
