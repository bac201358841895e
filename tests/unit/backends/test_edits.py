import time

import pytest
import torch

from workbench import provenance
from workbench.backends import (
    BackendDetails,
    PreprocessResult,
    Supported,
    WhyNot,
    lower_partitions,
    partition,
)
from workbench.backends.edits import PartitionEdit, apply_edits
from workbench.backends.graphs import tag_of
from workbench.errors import PartitionError

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Chain(torch.nn.Module):
    def forward(self, x):
        return torch.tan(torch.exp(torch.cos(torch.sin(x))))


class Bias(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return torch.sin(x) + self.bias


ALL = [aten.sin.default, aten.cos.default, aten.exp.default, aten.tan.default]
INPUTS = (torch.randn(2),)


@pytest.fixture
def tagged(edge, take):
    return lambda wanted=ALL, model=None: partition(edge(model or Chain(), INPUTS), take(wanted))


def handles(result, *names):
    nodes = {n.name: n for n in result.tagged_exported_program.graph.nodes}
    return tuple(sorted(h for name in names for h in provenance.handles(nodes[name])))


def tags(result):
    return {n.name: tag_of(n) for n in result.tagged_exported_program.graph.nodes if n.op == "call_function"}


def lowers_and_runs(result, model):
    program = lower_partitions({"forward": result})["forward"]
    torch.testing.assert_close(program.module()(*INPUTS), model(*INPUTS))


def test_erasing_the_middle_of_a_chain_splits_its_tag(tagged):
    result = tagged()
    report = apply_edits(result, [PartitionEdit("erase", handles(result, "cos"))])
    assert report.refused == []
    found = tags(result)
    assert found["cos"] is None and found["exp"] == found["tan"] and found["sin"] not in (None, found["exp"])
    assert report.outcomes[0].changes["cos"] == ("Recorder_0", None)
    assert [r.node for r in result.reasons] == ["cos"] and result.reasons[0].by == "edit"
    lowers_and_runs(result, Chain())


def test_split_and_merge_undo_each_other(tagged):
    result = tagged()
    before = tags(result)
    split = PartitionEdit("split", handles(result, "exp", "tan"), tag="tail")
    assert apply_edits(result, [split]).refused == []
    assert tags(result) == {"sin": "Recorder_0", "cos": "Recorder_0", "exp": "tail", "tan": "tail"}
    assert apply_edits(result, [PartitionEdit("merge", tags=("Recorder_0", "tail"))]).refused == []
    assert tags(result) == before and list(result.partition_tags) == ["Recorder_0"]
    lowers_and_runs(result, Chain())


def test_split_that_would_enclose_the_rest_is_refused_with_the_path_and_changes_nothing(tagged):
    result = tagged()
    before = tags(result), dict(result.partition_tags)
    report = apply_edits(result, [PartitionEdit("split", handles(result, "sin", "exp"), tag="ends")])
    (outcome,) = report.refused
    assert "isn't convex" in outcome.reason and "sin -> cos -> exp" in outcome.reason
    assert (tags(result), result.partition_tags) == before


def test_assign_joins_a_tag_that_exists(tagged):
    result = tagged([aten.sin.default])
    edit = PartitionEdit("assign", handles(result, "cos"), tag="Recorder_0")
    (outcome,) = apply_edits(result, [edit], {"Recorder": lambda node, program: Supported()}).outcomes
    assert outcome.applied and outcome.changes == {"cos": (None, "Recorder_0")}
    assert "cos" not in [reason.node for reason in result.reasons]
    lowers_and_runs(result, Chain())


def test_assign_of_what_the_backend_refuses_is_refused_with_its_reason(tagged):
    result = tagged([aten.sin.default])
    edit = PartitionEdit("assign", handles(result, "cos"), tag="Recorder_0")
    (outcome,) = apply_edits(result, [edit]).refused
    assert "'Recorder' can't run 'cos': aten.cos.default is not wanted" in outcome.reason
    (outcome,) = apply_edits(result, [edit], {"Recorder": lambda n, p: WhyNot(n, "too curly")}).refused
    assert "too curly" in outcome.reason


def test_assign_to_a_new_tag_needs_a_backend(tagged):
    class Second(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            return PreprocessResult(b"second")

    result = tagged([aten.sin.default])
    (outcome,) = apply_edits(result, [PartitionEdit("assign", handles(result, "tan"), tag="new")]).refused
    assert "no backend_id" in outcome.reason
    edit = PartitionEdit("assign", handles(result, "tan"), tag="new", backend_id="Second")
    assert apply_edits(result, [edit]).refused == []
    assert tags(result)["tan"] == "new" and result.partition_tags["new"].backend_id == "Second"
    lowers_and_runs(result, Chain())


def test_constants_follow_the_edits(tagged):
    result = tagged([aten.sin.default, aten.add.Tensor], Bias())
    bias = next(n for n in result.tagged_exported_program.graph.nodes if n.name == "p_bias")
    assert tag_of(bias) == "Recorder_0"
    apply_edits(result, [PartitionEdit("erase", handles(result, "add"))])
    assert tag_of(bias) is None
    lowers_and_runs(result, Bias())


def test_erased_node_can_be_put_back(tagged):
    result = tagged()
    edits = [
        PartitionEdit("erase", handles(result, "tan")),
        PartitionEdit("assign", handles(result, "tan"), tag="Recorder_0"),
    ]
    assert apply_edits(result, edits).refused == []
    assert set(tags(result).values()) == {"Recorder_0"} and result.reasons == []


def test_unknown_handles_are_reported_not_dropped(tagged):
    result = tagged()
    partly, wholly = apply_edits(
        result, [PartitionEdit("erase", (*handles(result, "tan"), 999)), PartitionEdit("erase", (1000,))]
    ).outcomes
    assert partly.applied and partly.missing == (999,)
    assert not wholly.applied and wholly.missing == (1000,)


def test_merge_across_backends_is_refused(tagged):
    result = tagged([aten.sin.default])
    edits = [
        PartitionEdit("assign", handles(result, "cos"), tag="other", backend_id="AddMulBackendDemo"),
        PartitionEdit("merge", tags=("Recorder_0", "other")),
    ]
    first, second = apply_edits(result, edits).outcomes
    assert first.applied and "different backends" in second.reason


def test_edits_are_data():
    edit = PartitionEdit.from_data(
        {
            "action": "assign",
            "handles": [3],
            "backend_id": "B",
            "compile_specs": [{"key": "k", "value": "0a"}],
        }
    )
    assert PartitionEdit.from_data(edit.to_data()) == edit
    with pytest.raises(PartitionError, match="unknown field"):
        PartitionEdit.from_data({"action": "erase", "colour": "red"})
    with pytest.raises(PartitionError, match="unknown edit"):
        PartitionEdit("paint")
    with pytest.raises(PartitionError, match="malformed"):
        PartitionEdit.from_data({"action": "assign", "compile_specs": [{"key": "k"}]})


class Deep(torch.nn.Module):
    def forward(self, x):
        for _ in range(300):
            x = torch.cos(torch.sin(x))
        return x


def test_edit_of_a_large_partition_is_answered_in_time(edge, take):
    result = partition(edge(Deep(), INPUTS), take(ALL))
    middle = handles(result, "sin_150")
    times = []
    for _ in range(3):
        start = time.perf_counter()
        erased = apply_edits(result, [PartitionEdit("erase", middle)])
        times.append(time.perf_counter() - start)
        pieces = tuple(result.partition_tags)
        back = PartitionEdit("assign", middle, tag=pieces[0])
        joined = apply_edits(result, [back, PartitionEdit("merge", tags=pieces)])
        assert erased.refused == [] and joined.refused == [] and len(pieces) == 2
    # 600 operators. The time is linear, so that 10,000 stay near the 300 ms of an interactive edit.
    assert min(times) < 0.3 * 600 / 10_000 * 4
