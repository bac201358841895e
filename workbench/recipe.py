"""Every choice of the user, as one value that can be compared, written as JSON or Python, and replayed.

A recipe holds only data. Parts that are code (a partitioner, a pass, a quantizer) are held as a `Component`:
where the class is found and the arguments that make it. An object may be given instead; it is turned into a
component if that loses nothing, and otherwise kept as it is: then the recipe still lowers, but can't be
written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from workbench.component import Component, canonical, check_fields, check_json, component_from, components
from workbench.errors import RecipeError

__all__ = ["Component", "EdgeOptions", "Edit", "MemoryOptions", "QuantizationOptions", "Recipe"]

VERSION = 1


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
        arenas: Arena of a tensor, by the name of its node; arena 1 where it says nothing.
        pins: Tensors that are put in place: by node name, arena and offset in bytes.
    """

    planner: str = "best"
    alignment: int = 16
    plan_inputs: bool = True
    plan_outputs: bool = True
    arena_limits: Mapping[int, int] = field(default_factory=dict)
    arenas: Mapping[str, int] = field(default_factory=dict)
    pins: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise RecipeError("the alignment is no power of two", found=str(self.alignment))
        limits = {int(arena): int(limit) for arena, limit in self.arena_limits.items()}
        pins = {name: (int(arena), int(offset)) for name, (arena, offset) in self.pins.items()}
        if any(arena < 1 or offset < 0 for arena, offset in pins.values()):
            raise RecipeError("a pin is out of range", expected="arena >= 1, offset >= 0", found=str(pins))
        if any(not isinstance(arena, int) or arena < 1 for arena in self.arenas.values()):
            raise RecipeError("an arena is out of range", expected=">= 1", found=str(dict(self.arenas)))
        if any(arena < 1 or limit < 0 for arena, limit in limits.items()):
            raise RecipeError(
                "an arena limit is out of range", expected="arena >= 1, bytes >= 0", found=str(limits)
            )
        object.__setattr__(self, "arena_limits", limits)
        object.__setattr__(self, "arenas", dict(self.arenas))
        object.__setattr__(self, "pins", pins)

    def __hash__(self) -> int:
        return hash(canonical(dataclasses.asdict(self)))


@dataclass(frozen=True)
class QuantizationOptions:
    """What is done to the program beside quantizing it; each keeps the function of the program in floats.

    Attributes:
        equalize: Even out the ranges of channels between two layers (cross-layer equalization).
        smooth: Move this share of the range of activations into the weights of the linear layers that read
            them (SmoothQuant), from 0 (nothing) to 1.
        correct_bias: Take the mean error of each layer out of its bias.
    """

    equalize: bool = False
    smooth: float = 0.0
    correct_bias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "smooth", float(self.smooth))
        if not 0 <= self.smooth <= 1:
            raise RecipeError(
                "the share to smooth is out of range", expected="0 to 1", found=str(self.smooth)
            )


