"""Graph documents against the FX graphs that they are made from."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.display import node_table
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.graph.document import _document, graph_document
from workbench_widgets.graph.rows import Rows
from workbench_widgets.graph.tree import LIMIT, Tree, lift
from workbench_widgets.pack import pack, unpack

STAGES = ("exported", "edge", "partitioned", "lowered", "planned")


class Block(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x)))


class Flow(nn.Module):
    """Equal blocks, a module that is called twice, and branches."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.shared = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.shared(x)
        for block in self.blocks:
            x = block(x)
        x = self.shared(x)

        def negated(v: torch.Tensor) -> torch.Tensor:
            return torch.neg(v) * 2

        def shifted(v: torch.Tensor) -> torch.Tensor:
            return self.shared(v) + 1

        return torch.cond(x.sum() > 0, negated, shifted, (x,))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def flow() -> Context:
    torch.manual_seed(0)
    return Context(wb.lower(Flow().eval(), (torch.randn(2, 4),), progress=False))


@pytest.fixture(scope="module")
def delegated() -> Context:
    torch.manual_seed(0)
    model = nn.Sequential(Block(), Block()).eval()
    recipe = wb.Recipe(partitioner=AddMulPartitionerDemo())
    return Context(wb.lower(model, (torch.randn(2, 4),), recipe=recipe, progress=False))


def rows_named(document: GraphDocument, name: str) -> list[int]:
    return [row for row in range(len(document.name)) if document.name[row] == name]


def edges(document: GraphDocument) -> Counter[tuple[int, int]]:
    return Counter(zip(document.src.tolist(), document.dst.tolist(), strict=True))


def containers(document: GraphDocument, row: int) -> list[int]:
    """Those that hold a row, innermost first."""
    found = [int(document.module[row])]
    while found[-1] > 0:
        found.append(int(document.module_parent[found[-1]]))
    return found


def module_named(document: GraphDocument, path: str) -> int:
    return list(document.module_path).index(path)


@pytest.mark.parametrize("stage", STAGES)
def test_columns_agree_with_the_node_table(flow: Context, stage: str) -> None:
    document = graph_document(flow, f"{stage}/forward")
    shown = flow.stage(stage)
    table = node_table(shown)
    known: dict[Any, int] = Counter()
    for row in range(len(document.name)):
        shape, dtype = document.shape[row], document.dtype[row]
        start, end = document.handle_start[row : row + 2]
        handles = tuple(document.handles[start:end].tolist())
        known[document.name[row], document.op[row], shape, dtype, handles] += 1
    wanted: dict[Any, int] = Counter()
    for _, entry in table.iterrows():
        op = "get_attr" if entry["op"] == "get_attr" else entry["op"]
        wanted[entry["node"], op, entry["shape"], entry["dtype"], entry["handles"]] += 1
    assert known == wanted


@pytest.mark.parametrize("stage", STAGES)
def test_edges_are_those_of_the_graph_where_it_is_flat(lowering: wb.Lowering, stage: str) -> None:
    document = graph_document(Context(lowering), f"{stage}/forward")
    program = Context(lowering).stage(stage)._programs["forward"]
    nodes = list(program.graph.nodes)
    assert list(document.name) == [node.name for node in nodes]
    wanted = Counter(
        (nodes.index(producer), row) for row, node in enumerate(nodes) for producer in node.all_input_nodes
    )
    assert edges(document) == wanted
    np.testing.assert_array_equal(document.edge_bytes, document.bytes[document.src])


@pytest.mark.parametrize("stage", STAGES)
def test_rows_and_containers_are_in_order(flow: Context, delegated: Context, stage: str) -> None:
    for context in (flow, delegated):
        document = graph_document(context, f"{stage}/forward")
        assert (document.src < document.dst).all()
        parents = document.module_parent
        assert parents[0] == -1
        assert (parents[1:] < np.arange(1, len(parents))).all()
        assert len(set(document.module_path)) == len(document.module_path)


def test_kinds_tell_inputs_from_weights(lowering: wb.Lowering) -> None:
    document = graph_document(Context(lowering), "exported/forward")
    kinds = {document.name[row]: document.kind[row] for row in range(len(document.name))}
    assert kinds["x"] == "placeholder"
    assert kinds["p_first_weight"] == "parameter"
    assert kinds["output"] == "output"
    assert kinds["linear"] == "call"


