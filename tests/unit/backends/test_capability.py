import pytest
import torch

from workbench.backends import CapabilityPartitioner, Supported, WhyNot, group_nodes, partition
from workbench.backends.graphs import tag_of

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Residual(torch.nn.Module):
    def forward(self, x):
        a = torch.sin(x)
        return torch.cos(torch.exp(a)) + a


class Pair(torch.nn.Module):
    def forward(self, x):
        return torch.cos(torch.sin(x)) + torch.cos(torch.exp(x))


def tags(result):
    return {n.name: tag_of(n) for n in result.tagged_exported_program.graph.nodes if n.op == "call_function"}


def test_partitions_are_numbered_in_graph_order(edge, take):
    result = partition(
        edge(Residual(), (torch.ones(2),)), take([aten.sin.default, aten.cos.default, aten.add.Tensor])
    )
    assert tags(result) == {"sin": "Recorder_0", "exp": None, "cos": "Recorder_1", "add": "Recorder_1"}
    assert list(result.partition_tags) == ["Recorder_0", "Recorder_1"]


def test_small_partitions_are_left_with_the_number_that_would_do(edge, take):
    partitioner = take([aten.sin.default, aten.cos.default, aten.add.Tensor], min_nodes=2)
    result = partition(edge(Residual(), (torch.ones(2),)), partitioner)
    assert tags(result) == {"sin": None, "exp": None, "cos": "Recorder_0", "add": "Recorder_0"}
    (reason,) = (r for r in result.reasons if r.node == "sin")
    assert "1 operators, below min_nodes 2" in reason.reason and reason.eligible_if == "min_nodes <= 1"


def test_nodes_that_must_stand_together_do_and_need_no_support_of_their_own(edge):
    class Fused(CapabilityPartitioner):
        """Takes cos only together with the operator before it."""

        def supports(self, node, program):
            if node.target is aten.cos.default:
                return Supported(together=(node.args[0],))
            return WhyNot(node, "only as the input of cos")

    result = partition(edge(Pair(), (torch.ones(2),)), Fused("Recorder"))
    found = tags(result)
    assert found["sin"] == found["cos"] and found["exp"] == found["cos_1"]
    assert found["sin"] != found["exp"] and found["add"] is None
    assert [reason.node for reason in result.reasons] == ["add"]


def test_pattern_that_encloses_an_unsupported_node_is_left_with_its_reason(edge):
    class Enclosing(CapabilityPartitioner):
        def supports(self, node, program):
            sin = next(n for n in node.graph.nodes if n.target is aten.sin.default)
            if node.target is aten.add.Tensor:
                return Supported(together=(sin,))
            return Supported() if node is sin else WhyNot(node, "no")

    result = partition(edge(Residual(), (torch.ones(2),)), Enclosing("Recorder"))
    assert set(tags(result).values()) == {None}
    assert {r.node: r.reason for r in result.reasons}["add"].startswith("it can't be in one partition")


def test_elements_of_a_result_follow_their_producer(edge, take):
    class Split(torch.nn.Module):
        def forward(self, x):
            values, indices = torch.max(x, dim=1)
            return values, indices

    program = edge(Split(), (torch.ones(2, 3),))
    assert len(set(tags(partition(program, take([aten.max.dim]))).values())) == 1
    left = partition(program, take([]))
    assert any("its producer" in reason.reason for reason in left.reasons)


def test_group_nodes_leaves_nodes_without_an_answer(edge):
    program = edge(Residual(), (torch.ones(2),))
    sin = next(n for n in program.graph.nodes if n.target is aten.sin.default)
    groups, left = group_nodes(program.graph_module, {sin: Supported()})
    assert groups == [[sin]] and left == {}


def test_merging_disconnected_parts_gives_fewer_partitions(edge, take):
    class Parallel(torch.nn.Module):
        def forward(self, x, y):
            return torch.sin(x), torch.cos(y)

    program = edge(Parallel(), (torch.ones(2), torch.ones(2)))
    wanted = [aten.sin.default, aten.cos.default]
    assert len(partition(program, take(wanted)).partition_tags) == 2
    assert len(partition(program, take(wanted, merge_disconnected=True)).partition_tags) == 1


def test_why_not_reads_as_a_sentence(edge):
    program = edge(Residual(), (torch.ones(2),))
    node = next(n for n in program.graph.nodes if n.op == "call_function")
    text = str(WhyNot(node, "found int64", "it were float32"))
    assert text.startswith("sin (aten.sin.default) at ")
    assert text.endswith("found int64; eligible if it were float32")
