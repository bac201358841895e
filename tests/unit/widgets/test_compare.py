"""The comparison's document against the table that Python shows; handles, picture, another runtime."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench import peer
from workbench.errors import WorkbenchError
from workbench_widgets.compare.contract import CompareDocument, PeerOptions
from workbench_widgets.compare.document import compare_document, compare_graph, report_documents
from workbench_widgets.compare.peer import add_peer
from workbench_widgets.compare.picture import picture
from workbench_widgets.context import Context
from workbench_widgets.pack import pack, unpack
from workbench_widgets.view import document as document_of

DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")


class Longer(nn.Module):
    """Another capture: its nodes count differently."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(self.first(torch.neg(x))))


class Short(Longer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.first(x))


@pytest.fixture
def runs(lowering: wb.Lowering) -> list[wb.Run]:
    """Plain and delegated, run on inputs that differ a little."""
    inputs = lowering.example_inputs()
    other = lowering.relower(DELEGATING)
    return [lowering.run(*inputs, values=True), other.run(inputs[0] + 1e-3, values=True)]


@pytest.fixture
def comparison(runs: list[wb.Run]) -> wb.Comparison:
    return wb.compare(*runs, names=["plain", "delegated"])


@pytest.fixture(scope="module")
def captures() -> wb.Comparison:
    """Two captures that have some nodes in common."""
    torch.manual_seed(0)
    inputs = (torch.ones(2, 4),)
    sides = [wb.lower(module().eval(), inputs, progress=False) for module in (Short, Longer)]
    return wb.compare(*sides, names=["short", "long"])


def made(comparison: wb.Comparison, key: str = "0") -> CompareDocument:
    return compare_document(Context(comparison), key)


def test_document_is_the_table(comparison: wb.Comparison) -> None:
    document, table = made(comparison), comparison.table
    assert list(document.source) == list(table["source"])
    assert list(document.module) == list(table["module"])
    assert [(0, 1)[status == "changed"] for status in table["status"]] == document.status.tolist()
    for name, cells in zip(comparison.names, document.cells, strict=True):
        assert list(cells.nodes) == list(table[f"{name}: nodes"])
        assert list(cells.operators) == list(table[f"{name}: operators"])
        assert cells.bytes.tolist() == list(table[f"{name}: bytes"])
        np.testing.assert_allclose(cells.ms, table[f"{name}: ms"].astype(float))
    np.testing.assert_allclose(document.cells[1].sqnr, table["delegated: SQNR dB"].astype(float))
    np.testing.assert_allclose(document.cells[1].error, table["delegated: max error"].astype(float))
    assert np.isnan(document.cells[0].sqnr).all()
    assert set(document.status.tolist()) == {0, 1}
    assert set(document.present.tolist()) == {3}


def test_totals_are_those_of_the_summary_and_of_the_programs(
    comparison: wb.Comparison, runs: list[wb.Run]
) -> None:
    summary = comparison.summary().set_index("side")
    for number, (side, run) in enumerate(zip(made(comparison).sides, runs, strict=True)):
        row = summary.loc[side.name]
        assert (side.rows, side.matched, side.changed, side.only) == tuple(
            row[["rows", "matched", "changed", "only here"]]
        )
        assert side.bytes == row["bytes"]
        assert side.ms == pytest.approx(row["ms"])
        assert side.kind == "run"
        assert side.program_bytes == len(run.lowering.program.buffer)
        assert side.arena_bytes == run.lowering.plan.report.methods["forward"].size
        assert side.nodes == sum(len(each.cells[number].nodes) for each in comparison.rows)


def test_any_side_may_be_the_reference(comparison: wb.Comparison) -> None:
    document = made(comparison, "1")
    assert document.reference == 1
    assert np.isnan(document.cells[1].sqnr).all()
    assert np.isfinite(document.cells[0].error).any()
    # An error is the same from both ends; a ratio is not.
    np.testing.assert_allclose(document.cells[0].error, made(comparison, "0").cells[1].error)


