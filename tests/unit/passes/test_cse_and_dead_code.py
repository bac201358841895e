from __future__ import annotations

import torch
from torch import nn

from workbench import provenance
from workbench.passes.cse import Cse
from workbench.passes.dead_code import DeadCode


def test_equal_subexpressions_are_merged_with_all_handles(lab, count):
    program = lab.decomposed(lambda x: x.sin() + x.sin(), torch.randn(3))
    handles = {
        handle
        for node in program.graph.nodes
        if node.target is torch.ops.aten.sin.default
        for handle in provenance.handles(node)
    }
    result = lab.run(program, Cse())
    assert result.counts["merged"] == 1
    sine = next(node for node in program.graph.nodes if node.target is torch.ops.aten.sin.default)
    assert provenance.handles(sine) == handles
    assert len(handles) == 2


def test_chains_of_equal_subexpressions_are_merged(lab, count):
    program = lab.decomposed(lambda x: x.sin().cos().exp() + x.sin().cos().exp(), torch.randn(3))
    assert lab.run(program, Cse()).counts["merged"] == 3


def test_numbers_of_different_type_are_different(lab):
    program = lab.decomposed(lambda x: (torch.full((2,), 1) + x, torch.full((2,), 1.0) + x), torch.randn(2))
    assert not lab.run(program, Cse()).counts["merged"]


def test_random_operators_are_not_merged(lab):
    program = lab.decomposed(lambda x: torch.rand(3) - torch.rand(3) + x, torch.randn(3))
    assert Cse()(program).counts["merged"] == 0


def test_nodes_of_different_partitions_are_not_merged(lab):
    program = lab.decomposed(lambda x: x.sin() + x.sin(), torch.randn(3))
    sines = [node for node in program.graph.nodes if node.target is torch.ops.aten.sin.default]
    for number, node in enumerate(sines):
        node.meta["delegation_tag"] = f"tag{number}"
    assert Cse()(program).counts["merged"] == 0


def test_unused_operators_and_weights_leave_the_program(lab):
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Parameter(torch.randn(3))
            self.unused = nn.Parameter(torch.randn(3))

        def forward(self, x):
            (x * self.unused).sin()
            return x + self.used

    program = lab.exported(Unused(), torch.randn(3))
    lab.run(program, DeadCode())
    assert set(program.state_dict) == {"used"}
    assert [spec.arg.name for spec in program.graph_signature.input_specs] == ["p_used", "x"]


def test_written_buffers_and_unused_inputs_stay(lab):
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(3))

        def forward(self, x, unused):
            self.state.copy_(x)
            return x + 1

    program = lab.decomposed(Writes(), torch.randn(3), torch.randn(2))
    DeadCode()(program)
    assert [spec.arg.name for spec in program.graph_signature.input_specs] == ["b_state", "x", "unused"]
