"""Structured pruning: whole channels, features and heads are removed, and everything becomes smaller."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from torch.export import ExportedProgram

from workbench.errors import RecipeError
from workbench.pruning.base import Pruner, check_ratio, data_from, option_of, ratio_of
from workbench.pruning.coupling import Coupling, Family, couple
from workbench.pruning.elements import Ids
from workbench.pruning.importance import CRITERIA, Scores, gradients, scores
from workbench.pruning.remove import remove
from workbench.pruning.report import Pruned, PruningReport, make_report

__all__ = ["StructuredPruner"]


class StructuredPruner(Pruner):
    """Remove the least important channels with all that depends on them.

    Channels are coupled through residual additions, concatenations, depthwise and grouped convolutions, batch
    norms, flattening and the heads of attention; what is coupled goes together. `PruningReport.why_not` says
    which layers stay whole.

    Args:
        ratio: Share of the channels to remove, at least 0 and below 1.
        criterion: `"l1"` and `"l2"` (norm of the weights), `"batch_norm"` (size of its factor; `l2` where
            there is none), `"taylor"` (estimated change of the loss or of the outputs; needs data).
        scope: `"layer"`: this share of each group of layers; `"global"`: of all channels, the least
            important ones wherever they are, relative to the mean of their group.
        layers: Ratios of single layers or modules by path; 0 keeps them whole.
        multiple_of: The number of channels that are left is a multiple of this, where there are as many.
        data: For `taylor`: inputs, or with a loss pairs of inputs and target; a list, or a function (or where
            to find it, `"package.module:function"`) that returns them.
        loss: For `taylor`: `loss(outputs, target)` or where to find it.
        seed: Of the random signs that `taylor` uses without a loss.
    """

    def __init__(
        self,
        ratio: float = 0.5,
        *,
        criterion: Literal["l1", "l2", "batch_norm", "taylor"] = "l2",
        scope: Literal["layer", "global"] = "layer",
        layers: Mapping[str, float] | None = None,
        multiple_of: int = 1,
        data: Any = None,
        loss: Any = None,
        seed: int = 0,
    ) -> None:
        self.ratio = check_ratio(ratio, "the pruning ratio")
        self.layers = {
            name: check_ratio(value, f"the ratio of {name}") for name, value in (layers or {}).items()
        }
        _check_choice("criterion", criterion, CRITERIA)
        _check_choice("scope", scope, ("layer", "global"))
        if not isinstance(multiple_of, int) or multiple_of < 1:
            raise RecipeError("multiple_of is a positive integer", found=repr(multiple_of))
        if criterion == "taylor" and data is None:
            raise RecipeError(
                "the criterion `taylor` looks at gradients", hint="give data=, a function that returns inputs"
            )
        self.criterion, self.scope, self.multiple_of = criterion, scope, multiple_of
        self.data, self.loss, self.seed = data, loss, seed

    def recipe_options(self) -> dict[str, Any]:
        """As of `Pruner`."""
        options: dict[str, Any] = {"ratio": self.ratio, "criterion": self.criterion, "scope": self.scope}
        options |= {"layers": self.layers} if self.layers else {}
        options |= {"multiple_of": self.multiple_of} if self.multiple_of != 1 else {}
        for name in ("data", "loss"):
            if getattr(self, name) is not None:
                options[name] = option_of(getattr(self, name), name)
        return options | ({"seed": self.seed} if self.seed else {})

    def prune(self, program: ExportedProgram) -> tuple[ExportedProgram, PruningReport]:
        """As of `Pruner`."""
        coupling = couple(program)
        self._check_layers(coupling)
        rated, used = self._rated(program, coupling)
        gone = self._chosen(coupling.families, rated)
        everything = np.concatenate([np.zeros(0, dtype=np.int64), *gone])
        after = remove(program, coupling, everything)
        entries = []
        for family, units, criterion in zip(coupling.families, gone, used, strict=True):
            lost = _lost(program, family, units)
            for layer in family.layers:
                before = len(family.units)
                entries.append(
                    Pruned(
                        layer,
                        family.name,
                        "channels" if len(units) else "nothing",
                        before,
                        before - len(units),
                        lost,
                        criterion,
                        handles=family.handles if len(family.layers) == 1 else frozenset(),
                    )
                )
        for item in coupling.why_not:
            text = f"{item.reason} ({item.node})"
            entries.append(Pruned(item.layer, item.layer, "nothing", reason=text, handles=item.handles))
        alone = {
            family.name: _alone(program, coupling, units)
            for family, units in zip(coupling.families, gone, strict=True)
            if len(units)
        }
        return after, make_report(program, after, entries, alone)

    def _rated(self, program: ExportedProgram, coupling: Coupling) -> tuple[list[Scores], list[str]]:
        products: dict[str, Any] = {}
        if self.criterion == "taylor":
            names = dict.fromkeys(slot[0] for family in coupling.families for slot in family.out)
            loss = self.loss
            if isinstance(loss, str | Mapping):
                from workbench.component import Component

                loss = (Component(loss) if isinstance(loss, str) else Component(**loss)).make()
            products = gradients(program, names, data_from(self.data), loss, self.seed)
        found = [scores(program, family, self.criterion, products) for family in coupling.families]
        return [item[0] for item in found], [item[1] for item in found]

    def _chosen(self, families: tuple[Family, ...], rated: list[Scores]) -> list[Ids]:
        """By family the units that go."""
        counts = [
            int(len(family.units) * ratio_of(family.layers, self.layers, self.ratio)) for family in families
        ]
        if self.scope == "global":
            counts = self._global_counts(families, rated, counts)
        return [
            family.units[np.sort(np.argsort(own, kind="stable")[: self._rounded(len(family.units), count)])]
            for family, own, count in zip(families, rated, counts, strict=True)
        ]

    def _global_counts(
        self, families: tuple[Family, ...], rated: list[Scores], counts: list[int]
    ) -> list[int]:
        own = [
            ratio_of(family.layers, self.layers, -1.0) >= 0 for family in families
        ]  # those that were given a ratio keep it
        free = [index for index, fixed in enumerate(own) if not fixed]
        if not free:
            return counts
        pooled = np.concatenate([rated[index] for index in free])
        # No group loses nearly everything: an eighth of it stays.
        limit = {index: len(rated[index]) - max(1, len(rated[index]) // 8) for index in free}
        source = np.concatenate([np.full(len(rated[index]), index) for index in free])
        wanted = int(len(pooled) * self.ratio)
        taken = dict.fromkeys(free, 0)
        for position in np.argsort(pooled, kind="stable"):
            index = int(source[position])
            if wanted and taken[index] < limit[index]:
                taken[index] += 1
                wanted -= 1
        return [taken.get(index, count) for index, count in enumerate(counts)]

    def _rounded(self, size: int, count: int) -> int:
        """How many of these may go, so that enough and a proper number is left."""
        left = max(1, size - count)
        rounded = -(-left // self.multiple_of) * self.multiple_of
        return max(0, size - rounded)

    def _check_layers(self, coupling: Coupling) -> None:
        known = coupling.by_layer
        whole = {item.layer: item for item in coupling.why_not}
        for name, ratio in self.layers.items():
            inside = (*known, *whole)
            if not any(layer == name or layer.startswith(f"{name}.") for layer in inside):
                near = difflib.get_close_matches(name, inside, n=1)
                raise RecipeError(
                    f"there is no layer `{name}` to prune",
                    stage="prune",
                    expected=", ".join(known),
                    hint=f"did you mean `{near[0]}`?" if near else None,
                )
            if ratio and name in whole and name not in known:
                raise RecipeError(
                    f"the layer `{name}` can't be pruned",
                    stage="prune",
                    node=whole[name].node,
                    found=whole[name].reason,
                    expected=", ".join(known),
                )


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RecipeError(f"there is no {name} {value!r}", expected=" or ".join(choices), found=repr(value))


def _alone(program: ExportedProgram, coupling: Coupling, units: Ids) -> Callable[[], ExportedProgram]:
    return lambda: remove(program, coupling, units)


def _lost(program: ExportedProgram, family: Family, units: Ids) -> float:
    """The share of the squared norm of the layers' weights that goes."""
    gone = whole = 0.0
    for name, dim in family.out:
        tensor = program.state_dict[name] if name in program.state_dict else program.constants[name]
        squares = tensor.detach().double().square().movedim(dim, 0).reshape(tensor.shape[dim], -1).sum(1)
        whole += float(squares.sum())
        gone += float(squares[np.flatnonzero(np.isin(family.slots[(name, dim)], units))].sum())
    return gone / whole if whole > 0 else 0.0
