"""Which candidates a search tries next: a function of what was measured and of the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.quantization import QuantizationConfig
from workbench.search.budget import Budget
from workbench.search.greedy import Move, path
from workbench.search.result import Point
from workbench.search.space import FLOAT, Choice
from workbench.search.work import LayerDamage

__all__ = ["Candidates"]

Damages = Mapping[str, Mapping[str, LayerDamage]]


class Candidates:
    """Proposes choices, one generation after the other.

    Args:
        schemes: By name its config.
        ratios: Pruning ratios beside 0.
        budget: The limits.
        seed: Of the random steps.
    """

    def __init__(
        self,
        schemes: Mapping[str, QuantizationConfig],
        ratios: Sequence[float],
        budget: Budget,
        seed: int,
    ) -> None:
        self.schemes, self.ratios, self.budget = schemes, tuple(ratios), budget
        self._random = random.Random(seed)
        self._damages: Damages = {}
        self._moves: list[Move] = []
        self._base = FLOAT

    def first(self) -> list[Choice]:
        """The same for all layers: floats, each scheme, and both with each pruning ratio."""
        found = [Choice(origin="floats")]
        found += [Choice(name, origin="uniform") for name in self.schemes]
        best = next(iter(self.schemes), FLOAT)
        found += [
            Choice(scheme, (), ratio, "pruned")
            for ratio in self.ratios
            for scheme in dict.fromkeys((FLOAT, best))
        ]
        return found

    def learn(self, damages: Damages, points: Sequence[Point]) -> None:
        """Take up what each layer costs with each scheme, and lay the path.

        Args:
            damages: By scheme and layer.
            points: What was measured so far.
        """
        known = {point.choice: point for point in points}
        # A scheme that fails everywhere would fail in every mixture, too.
        damages = {name: found for name, found in damages.items() if Choice(name) in known and found}
        self._damages = damages
        statics = [
            name for name, config in self.schemes.items() if not config.is_dynamic and damages.get(name)
        ]
        measured = [known[Choice(name)] for name in statics if Choice(name) in known]
        if measured:
            self._base = max(measured, key=lambda point: (point.metric, -point.bytes)).choice.scheme
        elif damages:
            self._base = next((name for name in self.schemes if damages.get(name)), FLOAT)
        layers: dict[str, dict[str, tuple[float, float]]] = {}
        for name, found in damages.items():
            for layer, damage in found.items():
                saves = self._saving(name, damage, known)
                if saves > 0:
                    layers.setdefault(layer, {})[name] = (saves, damage.noise)
        self._moves = path(layers)

    def _saving(self, scheme: str, damage: LayerDamage, known: Mapping[Choice, Point]) -> float:
        """Bytes that a layer saves, or its share of the time that the scheme saves everywhere."""
        config = self.schemes[scheme]
        if not self.budget.timed:
            scales = 0.0 if config.group_size is None else 4 / config.group_size
            return damage.weights * (4 - config.weight_bits / 8 - scales)
        floats, uniform = known.get(Choice()), known.get(Choice(scheme))
        if floats is None or uniform is None or floats.milliseconds is None or uniform.milliseconds is None:
            return 0.0
        total = sum(item.flops for item in self._damages[scheme].values())
        return (floats.milliseconds - uniform.milliseconds) * damage.flops / total if total else 0.0

    def along_the_path(self, count: int) -> list[Choice]:
        """Choices at even distances along the path."""
        steps = len(self._moves)
        places = sorted({max(1, round(steps * number / count)) for number in range(1, count + 1)})
        return [self._at(place) for place in places if place <= steps]

    def _at(self, place: int) -> Choice:
        """The choice after so many moves."""
        layers = dict.fromkeys((move.layer for move in self._moves), FLOAT)
        layers.update({move.layer: move.scheme for move in self._moves[:place]})
        return Choice.of(self._base, layers, 0.0, f"path {place}/{len(self._moves)}")

    def between(self, points: Sequence[Point], within: Any) -> Choice | None:
        """A choice halfway between a place on the path that is within the budget and one that is not.

        Args:
            points: What was measured.
            within: Whether a point is within the budget.
        """
        known = {point.choice: point for point in points}
        places = [
            (place, within(known[choice]))
            for place in range(1, len(self._moves) + 1)
            if (choice := self._at(place)) in known
        ]
        for (left, good), (right, fits) in pairwise(places):
            if good != fits and right - left > 1:
                return self._at((left + right) // 2)
        return None

    def around(self, points: Sequence[Point], within: Any, count: int) -> list[Choice]:
        """Neighbours of the best points that were not tried.

        Args:
            points: What was measured.
            within: Whether a point is within the budget.
            count: How many at most.
        """
        ranked = sorted(points, key=lambda point: (not within(point), self.budget.rank(point)))
        tried = {self.effect(point.choice) for point in points}
        found: dict[Choice, None] = {}
        for point in ranked[:3]:
            near = list(self._near(point.choice))
            self._random.shuffle(near)
            fresh = 0
            for choice in near:
                effect = self.effect(choice)
                if effect not in tried and fresh < max(1, count // 2):
                    tried.add(effect)
                    found[choice] = None
                    fresh += 1
        return list(found)[:count]

    def effect(self, choice: Choice) -> tuple[Any, ...]:
        """What a choice does to each layer: equal for choices that lead to the same program.

        A scheme that can't be applied to a layer leaves it in floats, and how weights are quantized says
        nothing about a layer without any.
        """
        own = dict(choice.layers)
        weights = {layer: item.weights for found in self._damages.values() for layer, item in found.items()}
        effects: list[Any] = []
        for layer in sorted(weights):
            scheme = own.get(layer, choice.scheme)
            if layer not in self._damages.get(scheme, {}):
                effects.append(FLOAT)
            elif weights[layer]:
                effects.append(scheme)
            else:
                config = self.schemes[scheme]
                effects.append((config.is_dynamic, config.observer, config.weights_only))
        return choice.pruning, *effects

    def _near(self, choice: Choice) -> Iterator[Choice]:
        """All choices that differ in one decision."""
        layers = dict(choice.layers)
        for layer in sorted({layer for found in self._damages.values() for layer in found}):
            options = [FLOAT, *(name for name, found in self._damages.items() if layer in found)]
            for scheme in options:
                if scheme != layers.get(layer, choice.scheme):
                    yield Choice.of(choice.scheme, {**layers, layer: scheme}, choice.pruning, "neighbour")
        for scheme in self._damages:
            if scheme != choice.scheme:
                yield Choice.of(scheme, layers, choice.pruning, "neighbour")
        for ratio in (0.0, *self.ratios):
            if ratio != choice.pruning:
                yield Choice.of(choice.scheme, layers, ratio, "neighbour")
