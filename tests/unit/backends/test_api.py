import copy
import time

import pytest
import torch
from torch.export import ExportedProgram

from workbench import provenance
from workbench.backends import (
    BackendDetails,
    DelegationSpec,
    MethodProgramsPartitionerSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    WhyNot,
    delegates_in,
    is_call_delegate,
    lower_partitions,
    partition,
    to_backend,
    why_not,
)
from workbench.backends.base import TAG_KEY
from workbench.errors import PartitionError

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Mixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x, y):
        a = torch.sin(self.linear(x))
        return torch.cos(a) * y, a


class Branches(torch.nn.Module):
    def forward(self, p, x):
        return torch.cond(p, lambda v: torch.sin(v) + 1, lambda v: torch.cos(v) * 2, (torch.sin(x),))


MIXED_INPUTS = (torch.randn(2, 3), torch.randn(2, 3))


def text(program):
    return str(program.graph), str(program.graph_signature), sorted(program.state_dict)


def test_lowered_program_computes_what_the_model_computes(edge, take):
    model = Mixed()
    program = edge(model, MIXED_INPUTS)
    lowered = to_backend(program, take([aten.sin.default, aten.cos.default, aten.addmm.default]))
    assert len(list(delegates_in(lowered.graph_module))) == 1
    torch.testing.assert_close(lowered.module()(*MIXED_INPUTS), model(*MIXED_INPUTS))


def test_program_that_is_passed_in_stays_as_it_is(edge, take):
    program = edge(Mixed(), MIXED_INPUTS)
    before = text(program)
    metas = [dict(node.meta) for node in program.graph.nodes]
    to_backend(program, take([aten.sin.default]))
    assert text(program) == before
    assert [node.meta.keys() for node in program.graph.nodes] == [meta.keys() for meta in metas]


def test_every_operator_left_behind_has_a_reason_with_its_source_line(edge, take):
    program = edge(Mixed(), MIXED_INPUTS)
    lowered = to_backend(program, take([aten.sin.default]))
    left = [
        node.name
        for node in lowered.graph.nodes
        if node.op == "call_function" and not is_call_delegate(node) and node.name != "getitem"
    ]
    reasons = why_not(lowered)
    assert [reason.node for reason in reasons] == left
    assert all(__file__ in (reason.source or "") for reason in reasons if reason.node in ("cos", "mul"))
    assert all(
        reason.handles and reason.eligible_if == "it were" and reason.by == "Recorder" for reason in reasons
    )


