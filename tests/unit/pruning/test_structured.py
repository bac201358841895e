from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import digits
import workbench as wb
from pruning_models import build
from workbench.errors import RecipeError
from workbench.export import export
from workbench.pruning import Pruner, StructuredPruner


def some_inputs() -> list[Any]:
    """Data that a recipe can name."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 3, 6, 6, generator=generator) for _ in range(3)]


def labelled() -> list[Any]:
    return [(image, label) for image, label in digits.evaluation(40)]


def test_least_important_channels_go() -> None:
    model, inputs = build("flat")
    assert isinstance(model.conv, nn.Conv2d)
    with torch.no_grad():
        model.conv.weight[torch.tensor([1, 4])] *= 0.01
    after, report = StructuredPruner(0.34, layers={"fc1": 0}).prune(export(model, inputs))
    kept = after.state_dict["conv.weight"]
    assert torch.equal(kept, model.conv.weight[torch.tensor([0, 2, 3, 5])])
    row = report.table.set_index("layer").loc["conv"]
    assert (row["before"], row["after"], row["what"]) == (6, 4, "channels")
    assert 0 < row["lost"] < 1e-3


def test_report_counts_what_the_programs_have() -> None:
    model, inputs = build("residual")
    before = export(model, inputs)
    after, report = StructuredPruner(0.5).prune(before)
    size = {
        when: sum(value.numel() * value.element_size() for value in program.state_dict.values())
        for when, program in (("before", before), ("after", after))
    }
    counted = 8  # num_batches_tracked is in the state, and nobody reads it
    assert report.totals["bytes before"] == size["before"] - counted
    assert report.totals["bytes after"] == size["after"] - counted
    # 2 x 6 x 6 results; stem 3 -> 8 by 3 x 3, a 8 -> 8 by 3 x 3, b 8 -> 8; head 8 -> 4
    assert report.totals["flops before"] == 2 * (72 * 8 * 27 + 72 * 8 * 72 + 72 * 8 * 8 + 2 * 8 * 4)
    assert report.totals["flops after"] == 2 * (72 * 4 * 27 + 72 * 4 * 36 + 72 * 4 * 4 + 2 * 4 * 4)
    table = report.table.set_index("layer")
    assert set(table.loc[["stem", "a", "b"], "group"]) == {"stem"}
    assert all(table["source"].str.contains("pruning_models.py"))
    assert list(report.why_not["layer"]) == ["head"]


def test_errors_tell_each_group_apart() -> None:
    model, inputs = build("concat")
    _, report = StructuredPruner(0.5).prune(export(model, inputs))
    errors = report.errors([inputs[0]]).set_index("group")["sqnr_db"]
    assert set(errors.index) == {"all", "a", "b"}
    assert errors["all"] <= errors.min() + 3  # both together are about as bad as the worse alone, or worse
    _, nothing = StructuredPruner(0.0).prune(export(model, inputs))
    assert math.isinf(nothing.errors([inputs[0]])["sqnr_db"][0])


def test_global_scope_takes_where_little_is_lost() -> None:
    model, inputs = build("flat")
    with torch.no_grad():  # a group with a few strong units and many weak ones
        model.fc1.weight[3:] *= 0.01  # type: ignore[union-attr, index, operator]
    _, report = StructuredPruner(0.4, scope="global").prune(export(model, inputs))
    table = report.table.set_index("layer")
    removed = table["before"] - table["after"]
    assert removed["fc1"] == 7 and removed["conv"] == 0


def test_multiple_of_leaves_round_numbers() -> None:
    model, inputs = build("encoder")
    _, report = StructuredPruner(0.3, multiple_of=8).prune(export(model, inputs))
    table = report.table.set_index("layer")
    assert table.loc["layer.linear1", "after"] == 32
    assert table.loc["layer.self_attn.in_proj_weight", "after"] == 4  # fewer heads than 8 stay


@pytest.mark.parametrize("criterion", ["l1", "l2", "batch_norm", "taylor"])
def test_criterion_is_named_in_the_report(criterion: Any) -> None:
    model, inputs = build("residual")
    pruner = StructuredPruner(0.5, criterion=criterion, data=some_inputs)
    _, report = pruner.prune(export(model, inputs))
    assert set(report.table["criterion"]) == {criterion, ""}


def test_batch_norm_criterion_falls_back_where_there_is_none_and_says_so() -> None:
    model, inputs = build("flat")
    _, report = StructuredPruner(0.5, criterion="batch_norm").prune(export(model, inputs))
    assert set(report.table["criterion"]) == {"l2", ""}


def test_taylor_keeps_what_the_outputs_depend_on() -> None:
    model, inputs = build("flat")
    with torch.no_grad():  # large weights whose results nobody reads, and small ones that matter
        model.fc1.weight[:6] *= 20  # type: ignore[union-attr, index, operator]
        model.fc2.weight[:, :6] = 0  # type: ignore[union-attr, index, operator]
    program = export(model, inputs)
    pruners = {
        "l2": StructuredPruner(0.5, layers={"conv": 0}),
        "taylor": StructuredPruner(0.5, layers={"conv": 0}, criterion="taylor", data=[inputs[0]]),
    }
    outputs = {}
    with torch.no_grad():
        expected = model(*inputs)
        for name, pruner in pruners.items():
            outputs[name] = pruner.prune(program)[0].module()(*inputs)
    assert torch.allclose(outputs["taylor"], expected, atol=1e-5)
    assert not torch.allclose(outputs["l2"], expected, atol=1e-3)


def test_taylor_with_a_loss_prunes_the_digits_better_than_chance() -> None:
    program = export(digits.trained(), (torch.zeros(1, 1, 8, 8),))
    pruner = StructuredPruner(
        0.25, criterion="taylor", data=labelled, loss="torch.nn.functional:cross_entropy"
    )
    after, report = pruner.prune(program)
    module = after.module()
    with torch.no_grad():
        right = [int(module(image).argmax()) == int(label) for image, label in digits.evaluation(150)]
    assert sum(right) / len(right) > 0.85
    assert report.totals["flops after"] < 0.7 * report.totals["flops before"]  # type: ignore[operator]


def test_recipe_replays_the_pruning() -> None:
    model, inputs = build("residual")
    pruner = StructuredPruner(0.5, criterion="taylor", data=some_inputs, layers={"stem": 0.25})
    recipe = wb.Recipe(pruning=pruner, partitioner=wb.XnnpackPartitioner())
    again = wb.Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert eval(recipe.to_python(), {"wb": wb}) == recipe
    first = wb.lower(model, inputs, recipe=recipe)
    second = wb.lower(model, inputs, recipe=again)
    assert first.program.buffer == second.program.buffer
    assert first.pruned.reports["forward"][0].table.equals(second.pruned.reports["forward"][0].table)


def test_pruning_is_a_step_of_its_own() -> None:
    model, inputs = build("residual")
    plain = wb.lower(model, inputs)
    pruned = plain.relower(wb.Recipe(pruning=StructuredPruner(0.5)))
    assert pruned.ran[0] == "prune" and len(pruned.program.buffer) < len(plain.program.buffer)
    assert pruned.relower(pruned.recipe).ran == ()
    back = pruned.relower(wb.Recipe())
    assert back.program.buffer == plain.program.buffer
    with pytest.raises(RecipeError, match="nothing was pruned"):
        _ = plain.pruned


def test_pruners_follow_each_other() -> None:
    model, inputs = build("flat")
    recipe = wb.Recipe(pruning=[StructuredPruner(0.5), wb.MagnitudePruner(0.5)])
    reports = wb.lower(model, inputs, recipe=recipe).pruned.reports["forward"]
    assert [set(report.table["what"]) - {"nothing"} for report in reports] == [{"channels"}, {"weights"}]


def test_live_data_lowers_but_is_not_written() -> None:
    model, inputs = build("residual")
    recipe = wb.Recipe(pruning=StructuredPruner(0.5, criterion="taylor", data=some_inputs()))
    assert wb.lower(model, inputs, recipe=recipe).pruned.reports
    with pytest.raises(RecipeError, match="can't be written"):
        recipe.to_json()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ratio": 1.0}, "out of range"),
        ({"ratio": -0.1}, "out of range"),
        ({"ratio": "half"}, "out of range"),
        ({"layers": {"conv": 2}}, "out of range"),
        ({"criterion": "size"}, "no criterion"),
        ({"scope": "model"}, "no scope"),
        ({"multiple_of": 0}, "positive integer"),
        ({"criterion": "taylor"}, "looks at gradients"),
    ],
)
def test_wrong_option_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        StructuredPruner(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": {"stemm": 0.5}}, "did you mean `stem`"),
        ({"layers": {"head": 0.5}}, "can't be pruned"),
        ({"criterion": "taylor", "data": []}, "is empty"),
        ({"criterion": "taylor", "data": [torch.zeros(1, 2)]}, "does not fit"),
    ],
)
def test_option_that_does_not_fit_the_model_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        StructuredPruner(0.5, **options).prune(export(*build("residual")))


def test_entry_that_makes_no_pruner_is_refused() -> None:
    model, inputs = build("flat")
    with pytest.raises(RecipeError, match="makes no pruner"):
        wb.lower(model, inputs, recipe=wb.Recipe(pruning="torch.nn:ReLU"))


def test_pruner_of_ones_own_is_an_entry_like_any_other() -> None:
    class Nothing(Pruner):
        def prune(self, program: Any) -> Any:
            return StructuredPruner(0.0).prune(program)

        def recipe_options(self) -> dict[str, Any]:
            return {}

    model, inputs = build("flat")
    plain = wb.lower(model, inputs)
    assert plain.relower(wb.Recipe(pruning=Nothing())).program.buffer == plain.program.buffer
