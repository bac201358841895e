from __future__ import annotations

import torch
from torch.export import Dim

from workbench.passes.dead_code import DeadCode
from workbench.passes.simplify_views import SimplifyViews


def test_view_of_a_view_is_one_view(lab, count):
    program = lab.edge(lambda x: x.sin().view(4, 6).unsqueeze(0).view(2, 12), torch.randn(2, 3, 4))
    lab.run(program, SimplifyViews(), DeadCode())
    assert count(program) == {"sin.default": 1, "view_copy.default": 1}


def test_permutation_of_a_permutation_is_one(lab, count):
    program = lab.edge(lambda x: x.permute(1, 2, 0).permute(0, 2, 1), torch.randn(2, 3, 4))
    lab.run(program, SimplifyViews(), DeadCode())
    assert count(program) == {"permute_copy.default": 1}


def test_permutation_that_moves_no_data_is_a_view(lab, count):
    program = lab.edge(lambda x: x.permute(1, 0, 2) + 1, torch.randn(1, 5, 4))
    lab.run(program, SimplifyViews(), DeadCode())
    assert count(program) == {"view_copy.default": 1, "add.Tensor": 1}


def test_permutation_that_moves_data_stays(lab, count):
    program = lab.edge(lambda x: x.permute(1, 0, 2), torch.randn(2, 5, 4))
    assert not lab.run(program, SimplifyViews()).modified


def test_selection_from_a_dimension_of_size_one_is_a_view(lab, count):
    program = lab.edge(lambda x: x.select(1, 0), torch.randn(3, 1, 4))
    lab.run(program, SimplifyViews(), DeadCode())
    assert count(program) == {"view_copy.default": 1}


def test_expansion_that_repeats_stays(lab):
    program = lab.edge(lambda x: x.expand(2, 3), torch.randn(1, 3))
    assert not lab.run(program, SimplifyViews()).modified


def test_view_of_a_channels_last_tensor_is_not_merged(lab):
    image = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last)
    program = lab.edge(lambda x: x.sin().reshape(3, 20).reshape(60), image)
    lab.run(program, SimplifyViews(), DeadCode())


def test_one_dynamic_size_is_left_open(lab, count):
    batch = Dim("batch", min=2, max=9)
    program = lab.edge(
        lambda x: x.unsqueeze(1).permute(1, 0, 2), torch.randn(4, 3), dynamic_shapes=(({0: batch},),)
    )
    lab.run(program, SimplifyViews(), DeadCode())
    view = next(node for node in program.graph.nodes if node.target is torch.ops.aten.view_copy.default)
    assert -1 in view.args[1]
    x = torch.randn(7, 3)
    torch.testing.assert_close(program.module()(x), x.unsqueeze(0))
