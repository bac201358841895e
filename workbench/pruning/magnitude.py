"""Unstructured pruning: the smallest weights become zero, all sizes stay.

It makes a program neither smaller nor faster, since no kernel skips zeros (docs/pruning.md has the figures).
It shows how much of the weights a network needs, and prepares weights for hardware that reads N:M patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch.export import ExportedProgram

from workbench.backends.programs import copy_program
from workbench.edge.program import input_specs, lifted_tensor, mutated_targets
from workbench.errors import RecipeError
from workbench.pruning.base import Pruner, check_ratio, ratio_of
from workbench.pruning.coupling import layer_of
from workbench.pruning.graph import argument
from workbench.pruning.remove import put_tensor
from workbench.pruning.report import Pruned, PruningReport, make_report

__all__ = ["MagnitudePruner"]

_LAYERS = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


class MagnitudePruner(Pruner):
    """Set the smallest weights of convolutions and linear layers to zero.

    Args:
        ratio: Share of the weights; with a pattern it follows from that.
        scope: `"layer"`: this share of each layer; `"global"`: the smallest of all layers, measured by the
            mean size of their layer's weights.
        pattern: `"N:M"`, such as `"2:4"`: of M weights in a row (along the inputs) N stay.
        layers: Ratios of single layers or modules by path; 0 keeps them whole, with a pattern too.
    """

    def __init__(
        self,
        ratio: float = 0.5,
        *,
        scope: Literal["layer", "global"] = "layer",
        pattern: str | None = None,
        layers: Mapping[str, float] | None = None,
    ) -> None:
        self.ratio = check_ratio(ratio, "the pruning ratio")
        self.layers = {
            name: check_ratio(value, f"the ratio of {name}") for name, value in (layers or {}).items()
        }
        if scope not in ("layer", "global"):
            raise RecipeError(f"there is no scope {scope!r}", expected="layer or global")
        self.scope, self.pattern = scope, pattern
        self._kept_of = _parsed(pattern)

    def recipe_options(self) -> dict[str, Any]:
        """As of `Pruner`."""
        options: dict[str, Any] = {"scope": self.scope}
        options |= {"ratio": self.ratio} if self.pattern is None else {"pattern": self.pattern}
        return options | ({"layers": self.layers} if self.layers else {})

    def prune(self, program: ExportedProgram) -> tuple[ExportedProgram, PruningReport]:
        """As of `Pruner`."""
        weights, reasons = _weights(program)
        for name in self.layers:
            if not any(layer_of(w) == name or w.startswith(f"{name}.") for w in weights):
                raise RecipeError(
                    f"there is no layer `{name}` to prune",
                    stage="prune",
                    expected=", ".join(map(layer_of, weights)),
                )
        masks = self._masks(weights, reasons)
        after = copy_program(program)
        entries, alone = [], {}
        for name, (tensor, handles) in weights.items():
            layer = layer_of(name)
            mask = masks.get(name)
            if mask is None:
                reason = reasons.get(name, "")
                entries.append(Pruned(layer, layer, "nothing", reason=reason, handles=handles))
                continue
            put_tensor(after, name, torch.where(mask, tensor, 0.0))
            squares = tensor.double().square()
            whole = float(squares.sum())
            entries.append(
                Pruned(
                    layer,
                    layer,
                    "weights",
                    tensor.numel(),
                    int(mask.sum()),
                    float(squares[~mask].sum()) / whole if whole > 0 else 0.0,
                    self.pattern or "magnitude",
                    handles=handles,
                )
            )
            alone[layer] = _alone(program, name, torch.where(mask, tensor, 0.0))
        return after, make_report(program, after, entries, alone)

    def _masks(self, weights: Mapping[str, Any], reasons: dict[str, str]) -> dict[str, torch.Tensor]:
        """By weight what stays."""
        masks: dict[str, torch.Tensor] = {}
        pooled = []
        for name, (tensor, _) in weights.items():
            ratio = ratio_of((layer_of(name),), self.layers, -1.0)
            if ratio == 0:
                reasons[name] = "its ratio is 0"
            elif self._kept_of is not None:
                found = _pattern_mask(tensor, *self._kept_of)
                if found is None:
                    reasons[name] = f"fewer than {self._kept_of[1]} inputs"
                else:
                    masks[name] = found
            elif self.scope == "global" and ratio < 0:
                pooled.append(name)
            else:
                masks[name] = _smallest(tensor.abs(), self.ratio if ratio < 0 else ratio)
        if pooled:
            sizes = [
                weights[name][0].abs() / weights[name][0].abs().mean().clamp_min(1e-30) for name in pooled
            ]
            kept = _smallest(torch.cat([size.reshape(-1) for size in sizes]), self.ratio)
            parts = torch.split(kept, [size.numel() for size in sizes])
            masks |= {n: part.reshape(s.shape) for n, part, s in zip(pooled, parts, sizes, strict=True)}
        return masks


def _parsed(pattern: str | None) -> tuple[int, int] | None:
    if pattern is None:
        return None
    match = re.fullmatch(r"(\d+):(\d+)", pattern) if isinstance(pattern, str) else None
    if match is None or not 0 < int(match[1]) < int(match[2]):
        raise RecipeError("no pattern N:M", expected="such as 2:4", found=repr(pattern))
    return int(match[1]), int(match[2])


def _smallest(sizes: torch.Tensor, ratio: float) -> torch.Tensor:
    """What stays when this share goes, the smallest first, and of equals the first first."""
    flat = sizes.reshape(-1)
    count = int(flat.numel() * ratio)
    kept = torch.ones(flat.numel(), dtype=torch.bool)
    kept[torch.argsort(flat, stable=True)[:count]] = False
    return kept.reshape(sizes.shape)


def _pattern_mask(tensor: torch.Tensor, keep: int, of: int) -> torch.Tensor | None:
    """What stays of each `of` inputs in a row; inputs that are left over at the end stay."""
    rows = tensor.movedim(1, -1)
    whole = rows.shape[-1] // of * of
    if not whole:
        return None
    kept = torch.ones(rows.shape, dtype=torch.bool)
    blocks = rows[..., :whole].abs().reshape(*rows.shape[:-1], -1, of)
    order = torch.argsort(blocks, dim=-1, stable=True)
    inside = torch.ones(blocks.shape, dtype=torch.bool).scatter(-1, order[..., : of - keep], False)
    kept[..., :whole] = inside.flatten(-2)
    return kept.movedim(-1, 1)


def _weights(program: ExportedProgram) -> tuple[dict[str, Any], dict[str, str]]:
    """The weights of layers with the handles of their operators; and why some of them can't be pruned."""
    specs, written = input_specs(program), mutated_targets(program)
    found: dict[str, Any] = {}
    for node in program.graph.nodes:
        name = str(getattr(node.target, "overloadpacket", "")).removeprefix("aten.")
        if node.op != "call_function" or name not in _LAYERS:
            continue
        weight = argument(node, "weight")
        spec = specs.get(weight.name)
        tensor = None if spec is None else lifted_tensor(program, spec)
        if tensor is not None and spec is not None and spec.target not in written:
            found.setdefault(
                str(spec.target), (tensor.detach(), frozenset(node.meta.get("source_handles", ())))
            )
    return found, {}


def _alone(program: ExportedProgram, name: str, value: torch.Tensor) -> Callable[[], ExportedProgram]:
    def make() -> ExportedProgram:
        made = copy_program(program)
        put_tensor(made, name, value)
        return made

    return make
