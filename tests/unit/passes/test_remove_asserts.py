from __future__ import annotations

import torch

from workbench.passes.normalize_symbols import NormalizeSymbols
from workbench.passes.remove_asserts import RemoveAsserts


def _checked(x, n):
    count = n.item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count] * 2


def test_assertions_leave_the_graph(lab):
    program = lab.decomposed(_checked, torch.randn(5), torch.tensor(3))
    before = len(program.graph.nodes)
    result = RemoveAsserts()(program)
    assert result.counts["asserts"] > 0
    assert len(program.graph.nodes) == before - result.counts["asserts"]
    assert not any("assert" in str(node.target) for node in program.graph.nodes)


def test_assertions_on_symbols_stay_in_the_edge_dialect(lab):
    program = lab.edge(_checked, torch.randn(5), torch.tensor(3))
    assert any("_assert_scalar" in str(node.target) for node in program.graph.nodes)


def test_sizes_that_are_known_replace_their_queries(lab):
    program = lab.decomposed(lambda x: x.view(6) + 1, torch.randn(2, 3))
    x = next(node for node in program.graph.nodes if node.op == "placeholder")
    view = next(node for node in program.graph.nodes if node.target is torch.ops.aten.view.default)
    with program.graph.inserting_before(view):
        size = program.graph.call_function(torch.ops.aten.sym_size, (x, 0))
    size.meta["val"] = 2
    view.args = (x, [size, 3])
    result = NormalizeSymbols()(program)
    assert result.counts == {"overloads": 1, "known sizes": 1}
    assert view.args[1] == [2, 3]