@dataclass(frozen=True)
class Edit:
    """One change made by hand to what a step decided; replayed in order, never lost in silence.

    Attributes:
        step: The step whose result is edited: `"partition"` or `"prepare"` (quantization).
        data: The edit as JSON data, as the step understands it (`workbench.backends.edits.PartitionEdit`,
            `workbench.quantization.LayerEdit`).
        method: The method that is edited.
    """

    STEPS: ClassVar[tuple[str, ...]] = ("partition", "prepare")

    step: str
    data: Mapping[str, Any]
    method: str = "forward"

    def __post_init__(self) -> None:
        if self.step not in self.STEPS:
            raise RecipeError(
                "no such step can be edited", expected=" or ".join(self.STEPS), found=repr(self.step)
            )
        check_json(self.data, "the data of an edit")
        object.__setattr__(self, "data", json.loads(canonical(self.data)))

    def __hash__(self) -> int:
        return hash((self.step, canonical(self.data), self.method))

    @classmethod
    def of(cls, value: Any) -> Edit:
        """An edit from its JSON data, or from an object of the step's own type."""
        if hasattr(value, "to_data") and hasattr(value, "step") and not isinstance(value, Edit):
            return cls(value.step, value.to_data())
        made = _options(cls, value, "edits")
        assert isinstance(made, Edit)
        return made


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Every choice between a model and its program.

    Attributes:
        partitioner: One or several, asked in order; each sees what the ones before left.
        passes: Passes on the edge program, after the workbench's own and before partitioning.
        edge: See `EdgeOptions`.
        memory: See `MemoryOptions`.
        pruning: Pruners (`workbench.pruning`), in order, before everything else that the pipeline does.
        edits: See `Edit`.
        quantizer: A PT2E quantizer (`XNNPACKQuantizer`, or anybody's). Without one nothing is quantized.
        calibration: Calibration inputs: an iterable of tensors, of tuples of positional or of dictionaries of
            keyword inputs; a function that returns one; or one by method name. By default the example inputs.
        quantization: See `QuantizationOptions`.
    """

    partitioner: Any = ()
    passes: Any = ()
    edge: EdgeOptions = EdgeOptions()
    memory: MemoryOptions = MemoryOptions()
    pruning: Any = ()
    edits: Any = ()
    quantizer: Any = None
    calibration: Any = None
    quantization: QuantizationOptions = QuantizationOptions()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "partitioner", components(self.partitioner))
        set_(self, "passes", components(self.passes))
        set_(self, "pruning", components(self.pruning))
        set_(self, "edge", _options(EdgeOptions, self.edge, "edge"))
        set_(self, "memory", _options(MemoryOptions, self.memory, "memory"))
        set_(self, "quantization", _options(QuantizationOptions, self.quantization, "quantization"))
        edits = tuple(self.edits) if isinstance(self.edits, list | tuple) else (self.edits,)
        set_(self, "edits", tuple(Edit.of(edit) for edit in edits))
        for name in ("quantizer", "calibration"):
            value = getattr(self, name)
            set_(self, name, None if value is None else Component.of(value))
        if self.calibration is not None and self.quantizer is None:
            raise RecipeError(
                "calibration data is of use to a quantizer only", hint="give quantizer= as well"
            )
        if self.quantizer is None and (
            self.quantization != QuantizationOptions() or self.edits_of("prepare")
        ):
            raise RecipeError(
                "options and edits of quantization are of use to a quantizer only",
                hint="give quantizer= as well",
            )

    def edits_of(self, step: str) -> tuple[Edit, ...]:
        """The edits of one step's result, in order."""
        return tuple(edit for edit in self.edits if edit.step == step)

    def replace(self, **changes: Any) -> Recipe:
        """A recipe with some fields changed.

        Raises:
            RecipeError: There is no such field, or it refuses the value.
        """
        check_fields(Recipe, changes)
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
        check_fields(cls, fields)
        for name in ("partitioner", "passes", "pruning"):
            if name in fields:
                fields[name] = [component_from(item, name) for item in _list(fields[name], name)]
        for name in ("quantizer", "calibration"):
            if fields.get(name) is not None:
                fields[name] = component_from(fields[name], name)
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
            step: The name of a step of the pipeline; those that are not known here depend on nothing.
        """
        edits = self.edits_of(step)
        own = {
            "prune": (self.pruning,),
            "prepare": (self.quantizer, self.quantization.equalize),
            "calibrate": (self.calibration, self.quantization.smooth),
            "quantize": (self.quantization.correct_bias,),
            "edge": (self.edge, self.passes),
            "partition": (self.partitioner,),
            "plan": (self.memory,),
        }
        return (*own.get(step, ()), edits)


def _options(kind: Any, value: Any, name: str) -> Any:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise RecipeError(
            f"`{name}` is of the wrong kind", expected=kind.__name__, found=type(value).__name__
        )
    check_fields(kind, value)
    try:
        made = kind(**value)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"`{name}` is incomplete or malformed", found=f"{dict(value)}: {error}") from error
    for item in dataclasses.fields(kind):
        default = item.default
        found = getattr(made, item.name)
        if isinstance(default, bool | int | float | str) and type(found) is not type(default):
            expected = type(default).__name__
            raise RecipeError(
                f"`{name}.{item.name}` has the wrong type", expected=expected, found=repr(found)
            )
    return made


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecipeError(f"`{name}` is a list", found=type(value).__name__)
    return value


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


_DEFAULT = Recipe()
