"""Each rule of the stage tables finds the violation that it is there for, and says where."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from workbench.edge.fake import fake_mode
from workbench.edge.invariants import STAGES, verify, violations
from workbench.edge.program import add_constant
from workbench.errors import VerificationError
from workbench.export import export
from workbench.passes.to_edge import to_edge_program

aten = torch.ops.aten


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x, y):
        return torch.relu(x + self.weight) * y


@pytest.fixture
def program() -> ExportedProgram:
    return to_edge_program(export(Model(), (torch.randn(2, 3), torch.randn(2, 3))))[0]


def _node(program, target):
    return next(node for node in program.graph.nodes if node.target is target)


def _rule(error: VerificationError) -> str:
    return error.message.split("`")[1]


def _found(program, stage="edge", **options):
    return [_rule(error) for error in violations(program, stage, **options)]


def test_edge_programs_break_no_rule(program):
    for stage in STAGES:
        assert _found(program, stage) == []


def test_error_names_node_source_line_expected_found_and_hint(program):
    _node(program, aten.relu.default).target = aten.relu_.default
    with pytest.raises(VerificationError) as caught:
        verify(program, "edge")
    error = caught.value
    assert error.node == "relu"
    assert error.source is not None
    assert "test_invariants.py:" in error.source
    assert error.expected
    assert error.found
    assert error.hint
    assert error.stage == "edge"


def _reorder(program):
    relu, add = _node(program, aten.relu.default), _node(program, aten.add.Tensor)
    add.append(relu)
    relu.append(add)


def _drop_value(program):
    del _node(program, aten.relu.default).meta["val"]


def _call_python(program):
    _node(program, aten.relu.default).target = len


def _rename_result(program):
    program.graph_signature.output_specs[0].arg.name = "other"


def _swap_inputs(program):
    program.graph_signature.input_specs.reverse()


def _shrink_weight(program):
    program.state_dict["weight"] = torch.randn(4)


def _lose_weight(program):
    del program.state_dict["weight"]


def _view(program):
    node = _node(program, aten.relu.default)
    node.target = aten.alias.default


def _mutate(program):
    _node(program, aten.relu.default).target = aten.relu_.default


def _composite(program):
    _node(program, aten.relu.default).target = aten.selu.default


def _scalar(program):
    _node(program, aten.mul.Tensor).update_arg(1, 2.0)


def _mix_types(program):
    mode = fake_mode(program.graph_module)
    _node(program, aten.mul.Tensor).update_arg(
        1, add_constant(program, torch.ones(3).double(), mode, stem="c")
    )


def _memory_format(program):
    node = _node(program, aten.relu.default)
    node.target = aten.clone.default


def _complex(program):
    node = _node(program, aten.relu.default)
    with node.meta["val"].fake_mode:
        node.meta["val"] = torch.empty(2, 3, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (_reorder, "order"),
        (_drop_value, "values"),
        (_call_python, "targets"),
        (_rename_result, "signature"),
        (_swap_inputs, "signature"),
        (_shrink_weight, "weights"),
        (_lose_weight, "weights"),
        (_view, "views"),
        (_mutate, "mutation"),
        (_composite, "core"),
        (_scalar, "scalars"),
        (_mix_types, "types"),
        (_memory_format, "dim_order"),
        (_complex, "tensors"),
    ],
)
def test_damage_breaks_the_rule_for_it(program, damage, rule):
    damage(program)
    assert rule in _found(program)


def test_operator_outside_core_may_be_allowed(program):
    _composite(program)
    assert _found(program, allowed={aten.selu.default}) == []


def test_memory_formats_pass_where_dim_orders_are_not_asked_for(program):
    _memory_format(program)
    assert _found(program, dim_order=False) == []


def test_branch_that_returns_its_input_is_found():
    class Branches(nn.Module):
        def forward(self, p, x):
            return torch.cond(p, lambda x: x + 1, lambda x: x * 2, (x,))

    program = to_edge_program(export(Branches(), (torch.tensor(True), torch.randn(3))))[0]
    branch = program.graph_module.true_graph_0
    (placeholder,) = [node for node in branch.graph.nodes if node.op == "placeholder"][:1]
    branch.graph.output_node().args = ((placeholder,),)
    assert "branches" in _found(program)


def test_delegate_call_without_a_lowered_module_is_found(program):
    class Call:
        __name__ = "executorch_call_delegate"
        __module__ = "test"

        def __str__(self):
            return "executorch_call_delegate"

        def __call__(self, *inputs):
            raise NotImplementedError

    node = _node(program, aten.relu.default)
    node.target = Call()
    assert "delegates" in _found(program, "lowered")


def test_rules_have_distinct_names_and_say_what_to_do():
    for rules in STAGES.values():
        names = [rule.name for rule in rules]
        assert len(names) == len(set(names))
        assert all(rule.expected and rule.hint for rule in rules)