def test_bytes_count_the_results(lowering: wb.Lowering) -> None:
    document = graph_document(Context(lowering), "exported/forward")
    assert document.bytes[rows_named(document, "x")[0]] == 3 * 4 * 4
    assert document.bytes[rows_named(document, "linear")[0]] == 3 * 8 * 4
    assert document.bytes[rows_named(document, "output")[0]] == 0


def test_attributes_leave_out_tensors_and_defaults() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Softmax(1)).eval()
    context = Context(wb.lower(model, (torch.randn(1, 2, 8, 8),), progress=False))
    document = graph_document(context, "exported/forward")
    texts = {document.op[row]: document.attributes[row] for row in range(len(document.name))}
    assert texts["aten.conv2d.default"] == "stride=[2, 2], padding=[1, 1]"
    assert "dim=1" in texts["aten.softmax.int"]


def test_modules_nest_as_in_the_model(flow: Context) -> None:
    document = graph_document(flow, "exported/forward")
    first = module_named(document, "blocks.0.first")
    assert document.module_name[first] == "first"
    assert document.module_type[first] == "torch.nn.modules.linear.Linear"
    assert document.module_path[int(document.module_parent[first])] == "blocks.0"
    inside = [
        document.op[row] for row in np.nonzero(document.module == first)[0] if document.kind[row] == "call"
    ]
    assert inside == ["aten.linear.default"]


def test_weights_stand_with_the_module_that_uses_them(flow: Context) -> None:
    document = graph_document(flow, "exported/forward")
    weight = rows_named(document, "p_blocks_1_second_weight")[0]
    assert document.module_path[int(document.module[weight])] == "blocks.1.second"
    # Two calls of one module: the innermost container of both.
    shared = rows_named(document, "p_shared_weight")[0]
    assert document.module[shared] == 0


def test_two_calls_of_a_module_are_two_containers(flow: Context) -> None:
    document = graph_document(flow, "exported/forward")
    assert {"shared", "shared@1"} <= set(document.module_path)


def test_equal_blocks_have_one_structure(flow: Context) -> None:
    document = graph_document(flow, "edge/forward")
    numbers = [int(document.module_hash[module_named(document, f"blocks.{block}")]) for block in range(3)]
    assert len(set(numbers)) == 1
    inner = int(document.module_hash[module_named(document, "blocks.0.first")])
    assert inner != numbers[0]


