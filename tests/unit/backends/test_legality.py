import pytest
import torch

from workbench.backends import DelegationSpec, check_partition, verify_partition
from workbench.backends.base import TAG_KEY
from workbench.errors import PartitionError

SPEC = DelegationSpec("Recorder", [])
pytestmark = pytest.mark.usefixtures("recorder")


class Diamond(torch.nn.Module):
    def forward(self, x):
        a = x + 1.0
        b = torch.sin(a)
        return torch.cos(a) * b


class Chain(torch.nn.Module):
    def forward(self, x):
        for operator in (torch.sin, torch.cos, torch.sin, torch.cos, torch.sin):
            x = operator(x)
        return x


class Split(torch.nn.Module):
    def forward(self, x):
        values, indices = torch.max(x, dim=1)
        return torch.sin(values), indices


class Branches(torch.nn.Module):
    def forward(self, p, x):
        return torch.cond(p, lambda v: torch.sin(v) + 1, lambda v: torch.sin(v) * 2, (torch.sin(x),))


def tag(program, **tags):
    by_name = {node.name: node for node in program.graph.nodes}
    for name, value in tags.items():
        by_name[name].meta[TAG_KEY] = value
    return dict.fromkeys(tags.values(), SPEC)


def kinds(program, tags):
    return [violation.kind for violation in check_partition(program, tags)]


def test_legal_partition_has_no_violation(edge):
    program = edge(Diamond(), (torch.ones(2),))
    assert check_partition(program, tag(program, add="t", sin="t", cos="t")) == []


def test_cycle_names_tag_nodes_and_the_path_that_closes_it(edge):
    program = edge(Chain(), (torch.ones(2),))
    tags = tag(program, sin="t", sin_1="t")
    with pytest.raises(PartitionError) as caught:
        verify_partition(program, tags)
    error = caught.value
    assert "'t'" in error.message and "'cos'" in error.message
    assert error.node == "cos"
    assert error.found == "sin -> cos -> sin_1"
    assert __file__ in (error.source or "")


def test_cycle_through_a_second_tag_is_found_and_runs_through_it(edge):
    class Crossed(torch.nn.Module):
        def forward(self, x, y):
            a = torch.sin(x)
            b = torch.cos(y)
            return torch.tan(b) + 1.0, torch.exp(a) + 1.0

    program = edge(Crossed(), (torch.ones(2), torch.ones(2)))
    # sin -> exp leads from s to t, cos -> tan from t to s: each tag alone is convex.
    tags = tag(program, sin="s", tan="s", cos="t", exp="t")
    found = check_partition(program, tags)
    assert [violation.tag for violation in found] == ["s", "t"]
    assert all(violation.kind == "cycle" for violation in found)
    assert found[0].path[0] == "sin" and found[0].path[-1] == "tan"


def test_tag_behind_a_cycle_is_not_blamed(edge):
    program = edge(Chain(), (torch.ones(2),))
    tags = tag(program, sin="t", sin_1="t", cos_1="behind")
    assert [violation.tag for violation in check_partition(program, tags)] == ["t"]


def test_unknown_tag_is_named(edge):
    program = edge(Diamond(), (torch.ones(2),))
    tag(program, sin="ghost")
    with pytest.raises(PartitionError, match="'ghost' is in no entry of partition_tags"):
        verify_partition(program, {"other": SPEC})


def test_tag_without_backend_suggests_the_nearest_name(edge):
    program = edge(Diamond(), (torch.ones(2),))
    tag(program, sin="t")
    with pytest.raises(PartitionError) as caught:
        verify_partition(program, {"t": DelegationSpec("Recordr", [])})
    assert "Recordr" in caught.value.message and "Recorder" in (caught.value.hint or "")


def test_getitem_apart_from_its_producer_is_refused_in_both_directions(edge):
    program = edge(Split(), (torch.ones(2, 3),))
    producer = next(n for n in program.graph.nodes if "max" in str(n.target))
    elements = [n for n in program.graph.nodes if n.args[:1] == (producer,)]
    producer.meta[TAG_KEY] = "t"
    assert kinds(program, {"t": SPEC}) == ["split-result"] * len(elements)
    del producer.meta[TAG_KEY]
    elements[0].meta[TAG_KEY] = "t"
    assert kinds(program, {"t": SPEC}) == ["split-result"]


def test_tag_in_two_branches_is_refused_with_both_places(edge):
    program = edge(Branches(), (torch.tensor(True), torch.ones(2)))
    branches = [m for name, m in program.graph_module.named_children() if "graph" in name]
    for branch in branches:
        next(n for n in branch.graph.nodes if n.target is torch.ops.aten.sin.default).meta[TAG_KEY] = "t"
    found = check_partition(program, {"t": SPEC})
    assert [violation.kind for violation in found] == ["spans-graphs"]
    assert "true_graph_0" in found[0].message and "false_graph_0" in found[0].message


def test_symbolic_number_used_outside_its_tag_is_refused(edge):
    class Flatten(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x).view(x.shape[0] * 2, -1)

    dynamic = ({0: torch.export.Dim("n", min=2, max=8)},)
    program = edge(Flatten(), (torch.ones(4, 6),), dynamic)
    numbers = [n for n in program.graph.nodes if isinstance(n.meta.get("val"), torch.SymInt)]
    assert numbers, program.graph
    numbers[0].meta[TAG_KEY] = "t"
    assert kinds(program, {"t": SPEC}) == ["symbolic-output"]


def test_tag_on_an_input_is_refused(edge):
    program = edge(Diamond(), (torch.ones(2),))
    assert kinds(program, tag(program, x="t")) == ["not-delegable"]


def test_tag_on_the_output_is_refused(edge):
    program = edge(Diamond(), (torch.ones(2),))
    assert kinds(program, tag(program, output="t")) == ["not-delegable"]


def test_uncopyable_constant_with_users_outside_is_refused(edge):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.sin(x * self.weight) * self.weight

    program = edge(Shared(), (torch.ones(2),))
    tags = tag(program, p_weight="t", mul="t")
    assert kinds(program, tags) == []
    next(iter(program.graph.nodes)).meta["no_copy"] = True
    assert kinds(program, tags) == ["constant"]


def test_state_whose_writer_is_outside_the_tag_is_refused(edge):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1.0)
            return x + self.count

    program = edge(Counter(), (torch.ones(1),))
    tags = tag(program, b_count="t", add_1="t")
    found = [violation for violation in check_partition(program, tags) if violation.kind == "mutable-buffer"]
    assert len(found) == 1 and "b_count" in found[0].message
