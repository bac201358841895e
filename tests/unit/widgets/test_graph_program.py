"""The graphs of programs: of a lowering, and of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.graph.document import graph_document
from workbench_widgets.graph.program import Instructions


def producers(document: GraphDocument, row: int) -> list[int]:
    return document.src[document.dst == row].tolist()


def instruction_rows(document: GraphDocument) -> list[int]:
    return np.nonzero(document.instruction >= 0)[0].tolist()


def test_rows_are_the_instructions_between_inputs_and_output(lowering: wb.Lowering) -> None:
    document = graph_document(Context(lowering), "program/forward")
    method = lowering.program.emitted.program.method("forward")
    rows = instruction_rows(document)
    assert document.instruction[rows].tolist() == list(range(len(method.instructions)))
    names = [method.operator_name(item.operator) for item in method.instructions]
    assert [document.op[row] for row in rows] == names
    assert document.kind[0] == "placeholder"
    assert document.kind[len(document.name) - 1] == "output"
    assert (document.src < document.dst).all()


def test_edges_follow_the_values(lowering: wb.Lowering) -> None:
    document = graph_document(Context(lowering), "program/forward")
    method = lowering.program.emitted.program.method("forward")
    ends = Instructions(method)
    rows = instruction_rows(document)
    writer = {value: rows[at] for at, written in enumerate(ends.writes) for value in written}
    for at, row in enumerate(rows):
        for value in ends.reads[at]:
            if value in writer and writer[value] < row:
                assert writer[value] in producers(document, row)
    output = len(document.name) - 1
    assert producers(document, output) == [writer[method.outputs[0]]]


def test_instructions_have_the_handles_and_modules_of_their_nodes(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    document, planned = graph_document(context, "program/forward"), graph_document(context, "planned/forward")
    known = set(planned.handles.tolist())
    for row in instruction_rows(document):
        start, end = document.handle_start[row : row + 2]
        own = document.handles[start:end].tolist()
        assert own
        assert set(own) <= known
    paths = {document.module_path[int(document.module[row])] for row in instruction_rows(document)}
    assert {"first", "second"} <= paths


def test_views_without_instructions_pass_their_memory_on() -> None:
    class Views(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x).reshape(2, 8)
            return torch.cos(y).reshape(-1)

    lowered = wb.lower(Views().eval(), (torch.randn(4, 4),), progress=False)
    document = graph_document(Context(lowered), "program/forward")
    rows = instruction_rows(document)
    by_op = {document.op[row]: row for row in rows}
    sine, cosine = by_op["aten::sin.out"], by_op["aten::cos.out"]
    assert producers(document, cosine) == [sine]
    for row in [*rows, len(document.name) - 1]:
        assert producers(document, row), document.name[row]


def test_an_opened_file_has_instructions_as_handles(lowering: wb.Lowering, tmp_path: Path) -> None:
    path = tmp_path / "net.pte"
    lowering.save(path)
    opened = wb.open(path)
    document = graph_document(Context(opened), "program/forward")
    rows = instruction_rows(document)
    handles = [document.handles[document.handle_start[row]] for row in rows]
    assert handles == [number + 1 for number in range(len(rows))]
    live = graph_document(Context(lowering), "program/forward")
    assert [document.op[row] for row in rows] == [live.op[row] for row in instruction_rows(live)]
    assert len(document.src) == len(live.src)


def test_a_delegate_call_reads_and_writes_what_it_is_given() -> None:
    torch.manual_seed(0)

    class Sums(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.sin((x + y) * y)

    recipe = wb.Recipe(partitioner=AddMulPartitionerDemo())
    lowered = wb.lower(Sums().eval(), (torch.randn(3), torch.randn(3)), recipe=recipe, progress=False)
    document = graph_document(Context(lowered), "program/forward")
    row = next(row for row in instruction_rows(document) if document.kind[row] == "delegate")
    assert document.op[row] == "AddMulBackendDemo"
    assert [document.kind[source] for source in producers(document, row)] == ["placeholder", "placeholder"]
    sine = next(row for row in instruction_rows(document) if document.op[row] == "aten::sin.out")
    assert producers(document, sine) == [row]


def test_reads_and_writes_of_in_place_and_list_calls() -> None:
    tensor = ir.Tensor(6, (2,), (0,))
    values: list[ir.Value] = [
        tensor,
        ir.Int(1),
        ir.Tensor(6, (2,), (0,)),
        ir.Tensor(6, (2,), (0,)),
        ir.TensorList((2, 3)),
    ]
    method = ir.Method(
        "m",
        values=values,
        inputs=[0],
        chains=[
            ir.Chain(
                [ir.KernelCall(0, (0, 1, 0)), ir.KernelCall(1, (0, 2, 3, 4)), ir.KernelCall(2, (0, 1, 2, 2))]
            )
        ],
        operators=[("aten::add_", ""), ("aten::split", "out"), ("aten::add", "out")],
    )
    ends = Instructions(method)
    assert ends.reads == [[0, 1], [0], [0, 1]]
    assert ends.writes == [[0], [2, 3], [2]]


def test_a_method_that_is_not_there_is_refused(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no such method"):
        graph_document(Context(lowering), "program/other")


def test_what_follows_branches_reads_from_both() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def negated(v: torch.Tensor) -> torch.Tensor:
                return torch.neg(v)

            def squared(v: torch.Tensor) -> torch.Tensor:
                return v * v

            return torch.sin(torch.cond(x.sum() > 0, negated, squared, (x,)))

    lowered = wb.lower(Branches().eval(), (torch.randn(3),), progress=False)
    document = graph_document(Context(lowered), "program/forward")
    by_op = {document.op[row]: row for row in instruction_rows(document)}
    reached = set(producers(document, by_op["aten::sin.out"]))
    for row in list(reached):
        if document.op[row] == "move":
            reached |= set(producers(document, row))
    assert {by_op["aten::neg.out"], by_op["aten::mul.out"]} <= reached
