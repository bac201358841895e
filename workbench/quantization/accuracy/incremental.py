"""An accuracy report that is brought up to date after a change of the plan: only what depends on it is new.

A change of how some tensors are quantized changes the quantized values of the nodes behind them and of no
others. The float values, and the quantized values before the change, are kept for that as long as they fit a
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from workbench.quantization.accuracy.energy import Energy
from workbench.quantization.accuracy.report import AccuracyReport, _add, _Node, _table, no_samples
from workbench.quantization.accuracy.simulation import Simulation, Values, _equal
from workbench.quantization.data import samples_of
from workbench.quantization.programs import CalibratedProgram

__all__ = ["Measurement"]

Tell = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    pass


class Measurement:
    """The accuracy of one calibrated program on some samples.

    Attributes:
        report: What was measured.
        computed: How many nodes were computed on quantized values for it, all samples together.
        affected: Names of the nodes that were measured anew.
    """

    def __init__(self, calibrated: CalibratedProgram, samples: list[Any], *, budget: int = 1 << 29) -> None:
        self._calibrated, self._samples, self._budget = calibrated, samples, budget
        self._simulation = Simulation(calibrated)
        self._nodes: dict[str, _Node] = {}
        self._outputs = Energy()
        # By sample the values of all nodes, in floats and quantized; None where they are too large.
        self._kept: list[tuple[dict[str, Any], dict[str, Any]]] | None = []
        self.computed = 0
        self.affected: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        calibrated: CalibratedProgram,
        data: Any,
        *,
        method: str = "forward",
        most: int | None = None,
        budget: int = 1 << 29,
        tell: Tell = _silent,
    ) -> Measurement:
        """Measure all nodes.

        Args:
            calibrated: What `calibrate` returned.
            data: Inputs to measure with, as of `calibrate`.
            method: The method, for data by method name.
            most: How many samples are taken at most; None for all.
            budget: Bytes of values that may be kept for `again`.
            tell: Called after each sample with how many are done, and how many there are.

        Raises:
            CalibrationError: The data is empty or does not fit.
        """
        samples = list(islice(samples_of(data, method), most))
        if not samples:
            raise no_samples()
        made = cls(calibrated, samples, budget=budget)
        made._measure(None, tell)
        return made

    @property
    def report(self) -> AccuracyReport:
        """What was measured, as `accuracy` gives it."""
        return AccuracyReport(_table(self._simulation, self._nodes), self._outputs.db, len(self._samples))

    def again(self, calibrated: CalibratedProgram, *, tell: Tell = _silent) -> Measurement:
        """Measure another plan of the same program on the same samples; only nodes that the change reaches.

        Everything is measured where the float programs differ, or the values were too large to be kept.
        """
        made = Measurement(calibrated, self._samples, budget=self._budget)
        known = self if self._kept and _same_floats(self._simulation, made._simulation) else None
        made._measure(known, tell)
        return made

    # ---- measuring -----------------------------------------------------------------------------------------

    def _measure(self, before: Measurement | None, tell: Tell) -> None:
        simulation = self._simulation
        names = [
            *simulation.results,
            *(step.name for step in simulation.steps if step.node.op == "call_function"),
        ]
        names = list(dict.fromkeys(names))
        if before is None:
            dirty = frozenset(step.name for step in simulation.steps)
            reached = frozenset(names) | dirty
        else:
            dirty = _dirty(before, self)
            reached = _behind(simulation, dirty)
        self.affected = frozenset(names) & reached
        self._nodes = {
            name: before._nodes[name]
            if before is not None and name not in reached and name in before._nodes
            else _Node()
            for name in sorted(names, key=_places(simulation).__getitem__)
        }
        layers = {
            layer: frozenset(nodes)
            for layer, nodes in simulation.layers.items()
            if reached.intersection(nodes)
        }
        wanted = [name for name in self._nodes if name in reached or before is None]
        for number, sample in enumerate(self._samples):
            floats, integers = self._values(before, number, sample, dirty, reached)
            own: dict[str, Values] = {}
            for layer, nodes in layers.items():
                alone = simulation.rerun(floats, {layer}, within=nodes)
                self.computed += alone.steps
                own.update(dict.fromkeys(nodes, alone))
            for name in wanted:
                _add(self._nodes[name], simulation, name, floats, integers, own.get(name))
            outputs = zip(simulation.outputs(floats), simulation.outputs(integers), strict=True)
            for reference, value in outputs:
                self._outputs.add(reference, value)
            self._keep(floats, integers)
            tell(number + 1, len(self._samples))

    def _values(
        self,
        before: Measurement | None,
        number: int,
        sample: Any,
        dirty: frozenset[str],
        reached: frozenset[str],
    ) -> tuple[Values, Values]:
        """The values of a sample, in floats and quantized."""
        simulation, everything = self._simulation, frozenset(self._simulation.layers)
        if before is None or not before._kept:
            floats = simulation.run(sample, None, number + 1)
            integers = simulation.rerun(floats, everything)
            self.computed += integers.steps
            return floats, integers
        known_floats, known_integers = before._kept[number]
        floats = Values(None, raw=known_floats)
        # Without what was rounded before: it may be rounded otherwise now.
        base = Values(everything, raw=known_integers)
        integers = Values(everything, base=base)
        with torch.no_grad():
            for step in simulation.steps:
                changed = any(read.value in integers.raw for read in step.reads.values())
                if step.name not in reached or not (step.name in dirty or changed):
                    continue
                result = simulation._computed(step, integers)
                integers.steps += 1
                if not _equal(result, base[step.name]):
                    integers.raw[step.name] = result
        self.computed += integers.steps
        return floats, integers

    def _keep(self, floats: Values, integers: Values) -> None:
        if self._kept is None:
            return
        both = dict(floats.raw), {name: integers[name] for name in floats.raw}
        self._kept.append(both)
        if len(self._kept) == 1 and _bytes(both) * len(self._samples) > self._budget:
            self._kept = None


def _bytes(values: Iterable[dict[str, Any]]) -> int:
    tensors = {
        id(leaf): leaf
        for part in values
        for leaf in tree_leaves(list(part.values()))
        if isinstance(leaf, torch.Tensor)
    }
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _places(simulation: Simulation) -> dict[str, int]:
    return {node.name: place for place, node in enumerate(simulation.program.graph.nodes)}


def _same_floats(one: Simulation, other: Simulation) -> bool:
    """Whether two programs compute the same floats."""

    def shape(simulation: Simulation) -> list[tuple[str, str, str, str]]:
        nodes = simulation.program.graph.nodes
        return [(node.name, str(node.target), str(node.args), str(node.kwargs)) for node in nodes]

    if shape(one) != shape(other) or set(one._weights) != set(other._weights):
        return False
    return all(_equal(weight, other._weights[name]) for name, weight in one._weights.items())


def _dirty(before: Measurement, after: Measurement) -> frozenset[str]:
    """The nodes whose inputs or results are quantized otherwise."""
    old, new = _how(before._calibrated), _how(after._calibrated)
    old_layers, new_layers = before._simulation._layer_of, after._simulation._layer_of
    users: dict[str, list[str]] = {}
    for step in after._simulation.steps:
        for read in step.reads.values():
            users.setdefault(read.value, []).append(step.name)
    found = {name for name in {*old_layers, *new_layers} if old_layers.get(name) != new_layers.get(name)}
    for point in old.keys() | new.keys():
        if old.get(point) != new.get(point):
            value, reader = point
            # What is rounded otherwise is the result as its readers get it, not the result itself.
            found.update([reader] if reader else [value, *users.get(value, ())])
    return frozenset(found)


def _how(calibrated: CalibratedProgram) -> dict[tuple[str, str], tuple[Any, ...]]:
    """By place how the tensor is quantized there, comparable."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for point, group in calibrated.plan.points():
        spec = group.spec
        how: tuple[Any, ...] = (str(spec), spec.scale, spec.zero_point, group.name)
        observer = calibrated.observers.get(group.name)
        if observer is not None and not spec.dynamic:
            how += tuple(part.numpy().tobytes() for part in observer.calculate_qparams())
        found[point.value, point.reader] = how
    return found


def _behind(simulation: Simulation, dirty: frozenset[str]) -> frozenset[str]:
    """Some nodes, and all that depend on them."""
    found = set(dirty)
    for step in simulation.steps:
        if any(read.value in found for read in step.reads.values()):
            found.add(step.name)
    return frozenset(found)
