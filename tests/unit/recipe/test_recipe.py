"""Recipes as data: there and back, equality, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import workbench as wb
from workbench.errors import RecipeError
from workbench.recipe import Edit, MemoryOptions, Recipe


class Configured:
    """A component that tells its arguments."""

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def recipe_options(self) -> dict[str, int]:
        return {"size": self.size}


class Opaque:
    """A component that doesn't."""

    def __init__(self, size: int = 1) -> None:
        self.size = size


ERASE = {"action": "erase", "handles": [3, 4]}
RECIPES = {
    "empty": Recipe(),
    "memory": Recipe(memory=MemoryOptions(planner="naive", alignment=64, arena_limits={1: 4096})),
    "placed": Recipe(memory=MemoryOptions(arenas={"add": 2}, pins={"mul": (1, 64)})),
    "edge": Recipe(edge=wb.EdgeOptions(fold_batch_norm=False)),
    "components": Recipe(
        partitioner=[
            wb.Component("some.where:Partitioner", {"level": 2, "names": ["a", "b"]}),
            "other.where:P",
        ],
        passes=["passes.mine:Fold"],
    ),
    "edits": Recipe(edits=[Edit("partition", ERASE), Edit("partition", ERASE, "decode")]),
    "quantizer": Recipe(quantizer="q.uant:Quantizer", calibration="data.of:mine"),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_json_gives_the_same_recipe_back(recipe: Recipe) -> None:
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert hash(again) == hash(recipe)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_python_gives_the_same_recipe_back(recipe: Recipe) -> None:
    assert eval(recipe.to_python(), {"wb": wb}) == recipe


def test_recipes_differ_when_one_choice_differs() -> None:
    assert len({recipe.to_json() for recipe in RECIPES.values()}) == len(RECIPES)
    for name, recipe in RECIPES.items():
        others = [other for key, other in RECIPES.items() if key != name]
        assert recipe not in others


def test_json_holds_only_what_differs_from_the_default() -> None:
    assert json.loads(Recipe().to_json()) == {"version": 1}
    assert set(json.loads(RECIPES["memory"].to_json())) == {"version", "memory"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 1, "partitoner": []}', "partitioner"),
        ('{"version": 2}', "version"),
        ('{"memory": {"planer": "greedy"}}', "planner"),
        ('{"memory": {"alignment": 24}}', "power of two"),
        ('{"memory": {"alignment": "16"}}', "wrong type|malformed"),
        ('{"memory": {"arena_limits": {"0": 5}}}', "out of range"),
        ('{"memory": {"pins": {"add": [0, 64]}}}', "out of range"),
        ('{"memory": {"pins": {"add": 64}}}', "malformed"),
        ('{"memory": {"arenas": {"add": 0}}}', "out of range"),
        ('{"memory": []}', "wrong kind"),
        ('{"edge": {"verify": 1}}', "wrong type"),
        ('{"partitioner": [{"options": {}}]}', "no component"),
        ('{"partitioner": ["no_colon"]}', "package.module:Name"),
        ('{"partitioner": "a.b:C"}', "is a list"),
        ('{"edits": [{"step": "emit", "data": {}}]}', "partition"),
        ('{"calibration": "a.b:c"}', "quantizer"),
        ("[]", "named fields"),
        ("{", "no JSON"),
    ],
)
def test_malformed_json_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.from_json(text)
    assert any(word in str(caught.value) for word in said.split("|")), str(caught.value)


def test_unknown_field_is_refused_by_replace() -> None:
    with pytest.raises(RecipeError, match="memori"):
        Recipe().replace(memori=1)


def test_object_with_recipe_options_becomes_data() -> None:
    recipe = Recipe(partitioner=Configured(5))
    (component,) = recipe.partitioner
    assert component.options == {"size": 5}
    assert component.make().size == 5
    assert "Configured" in recipe.to_json()


def test_object_made_without_arguments_becomes_data() -> None:
    (component,) = Recipe(partitioner=Opaque()).partitioner
    assert component.instance is None
    assert component == Recipe(partitioner=Opaque()).partitioner[0]


def test_object_with_hidden_arguments_lowers_but_is_not_written() -> None:
    wanted = Opaque(5)
    recipe = Recipe(partitioner=wanted)
    assert recipe.partitioner[0].make() is wanted
    assert recipe == Recipe(partitioner=wanted)
    assert recipe != Recipe(partitioner=Opaque(5))
    with pytest.raises(RecipeError, match="recipe_options"):
        recipe.to_json()


def test_component_that_is_not_there_is_refused_when_it_is_made() -> None:
    with pytest.raises(RecipeError, match="can't be found"):
        wb.Component("workbench.recipe:Nothing").make()
    with pytest.raises(RecipeError, match="can't be made"):
        wb.Component("workbench.recipe:MemoryOptions", {"nothing": 1}).make()


def test_component_of_a_function_is_called_with_its_options() -> None:
    assert wb.Component("json:dumps").make() is json.dumps
    assert wb.Component("json:dumps", {"indent": None}).make()({"a": 1}) == '{"a": 1}'


def test_recipe_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Recipe().memory = MemoryOptions()  # type: ignore[misc]


def test_part_changes_only_for_the_step_concerned() -> None:
    plain, planned = Recipe(), RECIPES["memory"]
    assert plain.part("plan") != planned.part("plan")
    assert plain.part("edge") == planned.part("edge")
    assert plain.part("partition") != RECIPES["edits"].part("partition")
    assert plain.part("plan") == RECIPES["edits"].part("plan")


def test_import_loads_no_torch() -> None:
    code = (
        "import sys, workbench, workbench.recipe; wb = workbench; wb.Recipe; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["export", "compare"])
def test_public_function_wins_over_the_submodule_of_its_name(name: str) -> None:
    code = (
        f"import workbench.{name}, workbench as wb, types; assert isinstance(wb.{name}, types.FunctionType)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    for name in wb.__all__:
        assert getattr(wb, name) is not None
    with pytest.raises(AttributeError, match="no_such"):
        wb.no_such  # noqa: B018
