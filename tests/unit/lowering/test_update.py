"""Lowering again in place, one selection for a family, stages that know their lowering, example inputs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import ExecutionError, PartitionError, RecipeError, SelectionError, WorkbenchError

DEMO = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x) + y) * y


def lowered(recipe: wb.Recipe | None = None) -> wb.Lowering:
    torch.manual_seed(0)
    return wb.lower(Net().eval(), (torch.randn(2, 4), torch.randn(2, 4)), recipe=recipe)


@pytest.fixture(scope="module")
def plain() -> wb.Lowering:
    return lowered()


def test_update_replaces_the_stages_of_the_same_object() -> None:
    lowering = lowered()
    inputs = lowering.example_inputs()
    expected = lowering.execute(*inputs)
    method, partitioned = lowering.load_method(), lowering.partitioned
    heard: list[wb.Lowering] = []
    lowering.on_change(heard.append)
    assert lowering.update(DEMO) is lowering
    assert heard == [lowering]
    assert lowering.recipe == DEMO
    assert "partition" in lowering.ran
    assert "edge" not in lowering.ran
    assert lowering.partitioned is not partitioned
    assert lowering.partitioned.tags["forward"]
    assert lowering.load_method() is not method
    assert (wb.open(lowering.program.buffer).delegates["backend"] == "AddMulBackendDemo").all()
    torch.testing.assert_close(lowering.execute(*inputs), expected)


def test_failed_update_changes_nothing() -> None:
    lowering = lowered()
    before = (
        lowering.partitioned,
        lowering.program,
        lowering.recipe,
        lowering.load_method(),
        lowering.seconds,
    )
    heard: list[wb.Lowering] = []
    lowering.on_change(heard.append)
    wrong = wb.Edit("partition", {"action": "erase", "handles": [9999]})
    with pytest.raises(WorkbenchError):
        lowering.update(DEMO.replace(edits=[wrong]))
    with pytest.raises(RecipeError, match="no recipe"):
        lowering.update("DEMO")  # type: ignore[arg-type]
    after = (
        lowering.partitioned,
        lowering.program,
        lowering.recipe,
        lowering.load_method(),
        lowering.seconds,
    )
    assert all(old is new for old, new in zip(before, after, strict=True))
    assert heard == []


def test_failing_listener_does_not_stop_the_others() -> None:
    lowering = lowered()
    heard: list[wb.Lowering] = []

    def fail(_: wb.Lowering) -> None:
        raise ValueError("listener")

    lowering.on_change(fail)
    remove = lowering.on_change(heard.append)
    with pytest.raises(ValueError, match="listener"):
        lowering.update(DEMO)
    assert lowering.recipe == DEMO
    assert heard == [lowering]
    remove()
    with pytest.raises(ValueError, match="listener"):
        lowering.update(wb.Recipe())
    assert heard == [lowering]


def test_updated_edit_is_the_same_as_a_new_lowering() -> None:
    lowering = lowered(DEMO)
    table = lowering.partitioned.table
    handles = list(table[table["op"].str.contains("mul")].iloc[0]["handles"])
    recipe = DEMO.replace(edits=[wb.Edit("partition", {"action": "erase", "handles": handles})])
    again = lowering.relower(recipe)
    lowering.update(recipe)
    fresh = lowered(recipe)
    assert lowering.partitioned.fingerprint == again.partitioned.fingerprint == fresh.partitioned.fingerprint
    assert lowering.program.buffer == fresh.program.buffer
    # The decision that edits begin with is not touched by them.
    lowering.update(DEMO)
    assert lowering.partitioned.fingerprint == lowered(DEMO).partitioned.fingerprint


def test_partitioners_are_asked_once_for_several_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.backends.demo import AddMulPartitionerDemo

    asked: list[object] = []
    original = AddMulPartitionerDemo.partition
    monkeypatch.setattr(
        AddMulPartitionerDemo, "partition", lambda self, program: asked.append(1) or original(self, program)
    )
    lowering = lowered(DEMO)
    assert len(asked) == 1
    table = lowering.partitioned.table
    operators = table[(table["tag"] != "") & table["op"].str.startswith("aten")]
    for row in operators.itertuples():
        edit = wb.Edit("partition", {"action": "erase", "handles": list(row.handles)})
        lowering.update(lowering.recipe.replace(edits=[*lowering.recipe.edits, edit]))
    assert len(lowering.recipe.edits) == len(operators) > 1
    assert len(asked) == 1
    lowering.update(DEMO.replace(edge={"fold_batch_norm": False}))
    assert len(asked) == 2


def test_run_keeps_the_program_that_it_ran() -> None:
    lowering = lowered()
    inputs = lowering.example_inputs()
    before = lowering.run(*inputs, profile=True)
    assert before.lowering is lowering
    lowering.update(DEMO)
    after = lowering.run(*inputs, profile=True)
    assert after.lowering is lowering
    old = before.lowering
    assert old is not lowering
    assert old.selection is lowering.selection
    assert not old.partitioned.tags["forward"]
    names = before.summary()["operator"].tolist()
    assert any("addmm" in name for name in names)
    assert not any("delegate" in name for name in names)
    assert any("delegate" in name for name in after.summary()["operator"])
    comparison = wb.compare(before, after)
    assert set(comparison.table["status"]) != {"matched"}


def test_family_shares_one_selection() -> None:
    lowering = lowered()
    again = lowering.relower(DEMO)
    assert again.selection is lowering.selection
    assert lowered().selection is not lowering.selection
    lowering.update(DEMO)
    assert lowering.selection is again.selection
    assert lowering.selection.method == "forward"


def test_selection_is_set_by_name_handle_and_row() -> None:
    lowering = lowered(DEMO)
    relu = lowering.edge.table.query("node == 'relu'").iloc[0]
    lowering.selection = "relu"
    assert lowering.selection.handles == set(relu["handles"])
    assert lowering.selection.node == "relu"
    lowering.selection = None
    assert not lowering.selection
    lowering.selection = relu
    assert lowering.selection.handles == set(relu["handles"])
    lowering.selection = [3, 4]
    assert lowering.selection.handles == {3, 4}
    # A node of a late stage only: a call of a delegate.
    table = lowering.lowered.table
    call = table[table["op"].str.contains("call_delegate")].iloc[0]
    lowering.selection = call["node"]
    assert lowering.selection.handles == set(call["handles"])
    run = lowering.run(*lowering.example_inputs(), profile=True)
    rows = run.table
    lowering.selection = rows[rows["event_name"] == "DELEGATE_CALL"]
    assert lowering.selection.handles
    with pytest.raises(SelectionError) as caught:
        lowering.selection = "reluu"
    assert "relu" in str(caught.value)
    assert lowering.selection.handles


def test_module_is_selected_by_its_path() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.inner(x))

    lowering = wb.lower(Outer().eval(), (torch.randn(2, 4),))
    table = lowering.exported.table
    inner = table[table["module"].str.startswith("inner")]
    lowering.selection = "inner"
    assert lowering.selection.handles == {handle for handles in inner["handles"] for handle in handles}
    assert lowering.selection.node is None
    lowering.selection = ["inner.1", "sigmoid"]
    assert len(lowering.selection.handles) == 2
    with pytest.raises(SelectionError, match=r"did you mean inner\.1"):
        lowering.selection = "inner.7"


def test_rows_of_all_stages_lead_to_the_same_nodes(plain: wb.Lowering) -> None:
    relu = plain.exported.table.query("node == 'relu'").iloc[0]["handles"]
    for stage in (plain.edge, plain.partitioned, plain.lowered):
        assert stage.table.query("node == 'relu'").iloc[0]["handles"] == relu
    assert plain.plan.table.query("tensor == 'relu'").iloc[0]["handles"] == relu
    instructions = plain.program.table
    assert instructions[instructions["name"] == "aten::relu.out"].iloc[0]["handles"] == relu
    rows = plain.run(*plain.example_inputs(), profile=True).table
    assert rows[rows["event_name"] == "native_call_relu.out"].iloc[0]["handles"] == relu


def test_name_of_another_method_is_found() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x)

    x = torch.randn(3)
    methods = {
        "encode": torch.export.export(Two(), (x,)),
        "decode": torch.export.export(nn.ReLU(), (x,)),
    }
    lowering = wb.lower(methods)
    assert lowering.selection.method == "encode"
    lowering.selection = "relu"
    assert lowering.selection.method == "decode"
    [inputs] = lowering.example_inputs("decode")
    torch.testing.assert_close(inputs, x)
    with pytest.raises(ExecutionError, match="no method 'forward'"):
        lowering.example_inputs()


def test_stage_knows_the_lowering_that_it_was_taken_from() -> None:
    lowering = lowered()
    again = lowering.relower(DEMO)
    fingerprint = lowering.edge.fingerprint
    assert again.edge is lowering.edge
    assert lowering.edge.owner is lowering
    assert again.edge.owner is again
    assert lowering.edge.owner is lowering
    assert lowering.edge.fingerprint == fingerprint
    assert lowering.edge.intact()
    partitioned = lowering.partitioned
    assert partitioned.owner is lowering
    lowering.update(DEMO)
    assert partitioned.owner is None
    assert lowering.partitioned.owner is lowering


def test_stage_does_not_keep_its_lowering() -> None:
    edge = lowered().edge
    gc.collect()
    assert edge.owner is None
    assert len(edge.table)


def test_example_inputs_are_copies_in_the_order_of_the_program() -> None:
    class Several(nn.Module):
        def forward(self, pair: list[torch.Tensor], *, b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return pair[0] - 2 * pair[1] + 3 * a - 5 * b

    x = torch.randn(3)
    given = {"a": torch.ones(3), "b": torch.full((3,), 2.0)}
    lowering = wb.lower(Several(), ([x, x + 1],), kwargs=given)
    inputs = lowering.example_inputs()
    expected = Several()([x, x + 1], **given)
    torch.testing.assert_close(lowering.execute(*inputs)[0], expected)
    for tensor in inputs:
        tensor.zero_()
    torch.testing.assert_close(lowering.execute(*lowering.example_inputs())[0], expected)


def test_capture_without_example_says_so() -> None:
    program = torch.export.export(nn.ReLU(), (torch.randn(3),))
    program._example_inputs = None
    with pytest.raises(ExecutionError, match="without example inputs"):
        wb.lower(program).example_inputs()


@pytest.mark.parametrize(
    "call",
    [
        lambda lowering: wb.lower(Net().eval(), (), recipee=None),
        lambda lowering: lowering.run(profil=True),
        lambda lowering: lowering.update(DEMO, fast=True),
        lambda lowering: lowering.relower(DEMO, fast=True),
        lambda lowering: lowering.to_html("x.html", runs=None),
        lambda lowering: wb.open(lowering.program.buffer).run(profil=True),
        lambda lowering: wb.compare(lowering, lowering, name=["a", "b"]),
        lambda lowering: lowering.selection.set([1], nodes="a"),
    ],
)
def test_unknown_keyword_is_refused(call: Any, plain: wb.Lowering) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        call(plain)


def test_edit_of_an_illegal_partition_leaves_the_decision_alone() -> None:
    lowering = lowered(DEMO)
    fingerprint = lowering.partitioned.fingerprint
    with pytest.raises((PartitionError, RecipeError)):
        lowering.update(DEMO.replace(edits=[wb.Edit("partition", {"action": "merge", "tags": ["a", "b"]})]))
    lowering.update(DEMO.replace(edits=[]))
    assert lowering.partitioned.fingerprint == fingerprint


def test_nothing_keeps_a_lowering_that_was_let_go() -> None:
    lowering = lowered(DEMO)
    run = lowering.run(*lowering.example_inputs(), values=True)
    comparison = wb.compare(lowering, run)
    assert len(run.table)
    assert len(lowering.program.table)
    kept = [lowering, run, comparison, lowering.edge, lowering.partitioned, lowering.lowered, lowering.plan]
    references = [weakref.ref(item) for item in kept]
    lowering.update(wb.Recipe())
    del lowering, run, comparison, kept
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
