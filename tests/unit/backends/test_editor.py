"""Previews, taking back, names, nodes that stand together, state that follows edits."""

import time

import pytest
import torch

from workbench import provenance
from workbench.backends import CapabilityPartitioner, Supported, WhyNot, lower_partitions, partition
from workbench.backends.costs import boundaries
from workbench.backends.editor import PartitionEditor
from workbench.backends.edits import PartitionEdit, apply_edits, capabilities_of
from workbench.backends.graphs import tag_of
from workbench.errors import PartitionError

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")
INPUTS = (torch.randn(2),)
ALL = [aten.sin.default, aten.cos.default, aten.exp.default, aten.tan.default]


class Chain(torch.nn.Module):
    def forward(self, x):
        return torch.tan(torch.exp(torch.cos(torch.sin(x))))


@pytest.fixture
def editor(edge, take):
    def make(model=None, wanted=ALL, inputs=INPUTS, **options):
        partitioner = take(wanted, **options)
        result = partition(edge(model or Chain(), inputs), partitioner)
        return PartitionEditor(result, capabilities_of([partitioner]))

    return make


def everything(editor):
    result = editor.result
    nodes = provenance.nodes_of(result.tagged_exported_program.graph_module)
    tags = [(node.name, tag_of(node)) for node in nodes]
    return tags, list(result.partition_tags.items()), [str(reason) for reason in result.reasons]


def test_preview_answers_as_apply_does_and_changes_nothing(editor):
    made = editor()
    before = everything(made)
    for edit in (
        PartitionEdit("erase", nodes=("cos",)),
        PartitionEdit("split", nodes=("sin", "exp"), tag="ends"),
        PartitionEdit("assign", nodes=("tan",), backend_id="AddMulBackendDemo"),
        PartitionEdit("merge", tags=("Recorder_0", "nowhere")),
    ):
        costs = []
        program = made.result.tagged_exported_program
        preview = made.preview(
            edit, lambda _, costs=costs, program=program: costs.append(boundaries(program))
        )
        assert everything(made) == before
        outcome, change = made.change(edit)
        assert outcome == preview and outcome.applied == bool(costs) == (change is not None)
        if change is not None:
            assert boundaries(program) == costs[0]
            made.revert(change)
        assert everything(made) == before


def test_edits_taken_back_in_reverse_leave_no_trace(editor):
    made = editor()
    before = everything(made)
    changes = [
        made.change(edit)[1]
        for edit in (
            PartitionEdit("erase", nodes=("cos",)),
            PartitionEdit("assign", nodes=("cos",), tag="mine", backend_id="Recorder"),
            PartitionEdit("merge", tags=("Recorder_0", "mine")),
        )
    ]
    for change in reversed(changes):
        assert change is not None
        made.revert(change)
    assert everything(made) == before


def test_refusal_carries_kind_nodes_path_and_hint(editor):
    outcome = editor().apply(PartitionEdit("split", nodes=("sin", "exp"), tag="ends"))
    assert (outcome.kind, outcome.path, outcome.nodes) == ("cycle", ("sin", "cos", "exp"), ("cos",))
    assert "put 'cos' into the tag" in outcome.hint
    assert outcome.requested == {"sin": "ends", "exp": "ends"}
    outcome = editor(wanted=ALL[:2]).apply(PartitionEdit("assign", nodes=("exp", "tan"), tag="Recorder_0"))
    assert outcome.kind == "unsupported" and outcome.nodes == ("exp", "tan")
    assert "(and 1 other nodes)" in outcome.reason and "eligible if" in outcome.hint


