"""What a pruner is: an entry of the recipe that makes a smaller or sparser program, and says what it did."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import Any

from torch.export import ExportedProgram

from workbench.component import Component, check_json
from workbench.errors import RecipeError
from workbench.pruning.report import PruningReport

__all__ = ["Pruner", "check_ratio", "data_from", "option_of", "ratio_of"]


class Pruner(abc.ABC):
    """Prunes an exported program. Its arguments, as data, are its entry in a recipe."""

    @abc.abstractmethod
    def prune(self, program: ExportedProgram) -> tuple[ExportedProgram, PruningReport]:
        """The pruned program, and what was done; the given program stays as it is.

        Raises:
            RecipeError: An option names a layer that is not there or can't be pruned.
            LoweringError: The program can't be rewritten.
        """

    @abc.abstractmethod
    def recipe_options(self) -> dict[str, Any]:
        """The arguments that make this pruner again; raises `RecipeError` where one of them is no data."""


def check_ratio(value: Any, what: str) -> float:
    """A share to prune; raises `RecipeError` unless it is at least 0 and below 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise RecipeError(f"{what} is out of range", expected="at least 0, below 1", found=repr(value))
    return float(value)


def ratio_of(layers: Iterable[str], wanted: Mapping[str, float], default: float) -> float:
    """The ratio that one of several layers, or a module around it, was given; else the default."""
    for layer in layers:
        path = layer
        while path:
            if path in wanted:
                return wanted[path]
            path = path.rpartition(".")[0]
    return default


def data_from(value: Any) -> Any:
    """Data of an option: what the function that is named there returns, or the object itself."""
    if isinstance(value, str | Component) or (isinstance(value, Mapping) and "target" in value):
        component = Component(**value) if isinstance(value, Mapping) else Component.of(value)
        made = component.make()
        return made() if callable(made) else made
    return value() if callable(value) else value


def option_of(value: Any, name: str) -> Any:
    """An option that may be code or data, as JSON; raises `RecipeError` where it can't be written."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        check_json(value, f"the option {name}")
        return dict(value)
    data = Component.of(value).to_data()
    return data if data["options"] else data["target"]