def test_blocks_of_other_shapes_have_other_structures() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = Block(4), Block(4), Block(6)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.b(self.a(x)), self.c(y)

    lowered = wb.lower(Two().eval(), (torch.randn(2, 4), torch.randn(2, 6)), progress=False)
    document = graph_document(Context(lowered), "exported/forward")
    a, b, c = (document.module_hash[module_named(document, name)] for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize("stage", ["exported", "edge", "planned"])
def test_branches_are_containers(flow: Context, stage: str) -> None:
    document = graph_document(flow, f"{stage}/forward")
    call = next(row for row in range(len(document.name)) if document.kind[row] == "control")
    container = int(document.module[call])
    assert document.module_kind[container] == "control"
    branches = [m for m in range(len(document.module_name)) if document.module_parent[m] == container]
    assert [document.module_kind[branch] for branch in branches] == ["branch", "branch"]
    inner = {branch: np.nonzero(document.module == branch)[0].tolist() for branch in branches}
    known = edges(document)
    for rows in inner.values():
        outputs = [row for row in rows if document.kind[row] == "output"]
        assert [known[row, call] for row in outputs] == [1]
        operands = [row for row in rows if document.kind[row] == "placeholder"]
        for operand in operands:
            producers = [source for source, target in known if target == operand]
            assert len(producers) == 1
            assert document.shape[producers[0]] == document.shape[operand]
            constant = document.kind[producers[0]] in ("parameter", "constant")
            # A constant that only the branches use stands with them.
            assert constant or container not in containers(document, producers[0])
    predicate = next(row for row in range(len(document.name)) if document.op[row].startswith("aten.gt"))
    assert known[predicate, call] == 1


def test_a_delegate_holds_what_it_runs(delegated: Context) -> None:
    document = graph_document(delegated, "lowered/forward")
    program = delegated.stage("lowered")._programs["forward"]
    calls = [node for node in program.graph.nodes if "executorch_call_delegate" in str(node.target)]
    rows = [row for row in range(len(document.name)) if document.kind[row] == "delegate"]
    assert [document.name[row] for row in rows] == [node.name for node in calls]
    assert rows
    known = edges(document)
    for row, node in zip(rows, calls, strict=True):
        container = int(document.module[row])
        lowered = getattr(program.graph_module, str(node.args[0].target))
        assert document.module_kind[container] == "delegate"
        assert document.module_type[container] == "AddMulBackendDemo"
        held = [other for other in range(row) if container in containers(document, other)]
        inside = [other for other in held if document.kind[other] != "attribute"]
        names = Counter(document.name[other] for other in inside)
        assert names == Counter(
            inner.name for inner in lowered.original_module.graph.nodes if inner.op != "get_attr"
        )
        for operand in node.args[1:]:
            outer = rows_named(document, operand.name)[0]
            assert any(source == outer and target in inside for source, target in known), operand
        output = next(other for other in inside if document.kind[other] == "output")
        assert known[output, row] == 1


def test_tags_are_those_of_the_partitions(delegated: Context) -> None:
    document = graph_document(delegated, "partitioned/forward")
    program = delegated.stage("partitioned")._programs["forward"]
    wanted = {node.name: str(node.meta.get("delegation_tag") or "") for node in program.graph.nodes}
    assert {document.name[row]: document.tag[row] for row in range(len(document.name))} == wanted
    assert any(wanted.values())


def chain(length: int) -> torch.export.ExportedProgram:
    """A program of so many calls after a first one, written into its graph: tracing them takes a minute."""
    program = torch.export.export(nn.ReLU().eval(), (torch.empty(2, 2),))
    graph = program.graph_module.graph
    output = graph.output_node()
    last = output.args[0][0]  # type: ignore[index]
    with graph.inserting_before(output):
        for step in range(length):
            node = graph.call_function(
                torch.ops.aten.sin.default if step % 3 else torch.ops.aten.cos.default, (last,)
            )
            node.meta["val"] = last.meta["val"]  # type: ignore[union-attr]
            last = node
    return program


def test_large_containers_are_cut_into_groups() -> None:
    document = _document(Rows(chain(1000)), "exported", "forward")
    direct = Counter(document.module.tolist()) + Counter(document.module_parent[1:].tolist())
    assert max(direct.values()) <= LIMIT
    groups = [m for m in range(len(document.module_name)) if document.module_kind[m] == "group"]
    assert len(groups) >= 4
    # Intervals of the order: each group's rows are consecutive.
    for group in groups:
        rows = np.nonzero(document.module == group)[0]
        np.testing.assert_array_equal(rows, np.arange(rows[0], rows[-1] + 1))
    assert sum(int((document.module == group).sum()) for group in groups) == len(document.name)


def test_documents_are_made_once_and_pack(flow: Context) -> None:
    first = graph_document(flow, "edge/forward")
    assert graph_document(flow, "edge/forward") is first
    back = unpack(pack(first))
    np.testing.assert_array_equal(back["src"], first.src)
    assert list(back["op"]) == list(first.op)


@pytest.mark.parametrize("key", ["edge/backward", "nowhere/forward"])
def test_unknown_stages_and_methods_are_refused(flow: Context, key: str) -> None:
    with pytest.raises(WorkbenchError, match="there is no such"):
        graph_document(flow, key)


def test_edges_run_in_the_innermost_common_container() -> None:
    generator = np.random.default_rng(0)
    tree = Tree()
    for number in range(30):
        tree.add(int(generator.integers(0, len(tree))), f"m{number}", "", "module")
    nodes = 50
    module = generator.integers(0, len(tree), nodes).astype(np.int32)
    src, dst = (generator.integers(0, nodes, 200).astype(np.int32) for _ in range(2))
    at, left, right = lift(tree, module, src, dst)

    def above(node: int) -> list[int]:
        found = [node, nodes + int(module[node])]
        while (parent := tree.parents[found[-1] - nodes]) >= 0:
            found.append(nodes + parent)
        return found

    for edge in range(len(src)):
        one, other = above(int(src[edge])), above(int(dst[edge]))
        common = next(item for item in one[1:] if item in other[1:])
        assert at[edge] == common - nodes
        assert left[edge] == one[one.index(common) - 1]
        assert right[edge] == other[other.index(common) - 1]


def test_ten_thousand_nodes_are_quick() -> None:
    """The bound is far above what it takes, since machines differ; what matters is that it is no minute."""
    program = chain(10_000)
    begin = time.perf_counter()
    document = _document(Rows(program), "exported", "forward")
    seconds = time.perf_counter() - begin
    assert len(document.name) == 10_003
    assert seconds < 8
