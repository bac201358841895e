from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.edge.fake import compute, contiguous_like, dim_order, fake_mode, fake_of, is_contiguous
from workbench.edge.program import (
    add_constant,
    constant_tensor,
    input_specs,
    mutated_targets,
    remove_inputs,
)
from workbench.export import export


@pytest.fixture
def program():
    return export(nn.BatchNorm1d(4).eval(), (torch.randn(2, 4),)).run_decompositions()


def test_constant_goes_in_front_of_the_users_inputs(program):
    node = add_constant(program, torch.ones(2), fake_mode(program.graph_module), stem="c")
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    assert names.index(node.name) == len(names) - 2
    assert [item.name for item in program.graph.nodes if item.op == "placeholder"] == names
    assert torch.equal(constant_tensor(program, node), torch.ones(2))
    program.validate()


def test_names_of_constants_are_distinct(program):
    mode = fake_mode(program.graph_module)
    names = {add_constant(program, torch.ones(1), mode, stem="c").name for _ in range(4)}
    assert len(names) == 4


def test_constant_of_a_program_without_inputs_goes_first():
    class Nothing(nn.Module):
        def forward(self):
            return torch.ones(2) + 1

    program = export(Nothing(), ()).run_decompositions()
    node = add_constant(program, torch.ones(2), fake_mode(program.graph_module), stem="c")
    assert next(iter(program.graph.nodes)) is node


def test_removed_inputs_leave_graph_signature_and_tensors(program):
    node = add_constant(program, torch.ones(2), fake_mode(program.graph_module), stem="c")
    remove_inputs(program, [node])
    assert not program.constants
    program.validate()


def test_input_of_the_user_is_not_removed(program):
    node = next(
        item
        for item in program.graph.nodes
        if item.name not in program.state_dict
        and item.op == "placeholder"
        and input_specs(program)[item.name].kind.name == "USER_INPUT"
    )
    with pytest.raises(ValueError, match="input of the user"):
        remove_inputs(program, [node])


def test_mutated_buffer_is_no_constant():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x):
            self.n.add_(1)
            return x + self.n

    program = export(Counter(), (torch.zeros(1),)).run_decompositions()
    assert mutated_targets(program) == {"n"}
    node = next(item for item in program.graph.nodes if item.name == "b_n")
    assert constant_tensor(program, node) is None


def test_fake_values_have_sizes_strides_type_and_device(program):
    mode = fake_mode(program.graph_module)
    fake = fake_of(torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).half(), mode)
    assert (fake.shape, fake.dtype, fake.device.type) == ((2, 3, 4, 5), torch.float16, "cpu")
    assert dim_order(fake) == (0, 2, 3, 1)
    assert not is_contiguous(fake)
    assert is_contiguous(contiguous_like(fake))


def test_computed_value_is_that_of_the_operator(program):
    mode = fake_mode(program.graph_module)
    node = add_constant(program, torch.randn(3, 4), mode, stem="c")
    with program.graph.inserting_before(program.graph.output_node()):
        total = program.graph.call_function(torch.ops.aten.sum.dim_IntList, (node, [1], True))
    assert compute(total, mode).shape == (3, 1)
