"""`search`: from what a user has to a search, with everything checked before the first candidate is made."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from workbench import pipeline
from workbench.backends.programs import flat_program
from workbench.backends.xnnpack import XnnpackPartitioner
from workbench.component import Component
from workbench.errors import RecipeError, SearchError
from workbench.lowering import Lowering
from workbench.pruning import StructuredPruner
from workbench.quantization.data import flat_sample, samples_of
from workbench.recipe import Recipe
from workbench.search.budget import Budget
from workbench.search.candidates import Candidates
from workbench.search.driver import Driver, Problem
from workbench.search.executors import LocalProcesses
from workbench.search.metrics import metric_of
from workbench.search.result import SearchResult
from workbench.search.space import SCHEMES, Space
from workbench.search.store import Store
from workbench.stages import Exported

__all__ = ["search"]


def search(
    model: Any,
    data: Any,
    metric: Any = "accuracy",
    budget: Budget | Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    calibration: Any = None,
    recipe: Recipe | None = None,
    schemes: Mapping[str, Mapping[str, Any]] | Sequence[str] | None = None,
    pruning: Sequence[float] = (0.125, 0.25),
    pruner: StructuredPruner | None = None,
    evaluations: int = 40,
    executor: Executor | None = None,
    workers: int | None = None,
    folder: Any = None,
    seed: int = 0,
    timing: float = 0.25,
    cancel: threading.Event | None = None,
    progress: bool | None = None,
) -> SearchResult:
    """Find how to compress a model under a budget: quantization of each layer, observers, pruning.

    First the same for all layers is tried. Then each layer's damage at the outputs is measured alone, which
    gives a path from floats to the smallest (or fastest) program, layer by layer in the order of damage per
    saving. Places on the path are tried, more of them where the budget ends, and then neighbours of the best.
    Every candidate is lowered to a `.pte`, run on all data in the native runtime, weighed, and timed on one
    core while nothing else of the search runs. With the same seed the same candidates are tried, unless the
    budget is about time.

    Candidates run in processes of this machine, which import the script that starts them: a script needs
    `if __name__ == "__main__":`. With a Dask cluster give `executor=client.get_executor()`; its workers must
    see the folder.

    Args:
        model: As of `wb.lower`; or a lowering, whose capture is taken.
        data: Pairs of inputs and target, or just inputs for metrics that compare with floats. Inputs as of
            `Recipe.calibration`.
        metric: `"accuracy"`, `"sqnr"` or `"cosine"` (the last two compare with floats), or
            `metric(outputs, target)` of one sample, the more the better; its mean counts.
        budget: The limits; a loss of at most 0.01 by default.
        dynamic_shapes: As of `wb.lower`.
        calibration: As of `Recipe.calibration`; by default the first 100 inputs of the data.
        recipe: What all candidates share; by default delegation to XNNPACK.
        schemes: What layers can be given: names of `SCHEMES`, or by name the fields of `QuantizationConfig`.
        pruning: Shares of channels to remove; empty for no pruning.
        pruner: How they are removed; by the norm of their weights by default.
        evaluations: How many candidates are tried at most.
        executor: Runs the candidates; not shut down.
        workers: How many processes, where no executor is given; as many as cores by default.
        folder: Keeps model, data and outcomes; a search that was ended goes on from there. Recipes refer to
            it for calibration data. A new temporary one by default.
        seed: Of the random steps.
        timing: Seconds that each candidate is timed for.
        cancel: Ends the search early when it is set, as Ctrl-C does; what was found until then is the result.
        progress: Show a bar; by default on a terminal and in a notebook.

    Raises:
        SearchError: An argument can't be used.
        ExportError: The model can't be captured.
        CalibrationError: The data does not fit the model.
    """
    limits = _budget(budget)
    if not isinstance(evaluations, int) or evaluations < 1:
        raise SearchError("evaluations is a number from 1", found=repr(evaluations))
    chosen, compares = metric_of(metric)
    if executor is None and chosen.instance is not None:
        raise SearchError(
            "the metric can't be handed to other processes",
            expected="a function at the top of a module",
            found=chosen.target,
            hint="put it into a module, or run in threads: executor=ThreadPoolExecutor(2)",
        )
    items = list(samples_of(data))
    if not items:
        raise SearchError("there is no data to measure with", expected="at least one sample", found="none")
    exported = _captured(model, items[0] if compares else _pair(items[0], 0)[0], dynamic_shapes)
    program = exported._programs["forward"]
    pairs = _pairs(program, items, compares)
    store = Store(tempfile.mkdtemp(prefix="wb-search-") if folder is None else folder)
    model_path = store.keep_model(program, exported.fingerprint)
    data_path, data_digest = store.keep_samples("data", pairs)
    base = Recipe(partitioner=XnnpackPartitioner()) if recipe is None else recipe
    _check_data(base, pruner)
    space = Space(
        base, _calibration(store, calibration, pairs), _schemes(schemes), pruner or StructuredPruner()
    )
    digest = hashlib.blake2b(
        f"{exported.fingerprint} {data_digest} {chosen.target}".encode(), digest_size=16
    ).hexdigest()
    problem = Problem(store, str(model_path), str(data_path), chosen, digest, pairs[0][0])
    where: Any = LocalProcesses(workers) if executor is None else executor
    event = cancel or threading.Event()
    driver = Driver(
        problem,
        space,
        Candidates(space.schemes, [ratio for ratio in pruning if ratio], limits, seed),
        limits,
        evaluations=evaluations,
        where=where,
        cancelled=event.is_set,
        progress=progress,
        samples=min(len(pairs), 16),
        timing=timing,
    )
    try:
        return driver.run()
    finally:
        if isinstance(where, LocalProcesses):
            where.close()


def _budget(value: Any) -> Budget:
    if value is None:
        return Budget(loss=0.01)
    if isinstance(value, Mapping):
        try:
            return Budget(**value)
        except TypeError as error:
            raise SearchError("that is no budget", found=f"{dict(value)}: {error}") from error
    if not isinstance(value, Budget):
        raise SearchError("that is no budget", expected="wb.Budget(loss=0.01)", found=repr(value))
    return value


def _schemes(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if value is None:
        return SCHEMES
    if isinstance(value, Mapping):
        return value
    unknown = [name for name in value if name not in SCHEMES]
    if unknown:
        raise SearchError("there is no such scheme", expected=", ".join(SCHEMES), found=str(unknown[0]))
    return {name: SCHEMES[name] for name in value}


def _captured(model: Any, inputs: Any, dynamic_shapes: Any) -> Exported:
    if isinstance(model, Lowering):
        exported = model.exported
    else:
        args = (
            inputs if isinstance(inputs, tuple) else tuple(inputs) if isinstance(inputs, list) else (inputs,)
        )
        keywords = dict(inputs) if isinstance(inputs, Mapping) else None
        exported, _ = pipeline.capture(
            model,
            () if keywords else args,
            kwargs=keywords,
            dynamic_shapes=dynamic_shapes,
            progress=False,
        )
    if exported.methods != ("forward",):
        raise SearchError(
            "a search is about one method", expected="forward", found=", ".join(exported.methods)
        )
    return exported


def _pair(item: Any, number: int) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise SearchError(
            f"sample {number} has no target",
            expected="a pair (inputs, target)",
            found=type(item).__name__,
            hint="metrics that compare with floats, such as sqnr, need no targets",
        )
    return item[0], item[1]


def _pairs(program: ExportedProgram, items: Sequence[Any], compares: bool) -> list[tuple[Any, Any]]:
    """Flat inputs with targets; what programs in floats answer where a metric compares with that."""
    if not compares:
        pairs = [_pair(item, number) for number, item in enumerate(items)]
        return [
            (tuple(flat_sample(program, inputs, number)), target)
            for number, (inputs, target) in enumerate(pairs)
        ]
    flat = flat_program(program).module()
    found = []
    for number, item in enumerate(items):
        inputs = tuple(flat_sample(program, item, number))
        with torch.no_grad():
            outputs = pytree.tree_leaves(flat(*inputs))
        found.append((inputs, [value for value in outputs if isinstance(value, torch.Tensor)]))
    return found


def _calibration(store: Store, value: Any, pairs: Sequence[tuple[Any, Any]]) -> Component:
    """Calibration data as a component that can be written."""
    if value is not None:
        component = Component.of(value) if isinstance(value, str | Component) or callable(value) else None
        if component is not None and component.instance is None:
            return component
    found: Iterable[Any] = [inputs for inputs, _ in pairs[:100]] if value is None else samples_of(value)
    path, _ = store.keep_samples("calibration", islice(found, 10_000))
    return Component("workbench.search.store:samples", {"path": str(path)})


def _check_data(base: Recipe, pruner: StructuredPruner | None) -> None:
    try:
        base.to_json()
        if pruner is not None:
            pruner.recipe_options()
    except RecipeError as error:
        raise SearchError(
            f"what all candidates share can't be handed to workers: {error.message}",
            found=error.found,
            hint=error.hint,
        ) from error
