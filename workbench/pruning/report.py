"""What pruning did, layer by layer."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from workbench.backends.programs import flat_program
from workbench.pruning.costs import LayerCost, layer_costs
from workbench.pruning.importance import inputs_of

__all__ = ["Pruned", "PruningReport", "make_report"]


@dataclass(frozen=True)
class Pruned:
    """What was decided about one layer.

    Attributes:
        layer: The layer.
        group: The first of the layers that lose the same channels; the layer itself where it is alone.
        what: `"channels"`, `"weights"`, or `"nothing"`.
        before: Channels or weights before.
        after: Channels or weights (other than zero) after.
        lost: Share of the weights' squared norm that was given up; 0 to 1.
        criterion: By what they were chosen.
        reason: Why the layer stays whole; empty where it does not.
        handles: Source handles of its operators.
    """

    layer: str
    group: str
    what: str
    before: int = 0
    after: int = 0
    lost: float = 0.0
    criterion: str = ""
    reason: str = ""
    handles: frozenset[int] = frozenset()


class PruningReport:
    """The outcome of a pruner.

    Attributes:
        table: One row per layer.
            Columns: layer, group, what, ratio, before, after, lost, bytes before, bytes after, flops before,
            flops after (None where a size is symbolic), criterion, reason, source, handles.
        why_not: The rows of layers that stay whole for a reason.
        totals: Bytes of all parameters and operations of all products, before and after.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        totals: Mapping[str, int | None],
        alone: Mapping[str, Callable[[], ExportedProgram]],
        before: ExportedProgram,
        after: ExportedProgram,
    ) -> None:
        self.table = table
        self.totals = dict(totals)
        self._alone, self._before, self._after = dict(alone), before, after

    @property
    def why_not(self) -> pd.DataFrame:
        """The layers that stay whole, with the reasons."""
        rows = self.table[self.table["reason"] != ""]
        return rows[["layer", "reason", "source", "handles"]].reset_index(drop=True)

    def errors(self, data: Iterable[Any]) -> pd.DataFrame:
        """What pruning does to the outputs: of each group alone, and of all together.

        Args:
            data: Inputs.

        Returns:
            One row per group and one called `all`, the worst first. Columns: group, sqnr_db (of all outputs
            over all data).
        """
        items = [pytree.tree_leaves(inputs_of(item)) for item in data]
        wanted = [_outputs(self._before, item) for item in items]
        rows = [("all", _sqnr(self._after, items, wanted))]
        rows += [(name, _sqnr(make(), items, wanted)) for name, make in self._alone.items()]
        table = pd.DataFrame(rows, columns=["group", "sqnr_db"])
        return table.sort_values("sqnr_db", kind="stable").reset_index(drop=True)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name} {self.totals[f'{name} before']:,} -> {self.totals[f'{name} after']:,}"
            for name in ("bytes", "flops")
            if self.totals[f"{name} before"] is not None and self.totals[f"{name} after"] is not None
        )
        return f"<PruningReport {shown}; {len(self.why_not)} layers stay whole>"

    def _repr_html_(self) -> str:
        title = html.escape(repr(self).strip("<>"))
        rows = self.table.drop(columns=["handles"]).to_html(index=False, border=0, max_rows=60, na_rep="")
        return f"<div><p><b>{title}</b></p>{rows}</div>"


def make_report(
    before: ExportedProgram,
    after: ExportedProgram,
    entries: Iterable[Pruned],
    alone: Mapping[str, Callable[[], ExportedProgram]],
) -> PruningReport:
    """A report.

    Args:
        before: The program before.
        after: The program after.
        entries: What was decided, in the order of the graph.
        alone: By group what makes the program in which it alone is pruned.
    """
    old, new = layer_costs(before), layer_costs(after)
    nothing = LayerCost(0, 0, "", frozenset())
    rows = []
    for entry in entries:
        was, is_now = old.get(entry.layer, nothing), new.get(entry.layer, nothing)
        ratio = 1 - entry.after / entry.before if entry.before else 0.0
        rows.append(
            {
                "layer": entry.layer,
                "group": entry.group,
                "what": entry.what,
                "ratio": round(ratio, 4),
                "before": entry.before,
                "after": entry.after,
                "lost": round(entry.lost, 6),
                "bytes before": was.nbytes,
                "bytes after": is_now.nbytes,
                "flops before": was.flops,
                "flops after": is_now.flops,
                "criterion": entry.criterion,
                "reason": entry.reason,
                "source": was.source,
                "handles": tuple(sorted(entry.handles or was.handles)),
            }
        )
    columns = ["layer", "group", "what", "ratio", "before", "after", "lost", "bytes before", "bytes after"]
    columns += ["flops before", "flops after", "criterion", "reason", "source", "handles"]
    totals = {
        f"{name} {when}": _total(costs, field)
        for when, costs in (("before", old), ("after", new))
        for name, field in (("bytes", "nbytes"), ("flops", "flops"))
    }
    return PruningReport(pd.DataFrame(rows, columns=columns), totals, alone, before, after)


def _total(costs: Mapping[str, LayerCost], field: str) -> int | None:
    values = [getattr(cost, field) for cost in costs.values()]
    return None if None in values else sum(values)


def _outputs(program: ExportedProgram, inputs: list[Any]) -> list[torch.Tensor]:
    with torch.no_grad():
        made = flat_program(program).module()(*inputs)
    values = [value for value in pytree.tree_leaves(made) if isinstance(value, torch.Tensor)]
    return [value.double() for value in values if value.is_floating_point()]


def _sqnr(program: ExportedProgram, items: list[list[Any]], wanted: list[list[torch.Tensor]]) -> float:
    noise = signal = 0.0
    for inputs, references in zip(items, wanted, strict=True):
        for reference, value in zip(references, _outputs(program, inputs), strict=True):
            noise += float((reference - value).square().sum())
            signal += float(reference.square().sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
