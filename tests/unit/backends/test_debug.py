import pytest
import torch

from workbench import provenance
from workbench.backends import DelegateMappingBuilder
from workbench.backends.debug import DEBUG_HANDLE_KEY, ensure_debug_handles
from workbench.errors import PartitionError


class Model(torch.nn.Module):
    def forward(self, p, x):
        return torch.cond(p, lambda v: torch.sin(v), lambda v: torch.cos(v), (torch.tan(x),))


def test_every_node_gets_its_own_handle_and_keeps_it(edge):
    program = edge(Model(), (torch.tensor(True), torch.ones(2)))
    first = next(iter(program.graph.nodes))
    first.meta[DEBUG_HANDLE_KEY] = 40
    ensure_debug_handles(program)
    handles = [n.meta[DEBUG_HANDLE_KEY] for n in provenance.nodes_of(program.graph_module)]
    assert len(set(handles)) == len(handles) and handles[0] == 40 and min(handles[1:]) == 41
    ensure_debug_handles(program)
    assert [n.meta[DEBUG_HANDLE_KEY] for n in provenance.nodes_of(program.graph_module)] == handles


def test_generated_identifiers_count_up():
    builder = DelegateMappingBuilder(generated_identifiers=True)
    assert [builder.insert_delegate_mapping_entry(handles=h) for h in (7, [9, 8, None])] == [0, 1]
    assert builder.get_delegate_mapping() == {0: (7,), 1: (8, 9)}


def test_nodes_stand_for_their_handles(edge):
    program = edge(Model(), (torch.tensor(True), torch.ones(2)))
    ensure_debug_handles(program)
    node = next(n for n in program.graph.nodes if n.op == "call_function")
    builder = DelegateMappingBuilder()
    builder.insert_delegate_mapping_entry(node, identifier="tan")
    assert builder.get_delegate_mapping() == {"tan": (node.meta[DEBUG_HANDLE_KEY],)}


@pytest.mark.parametrize(
    "arguments",
    [
        {"handles": 1},
        {"identifier": 0},
        {"handles": 1, "nodes": [], "identifier": 0},
        {"handles": [None], "identifier": 5},
        {"handles": 1, "identifier": "text"},
        {"handles": 1, "identifier": 3},
    ],
)
def test_contradictory_entries_are_refused(arguments):
    builder = DelegateMappingBuilder()
    builder.insert_delegate_mapping_entry(handles=1, identifier=3)
    with pytest.raises(PartitionError):
        builder.insert_delegate_mapping_entry(**arguments)