class Decomposed(torch.nn.Module):
    """Its linear layer becomes two operators with one source handle."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x)


def test_names_narrow_handles_to_one_of_several_operators(editor):
    made = editor(Decomposed(), [aten.addmm.default, aten.permute_copy.default], (torch.randn(2, 4),))
    nodes = [n for n in made.result.tagged_exported_program.graph.nodes if n.op == "call_function"]
    assert len(nodes) == 2 and provenance.handles(nodes[0]) & provenance.handles(nodes[1])
    handles = tuple(sorted(provenance.handles(nodes[0])))
    outcome = made.apply(PartitionEdit("erase", handles, nodes=(nodes[0].name,)))
    assert set(outcome.changes) == {nodes[0].name} and outcome.missing_nodes == ()
    outcome = made.apply(PartitionEdit("erase", handles, nodes=(nodes[1].name, "nobody")))
    assert outcome.applied and outcome.missing_nodes == ("nobody",)
    data = PartitionEdit("erase", handles, nodes=("a",)).to_data()
    assert data["nodes"] == ["a"] and PartitionEdit.from_data(data).nodes == ("a",)


class Pairs(CapabilityPartitioner):
    """Takes sin only with the cos behind it."""

    def __init__(self):
        super().__init__("Recorder")

    def supports(self, node, program):
        if node.target == aten.sin.default:
            user = next(iter(node.users))
            return Supported((user,)) if user.target == aten.cos.default else WhyNot(node, "no cos behind it")
        return WhyNot(node, "only with a sin before it")


def test_what_must_stand_together_comes_along_and_can_not_be_torn_apart(edge):
    result = partition(edge(Chain(), INPUTS), Pairs())
    made = PartitionEditor(result, capabilities_of([Pairs()]))
    assert {n.name for n in result.tagged_exported_program.graph.nodes if tag_of(n)} == {"sin", "cos"}
    outcome = made.apply(PartitionEdit("erase", nodes=("cos",)))
    assert not outcome.applied and outcome.kind == "together" and "only together with 'cos'" in outcome.reason
    assert made.apply(PartitionEdit("erase", nodes=("sin", "cos"))).applied
    outcome = made.apply(PartitionEdit("assign", nodes=("sin",), tag="again", backend_id="Recorder"))
    assert outcome.changes == {"sin": (None, "again"), "cos": (None, "again")}
    assert outcome.consequences == {"cos": "'Recorder' wants it together with 'sin'"}
    assert not made.apply(PartitionEdit("assign", nodes=("exp",), tag="again")).applied


def test_tag_that_loses_its_middle_to_another_is_regrouped(editor):
    made = editor()
    outcome = made.apply(PartitionEdit("assign", nodes=("cos",), tag="mine", backend_id="Recorder"))
    assert outcome.applied and outcome.changes["cos"] == ("Recorder_0", "mine")
    assert set(outcome.consequences) == set(outcome.changes) - {"cos"}
    lowered = lower_partitions({"forward": made.result})["forward"]
    torch.testing.assert_close(lowered.module()(*INPUTS), Chain()(*INPUTS))


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x):
        self.total.add_(torch.sin(x))
        return torch.cos(x) + self.total


def test_state_stays_with_its_delegate_unless_a_use_leaves_it(editor):
    wanted = [aten.sin.default, aten.cos.default, aten.add.Tensor]
    made = editor(Counter(), wanted, own_state=True)
    (buffer,) = [n for n in made.result.tagged_exported_program.graph.nodes if n.name == "b_total"]
    owner = tag_of(buffer)
    assert owner is not None
    assert made.apply(PartitionEdit("erase", nodes=("cos",))).applied and tag_of(buffer) is not None
    outcome, change = made.change(PartitionEdit("erase", nodes=("add",)))
    assert outcome.applied and tag_of(buffer) is None and change is not None
    made.revert(change)
    assert tag_of(buffer) == owner


def test_failing_capability_leaves_everything_as_it_was(editor):
    made = editor()
    before = everything(made)

    def broken(node, program):
        raise RuntimeError("broken backend")

    other = PartitionEditor(made.result, {"Recorder": broken})
    with pytest.raises(RuntimeError, match="broken backend"):
        other.apply(PartitionEdit("assign", nodes=("sin",), tag="new", backend_id="Recorder"))
    assert everything(other) == before


def test_any_of_a_backends_partitioners_may_take_a_node(take):
    known = capabilities_of([take([aten.sin.default]), take([aten.cos.default]), take([], "Other")])
    assert set(known) == {"Recorder", "Other"}
    graph = torch.fx.symbolic_trace(Chain()).graph
    nodes = {n.name: n for n in graph.nodes}
    nodes["sin"].target, nodes["cos"].target = aten.sin.default, aten.cos.default
    assert isinstance(known["Recorder"](nodes["sin"], None), Supported)
    assert isinstance(known["Recorder"](nodes["cos"], None), Supported)
    assert isinstance(known["Recorder"](nodes["exp"], None), WhyNot)


def test_names_of_new_tags_depend_on_the_partition_only(editor):
    made = editor()
    first, change = made.change(PartitionEdit("erase", nodes=("cos",)))
    assert change is not None
    made.revert(change)
    again = made.apply(PartitionEdit("erase", nodes=("cos",)))
    assert again.changes == first.changes and made.new_tag("Recorder_0") == "Recorder_0_2"


def test_edit_without_nodes_says_what_to_do(editor):
    outcome = editor().apply(PartitionEdit("erase"))
    assert (outcome.kind, outcome.hint) == ("no-nodes", "choose nodes first")


def test_malformed_names_are_refused():
    with pytest.raises(PartitionError, match="malformed"):
        PartitionEdit.from_data({"action": "erase", "nodes": 3})


class Deep(torch.nn.Module):
    def forward(self, x):
        for step in range(400):
            x = torch.cos(torch.sin(x))
            if step % 50 == 49:
                x = torch.tan(x)
        return x


def test_edits_of_hundreds_of_nodes_stay_interactive(editor):
    made = editor(Deep(), ALL[:2])
    names = tuple(node.name for tag in made.result.partition_tags for node in made.tags.members(tag))[50:450]
    times = []
    for edit in (PartitionEdit("erase", nodes=names), PartitionEdit("erase", nodes=names[::2])):
        for _ in range(3):
            start = time.perf_counter()
            assert made.preview(edit).applied
            times.append(time.perf_counter() - start)
    assert min(times[:3]) < 0.1 and min(times[3:]) < 0.3, times


class Ladder(torch.nn.Module):
    """Each step is a partition of its own: exp and tan stay outside."""

    def forward(self, x):
        for _ in range(150):
            x = torch.tan(torch.exp(torch.cos(torch.sin(x))))
        return x


def test_cycle_before_many_tags_is_found_without_a_look_at_each(editor):
    made = editor(Ladder(), ALL[:2])
    first, second = list(made.result.partition_tags)[:2]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        outcome = made.preview(PartitionEdit("merge", tags=(first, second)))
        times.append(time.perf_counter() - start)
        assert outcome.kind == "cycle" and outcome.path == ("cos", "exp", "tan", "sin_1")
    # The 148 tags behind the cycle have none of their own.
    assert made.legality.stuck_tags() == set() and min(times) < 0.1, times


def test_apply_edits_goes_on_behind_a_refused_one(editor):
    made = editor()
    refused, applied = apply_edits(
        made.result,
        [PartitionEdit("split", nodes=("sin", "exp")), PartitionEdit("split", nodes=("exp", "tan"))],
    ).outcomes
    assert not refused.applied and applied.applied
