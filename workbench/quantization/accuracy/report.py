"""Where the accuracy goes: for each node the error that it makes, and the error that reaches it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch

from workbench import provenance
from workbench.errors import QuantizationError
from workbench.progress import shows
from workbench.quantization.accuracy.energy import Energy, decibels, squares
from workbench.quantization.accuracy.simulation import Simulation, Values
from workbench.quantization.data import length, samples_of
from workbench.quantization.programs import CalibratedProgram

__all__ = ["AccuracyReport", "accuracy", "calibrated_of", "no_samples", "shown"]


@dataclass
class _Node:
    total: Energy = field(default_factory=Energy)
    own: Energy = field(default_factory=Energy)
    inherited: Energy = field(default_factory=Energy)
    clipped: int = 0
    elements: int = 0
    largest: float = 0.0


class AccuracyReport:
    """What quantization does to the values of a program.

    Attributes:
        table: One row per node with a floating-point result, in the order of the graph.
            Columns: node, target, layer (the quantized layer, or empty), module, source, handles; sqnr_db (of
            the result as its readers get it, against floats), own_db (the same, where only this node's layer
            is quantized and reads floats), inherited_db (what the errors of its inputs add), saturation
            (share of the values that are clipped when the result is rounded; None where it is not, or scales
            are chosen at run time), max_abs (largest float).
        sqnr_db: Of all outputs of the program.
        samples: How many samples were run.
    """

    def __init__(self, table: pd.DataFrame, sqnr_db: float, samples: int) -> None:
        self.table, self.sqnr_db, self.samples = table, sqnr_db, samples

    @property
    def layers(self) -> pd.DataFrame:
        """One row per quantized layer: that of its last node, the worst own error first."""
        rows = self.table[self.table["layer"] != ""].groupby("layer", sort=False).tail(1)
        return rows.sort_values("own_db", kind="stable").reset_index(drop=True)

    def worst(self, count: int = 5) -> pd.DataFrame:
        """The layers that add the most error themselves."""
        return self.layers.head(count)

    def __repr__(self) -> str:
        size = f"{len(self.table)} nodes, {self.samples} samples"
        return f"<AccuracyReport: outputs {self.sqnr_db:.1f} dB, {size}>"

    def _repr_html_(self) -> str:
        title = html.escape(repr(self).strip("<>"))
        rows = self.layers.drop(columns=["handles"]).to_html(index=False, border=0, max_rows=40, na_rep="")
        return f"<div><p><b>{title}</b></p>{rows}</div>"


def calibrated_of(subject: Any, method: str = "forward") -> CalibratedProgram:
    """The calibrated program of what a user has: of itself, of a stage, or of a lowering.

    Raises:
        QuantizationError: It is not quantized, or has no such method.
    """
    if isinstance(subject, CalibratedProgram):
        return subject
    try:
        stage = subject if hasattr(subject, "parts") else subject.calibrated
        part = stage.parts[method]
    except AttributeError as error:
        raise QuantizationError(
            "that is nothing quantized",
            expected="a lowering with a quantizer, its stage `calibrated`, or what calibrate() returned",
            found=type(subject).__name__,
        ) from error
    except KeyError as error:
        raise QuantizationError(
            f"there is no method '{method}'", expected=", ".join(stage.parts), found=method
        ) from error
    if not isinstance(part, CalibratedProgram):
        raise QuantizationError(
            "that is not calibrated yet", expected="the stage `calibrated`", found=type(subject).__name__
        )
    return part


def accuracy(
    subject: Any, data: Any, *, method: str = "forward", progress: bool | None = None
) -> AccuracyReport:
    """Measure the error of each node, its own apart from the inherited.

    Args:
        subject: A lowering whose recipe has a quantizer, its stage `calibrated` or `quantized`, or what
            `calibrate` returned.
        data: Inputs to measure with, as of `calibrate`.
        method: The method.
        progress: Show a bar; by default on a terminal and in a notebook.

    Raises:
        QuantizationError: There is nothing quantized.
        CalibrationError: The data is empty or does not fit.
    """
    simulation = Simulation(calibrated_of(subject, method))
    found = {step.name: _Node() for step in simulation.steps if step.node.op == "call_function"}
    inputs = {name for name in simulation.results if name not in found}
    found = {**{name: _Node() for name in inputs}, **found}
    outputs, count = Energy(), 0
    everything = frozenset(simulation.layers)
    with shown(samples_of(data, method), "measuring", progress) as samples:
        for count, sample in enumerate(samples, 1):
            floats = simulation.run(sample, None, count)
            integers = simulation.rerun(floats, everything)
            own: dict[str, Values] = {}
            for layer, nodes in simulation.layers.items():
                alone = simulation.rerun(floats, {layer}, within=frozenset(nodes))
                own.update(dict.fromkeys(nodes, alone))
            for name, node in found.items():
                _add(node, simulation, name, floats, integers, own.get(name))
            for reference, value in zip(
                simulation.outputs(floats), simulation.outputs(integers), strict=True
            ):
                outputs.add(reference, value)
    if not count:
        raise no_samples()
    return AccuracyReport(_table(simulation, found), outputs.db, count)


def _add(
    node: _Node, simulation: Simulation, name: str, floats: Values, integers: Values, alone: Values | None
) -> None:
    reference, value = floats[name], simulation.seen(integers, name)
    if not isinstance(reference, torch.Tensor) or not reference.is_floating_point():
        return
    mine = reference if alone is None else simulation.seen(alone, name)
    node.total.add(reference, value)
    node.own.add(reference, mine)
    node.inherited.signal = node.total.signal
    node.inherited.noise += 0.0 if value is mine else squares(value - mine)
    if reference.numel():
        node.largest = max(node.largest, float(reference.abs().max()))
    quantizing = simulation.results.get(name)
    if quantizing is not None and quantizing.limits is not None:
        low, high = quantizing.limits
        raw = integers[name]
        node.clipped += int(((raw < low) | (raw > high)).sum())
        node.elements += raw.numel()


def _table(simulation: Simulation, found: dict[str, _Node]) -> pd.DataFrame:
    nodes = {node.name: node for node in simulation.program.graph.nodes}
    layer_of = {name: layer for layer, names in simulation.layers.items() for name in names}
    rows = []
    for name, item in found.items():
        if item.total.signal == 0 and item.total.noise == 0 and not item.largest:
            continue  # no floats, or nothing but zeros
        node = nodes[name]
        energy = item.total
        rows.append(
            {
                "node": name,
                "target": str(node.target) if node.op == "call_function" else "input",
                "layer": layer_of.get(name, ""),
                "module": provenance.module_path(node)[0],
                "source": provenance.source_line(node) or "",
                "handles": tuple(sorted(provenance.handles(node))),
                "sqnr_db": energy.db,
                "own_db": decibels(energy.signal, item.own.noise),
                "inherited_db": decibels(energy.signal, item.inherited.noise),
                "saturation": item.clipped / item.elements if item.elements else None,
                "max_abs": item.largest,
            }
        )
    columns = ["node", "target", "layer", "module", "source", "handles", "sqnr_db", "own_db", "inherited_db"]
    return pd.DataFrame(rows, columns=[*columns, "saturation", "max_abs"])


def no_samples() -> Exception:
    """The error of empty data."""
    from workbench.errors import CalibrationError

    return CalibrationError(
        "the data is empty",
        stage="accuracy",
        expected="at least one sample",
        found="none",
        hint="an iterator can be read once only: give a list, or a function that returns a new iterator",
    )


def shown(data: Iterable[Any], doing: str, progress: bool | None, total: int | None = None) -> Any:
    """The data with a bar, to be used in `with`."""
    from contextlib import nullcontext

    if not shows(progress):
        return nullcontext(data)
    from tqdm.auto import tqdm

    return tqdm(data, total=total or length(data), desc=doing, leave=False)
