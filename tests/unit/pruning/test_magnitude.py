from __future__ import annotations

from typing import Any

import pytest
import torch

import workbench as wb
from agreement import assert_agrees
from pruning_models import build
from workbench.errors import RecipeError
from workbench.export import export
from workbench.pruning import MagnitudePruner


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_smallest_weights_of_each_layer_become_zero(ratio: float) -> None:
    model, inputs = build("flat")
    after, report = MagnitudePruner(ratio).prune(export(model, inputs))
    for name in ("conv", "fc1", "fc2"):
        old, new = dict(model.named_parameters())[f"{name}.weight"], after.state_dict[f"{name}.weight"]
        gone = new == 0
        assert int(gone.sum()) == int(old.numel() * ratio)
        assert torch.equal(new[~gone], old[~gone])
        assert not gone.any() or old[gone].abs().max() <= old[~gone].abs().min()
    assert (report.table["before"] - report.table["after"]).sum() == sum(
        int(value.numel() * ratio) for name, value in model.named_parameters() if "weight" in name
    )


def test_global_scope_compares_layers_by_their_mean_size() -> None:
    model, inputs = build("flat")
    scaled, _ = build("flat")
    with torch.no_grad():
        scaled.fc1.weight *= 100  # type: ignore[union-attr, operator]
    masks = []
    for each in (model, scaled):
        after, _ = MagnitudePruner(0.6, scope="global").prune(export(each, inputs))
        masks.append({n: after.state_dict[f"{n}.weight"] == 0 for n in ("conv", "fc1", "fc2")})
    total = sum(int(gone.sum()) for gone in masks[0].values())
    assert total == int((6 * 9 + 54 * 12 + 12 * 3) * 0.6)
    assert all(torch.equal(masks[0][name], masks[1][name]) for name in masks[0])


def test_pattern_leaves_n_of_m_inputs() -> None:
    model, inputs = build("heads")
    after, report = MagnitudePruner(pattern="2:4").prune(export(model, inputs))
    for name in ("q", "o"):
        blocks = after.state_dict[f"{name}.weight"].reshape(24, 6, 4)
        assert bool(((blocks != 0).sum(-1) == 2).all())
        old = dict(model.named_parameters())[f"{name}.weight"].detach().reshape(24, 6, 4).abs()
        assert torch.equal((blocks != 0), old >= old.sort(-1).values[..., 2:3])
    assert set(report.table["ratio"]) == {0.5}


def test_pattern_goes_along_the_inputs_of_convolutions_and_says_where_there_are_too_few() -> None:
    model, inputs = build("separable")
    after, report = MagnitudePruner(pattern="1:2").prune(export(model, inputs))
    weight = after.state_dict["grouped.weight"]  # (12, 4, 3, 3)
    assert bool(((weight.reshape(12, 2, 2, 3, 3) != 0).sum(2) == 1).all())
    reasons = report.table.set_index("layer")["reason"]
    assert "fewer than 2 inputs" in reasons["depthwise"] and reasons["grouped"] == ""


def test_layer_with_its_own_ratio() -> None:
    model, inputs = build("flat")
    after, report = MagnitudePruner(0.5, layers={"fc1": 0.25, "conv": 0}).prune(export(model, inputs))
    assert int((after.state_dict["fc1.weight"] == 0).sum()) == 162
    assert int((after.state_dict["conv.weight"] == 0).sum()) == 0
    assert report.table.set_index("layer")["reason"]["conv"] == "its ratio is 0"


def test_pruned_program_runs_and_is_replayed() -> None:
    model, inputs = build("flat")
    recipe = wb.Recipe(pruning=MagnitudePruner(0.7, scope="global", layers={"conv": 0.1}))
    assert wb.Recipe.from_json(recipe.to_json()) == recipe
    lowering = wb.lower(model, inputs, recipe=recipe)
    with torch.no_grad():
        expected = lowering.pruned.exported_program().module()(*inputs)
    assert_agrees(lowering.run(*inputs).outputs, expected)
    errors = lowering.pruned.reports["forward"][0].errors([inputs[0]])
    assert set(errors["group"]) == {"all", "conv", "fc1", "fc2"} and errors["sqnr_db"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ratio": 1}, "out of range"),
        ({"scope": "group"}, "no scope"),
        ({"pattern": "4:2"}, "no pattern"),
        ({"pattern": "two"}, "no pattern"),
        ({"layers": {"fc": 0.2}}, "no layer"),
    ],
)
def test_wrong_option_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        MagnitudePruner(**options).prune(export(*build("flat")))
