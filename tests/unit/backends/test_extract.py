import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.export import export

from workbench import provenance
from workbench.backends import (
    DelegationSpec,
    Partitioner,
    PartitionResult,
    delegates_in,
    partition,
    to_backend,
)
from workbench.backends.base import TAG_KEY
from workbench.backends.costs import boundaries
from workbench.backends.extract import extract_tags
from workbench.errors import PartitionError

aten = torch.ops.aten
OPERATORS = {
    torch.sin: aten.sin.default,
    torch.cos: aten.cos.default,
    torch.add: aten.add.Tensor,
    torch.mul: aten.mul.Tensor,
}
pytestmark = pytest.mark.usefixtures("recorder")


class Random(torch.nn.Module):
    """A random graph with weights that several operators share."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.register_buffer("offset", torch.randn(3))

    def forward(self, x, y):
        rng = random.Random(self.seed)
        values = [x, y, self.weight, self.offset]
        for _ in range(rng.randint(1, 14)):
            function = rng.choice(list(OPERATORS))
            count = 1 if function in (torch.sin, torch.cos) else 2
            values.append(function(*(rng.choice(values) for _ in range(count))))
        made = values[4:]
        return [value for value in made if rng.random() < 0.5] or made[-1:]


# The fixtures only register a backend and hand out a class.
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), wanted=st.sets(st.sampled_from(list(OPERATORS.values())), min_size=1))
def test_random_partitions_compute_the_same(take, seed, wanted):
    torch.manual_seed(0)
    model = Random(seed)
    inputs = (torch.randn(3), torch.randn(3))
    exported = export(model, inputs)
    exported.graph.eliminate_dead_code()
    provenance.assign(exported)
    lowered = to_backend(exported, take(list(wanted)))
    assert not [n for n in lowered.graph.nodes if n.target in wanted]
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))
    again = lowered.run_decompositions({})
    torch.testing.assert_close(again.module()(*inputs), model(*inputs))


def test_inputs_and_outputs_come_in_the_same_order_each_time(edge, take):
    inputs = (torch.randn(3), torch.randn(3))
    texts = set()
    for _ in range(2):
        lowered = to_backend(edge(Random(7), inputs), take([aten.add.Tensor, aten.sin.default]))
        inner = [str(d.lowered.original_module.graph) for d in delegates_in(lowered.graph_module)]
        texts.add("\n".join([str(lowered.graph), *inner]))
    assert len(texts) == 1


def test_extraction_leaves_the_owner_as_it_is_and_keeps_names(edge, take):
    result = partition(edge(Random(3), (torch.randn(3), torch.randn(3))), take(list(OPERATORS.values())))
    program = result.tagged_exported_program
    before = str(program.graph), str(program.graph_signature)
    parts = extract_tags(program, program.graph_module)
    assert (str(program.graph), str(program.graph_signature)) == before
    for part in parts:
        inner = [n.name for n in part.program.graph.nodes if n.op == "call_function"]
        assert inner == [n.name for n in part.nodes]
        assert [str(s.arg.name) for s in part.program.graph_signature.output_specs] == [
            n.name for n in part.outputs
        ]


def test_borders_count_what_extraction_passes(edge, take):
    result = partition(
        edge(Random(11), (torch.randn(3), torch.randn(3))), take([aten.add.Tensor, aten.cos.default])
    )
    program = result.tagged_exported_program
    borders = boundaries(program)
    parts = extract_tags(program, program.graph_module)
    assert [part.tag for part in parts] == list(borders)
    for part in parts:
        assert [name for name, _ in borders[part.tag].inputs] == [n.name for n in part.inputs]
        assert [name for name, _ in borders[part.tag].outputs] == [n.name for n in part.outputs]


def test_input_that_python_has_a_name_for_keeps_it(take):
    class Shadow(torch.nn.Module):
        def forward(self, input):
            return torch.sin(input) + 1.0

    lowered = to_backend(export(Shadow(), (torch.ones(2),)), take([aten.sin.default]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert delegate.lowered.original_module.graph_signature.user_inputs == ("input",)


class Dead(torch.nn.Module):
    def forward(self, x):
        torch.sin(x)
        return x + 1.0


def test_tag_that_computes_nothing_of_use_is_refused():
    class Careless(Partitioner):
        def partition(self, exported_program):
            node = next(n for n in exported_program.graph.nodes if n.target is aten.sin.default)
            node.meta[TAG_KEY] = "t"
            return PartitionResult(exported_program, {"t": DelegationSpec("Recorder", [])})

    with pytest.raises(PartitionError, match="nothing that the tag 't' computes is used"):
        to_backend(export(Dead(), (torch.ones(2),)), Careless())


def test_operators_without_use_are_left_with_that_reason(take):
    result = partition(export(Dead(), (torch.ones(2),)), take([aten.sin.default]))
    assert result.partition_tags == {}
    assert {r.node: r.reason for r in result.reasons}["sin"] == "nothing uses its result"
