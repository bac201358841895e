"""What a search chooses from, and the recipe of each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import SearchError
from workbench.pruning import StructuredPruner
from workbench.quantization import LayerEdit, QuantizationConfig, XNNPACKQuantizer
from workbench.recipe import Edit, Recipe

__all__ = ["FLOAT", "SCHEMES", "Choice", "Space"]

FLOAT = "float"
SCHEMES: dict[str, dict[str, Any]] = {
    "int8": {},
    "int8 min_max": {"observer": "min_max"},
    "int8 percentile": {"observer": "percentile"},
    "int8 per tensor": {"is_per_channel": False},
    "dynamic": {"is_dynamic": True},
    "4-bit dynamic": {"is_dynamic": True, "weight_bits": 4, "group_size": 32},
}


@dataclass(frozen=True)
class Choice:
    """One candidate.

    Attributes:
        scheme: How layers are quantized that nothing else is said about; `"float"` for not at all.
        layers: By node of a layer another scheme.
        pruning: Share of the channels that are removed before.
        origin: Why it is tried, for tables; does not count when choices are compared.
    """

    scheme: str = FLOAT
    layers: tuple[tuple[str, str], ...] = ()
    pruning: float = 0.0
    origin: str = field(default="", compare=False)

    @classmethod
    def of(cls, scheme: str, layers: Mapping[str, str], pruning: float, origin: str) -> Choice:
        """A choice in its shortest form: layers that do what the others do are not named."""
        named = {layer: own for layer, own in layers.items() if own != scheme}
        return cls(scheme, tuple(sorted(named.items())), pruning, origin)

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for _, scheme in self.layers:
            counts[scheme] = counts.get(scheme, 0) + 1
        parts = [self.scheme, *(f"{count} x {name}" for name, count in sorted(counts.items()))]
        return ", ".join(parts) + (f", pruned {self.pruning:.0%}" if self.pruning else "")


class Space:
    """Turns choices into recipes.

    Args:
        base: What all recipes share.
        calibration: The calibration data, as a component.
        schemes: By name the fields of `QuantizationConfig` that differ from its defaults.
        pruner: What removes channels; its ratio is replaced.
    """

    def __init__(
        self,
        base: Recipe,
        calibration: Any,
        schemes: Mapping[str, Mapping[str, Any]],
        pruner: StructuredPruner,
    ) -> None:
        if base.quantizer is not None or base.edits_of("prepare"):
            raise SearchError(
                "the recipe to start from quantizes already",
                found=f"quantizer={base.quantizer}",
                hint="leave quantizer and its edits away: they are what is searched for",
            )
        self.base, self.calibration, self.pruner = base, calibration, pruner
        self.schemes = {name: QuantizationConfig.from_data(fields) for name, fields in schemes.items()}

    def recipe(self, choice: Choice) -> Recipe:
        """The recipe of a choice."""
        recipe = self.base
        if choice.pruning:
            options = self.pruner.recipe_options() | {"ratio": choice.pruning}
            recipe = recipe.replace(pruning=(*recipe.pruning, StructuredPruner(**options)))
        used = {choice.scheme, *(scheme for _, scheme in choice.layers)} - {FLOAT}
        if not used:
            return recipe
        quantizer = XNNPACKQuantizer()
        if choice.scheme != FLOAT:
            quantizer.set_global(self.schemes[choice.scheme])
        edits = [
            Edit.of(LayerEdit(self._fields(scheme, choice.scheme), node=layer))
            for layer, scheme in choice.layers
        ]
        return recipe.replace(
            quantizer=quantizer, calibration=self.calibration, edits=(*recipe.edits, *edits)
        )

    def _fields(self, scheme: str, around: str) -> dict[str, Any] | None:
        """The fields that make one scheme of another one; None for floats."""
        if scheme == FLOAT:
            return None
        own = self.schemes[scheme].to_data()
        others = {} if around == FLOAT else self.schemes[around].to_data()
        default = QuantizationConfig()
        return own | {name: getattr(default, name) for name in others if name not in own}
