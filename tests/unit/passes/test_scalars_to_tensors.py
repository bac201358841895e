from __future__ import annotations

import pytest
import torch
from torch.export import Dim

from workbench.passes.scalars_to_tensors import ScalarsToTensors

aten = torch.ops.aten


def _constant_of(program):
    return next(iter(program.constants.values()))


def test_number_becomes_a_constant_input(lab):
    program = lab.decomposed(lambda x: x + 2, torch.randn(3))
    result = lab.run(program, ScalarsToTensors())
    assert result.counts["constants"] == 1
    assert torch.equal(_constant_of(program), torch.tensor(2.0))
    assert [spec.kind.name for spec in program.graph_signature.input_specs] == [
        "CONSTANT_TENSOR",
        "USER_INPUT",
    ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_constant_has_the_type_in_which_the_operator_computes(lab, dtype):
    program = lab.decomposed(lambda x: x * 3, torch.ones(3, dtype=dtype))
    lab.run(program, ScalarsToTensors())
    assert _constant_of(program).dtype == dtype


def test_double_precision_number_is_not_rounded_to_single(lab):
    program = lab.decomposed(lambda x: x * 0.1, torch.ones(3, dtype=torch.float64))
    lab.run(program, ScalarsToTensors())
    assert _constant_of(program).item() == 0.1


def test_float_number_with_integer_tensor_promotes_to_float(lab):
    program = lab.decomposed(lambda x: x * 1.5, torch.arange(3))
    lab.run(program, ScalarsToTensors())
    assert _constant_of(program).dtype == torch.float32


def test_true_division_of_integers_computes_in_float(lab):
    program = lab.decomposed(lambda x: x / 2, torch.arange(3))
    lab.run(program, ScalarsToTensors())
    assert _constant_of(program).dtype == torch.float32


def test_equal_numbers_share_a_constant(lab):
    program = lab.decomposed(lambda x: (x + 2) * 2 + 2.0, torch.randn(3))
    lab.run(program, ScalarsToTensors())
    assert sorted(tensor.item() for tensor in program.constants.values()) == [2.0, 2.0]


def test_alpha_stays_a_number(lab):
    program = lab.decomposed(lambda x: torch.add(x, 3, alpha=10), torch.randn(3))
    lab.run(program, ScalarsToTensors())
    add = next(node for node in program.graph.nodes if node.target is aten.add.Tensor)
    assert add.kwargs == {"alpha": 10} or len(program.constants) == 1


def test_symbol_becomes_a_scalar_tensor_node(lab):
    batch = Dim("batch", min=2, max=8)
    program = lab.decomposed(lambda x: x + x.shape[0], torch.randn(4, 3), dynamic_shapes=(({0: batch},),))
    result = lab.run(program, ScalarsToTensors())
    assert result.counts["symbols"] == 1


def test_number_inside_a_branch_becomes_an_attribute(lab):
    def branches(p, x):
        return torch.cond(p, lambda x: x + 1, lambda x: x * 2, (x,))

    program = lab.decomposed(branches, torch.tensor(True), torch.randn(3))
    result = ScalarsToTensors()(program)
    assert result.counts["constants"] == 2
    assert not program.constants
    lab.agrees(program)