@pytest.mark.parametrize("key", ["2", "-1", "first", "0/1"])
def test_side_that_there_is_not_is_refused(comparison: wb.Comparison, key: str) -> None:
    with pytest.raises(WorkbenchError, match="no such side"):
        made(comparison, key)


def test_more_sides_than_can_be_shown_are_refused(lowering: wb.Lowering) -> None:
    assert made(wb.compare(*[lowering] * 31)).present.tolist()[0] == 2**31 - 1
    with pytest.raises(WorkbenchError, match="too many sides"):
        made(wb.compare(*[lowering] * 32, names=[f"s{index}" for index in range(32)]))


def test_lowerings_have_no_times(lowering: wb.Lowering) -> None:
    document = made(wb.compare(lowering, lowering.relower(DELEGATING)))
    assert [side.ms for side in document.sides] == [None, None]
    assert np.isnan(document.cells[0].ms).all()
    assert {side.kind for side in document.sides} == {"lowering"}


def test_rows_have_the_handles_of_their_nodes(comparison: wb.Comparison, runs: list[wb.Run]) -> None:
    document = made(comparison)
    lowering = runs[0].lowering
    row = next(i for i, nodes in enumerate(document.cells[0].nodes) if "sigmoid" in nodes)
    handles = document.handles[document.handle_start[row] : document.handle_start[row + 1]]
    lowering.selection = document.cells[0].nodes[row]
    assert lowering.selection.handles <= set(handles.tolist())
    assert all(len(cells.handle) == 0 for cells in document.cells)  # one capture, one way to count


def test_each_node_is_in_a_row(comparison: wb.Comparison) -> None:
    for cells in made(comparison).cells:
        for node, row in zip(cells.node, cells.node_row, strict=True):
            assert node in cells.nodes[row].split(", ")


def test_side_of_another_capture_says_how_its_handles_translate(captures: wb.Comparison) -> None:
    document = made(captures)
    only = [row for row, present in enumerate(document.present) if present == 2]
    names = {document.cells[1].operators[row] for row in only}
    assert any("tanh" in name for name in names)
    # What only the other capture has can't be selected in the first.
    for row in only:
        assert document.handle_start[row] == document.handle_start[row + 1]
    table = dict(zip(document.cells[1].handle.tolist(), document.cells[1].first_handle.tolist(), strict=True))
    short, long = (lowering for lowering in captures.sides)
    short.selection, long.selection = "relu", "relu"
    assert {table[handle] for handle in long.selection.handles} == set(short.selection.handles)
    assert 0 in table.values()
    assert len(document.cells[0].handle) == 0


def test_graph_of_each_side_is_its_own(comparison: wb.Comparison) -> None:
    context = Context(comparison)
    plain, delegated = (compare_graph(context, f"{side}/lowered/forward") for side in (0, 1))
    assert "delegate" in set(delegated.kind)
    assert "delegate" not in set(plain.kind)
    with pytest.raises(WorkbenchError, match="no such side"):
        compare_graph(context, "5/lowered/forward")
    with pytest.raises(WorkbenchError):
        compare_graph(context, "0/quantized/forward")


def test_programs_from_files_are_compared_by_instruction(lowering: wb.Lowering) -> None:
    opened = wb.open(lowering.program.buffer)
    inputs = opened.random_inputs()
    runs = [opened.run(*inputs, profile=True) for _ in range(2)]
    context = Context(wb.compare(*runs))
    document = compare_document(context, "0")
    assert [side.stage for side in document.sides] == ["program", "program"]
    assert set(document.status.tolist()) == {0}
    assert document.handles.tolist() == list(range(1, len(opened.instructions) + 1))
    assert document.sides[0].program_bytes == len(lowering.program.buffer)
    for kind, key in report_documents(context):
        assert pack(document_of(context, kind, key))


def test_graph_of_a_side_leaves_no_listener(comparison: wb.Comparison, runs: list[wb.Run]) -> None:
    context = Context(comparison)
    compare_graph(context, "1/lowered/forward")
    assert runs[1].lowering._listeners == {}


