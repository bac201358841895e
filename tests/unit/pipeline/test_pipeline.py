"""The pipeline: stages stay as they were, and only what a change concerns runs again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from networks import build
from workbench import pipeline
from workbench.errors import ExportError, PartitionError, RecipeError
from workbench.stages import Stage

ADD_MUL = "workbench.backends.demo:AddMulPartitionerDemo"


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (self.linear(x) + y) * y


INPUTS = (torch.randn(2, 4), torch.randn(2, 4))


def count_nodes(graph_module: torch.fx.GraphModule) -> None:
    """A pass that changes nothing."""


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    torch.manual_seed(0)
    return wb.lower(Small().eval(), INPUTS, recipe=wb.Recipe(partitioner=ADD_MUL))


def _stages(lowering: wb.Lowering) -> dict[str, Stage]:
    return dict(lowering._result.stages)


@pytest.mark.parametrize("step", [step.name for step in pipeline.steps_of(wb.Recipe())])
def test_step_leaves_its_input_as_it_was(step: str) -> None:
    recipe = wb.Recipe(partitioner=ADD_MUL)
    exported, _ = pipeline.capture(Small().eval(), INPUTS)
    stage: Any = exported
    for candidate in pipeline.steps_of(recipe):
        before = stage.fingerprint
        following = candidate.function(stage, recipe)
        assert stage._measure() == before, f"{candidate.name} changed {stage.name}"
        if candidate.name == step:
            return
        stage = following


def test_all_stages_are_intact_after_running(lowering: wb.Lowering) -> None:
    known = {name: stage.fingerprint for name, stage in _stages(lowering).items()}
    lowering.run(*INPUTS, profile=True, repeat=3).summary()
    for name, stage in _stages(lowering).items():
        assert stage.intact(), name
        assert stage.fingerprint == known[name]


def test_fingerprints_tell_stages_and_weights_apart(lowering: wb.Lowering) -> None:
    stages = _stages(lowering)
    assert len({stage.fingerprint for stage in stages.values()}) == len(stages)
    torch.manual_seed(1)
    other = wb.lower(Small().eval(), INPUTS, recipe=lowering.recipe)
    for name, stage in _stages(other).items():
        assert stage.fingerprint != stages[name].fingerprint, name


def test_fingerprint_is_the_same_for_the_same_model() -> None:
    prints = []
    for _ in range(2):
        torch.manual_seed(0)
        lowering = wb.lower(Small().eval(), INPUTS)
        prints.append([stage.fingerprint for stage in _stages(lowering).values()])
    assert prints[0] == prints[1]


def test_written_weight_breaks_the_fingerprint() -> None:
    model = Small().eval()
    lowering = wb.lower(model, INPUTS)
    assert lowering.exported.intact()
    with torch.no_grad():
        model.linear.weight.add_(1)
    assert not lowering.exported.intact()


@pytest.mark.parametrize(
    ("changes", "ran"),
    [
        ({}, ()),
        ({"memory": wb.MemoryOptions(planner="naive")}, ("plan", "program")),
        ({"memory": wb.MemoryOptions(alignment=64)}, ("plan", "program")),
        ({"partitioner": ()}, ("partition", "lower", "plan", "program")),
        ({"edge": wb.EdgeOptions(fold_constants_limit=0)}, ("edge",)),
    ],
    ids=["nothing", "planner", "alignment", "partitioner", "no effect"],
)
def test_only_what_changed_runs_again(
    lowering: wb.Lowering, changes: dict[str, Any], ran: tuple[str, ...]
) -> None:
    again = lowering.relower(lowering.recipe.replace(**changes))
    if "edge" in changes:
        # The edge program comes out the same, so what depends on it alone is kept; "lower" also verifies by
        # the options.
        assert again.ran[0] == "edge"
        assert "partition" not in again.ran
        return
    assert again.ran == ran
    for name, stage in _stages(again).items():
        assert (stage is _stages(lowering)[name]) == (name not in ran), name


def test_relowered_program_is_that_of_a_fresh_lowering(lowering: wb.Lowering) -> None:
    recipe = lowering.recipe.replace(memory=wb.MemoryOptions(planner="naive"))
    torch.manual_seed(0)
    fresh = wb.lower(Small().eval(), INPUTS, recipe=recipe)
    assert lowering.relower(recipe).program.buffer == fresh.program.buffer


def test_recipe_from_json_replays_to_the_same_program(lowering: wb.Lowering) -> None:
    recipe = wb.Recipe.from_json(lowering.recipe.to_json())
    torch.manual_seed(0)
    again = wb.lower(Small().eval(), INPUTS, recipe=recipe)
    assert again.program.buffer == lowering.program.buffer


def test_stage_refuses_to_be_changed(lowering: wb.Lowering) -> None:
    with pytest.raises(AttributeError, match="frozen"):
        lowering.edge.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        lowering.edge._programs["forward"] = None  # type: ignore[index]


def test_handed_out_program_is_a_copy(lowering: wb.Lowering) -> None:
    before = lowering.edge.fingerprint
    program = lowering.edge.exported_program()
    for node in list(program.graph.nodes)[:3]:
        node.name = node.name + "_renamed"
    assert lowering.edge._measure() == before


def test_pass_of_the_recipe_runs_on_the_edge_program(lowering: wb.Lowering) -> None:
    again = lowering.relower(lowering.recipe.replace(passes=count_nodes))
    assert again.ran[0] == "edge"


def test_edit_takes_a_node_out_of_its_partition(lowering: wb.Lowering) -> None:
    table = lowering.partitioned.table
    tagged = table[table["tag"] != ""]
    mul = tagged[tagged["op"].str.contains("mul")].iloc[0]
    edit = wb.Edit("partition", {"action": "erase", "handles": list(mul["handles"])})
    edited = lowering.relower(lowering.recipe.replace(edits=[edit]))
    assert edited.ran == ("partition", "lower", "plan", "program")
    after = edited.partitioned.table.set_index("node")
    assert after.loc[mul["node"], "tag"] == ""
    torch.testing.assert_close(edited.execute(*INPUTS)[0], lowering.execute(*INPUTS)[0])
    undone = edited.relower(lowering.recipe)
    assert undone.program.buffer == lowering.program.buffer


def test_edit_that_concerns_nothing_is_an_error(lowering: wb.Lowering) -> None:
    edit = wb.Edit("partition", {"action": "erase", "handles": [9999]})
    with pytest.raises(RecipeError, match="could not be honoured"):
        lowering.relower(lowering.recipe.replace(edits=[edit]))


def test_why_not_names_each_node_that_stayed(lowering: wb.Lowering) -> None:
    table = lowering.why_not
    assert set(table["method"]) == {"forward"}
    assert table["reason"].str.len().min() > 0
    left = lowering.partitioned.table
    operators = left[(left["tag"] == "") & left["op"].str.contains("aten")]
    assert set(operators["node"]) <= set(table["node"])


def test_partitioner_that_is_none_is_refused() -> None:
    with pytest.raises(RecipeError, match="no partitioner"):
        wb.lower(Small().eval(), INPUTS, recipe=wb.Recipe(partitioner="workbench.recipe:MemoryOptions"))


def test_error_names_its_stage() -> None:
    class Data(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(ExportError) as caught:
        wb.lower(Data(), (torch.randn(2),))
    assert caught.value.stage == "export"


def test_several_methods_share_one_program() -> None:
    model = build("mlp").model
    one = torch.export.export(model, (torch.randn(1, 784),))
    four = torch.export.export(model, (torch.randn(4, 784),))
    lowering = wb.lower({"forward": one, "batch": four})
    assert set(lowering.methods) == {"forward", "batch"}
    alone = wb.lower(one)
    assert len(lowering.program.buffer) < 1.2 * len(alone.program.buffer), "the weights are stored twice"
    inputs = torch.randn(4, 784)
    with torch.no_grad():
        torch.testing.assert_close(
            lowering.execute(inputs, method="batch")[0], model(inputs), rtol=1e-4, atol=1e-5
        )


def test_users_program_is_not_changed() -> None:
    program = torch.export.export(Small().eval(), INPUTS)
    before = str(program)
    wb.lower(program, recipe=wb.Recipe(partitioner=ADD_MUL))
    assert str(program) == before


def test_progress_names_the_running_step(capsys: pytest.CaptureFixture[str]) -> None:
    wb.lower(Small().eval(), INPUTS, progress=True)
    shown = capsys.readouterr().err
    for step in pipeline.steps_of(wb.Recipe()):
        assert step.doing in shown
    wb.lower(Small().eval(), INPUTS, progress=False)
    assert capsys.readouterr().err == ""


def test_unknown_planner_is_an_error_of_planning() -> None:
    with pytest.raises(wb.WorkbenchError) as caught:
        wb.lower(Small().eval(), INPUTS, recipe=wb.Recipe(memory={"planner": "gredy"}))
    assert "greedy" in str(caught.value)
    assert not isinstance(caught.value, PartitionError)
