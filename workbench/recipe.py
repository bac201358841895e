"""Every choice of the user, as one value that can be compared, written as JSON or Python, and replayed.

A recipe holds only data. Parts that are code (a partitioner, a pass, a quantizer) are held as a `Component`:
where the class is found and the arguments that make it. An object may be given instead; it is turned into a
component if that loses nothing, and otherwise kept as it is: then the recipe still lowers, but can't be
written.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from workbench.errors import RecipeError

__all__ = ["Component", "Edit", "EdgeOptions", "MemoryOptions", "Recipe"]

VERSION = 1
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
            _check_json(self.options, f"the options of {self.target}")
        object.__setattr__(self, "options", dict(self.options))

    def __hash__(self) -> int:
        return hash((self.target, _canonical(self.options) if self.instance is None else id(self.instance)))

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
            return cls(target, value.recipe_options())
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
                from functools import partial

                return partial(found, **self.options)
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
                hint="define the class in a module and give it a method recipe_options() that returns its
                keyword" " arguments, or name it: Component('package.module:Class', {...})",
            )
        return {"target": self.target, "options": dict(self.options)}


@dataclass(frozen=True)
class EdgeOptions:
    """How the program is brought to the edge dialect.

    Attributes:
        verify: Hold every stage to its invariants.
        dim_order: Turn memory-format operators into dim-order operators.
        fold_batch_norm: Fold inference batch norms into the convolution before them.
        fold_constants_limit: Bytes that a folded constant may add to the program.
    """

    verify: bool = True
    dim_order: bool = True
    fold_batch_norm: bool = True
    fold_constants_limit: int = 1 << 20


@dataclass(frozen=True)
class MemoryOptions:
    """How memory is planned.

    Attributes:
        planner: Name of a planner.
        alignment: Bytes, a power of two.
        plan_inputs: Place the inputs in the arena; otherwise the caller's memory is used.
        plan_outputs: Place the outputs in the arena; otherwise the caller gives memory.
        arena_limits: Bytes that an arena (`mem_id`, from 1) may take.
    """

    planner: str = "greedy"
    alignment: int = 16
    plan_inputs: bool = True
    plan_outputs: bool = True
    arena_limits: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise RecipeError("the alignment is no power of two", found=str(self.alignment))
        limits = {int(arena): int(limit) for arena, limit in self.arena_limits.items()}
        if any(arena < 1 or limit < 0 for arena, limit in limits.items()):
            raise RecipeError(
                "an arena limit is out of range", expected="arena >= 1, bytes >= 0", found=str(limits)
            )
        object.__setattr__(self, "arena_limits", limits)

    def __hash__(self) -> int:
        return hash(_canonical(dataclasses.asdict(self)))


@dataclass(frozen=True)
class Edit:
    """One change made by hand to what the steps decided. Edits are replayed in order.

    Attributes:
        kind: `"undelegate"`: nodes that a partitioner took stay with the runtime.
        nodes: Names of nodes in the exported graph.
    """

    KINDS: ClassVar[dict[str, str]] = {"undelegate": "partition"}

    kind: str
    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in self.KINDS:
            raise RecipeError("unknown kind of edit", expected=" or ".join(self.KINDS), found=repr(self.kind))
        nodes = (self.nodes,) if isinstance(self.nodes, str) else tuple(self.nodes)
        if not nodes or not all(isinstance(node, str) for node in nodes):
            raise RecipeError("an edit names the exported nodes that it is about", found=repr(self.nodes))
        object.__setattr__(self, "nodes", nodes)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Every choice between a model and its program.

    Attributes:
        partitioner: One or several, asked in order; each sees what the ones before left.
        passes: Passes on the edge program, after the workbench's own and before partitioning.
        edge: See `EdgeOptions`.
        memory: See `MemoryOptions`.
        edits: See `Edit`.
        quantizer: A PT2E quantizer. Part of the format; this version refuses to lower with it.
        calibration: Where calibration inputs come from (a function that returns them). As `quantizer`.
    """

    partitioner: Any = ()
    passes: Any = ()
    edge: EdgeOptions = EdgeOptions()
    memory: MemoryOptions = MemoryOptions()
    edits: Any = ()
    quantizer: Any = None
    calibration: Any = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "partitioner", _components(self.partitioner))
        set_(self, "passes", _components(self.passes))
        set_(self, "edge", _options(EdgeOptions, self.edge, "edge"))
        set_(self, "memory", _options(MemoryOptions, self.memory, "memory"))
        edits = (self.edits,) if isinstance(self.edits, Edit) else tuple(self.edits)
        set_(self, "edits", tuple(_options(Edit, edit, "edits") for edit in edits))
        for name in ("quantizer", "calibration"):
            value = getattr(self, name)
            set_(self, name, None if value is None else Component.of(value))
        if self.calibration is not None and self.quantizer is None:
            raise RecipeError(
                "calibration data is of use to a quantizer only", hint="give quantizer= as well"
            )

    def replace(self, **changes: Any) -> Recipe:
        """A recipe with some fields changed.

        Raises:
            RecipeError: There is no such field, or it refuses the value.
        """
        _check_fields(Recipe, changes)
        return dataclasses.replace(self, **changes)

    def to_data(self) -> dict[str, Any]:
        """The recipe as JSON data; fields at their default are left out.

        Raises:
            RecipeError: A part of it is an object that can't be written.
        """
        data: dict[str, Any] = {"version": VERSION}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value != getattr(_DEFAULT, item.name):
                data[item.name] = _to_data(value)
        return data

    def to_json(self, *, indent: int | None = 2) -> str:
        """The recipe as JSON; raises as `to_data`."""
        return json.dumps(self.to_data(), indent=indent, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The recipe that `to_json` wrote.

        Raises:
            RecipeError: The text is no JSON, of a newer version, or has a field that is not known.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise RecipeError(f"the recipe is no JSON: {error}") from error
        return cls.from_data(data)

    @classmethod
    def from_data(cls, data: Any) -> Recipe:
        """The recipe that `to_data` gave; raises as `from_json`."""
        if not isinstance(data, dict):
            raise RecipeError("a recipe is an object with named fields", found=type(data).__name__)
        fields = dict(data)
        version = fields.pop("version", VERSION)
        if version != VERSION:
            raise RecipeError("the recipe is of another version", expected=str(VERSION), found=repr(version))
        _check_fields(cls, fields)
        for name in ("partitioner", "passes"):
            if name in fields:
                fields[name] = [_component_from(item, name) for item in _list(fields[name], name)]
        for name in ("quantizer", "calibration"):
            if fields.get(name) is not None:
                fields[name] = _component_from(fields[name], name)
        if "edits" in fields:
            fields["edits"] = _list(fields["edits"], "edits")
        return cls(**fields)

    def to_python(self) -> str:
        """The expression that makes this recipe, with the workbench imported as `wb`; raises as `to_data`."""
        parts = []
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value != getattr(_DEFAULT, item.name):
                parts.append(f"    {item.name}={_python(value)},")
        return "wb.Recipe(\n" + "\n".join(parts) + "\n)" if parts else "wb.Recipe()"

    def part(self, step: str) -> Any:
        """What a step of the pipeline depends on, as a value that can be compared.

        Args:
            step: `"edge"`, `"partition"` or `"plan"`; any other step depends on nothing.
        """
        edits = tuple(edit for edit in self.edits if Edit.KINDS[edit.kind] == step)
        own = {
            "edge": (self.edge, self.passes, self.quantizer, self.calibration),
            "partition": (self.partitioner,),
            "plan": (self.memory,),
        }
        return (*own.get(step, ()), edits)


_DEFAULT = Recipe()


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


def _components(value: Any) -> tuple[Component, ...]:
    if value is None:
        return ()
    if isinstance(value, str | Component) or not isinstance(value, Iterable):
        value = (value,)
    return tuple(Component.of(item) for item in value)


def _component_from(data: Any, name: str) -> Component:
    if isinstance(data, str):
        return Component(data)
    if not isinstance(data, dict):
        raise RecipeError(f"`{name}` holds no component", expected="target and options", found=repr(data))
    _check_fields(Component, data)
    if "instance" in data or "target" not in data:
        raise RecipeError(f"`{name}` holds no component", expected="target and options", found=repr(data))
    return Component(**data)


def _options(kind: Any, value: Any, name: str) -> Any:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise RecipeError(
            f"`{name}` is of the wrong kind", expected=kind.__name__, found=type(value).__name__
        )
    _check_fields(kind, value)
    try:
        made = kind(**value)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"`{name}` is incomplete or malformed", found=f"{dict(value)}: {error}") from error
    for item in dataclasses.fields(kind):
        default = item.default
        found = getattr(made, item.name)
        if isinstance(default, bool | int | str) and type(found) is not type(default):
            expected = type(default).__name__
            raise RecipeError(
                f"`{name}.{item.name}` has the wrong type", expected=expected, found=repr(found)
            )
    return made


