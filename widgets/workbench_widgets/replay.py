"""Edits as text: statements that make them again, and the recipe as JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.errors import RecipeError
from workbench.recipe import Edit, Recipe

__all__ = ["as_json", "as_python"]


def as_python(edits: Sequence[Edit], comments: Sequence[str]) -> str:
    """Statements that make these edits on a lowering that is called `lowering`, and lower it again.

    Args:
        edits: All edits of the recipe.
        comments: For each what it does, in words.
    """
    lines = [
        "import workbench as wb",
        "",
        "# `lowering` is what `wb.lower(model, example_inputs, recipe=...)` gave.",
    ]
    if edits:
        lines.append("recipe = lowering.recipe.replace(edits=[")
        for edit, comment in zip(edits, comments, strict=True):
            lines.append(f"    # {comment}")
            method = "" if edit.method == "forward" else f", method={edit.method!r}"
            lines.append(f"    wb.Edit({edit.step!r}, {_mapping(edit.data)}{method}),")
        lines.append("])")
    else:
        lines.append("recipe = lowering.recipe.replace(edits=[])")
    lines.append("lowering.update(recipe)")
    return "\n".join(lines) + "\n"


def _mapping(data: Any) -> str:
    parts = [f"{key!r}: {_value(value)}" for key, value in data.items()]
    return "{" + ", ".join(parts) + "}"


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and all(isinstance(item, int) for item in value):
        return "[" + ", ".join(_ranges(value)) + "]"
    return repr(value)


def _ranges(numbers: Iterable[int]) -> Iterable[str]:
    """Runs of four and more consecutive numbers as ranges."""
    for _, run in itertools.groupby(enumerate(numbers), lambda item: item[1] - item[0]):
        values = [number for _, number in run]
        if len(values) > 3:
            yield f"*range({values[0]}, {values[-1] + 1})"
        else:
            yield from map(str, values)


def as_json(recipe: Recipe) -> str:
    """The recipe as JSON; only its edits where it holds an object that can't be written."""
    try:
        return recipe.to_json()
    except RecipeError:
        edits = [{"step": e.step, "data": dict(e.data), "method": e.method} for e in recipe.edits]
        return json.dumps({"edits": edits}, indent=2, sort_keys=True)
