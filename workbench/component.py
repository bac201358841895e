"""A pluggable part of a recipe, as data: where a class is found, and the arguments that make it."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import RecipeError

__all__ = ["Component", "canonical", "check_fields", "check_json", "component_from", "components"]

_JSON_SCALARS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Component:
    """One pluggable part, as data.

    Attributes:
        target: `package.module:Name` of a class or function. A class is called with the options; a function
            is taken as it is, and with options as a `functools.partial`.
        options: Keyword arguments; JSON values only.
    """

    target: str
    options: Mapping[str, Any] = field(default_factory=dict)
    # The object itself where it can't be made again from `target` and `options`.
    instance: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        module, _, name = self.target.partition(":")
        if self.instance is None and not (module and name):
            raise RecipeError(
                "a component's target names no object",
                expected="package.module:Name",
                found=repr(self.target),
            )
        if self.instance is None:
            check_json(self.options, f"the options of {self.target}")
        object.__setattr__(self, "options", dict(self.options))

    def __hash__(self) -> int:
        return hash((self.target, canonical(self.options) if self.instance is None else id(self.instance)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Component):
            return NotImplemented
        same = (self.target, self.options) == (other.target, other.options)
        return same and self.instance is other.instance

    @classmethod
    def of(cls, value: Any) -> Component:
        """The component that makes this object again, or one that holds it.

        A class with a method `recipe_options()` tells its arguments itself. Any other object counts as made
        without arguments if an object made so has the same attributes.

        Args:
            value: A component, a target as text, a class, a function or an object.
        """
        if isinstance(value, Component):
            return value
        if isinstance(value, str):
            return cls(value)
        named = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
        target = f"{named.__module__}:{named.__qualname__}"
        if named.__module__ == "__main__" or "<" in named.__qualname__:
            return cls(target, {}, value)
        if named is value:
            return cls(target)
        if hasattr(value, "recipe_options"):
            try:
                return cls(target, value.recipe_options())
            except RecipeError:  # one of its arguments is no data: it can be used, not written
                return cls(target, {}, value)
        return cls(target) if _same_as_default(value) else cls(target, {}, value)

    def make(self) -> Any:
        """The object.

        Raises:
            RecipeError: The target is not there, or refuses the options.
        """
        if self.instance is not None:
            return self.instance() if isinstance(self.instance, type) else self.instance
        found = _resolve(self.target)
        if not isinstance(found, type):
            if self.options:
                return functools.partial(found, **self.options)
            return found
        try:
            return found(**self.options)
        except (TypeError, ValueError) as error:
            raise RecipeError(
                f"{self.target} can't be made", found=f"{dict(self.options)}: {error}"
            ) from error

    def to_data(self) -> dict[str, Any]:
        """The component as JSON data.

        Raises:
            RecipeError: It holds an object that can't be made again.
        """
        if self.instance is not None:
            raise RecipeError(
                f"the recipe holds an object of {self.target} that can't be written as data",
                hint="define the class in a module and give it a method recipe_options() that returns its"
                " keyword arguments, or name it: Component('package.module:Class', {...})",
            )
        return {"target": self.target, "options": dict(self.options)}


def _same_as_default(value: Any) -> bool:
    try:
        return bool(vars(type(value)()) == vars(value))
    except Exception:  # whatever it is that the class needs, it was not made without arguments
        return False


def _resolve(target: str) -> Any:
    module, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise RecipeError(
            f"{target} can't be found", found=str(error), hint="is its package installed?"
        ) from error
    return found


def components(value: Any) -> tuple[Component, ...]:
    """What a user gave for one or several components, as components."""
    if value is None:
        return ()
    if isinstance(value, str | Component) or not isinstance(value, Iterable):
        value = (value,)
    return tuple(Component.of(item) for item in value)


def component_from(data: Any, name: str) -> Component:
    """The component that stands in JSON data under this name; raises `RecipeError`."""
    if isinstance(data, str):
        return Component(data)
    if not isinstance(data, dict):
        raise RecipeError(f"`{name}` holds no component", expected="target and options", found=repr(data))
    check_fields(Component, data)
    if "instance" in data or "target" not in data:
        raise RecipeError(f"`{name}` holds no component", expected="target and options", found=repr(data))
    return Component(**data)


def check_fields(kind: Any, given: Iterable[str]) -> None:
    """Refuse names that are no fields of a dataclass, with the nearest that is; raises `RecipeError`."""
    known = [item.name for item in dataclasses.fields(kind)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        raise RecipeError(
            f"{kind.__name__} has no field `{unknown[0]}`",
            expected=", ".join(known),
            found=", ".join(unknown),
            hint=f"did you mean `{near[0]}`?" if near else None,
        )


def check_json(value: Any, where: str) -> None:
    """Refuse values that JSON can't hold; raises `RecipeError`."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise RecipeError(f"{where} have a key that is no text", found=repr(value))
        for item in value.values():
            check_json(item, where)
    elif isinstance(value, list | tuple):
        for item in value:
            check_json(item, where)
    elif not isinstance(value, _JSON_SCALARS):
        raise RecipeError(f"{where} hold what JSON can't", expected="JSON values", found=repr(value))


def canonical(value: Any) -> str:
    """A text that is equal for equal JSON values."""
    return json.dumps(value, sort_keys=True, default=str)
