"""What if: only this layer quantized, or all but this one."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import pandas as pd
import torch

from workbench import provenance
from workbench.errors import QuantizationError
from workbench.quantization.accuracy.energy import Energy
from workbench.quantization.accuracy.report import calibrated_of, no_samples, shown
from workbench.quantization.accuracy.simulation import Simulation, Values
from workbench.quantization.data import samples_of

__all__ = ["Sensitivity", "sensitivity"]

Mode = Literal["only", "without"]
Metric = Callable[[list[torch.Tensor], list[torch.Tensor]], float]


class Sensitivity:
    """How much each layer's quantization costs at the outputs.

    Attributes:
        table: One row per quantized layer, the most harmful first.
            Columns: layer, nodes, module, source, handles, bytes (of its weights in floats); only_db (SQNR of
            the outputs when nothing but this layer is quantized), without_db (when all but this one are),
            gain_db (without_db less all_db); with a metric also only_metric and without_metric.
        all_db: SQNR of the outputs when all layers are quantized.
        float_metric: The metric in floats; None without a metric.
        all_metric: The metric when all layers are quantized; None without a metric.
        reused: Share of the nodes' values that were kept instead of being computed again.
    """

    def __init__(self, table: pd.DataFrame, all_db: float, metrics: tuple[Any, Any], reused: float) -> None:
        self.table, self.all_db, self.reused = table, all_db, reused
        self.float_metric, self.all_metric = metrics

    def __repr__(self) -> str:
        return f"<Sensitivity: {len(self.table)} layers, all quantized {self.all_db:.1f} dB>"

    def _repr_html_(self) -> str:
        title = html.escape(repr(self).strip("<>"))
        rows = self.table.drop(columns=["handles"]).to_html(index=False, border=0, max_rows=40, na_rep="")
        return f"<div><p><b>{title}</b></p>{rows}</div>"


class _Trial:
    """One choice of layers: what its outputs add up to."""

    def __init__(self, layers: frozenset[str], start: str) -> None:
        self.layers, self.start = layers, start
        self.energy = Energy()
        self.metric = 0.0

    def add(self, outputs: list[torch.Tensor], reference: list[torch.Tensor], metric: Metric | None) -> None:
        for wanted, value in zip(reference, outputs, strict=True):
            self.energy.add(wanted, value)
        if metric is not None:
            self.metric += float(metric(outputs, reference))


def sensitivity(
    subject: Any,
    data: Any,
    *,
    layers: Iterable[str] | None = None,
    modes: Iterable[Mode] = ("only", "without"),
    metric: Metric | None = None,
    method: str = "forward",
    progress: bool | None = None,
) -> Sensitivity:
    """Measure what quantizing each layer does to the outputs.

    `only` starts from the float run of a sample, `without` from the run with all layers quantized; just the
    nodes that the change reaches are computed again.

    Args:
        subject: As of `accuracy`.
        data: Inputs to measure with.
        layers: Names of layers; all quantized ones by default.
        modes: What is tried.
        metric: `metric(outputs, float outputs)` of a sample, averaged; beside SQNR.
        method: The method.
        progress: Show a bar; by default on a terminal and in a notebook.

    Raises:
        QuantizationError: There is nothing quantized, no such layer, or no such mode.
        CalibrationError: The data is empty or does not fit.
    """
    simulation = Simulation(calibrated_of(subject, method))
    chosen = _chosen(simulation, layers)
    wanted = tuple(modes)
    if unknown := set(wanted) - {"only", "without"}:
        raise QuantizationError("there is no such mode", expected="only, without", found=", ".join(unknown))
    everything = frozenset(simulation.layers)
    trials = {
        (mode, layer): _Trial(frozenset((layer,)), "floats")
        if mode == "only"
        else _Trial(everything - {layer}, "all")
        for mode in wanted
        for layer in chosen
    }
    whole, floats = _Trial(everything, "floats"), _Trial(frozenset(), "floats")
    count = computed = 0
    bar: Iterator[Any] = _ticks(samples_of(data, method), len(trials))
    with shown(bar, "sensitivity", progress, _total(data, len(trials))) as steps:
        iterator = iter(steps)
        for sample in iterator:
            count += 1
            base = simulation.run(sample, None, count)
            quantized = simulation.rerun(base, everything)
            reference = simulation.outputs(base)
            floats.add(reference, reference, metric)
            whole.add(simulation.outputs(quantized), reference, metric)
            for trial in trials.values():
                next(iterator)
                made = simulation.rerun(base if trial.start == "floats" else quantized, trial.layers)
                computed += made.steps
                trial.add(simulation.outputs(made), reference, metric)
                _forget(made)
    if not count:
        raise no_samples()
    most = count * len(trials) * len(simulation.steps)
    table = _table(simulation, chosen, trials, whole, count, metric is not None)
    metrics = (floats.metric / count, whole.metric / count) if metric is not None else (None, None)
    return Sensitivity(table, whole.energy.db, metrics, 1 - computed / most if most else 0.0)


def _forget(values: Values) -> None:
    values.raw.clear()
    values.rounded.clear()


def _ticks(samples: Iterable[Any], trials: int) -> Iterator[Any]:
    """Each sample, followed by a tick for each trial that is made with it."""
    for sample in samples:
        yield sample
        yield from range(trials)


def _total(data: Any, trials: int) -> int | None:
    return len(data) * (trials + 1) if hasattr(data, "__len__") else None


def _chosen(simulation: Simulation, layers: Iterable[str] | None) -> list[str]:
    chosen = list(simulation.layers) if layers is None else list(layers)
    for layer in chosen:
        if layer not in simulation.layers:
            raise QuantizationError(
                f"there is no quantized layer '{layer}'", expected=", ".join(simulation.layers), found=layer
            )
    return chosen


def _table(
    simulation: Simulation, chosen: list[str], trials: Any, whole: _Trial, count: int, metric: bool
) -> pd.DataFrame:
    nodes = {node.name: node for node in simulation.program.graph.nodes}
    rows = []
    for layer in chosen:
        inside = simulation.layers[layer]
        main = nodes[layer] if layer in nodes else nodes[inside[0]]
        handles = frozenset[int]().union(*(provenance.handles(nodes[name]) for name in inside))
        row: dict[str, Any] = {
            "layer": layer,
            "nodes": ", ".join(inside),
            "module": provenance.module_path(main)[0],
            "source": provenance.source_line(main) or "",
            "handles": tuple(sorted(handles)),
            "bytes": simulation.weight_bytes(inside),
        }
        for mode in ("only", "without"):
            trial = trials.get((mode, layer))
            if trial is not None:
                row[f"{mode}_db"] = trial.energy.db
                if metric:
                    row[f"{mode}_metric"] = trial.metric / count
        if "without_db" in row:
            row["gain_db"] = row["without_db"] - whole.energy.db
        rows.append(row)
    table = pd.DataFrame(rows)
    if "only_db" in table:
        return table.sort_values("only_db", kind="stable").reset_index(drop=True)
    if "gain_db" in table:
        return table.sort_values("gain_db", ascending=False, kind="stable").reset_index(drop=True)
    return table
