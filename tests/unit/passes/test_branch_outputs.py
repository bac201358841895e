from __future__ import annotations

import torch

from workbench.edge.invariants import verify
from workbench.edge.program import graph_modules
from workbench.passes.branch_outputs import BranchOutputs


def _results(program):
    inner = list(graph_modules(program.graph_module))[1:]
    return [item.graph.output_node().args[0] for item in inner]


def test_input_that_a_branch_returns_is_copied(lab):
    def branches(p, x):
        return torch.cond(p, lambda x: x.clone(), lambda x: x + 1, (x,))

    program = lab.decomposed(branches, torch.tensor(True), torch.randn(3))
    for graph_module in list(graph_modules(program.graph_module))[1:]:
        output = graph_module.graph.output_node()
        node = output.args[0][0]
        if node.target is torch.ops.aten.clone.default:
            output.args = ((node.args[0],),)
    assert BranchOutputs()(program).counts["copies"] == 1
    assert all(item.op == "call_function" for results in _results(program) for item in results)
    lab.agrees(program)


def test_branches_of_the_edge_dialect_return_values_of_their_own(lab):
    def branches(p, x):
        return torch.cond(p, lambda x: (x.clone(), x.clone()), lambda x: (x + 1, x + 1), (x,))

    program = lab.edge(branches, torch.tensor(True), torch.randn(3))
    verify(program, "edge")
    for results in _results(program):
        assert len(set(results)) == 2
