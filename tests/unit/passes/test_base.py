"""The pass infrastructure holds passes to what they declare."""

from __future__ import annotations

import pytest
import torch

from workbench.backends.programs import copy_program
from workbench.errors import LoweringError, VerificationError
from workbench.passes.base import Condition, FunctionalPass, InPlacePass, PassManager
from workbench.passes.foreign import apply


class Nothing(InPlacePass):
    name = "nothing"

    def run(self, program):
        return {}


class Copies(FunctionalPass):
    name = "copies"

    def run(self, program):
        return copy_program(program), {"copies": 1}


def test_result_of_an_in_place_pass_is_the_same_program(lab):
    program = lab.edge(torch.relu, torch.randn(3))
    result = Nothing()(program)
    assert result.exported_program is program
    assert not result.modified


def test_functional_pass_hands_back_another_program(lab):
    program = lab.edge(torch.relu, torch.randn(3))
    result = Copies()(program)
    assert result.exported_program is not program
    assert result.modified
    assert result.counts == {"copies": 1}


def test_functional_pass_that_changes_its_input_is_refused_by_name(lab):
    class Liar(FunctionalPass):
        name = "liar"

        def run(self, program):
            node = next(item for item in program.graph.nodes if item.op == "call_function")
            node.target = torch.ops.aten.neg.default
            return copy_program(program), {"changed": 1}

    with pytest.raises(LoweringError, match="`liar` is functional but changed the program"):
        Liar()(lab.edge(torch.relu, torch.randn(3)))


def test_functional_pass_that_hands_back_its_input_is_refused(lab):
    class Lazy(FunctionalPass):
        name = "lazy"

        def run(self, program):
            return program, {"changed": 1}

    with pytest.raises(LoweringError, match="`lazy` is functional but handed back"):
        Lazy()(lab.edge(torch.relu, torch.randn(3)))


def test_exception_inside_a_pass_names_the_pass(lab):
    class Breaks(InPlacePass):
        name = "breaks"

        def run(self, program):
            raise KeyError("x")

    with pytest.raises(LoweringError, match="pass `breaks` failed: KeyError"):
        PassManager([Nothing(), Breaks()])(lab.edge(torch.relu, torch.randn(3)))


def test_unmet_condition_names_pass_node_and_source_line(lab):
    def no_relu(program):
        for node in program.graph.nodes:
            if node.target is torch.ops.aten.relu.default:
                return node, "a relu"
        return None

    class Needs(Nothing):
        name = "needs"
        requires = (Condition("no relu in the graph", no_relu),)

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    with pytest.raises(LoweringError) as caught:
        Needs()(lab.edge(Model(), torch.randn(3)))
    assert "pass `needs`: the program before the pass" in str(caught.value)
    assert caught.value.node == "relu"
    assert caught.value.expected == "no relu in the graph"
    assert "test_base.py:" in caught.value.source


def test_conditions_are_skipped_without_check(lab):
    class Needs(Nothing):
        requires = (Condition("never", lambda program: (program.graph.output_node(), "always")),)

    program = lab.edge(torch.relu, torch.randn(3))
    assert not Needs()(program, check=False).modified


def test_foreign_pass_may_change_a_graph_in_place(lab):
    program = copy_program(lab.edge(torch.relu, torch.randn(3)))

    def to_sigmoid(graph_module):
        for node in graph_module.graph.nodes:
            if node.target is torch.ops.aten.relu.default:
                node.target = torch.ops.aten.sigmoid.default

    changed, _ = apply(program, [to_sigmoid])
    x = torch.randn(3)
    torch.testing.assert_close(changed.module()(x), x.sigmoid())


def test_foreign_pass_may_hand_back_a_new_graph(lab):
    program = copy_program(lab.edge(torch.relu, torch.randn(3)))

    def rebuilt(graph_module):
        graph = torch.fx.Graph()
        results = graph.graph_copy(graph_module.graph, {})
        graph.output(results)
        return torch.fx.GraphModule(graph_module, graph)

    changed, _ = apply(program, [rebuilt])
    x = torch.randn(3)
    torch.testing.assert_close(changed.module()(x), x.relu())


def test_foreign_pass_that_returns_nonsense_is_refused_by_name(lab):
    def nonsense(graph_module):
        return 3

    with pytest.raises(LoweringError, match="pass `nonsense` handed back something"):
        apply(copy_program(lab.edge(torch.relu, torch.randn(3))), [nonsense])


def test_errors_of_the_workbench_pass_through(lab):
    class Fails(InPlacePass):
        name = "fails"

        def run(self, program):
            raise VerificationError("wrong", node="n")

    with pytest.raises(VerificationError, match="wrong"):
        Fails()(lab.edge(torch.relu, torch.randn(3)))