def test_report_has_every_reference_and_every_graph(comparison: wb.Comparison) -> None:
    assert set(report_documents(Context(comparison))) == {
        ("compare", "0"),
        ("compare", "1"),
        ("compare.graph", "0/lowered/forward"),
        ("compare.graph", "1/lowered/forward"),
    }


def test_document_travels(comparison: wb.Comparison, show: Callable[..., Any]) -> None:
    page = show(comparison, "compare")
    sent = unpack(page.widget.documents["compare:0"])
    assert [side["name"] for side in sent["sides"]] == ["plain", "delegated"]
    _, buffers = page.ask(document="compare", key="1")
    assert unpack(buffers[0])["reference"] == 1


def test_equal_values_have_no_noise(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs(), values=True)
    sqnr = made(wb.compare(run, run)).cells[1].sqnr
    assert math.inf in sqnr
    assert np.isinf(unpack(pack(made(wb.compare(run, run))))["cells"][1]["sqnr"]).any()


def test_what_is_no_comparison_has_no_such_document(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no comparison"):
        compare_document(Context(lowering), "0")


def test_picture_shows_totals_bars_and_table(comparison: wb.Comparison) -> None:
    still = picture(Context(comparison))
    assert "<svg" in still.html
    assert "delegated against plain: Δ ms" in still.html
    assert still.html.count("<table") == 2
    assert "Comparison of plain, delegated" in still.text


def test_picture_of_equal_lowerings_says_so(lowering: wb.Lowering) -> None:
    assert "no difference" in picture(Context(wb.compare(lowering, lowering))).html


def test_names_are_text_in_the_picture(lowering: wb.Lowering) -> None:
    comparison = wb.compare(lowering, lowering.relower(DELEGATING), names=["a", "<script>alert(1)</script>"])
    assert "<script>" not in picture(Context(comparison)).html


# ---- another runtime ---------------------------------------------------------------------------------------


@pytest.mark.peer
def test_executorch_is_put_beside(comparison: wb.Comparison, show: Callable[..., Any]) -> None:
    pytest.importorskip("executorch", reason="compares with ExecuTorch's own runtime")
    page = show(comparison, "compare")
    reply, buffers = page.ask(call="compare.peer", arguments={"repeat": 2})
    assert "error" not in reply
    assert unpack(buffers[0]) == {"name": "ExecuTorch"}
    assert {"changed": ["about", "compare", "compare.graph"]} in [content for content, _ in page.sent]
    _, buffers = page.ask(document="compare", key="0")
    sides = unpack(buffers[0])["sides"]
    assert [side["kind"] for side in sides] == ["run", "run", "peer"]
    assert sides[2]["ms"] > 0
    # The same inputs as those of the plain run: only rounding differs.
    sqnr = unpack(buffers[0])["cells"][2]["sqnr"]
    assert np.nanmin(sqnr) > 80
    assert not unpack(buffers[0])["can_add_peer"]
    assert len(comparison.sides) == 2  # the user's own object is not touched


def test_runtime_that_is_not_installed_is_told(
    comparison: wb.Comparison, show: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "executorch.extension.pybindings.portable_lib", None)
    monkeypatch.setattr(peer, "_library", peer._library.__wrapped__)
    page = show(comparison, "compare")
    reply, _ = page.ask(call="compare.peer", arguments={"repeat": 1})
    assert "executorch" in str(reply["error"]).lower()
    assert reply["error"]["details"]["hint"]
    assert len(unpack(page.ask(document="compare", key="0")[1][0])["sides"]) == 2


@pytest.mark.parametrize("repeat", [0, -1, 100_000])
def test_number_of_executions_is_checked(comparison: wb.Comparison, repeat: int) -> None:
    with pytest.raises(WorkbenchError, match="at least one execution"):
        add_peer(Context(comparison), PeerOptions(repeat))
