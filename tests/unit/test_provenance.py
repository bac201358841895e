from __future__ import annotations

import torch
from torch import nn

from workbench import provenance


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, p, x):
        y = self.linear(x)
        return torch.cond(p, lambda y: y.sin(), lambda y: y * 2, (y,))


def _exported():
    return torch.export.export(Twice(), (torch.tensor(True), torch.randn(2, 3)))


def test_handles_count_the_nodes_of_branches_too():
    program = _exported()
    sources = provenance.assign(program)
    nodes = list(provenance.nodes_of(program.graph_module))
    assert [provenance.handles(node) for node in nodes] == [{number} for number in range(1, len(nodes) + 1)]
    assert len(sources) == len(nodes)
    assert {"sin", "mul"} <= {source.name for source in sources}


def test_assigning_again_changes_nothing():
    program = _exported()
    assert provenance.assign(program) is provenance.assign(program)


def test_handles_survive_decomposition():
    program = _exported()
    sources = provenance.assign(program)
    decomposed = program.run_decompositions()
    provenance.attach(decomposed, sources)
    linear = sources.named("linear").handle
    found = [node.name for node in decomposed.graph.nodes if linear in provenance.handles(node)]
    assert found == ["permute", "addmm"]


def test_transfer_adds_handles():
    program = _exported()
    provenance.assign(program)
    first, second, third = list(program.graph.nodes)[:3]
    provenance.transfer((second, third), first)
    assert provenance.handles(first) == {1, 2, 3}


def test_source_is_the_innermost_line_of_the_user():
    program = _exported()
    sources = provenance.assign(program)
    source = sources.named("linear")
    assert source.source is not None
    assert "test_provenance.py:" in source.source
    assert source.module_path == "linear"
    assert source.module_type == "torch.nn.modules.linear.Linear"
    assert sources.resolve([10**6]) == []


def test_program_without_handles_has_an_empty_map():
    assert len(provenance.source_map(_exported())) == 0
    assert provenance.handles(next(iter(_exported().graph.nodes))) == frozenset()
