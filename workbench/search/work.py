"""What a worker does with one candidate. It keeps the model between candidates, and starts no threads."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass
from typing import Any

import torch

from workbench import pipeline
from workbench.component import Component
from workbench.errors import WorkbenchError
from workbench.lowering import Lowering
from workbench.pruning.costs import node_flops
from workbench.quantization import steps
from workbench.quantization.accuracy import sensitivity
from workbench.recipe import Recipe
from workbench.search.store import Outcome, read_model, samples
from workbench.stages import Exported

__all__ = ["LayerDamage", "Task", "evaluate", "measure_layers", "one_thread"]


@dataclass(frozen=True)
class Task:
    """One candidate, as it is handed to a worker.

    Attributes:
        key: Identifies it.
        recipe: Its recipe.
        model: Path of the model.
        data: Path of the samples: pairs of inputs and target.
        metric: The metric.
        program: Where the worker writes the `.pte` file.
    """

    key: str
    recipe: Recipe
    model: str
    data: str
    metric: Component
    program: str


@dataclass(frozen=True)
class LayerDamage:
    """What quantizing one layer alone does.

    Attributes:
        noise: Noise at the outputs per signal.
        weights: Elements of its weights.
        flops: Its operations.
    """

    noise: float
    weights: int
    flops: int


# By path of the model what was made of it last: the next candidate shares steps with it.
_models: dict[str, Exported] = {}
_results: dict[str, pipeline.Result] = {}
_samples: dict[str, list[Any]] = {}
_lowering = threading.RLock()  # where workers are threads of one process


def one_thread() -> None:
    """Let torch use one thread: as many workers as cores share the machine."""
    torch.set_num_threads(1)


def evaluate(task: Task) -> Outcome:
    """Lower a candidate and measure it; an error is an outcome, too."""
    start = time.perf_counter()
    try:
        outcome = _evaluated(task)
    except Exception as error:
        outcome = Outcome(task.key, kind=type(error).__name__, error=str(error))
    outcome.seconds = time.perf_counter() - start
    return outcome


def _evaluated(task: Task) -> Outcome:
    lowering = lowered(task.model, task.recipe)
    metric = task.metric.make()
    with _lowering:
        if task.data not in _samples:
            _samples.clear()
            _samples[task.data] = samples(task.data)
        items = _samples[task.data]
    total = 0.0
    for inputs, target in items:
        total += float(metric(lowering.execute(*inputs), target))
    buffer = lowering.program.buffer
    partial = f"{task.program}.{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(buffer)
    os.replace(partial, task.program)
    digest = hashlib.blake2b(buffer, digest_size=16).hexdigest()
    return Outcome(task.key, total / len(items), len(buffer), digest)


def lowered(model: str, recipe: Recipe) -> Lowering:
    """The model lowered by a recipe; steps that the last recipe had in common are not run again."""
    with _lowering:
        exported = captured(model)
        result = pipeline.run(exported, recipe, before=_results.get(model), progress=False)
        _results[model] = result
    return Lowering(result)


def captured(model: str) -> Exported:
    """The model, read once."""
    if model not in _models:
        _models.clear()
        _results.clear()
        _models[model] = pipeline.capture(read_model(model), progress=False)[0]
    return _models[model]


def measure_layers(model: str, recipe: Recipe, data: str, count: int) -> tuple[dict[str, LayerDamage], str]:
    """By layer that a recipe quantizes, what that does; or why that could not be measured.

    Args:
        model: Path of the model.
        recipe: A recipe that quantizes.
        data: Path of the samples.
        count: How many of them are used.
    """
    try:
        with _lowering:
            calibrated = steps.calibrated(steps.prepared(captured(model), recipe), recipe)
        items = [tuple(inputs) for inputs, _ in samples(data)[:count]]
        table = sensitivity(calibrated, items, modes=("only",), progress=False).table
        part = calibrated.parts["forward"]
    except WorkbenchError as error:
        return {}, str(error)
    flops = {
        node.name: node_flops(node) or 0 for node in part.program.graph.nodes if node.op == "call_function"
    }
    layers = part.plan.layers
    return {
        str(row["layer"]): LayerDamage(
            10 ** (-float(row["only_db"]) / 10),
            int(row["bytes"]) // 4,
            sum(flops.get(node, 0) for node in layers[str(row["layer"])]),
        )
        for row in table.to_dict("records")
    }, ""