def _check_fields(kind: Any, given: Iterable[str]) -> None:
    known = [item.name for item in dataclasses.fields(kind)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=1)
        raise RecipeError(
            f"{kind.__name__} has no field `{unknown[0]}`",
            expected=", ".join(known),
            found=", ".join(unknown),
            hint=f"did you mean `{near[0]}`?" if near else None,
        )


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecipeError(f"`{name}` is a list", found=type(value).__name__)
    return value


def _check_json(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise RecipeError(f"{where} have a key that is no text", found=repr(value))
        for item in value.values():
            _check_json(item, where)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_json(item, where)
    elif not isinstance(value, _JSON_SCALARS):
        raise RecipeError(f"{where} hold what JSON can't", expected="JSON values", found=repr(value))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _to_data(value: Any) -> Any:
    if isinstance(value, Component):
        return value.to_data()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        return {name: _to_data(item) for name, item in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): _to_data(item) for key, item in value.items()}
    return [_to_data(item) for item in value] if isinstance(value, list | tuple) else value


def _python(value: Any) -> str:
    if isinstance(value, Component):
        data = value.to_data()
        return f"wb.Component({data['target']!r}" + (f", {data['options']!r})" if data["options"] else ")")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        default = {item.name: item.default for item in dataclasses.fields(value)}
        fields = {name: getattr(value, name) for name in default}
        shown = ", ".join(f"{name}={_python(item)}" for name, item in fields.items() if item != default[name])
        return f"wb.{type(value).__name__}({shown})"
    if isinstance(value, tuple):
        return "[" + ", ".join(_python(item) for item in value) + "]"
    return repr(value)