def test_partitioner_that_says_nothing_is_named_in_the_reasons(edge):
    class Silent(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            return PartitionResult(exported_program, {})

    reasons = why_not(to_backend(edge(Mixed(), MIXED_INPUTS), Silent()))
    assert reasons and all(reason.reason == "Silent gave no reason" for reason in reasons)


def test_source_handles_of_what_is_delegated_are_on_the_call(edge, take):
    program = edge(Mixed(), MIXED_INPUTS)
    wanted = frozenset().union(
        *(
            provenance.handles(n)
            for n in program.graph.nodes
            if n.target in (aten.sin.default, aten.cos.default)
        )
    )
    lowered = to_backend(program, take([aten.sin.default, aten.cos.default]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert provenance.handles(delegate.node) == wanted
    inside = [n for n in delegate.lowered.original_module.graph.nodes if n.op == "call_function"]
    assert frozenset().union(*map(provenance.handles, inside)) == wanted


def test_partitioner_that_edits_the_graph_is_refused(edge):
    class Meddler(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            node = next(n for n in exported_program.graph.nodes if n.op == "call_function")
            node.target = aten.exp.default
            return PartitionResult(exported_program, {})

    with pytest.raises(PartitionError, match="Meddler changed the graph"):
        to_backend(edge(Mixed(), MIXED_INPUTS), Meddler())


def test_illegal_tags_stop_before_any_backend_runs(edge, recorder):
    class Enclosing(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            for node in exported_program.graph.nodes:
                if node.target in (aten.addmm.default, aten.cos.default):
                    node.meta[TAG_KEY] = "t"
            return PartitionResult(exported_program, {"t": DelegationSpec("Recorder", [])})

    with pytest.raises(PartitionError, match="isn't convex"):
        to_backend(edge(Mixed(), MIXED_INPUTS), Enclosing())
    assert recorder.programs == []


def test_failing_backend_is_named_with_its_tag(edge, take):
    class Broken(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            raise KeyError("conv7")

    with pytest.raises(
        PartitionError, match=r"the backend 'Broken' failed \(tags Broken_0\): KeyError: 'conv7'"
    ):
        to_backend(edge(Mixed(), MIXED_INPUTS), take([aten.sin.default], "Broken"))


def test_wrong_first_argument_is_explained():
    with pytest.raises(PartitionError, match="first argument"):
        to_backend(42)


def test_branches_get_their_own_delegates_and_run(edge, take):
    model = Branches()
    for flag in (True, False):
        inputs = (torch.tensor(flag), torch.randn(3))
        lowered = to_backend(edge(model, inputs), take([aten.sin.default, aten.cos.default]))
        assert len(list(delegates_in(lowered.graph_module))) == 1
        branches = [m for n, m in lowered.graph_module.named_children() if "graph" in n]
        assert [len(list(delegates_in(branch))) for branch in branches] == [1, 1]
        torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_control_flow_as_a_whole_goes_into_a_delegate_with_its_branches(edge, take):
    model = Branches()
    inputs = (torch.tensor(True), torch.randn(3))
    lowered = to_backend(edge(model, inputs), take([torch.ops.higher_order.cond]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert any(n.target is torch.ops.higher_order.cond for n in delegate.lowered.original_module.graph.nodes)
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_operator_with_several_results_is_taken_with_its_elements(edge, take):
    class Two(torch.nn.Module):
        def forward(self, x):
            values, indices = torch.max(x, dim=1)
            return torch.sin(values), indices

    inputs = (torch.randn(2, 3),)
    lowered = to_backend(edge(Two(), inputs), take([aten.max.dim]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert len(delegate.node.meta["val"]) == 2
    torch.testing.assert_close(lowered.module()(*inputs), Two()(*inputs))


def test_dynamic_shapes_run_at_other_sizes(edge, take):
    model = Mixed()
    batch = torch.export.Dim("batch", min=2, max=16)
    program = edge(model, MIXED_INPUTS, ({0: batch}, {0: batch}))
    lowered = to_backend(program, take([aten.sin.default, aten.cos.default, aten.mul.Tensor]))
    inputs = (torch.randn(7, 3), torch.randn(7, 3))
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_several_partitioners_in_sequence_fill_in_what_is_left(edge, take):
    class Other(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            return PreprocessResult(b"other")

    model = Mixed()
    first = to_backend(edge(model, MIXED_INPUTS), take([aten.sin.default]))
    both = to_backend(first, take([aten.cos.default], "Other"))
    assert [d.lowered.backend_id for d in delegates_in(both.graph_module)] == ["Recorder", "Other"]
    assert [d.name for d in delegates_in(both.graph_module)] == ["lowered_module_0", "lowered_module_1"]
    by_node = {}
    for reason in why_not(both):
        by_node.setdefault(reason.node, []).append(reason.by)
    assert by_node["mul"] == ["Recorder", "Other"]
    torch.testing.assert_close(both.module()(*MIXED_INPUTS), model(*MIXED_INPUTS))


class Woven(torch.nn.Module):
    """Two partitions in the order of the data, the later one with the first node of the graph."""

    def forward(self, x, y):
        late = torch.sin(y)
        early = torch.cos(x)
        return torch.sin(early) * late, torch.cos(early)


def test_partitions_that_feed_each_other_directly_are_joined_up(edge):
    class TwoTags(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            for node in exported_program.graph.nodes:
                if node.op == "call_function":
                    node.meta[TAG_KEY] = "early" if node.target is aten.cos.default else "late"
            return PartitionResult(
                exported_program, dict.fromkeys(("late", "early"), DelegationSpec("Recorder", []))
            )

    lowered = to_backend(edge(Woven(), MIXED_INPUTS), TwoTags())
    calls = [str(n.target) for n in lowered.graph.nodes if n.op == "call_function"]
    assert calls.count("executorch_call_delegate") == 2 and not [c for c in calls if c.startswith("aten")]
    torch.testing.assert_close(lowered.module()(*MIXED_INPUTS), Woven()(*MIXED_INPUTS))


def test_several_partitioners_tag_one_program_before_anything_is_lowered(edge, take):
    class Other(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            return PreprocessResult(b"other")

    model = Mixed()
    chosen = [
        take([aten.sin.default]),
        take([aten.cos.default, aten.addmm.default], "Other"),
        take([aten.mul.Tensor]),
    ]
    result = partition(edge(model, MIXED_INPUTS), chosen)
    tags = {
        n.name: n.meta.get(TAG_KEY)
        for n in result.tagged_exported_program.graph.nodes
        if n.op == "call_function"
    }
    assert tags["sin"] == "Recorder_0" and tags["mul"] == "Recorder_0_1"
    assert tags["cos"] != tags["addmm"]  # sin lies between them
    assert {spec.backend_id for spec in result.partition_tags.values()} == {"Recorder", "Other"}
    assert {r.node for r in result.reasons}.isdisjoint(node for node, tag in tags.items() if tag)
    lowered = lower_partitions({"forward": result})["forward"]
    torch.testing.assert_close(lowered.module()(*MIXED_INPUTS), model(*MIXED_INPUTS))


def test_reasons_of_equal_names_in_two_branches_are_not_mixed_up(edge):
    class OnlyFirst(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            reasons = [
                WhyNot(n, f"number {index}")
                for index, n in enumerate(provenance.nodes_of(exported_program.graph_module))
                if n.op == "call_function"
            ]
            return PartitionResult(exported_program, {}, reasons)

    class Same(torch.nn.Module):
        def forward(self, p, x):
            return torch.cond(p, lambda v: torch.sin(v), lambda v: torch.sin(v + 1.0), (x,))

    result = partition(edge(Same(), (torch.tensor(True), torch.ones(2))), OnlyFirst())
    assert len({reason.reason for reason in result.reasons}) == len(result.reasons)
    assert [reason.node for reason in result.reasons].count("sin") == 2


def test_methods_take_their_own_partitioners_and_others_stay(edge, take):
    programs = {name: edge(Mixed(), MIXED_INPUTS) for name in ("a", "b", "c")}
    chosen = {"a": take([aten.sin.default]), "b": take([aten.cos.default])}
    for lowered in (
        to_backend(programs, chosen),
        to_backend(MethodProgramsPartitionerSpec(programs, chosen)),
    ):
        assert lowered["c"] is programs["c"]
        blobs = {n: [d.lowered.processed_bytes for d in delegates_in(lowered[n].graph_module)] for n in "ab"}
        assert blobs == {"a": [b"aten.sin.default"], "b": [b"aten.cos.default"]}


def test_partitioner_for_an_unknown_method_is_refused(edge, take):
    with pytest.raises(PartitionError, match="'nope'"):
        to_backend({"forward": edge(Mixed(), MIXED_INPUTS)}, {"nope": take([])})


def test_backend_sees_the_partitions_of_all_methods_together(edge, take):
    class Together(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            raise AssertionError("preprocess_multimethod is overridden")

        @classmethod
        def preprocess_multimethod(cls, edge_programs, compile_specs):
            total = sum(map(len, edge_programs.values()))
            return {m: [PreprocessResult(b"%d" % total) for _ in ps] for m, ps in edge_programs.items()}

    programs = {name: edge(Mixed(), MIXED_INPUTS) for name in ("a", "b")}
    lowered = to_backend(programs, take([aten.sin.default], "Together"))
    for program in lowered.values():
        assert [d.lowered.processed_bytes for d in delegates_in(program.graph_module)] == [b"2"]


def test_lowered_program_survives_decomposition_and_deepcopy(edge, take):
    model = Mixed()
    lowered = to_backend(edge(model, MIXED_INPUTS), take([aten.sin.default, aten.cos.default]))
    (blob,) = (d.lowered.processed_bytes for d in delegates_in(lowered.graph_module))
    for again in (lowered.run_decompositions({}), copy.deepcopy(lowered)):
        assert [d.lowered.processed_bytes for d in delegates_in(again.graph_module)] == [blob]
        torch.testing.assert_close(again.module()(*MIXED_INPUTS), model(*MIXED_INPUTS))


def test_tags_do_not_outlive_lowering(edge, take):
    lowered = to_backend(edge(Mixed(), MIXED_INPUTS), take([aten.sin.default, aten.addmm.default]))
    (delegate,) = delegates_in(lowered.graph_module)
    for program in (lowered, delegate.lowered.original_module):
        assert not [n for n in program.graph.nodes if TAG_KEY in n.meta]


class Deep(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth

    def forward(self, x):
        for index in range(self.depth):
            x = torch.sin(x) if index % 4 else torch.cos(x)
        return x


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def test_time_grows_linearly_with_the_graph(edge, take):
    times = []
    for depth in (150, 900):
        program = edge(Deep(depth), (torch.ones(2),))
        lowered = to_backend(program, take([aten.sin.default]))
        assert len(list(delegates_in(lowered.graph_module))) == (depth + 3) // 4
        times.append(
            min(seconds(lambda p=program: to_backend(p, take([aten.sin.default]))) for _ in range(2))
        )
    # 6 times the nodes and the delegates; quadratic work would take 36 times as long.
    assert times[1] < 15 * times[0], times


def test_partition_hands_out_a_copy_that_can_be_looked_at(edge, take):
    program = edge(Mixed(), MIXED_INPUTS)
    result = partition(program, take([aten.sin.default]))
    assert result.tagged_exported_program is not program
    assert list(result.partition_tags) == ["Recorder_0"]
    assert {reason.node for reason in result.reasons} >= {"cos", "mul"}
