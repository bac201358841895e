from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim

from workbench.passes.remove_asserts import RemoveAsserts
from workbench.passes.remove_noops import RemoveNoops
from workbench.passes.scalars_to_tensors import ScalarsToTensors
from workbench.passes.views_to_copies import ViewsToCopies


def _cleaned(lab, function, *inputs, **options):
    program = lab.decomposed(function, *inputs, **options)
    lab.run(program, RemoveAsserts(), ViewsToCopies(), ScalarsToTensors(), RemoveNoops())
    return program


def test_identities_leave_the_graph(lab, count):
    def identities(x):
        y = x.sin()
        y = y.view(3, 4).expand(3, 4).permute(0, 1)[:, :].clone().to(torch.float32)
        return y.squeeze().cos()

    assert set(count(_cleaned(lab, identities, torch.randn(3, 4)))) == {"sin.default", "cos.default"}


def test_neutral_numbers_leave_the_graph_where_bits_stay(lab, count):
    def neutral(x):
        return ((x.sin() * 1) / 1 - 0).cos()

    assert set(count(_cleaned(lab, neutral, torch.randn(3)))) == {"sin.default", "cos.default"}


def test_adding_zero_to_floats_stays_because_of_negative_zero(lab, count):
    program = _cleaned(lab, lambda x: (x.neg() + 0).reciprocal(), torch.zeros(3))
    assert count(program)["add.Tensor"] == 1
    assert torch.isinf(program.module()(torch.zeros(3))).all()
    assert (program.module()(torch.zeros(3)) > 0).all()


def test_adding_zero_to_integers_leaves_the_graph(lab, count):
    assert not count(_cleaned(lab, lambda x: (x.neg() + 0).abs(), torch.arange(3)))["add.Tensor"]


def test_dropout_of_an_evaluated_model_leaves_the_graph(lab, count):
    model = nn.Sequential(nn.ReLU(), nn.Dropout(), nn.Tanh())
    assert set(count(_cleaned(lab, model, torch.randn(3)))) == {"relu.default", "tanh.default"}


def test_copy_of_an_input_that_is_a_result_stays(lab, count):
    # Otherwise caller and program would share memory.
    assert sum(count(_cleaned(lab, lambda x: x.clone(), torch.randn(3))).values()) == 1


def test_copy_of_a_mutated_buffer_that_is_a_result_stays(lab):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x):
            before = self.n.clone()
            self.n.add_(1)
            return before, x + self.n

    program = lab.decomposed(Counter(), torch.randn(1))
    for step in (ViewsToCopies(), ScalarsToTensors(), RemoveNoops()):
        step(program)
    before = next(spec for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT")
    assert before.arg.name not in {spec.arg.name for spec in program.graph_signature.input_specs}


def test_empty_operands_of_cat_are_dropped(lab, count):
    def joined(x, y):
        return torch.cat([x, y, x])

    program = _cleaned(lab, joined, torch.randn(2, 3), torch.randn(0, 3))
    cat = next(node for node in program.graph.nodes if node.target is torch.ops.aten.cat.default)
    assert len(cat.args[0]) == 2


def test_full_slice_of_a_dynamic_dimension_leaves_the_graph(lab, count):
    batch = Dim("batch", min=2, max=9)
    program = _cleaned(lab, lambda x: x.sin()[:].cos(), torch.randn(4, 3), dynamic_shapes=(({0: batch},),))
    assert set(count(program)) == {"sin.default", "cos.default"}


def test_real_work_stays(lab, count):
    def work(x):
        return x.sin().permute(1, 0), x.cos()[1:], x.tan().view(12), x.exp() * 2

    found = count(_cleaned(lab, work, torch.randn(3, 4)))
    assert found["permute_copy.default"] == found["slice_copy.Tensor"] == found["view_copy.default"] == 1
    assert found["mul.Tensor"] == 1
