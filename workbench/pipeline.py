"""The only ordered list of the steps between a model and its program.

A step is a pure function of the stage before it and its part of the recipe. It runs again only if one of them
changed: the stage by its fingerprint, the part of the recipe by comparison. Fingerprints are measured only
when something is lowered a second time, so that a first lowering costs nothing extra.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram

from workbench import display as display  # it makes the stages show themselves
from workbench.backends import PartitionResult, lower_partitions, partition
from workbench.backends.base import Partitioner
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.editor import PartitionEditor
from workbench.backends.edits import PartitionEdit, capabilities_of
from workbench.backends.programs import copy_program
from workbench.collecting import uncollected
from workbench.edge.config import EdgeCompileConfig
from workbench.emit import ExecutorchBackendConfig, MemoryPlanning, emit
from workbench.errors import RecipeError, WorkbenchError
from workbench.export import export
from workbench.managers import EdgeProgramManager
from workbench.passes.preserve import check_preserved, left_whole, preserved_operators
from workbench.passes.to_edge import to_edge_program
from workbench.progress import showing, shows
from workbench.pruning import Pruner
from workbench.recipe import Edit, Recipe
from workbench.serialize import write_program
from workbench.stages import (
    Calibrated,
    Edge,
    Exported,
    Lowered,
    Partitioned,
    Planned,
    Prepared,
    Program,
    Pruned,
    Quantized,
    Stage,
)

__all__ = ["STEPS", "Result", "Step", "capture", "partition_editors", "partitioners_of", "run", "steps_of"]


@dataclass(frozen=True)
class Step:
    """One arrow between two stages.

    Attributes:
        name: Short name: the key of its part of the recipe, and of its result.
        doing: What is shown while it runs.
        function: The stage before and the recipe -> the stage.
        depends: The stage before and the recipe -> what the step depends on beside the stage, comparable.
        wanted: Whether a recipe has this step at all.
    """

    name: str
    doing: str
    function: Callable[[Any, Recipe], Stage]
    depends: Callable[[Any, Recipe], Any]
    wanted: Callable[[Recipe], bool] = lambda recipe: True


@dataclass(frozen=True)
class Result:
    """What a run of the pipeline made.

    Attributes:
        recipe: The recipe that was followed.
        stages: By step name, `"export"` first.
        depends: By step name, what the step depended on beside its input.
        seconds: By step name, how long it took; only of the steps that ran.
    """

    recipe: Recipe
    stages: Mapping[str, Stage]
    depends: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def ran(self) -> tuple[str, ...]:
        """The steps that ran, in order; the others kept the stage of the result before."""
        return tuple(self.seconds)


def capture(
    model: Any,
    example_inputs: tuple[Any, ...] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    progress: bool | None = None,
) -> tuple[Exported, float]:
    """Export a model.

    Args:
        model: A module, TorchScript, an exported program, the path of a saved one, or several exported
            programs by method name.
        example_inputs: Positional example inputs.
        kwargs: Keyword example inputs.
        dynamic_shapes: As of `torch.export.export`.
        progress: Show what runs; by default on a terminal and in a notebook.

    Returns:
        The stage, and how many seconds it took.

    Raises:
        ExportError: The model can't be captured.
    """
    start = time.perf_counter()
    with _shown(progress, 1) as announce:
        announce("exporting")
        if isinstance(model, Mapping):
            programs = {name: _captured(item, (), None, None) for name, item in model.items()}
        else:
            programs = {"forward": _captured(model, example_inputs, kwargs, dynamic_shapes)}
    display.prepare()
    return Exported(programs, copy=copy_program), time.perf_counter() - start


def run(
    exported: Exported, recipe: Recipe, *, before: Result | None = None, progress: bool | None = None
) -> Result:
    """Run the steps from an exported program to the file.

    Args:
        exported: The first stage.
        recipe: The choices.
        before: A result whose stages are kept where nothing that they depend on changed.
        progress: Show what runs; by default on a terminal and in a notebook.

    Raises:
        WorkbenchError: A step failed; the kind tells which sort, the field `stage` where.
    """
    steps = steps_of(recipe)
    stages: dict[str, Stage] = {"export": exported}
    depends: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    last: Stage = exported
    previous = "export"
    with _shown(progress, len(steps)) as announce, showing(progress), uncollected():
        for step in steps:
            announce(step.doing)
            # A step that was skipped before is another input, even where the names agree.
            depends[step.name] = (previous, step.depends(last, recipe))
            known = _kept(step, previous, last, depends[step.name], before)
            if known is None:
                start = time.perf_counter()
                known = _ran(step, last, recipe)
                seconds[step.name] = time.perf_counter() - start
            last = stages[step.name] = known
            previous = step.name
    return Result(recipe, MappingProxyType(stages), MappingProxyType(depends), MappingProxyType(seconds))


def _captured(model: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> ExportedProgram:
    inputs = args if isinstance(args, tuple) else (args,)
    if isinstance(args, list):
        inputs = tuple(args)
    if isinstance(model, torch.nn.Module) and _is_eager_quantized(model):
        from workbench.quantization.eager import from_eager

        model = from_eager(model)
    # The caller's own program stays the caller's: the stage works on a copy of its graph.
    own = copy_program(model) if isinstance(model, ExportedProgram) else model
    return export(own, inputs, kwargs, dynamic_shapes)


def _is_eager_quantized(model: torch.nn.Module) -> bool:
    """Whether some module is one of `torch.ao.quantization.convert`, whose weights export can't see into."""
    homes = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.")
    if isinstance(model, torch.jit.ScriptModule):
        return False
    return any(type(module).__module__.startswith(homes) for module in model.modules())


def _kept(step: Step, previous: str, stage: Stage, depends: Any, before: Result | None) -> Stage | None:
    """The stage of the result before, if the step would make it again."""
    if before is None or before.depends.get(step.name) != depends:
        return None
    known = before.stages.get(previous)
    if known is not stage and (known is None or known.fingerprint != stage.fingerprint):
        return None
    return before.stages.get(step.name)


def _ran(step: Step, stage: Stage, recipe: Recipe) -> Stage:
    try:
        return step.function(stage, recipe)
    except WorkbenchError as error:
        error.stage = error.stage or step.name
        raise


# ---- the steps ---------------------------------------------------------------------------------------------


def _edge_config(recipe: Recipe) -> EdgeCompileConfig:
    options = recipe.edge
    return EdgeCompileConfig(
        _check_ir_validity=options.verify,
        _skip_dim_order=not options.dim_order,
        fold_batch_norm=options.fold_batch_norm,
        fold_constants_limit=options.fold_constants_limit,
    )


def partitioners_of(recipe: Recipe) -> list[Partitioner]:
    """The recipe's partitioners, made.

    Raises:
        RecipeError: A part of it makes something else.
    """
    made = []
    for component in recipe.partitioner:
        found = component.make()
        if not isinstance(found, Partitioner):
            raise RecipeError(
                f"{component.target} makes no partitioner",
                expected="an object of a subclass of Partitioner",
                found=type(found).__name__,
            )
        made.append(found)
    return made


def _prune(stage: Exported, recipe: Recipe) -> Pruned:
    programs = dict(stage._programs)
    reports: dict[str, list[Any]] = {name: [] for name in programs}
    for component in recipe.pruning:
        pruner = component.make()
        if not isinstance(pruner, Pruner):
            raise RecipeError(
                f"{component.target} makes no pruner",
                expected="an object of a subclass of workbench.pruning.Pruner",
                found=type(pruner).__name__,
            )
        for name, program in programs.items():
            programs[name], report = pruner.prune(program)
            reports[name].append(report)
    return Pruned(programs, copy=copy_program, reports={name: tuple(made) for name, made in reports.items()})


def _prepare(stage: Exported, recipe: Recipe) -> Stage:
    from workbench.quantization.steps import prepared  # it needs torchao

    return prepared(stage, recipe)


def _calibrate(stage: Prepared, recipe: Recipe) -> Stage:
    from workbench.quantization.steps import calibrated

    return calibrated(stage, recipe)


def _quantize(stage: Calibrated, recipe: Recipe) -> Stage:
    from workbench.quantization.steps import quantized

    return quantized(stage, recipe)


def _quantizes(recipe: Recipe) -> bool:
    return recipe.quantizer is not None


def _edge(stage: Exported | Quantized, recipe: Recipe) -> Edge:
    partitioners = partitioners_of(recipe)
    config = _edge_config(recipe)
    passes = [component.make() for component in recipe.passes]
    cache: dict[Any, torch.Tensor] = {}  # folded constants, shared between the methods
    kept: set[Any] = set()
    programs = {}
    for name, program in stage._programs.items():
        everywhere, somewhere = preserved_operators(program, partitioners)
        kept.update(everywhere, somewhere)
        edge, _ = to_edge_program(program, config, preserve=everywhere, preserve_at=somewhere, cache=cache)
        # Set once here, they stay the same in all later stages: by them a trace finds its way back.
        ensure_debug_handles(edge)
        programs[name] = edge
    manager = EdgeProgramManager(programs, compile_config=config, preserved=frozenset(kept))
    if passes:
        manager = manager.transform(passes)
        for name in programs:
            ensure_debug_handles(manager.exported_program(name))
    programs = {name: manager.exported_program(name) for name in programs}
    return Edge(programs, copy=copy_program, kept=frozenset(kept))


def _edge_depends(stage: Exported | Quantized, recipe: Recipe) -> Any:
    partitioners = partitioners_of(recipe)
    kept = [preserved_operators(program, partitioners) for program in stage._programs.values()]
    return recipe.part("edge"), kept


def partition_editors(stage: Edge, recipe: Recipe) -> dict[str, PartitionEditor]:
    """By method an editor of what the recipe's partitioners decide, before its edits are made.

    Each partitioner sees what the ones before it left.

    Raises:
        PartitionError: A partitioner changed the graph, or its tags are illegal.
    """
    capabilities = capabilities_of(partitioners_of(recipe))
    return {
        name: PartitionEditor(
            PartitionResult(
                copy_program(result.tagged_exported_program),
                dict(result.partition_tags),
                list(result.reasons),
            ),
            capabilities,
        )
        for name, result in _decided(stage, recipe).items()
    }


# By edge stage, the partitioners that were asked last and what they decided. Edits begin with copies of that:
# a partitioner may take longer than everything else in a lowering.
_decisions: WeakKeyDictionary[Edge, tuple[Any, dict[str, PartitionResult]]] = WeakKeyDictionary()


def _decided(stage: Edge, recipe: Recipe) -> dict[str, PartitionResult]:
    """By method what the partitioners decide; to be read, not written."""
    asked, results = _decisions.get(stage, (None, {}))
    if asked != recipe.partitioner:
        chosen = partitioners_of(recipe)
        results = {name: partition(program, chosen) for name, program in stage._programs.items()}
        _decisions[stage] = (recipe.partitioner, results)
    return results


def _partition(stage: Edge, recipe: Recipe) -> Partitioned:
    """The stage holds the tags of all partitioners, as edited."""
    results = _decided(stage, recipe)
    if edits := recipe.edits_of("partition"):
        editors = partition_editors(stage, recipe)
        for edit in edits:
            _edit(edit, editors)
        results = {name: editor.result for name, editor in editors.items()}
    return Partitioned(
        {name: result.tagged_exported_program for name, result in results.items()},
        copy=copy_program,
        tags={name: dict(result.partition_tags) for name, result in results.items()},
        reasons={name: tuple(result.reasons) for name, result in results.items()},
        kept=stage.kept,
    )


def _edit(edit: Edit, editors: Mapping[str, PartitionEditor]) -> None:
    """Make one edit on the partitions, or say why it can't be made."""
    wanted = PartitionEdit.from_data(edit.data)
    if edit.method not in editors:
        raise RecipeError(
            "an edit is about a method that is not there", found=edit.method, expected=", ".join(editors)
        )
    outcome = editors[edit.method].apply(wanted)
    missing = [*map(str, outcome.missing), *outcome.missing_nodes]
    if not outcome.applied or missing:
        raise RecipeError(
            "an edit could not be honoured" + (f": {outcome.reason}" if outcome.reason else ""),
            stage="partition",
            expected=str(dict(edit.data)),
            found=f"no operator with the handle or name {', '.join(missing)}" if missing else None,
            hint=outcome.hint
            or "lowering.edge.table shows the handles, lowering.partitioned.table the tags before the edit",
        )


def _lower(stage: Partitioned, recipe: Recipe) -> Lowered:
    programs = dict(stage._programs)
    tagged = {
        name: PartitionResult(copy_program(program), dict(stage.tags[name]), list(stage.reasons[name]))
        for name, program in programs.items()
        if stage.tags[name] or stage.reasons[name]
    }
    if tagged:
        programs.update(lower_partitions(tagged))
    config = _edge_config(recipe)
    if recipe.edits_of("partition"):
        # A hand may take out of a partition what was kept whole for it.
        programs = {name: _decompose_left(program, stage.kept, config) for name, program in programs.items()}
    EdgeProgramManager(programs, compile_config=config, preserved=stage.kept, stage="lowered")  # verifies
    for name, program in programs.items():
        check_preserved(name, program, stage.kept)
    return Lowered(programs, copy=copy_program)


def _decompose_left(
    program: ExportedProgram, kept: Collection[OpOverload], config: EdgeCompileConfig
) -> ExportedProgram:
    """The program with the operators decomposed that were kept whole for a partition and stand in none."""
    if not left_whole(program, kept):
        return program
    decomposed, _ = to_edge_program(program, config)
    ensure_debug_handles(decomposed)
    return decomposed


def _plan(stage: Lowered, recipe: Recipe) -> Planned:
    programs = {name: copy_program(program) for name, program in stage._programs.items()}
    memory = recipe.memory
    planning = MemoryPlanning(
        planner=memory.planner,
        alignment=memory.alignment,
        plan_inputs=memory.plan_inputs,
        plan_outputs=memory.plan_outputs,
        arena_limits=dict(memory.arena_limits),
        arenas=dict(memory.arenas),
        pins={name: (arena, offset) for name, (arena, offset) in memory.pins.items()},
    )
    emitted = emit(programs, ExecutorchBackendConfig(memory_planning=planning))
    return Planned(programs, copy=copy_program, report=emitted.memory_report, emitted=emitted)


def _program(stage: Planned, recipe: Recipe) -> Program:
    del recipe
    return Program(emitted=stage.emitted, serialized=write_program(stage.emitted.program))


def _by_name(name: str) -> Callable[[Any, Recipe], Any]:
    return lambda stage, recipe: recipe.part(name)


STEPS: tuple[Step, ...] = (
    Step("prune", "pruning", _prune, _by_name("prune"), lambda recipe: bool(recipe.pruning)),
    Step("prepare", "planning the quantization", _prepare, _by_name("prepare"), _quantizes),
    Step("calibrate", "calibrating", _calibrate, _by_name("calibrate"), _quantizes),
    Step("quantize", "quantizing", _quantize, _by_name("quantize"), _quantizes),
    Step("edge", "to the edge dialect", _edge, _edge_depends),
    Step("partition", "partitioning", _partition, _by_name("partition")),
    Step("lower", "lowering to backends", _lower, lambda _, recipe: (recipe.edge, recipe.partitioner)),
    Step("plan", "planning memory", _plan, _by_name("plan")),
    Step("program", "writing the program", _program, _by_name("program")),
)


def steps_of(recipe: Recipe) -> tuple[Step, ...]:
    """The steps that a recipe asks for, in order."""
    return tuple(step for step in STEPS if step.wanted(recipe))


@contextmanager
def _shown(progress: bool | None, total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar that names the running step."""
    if not shows(progress):
        yield lambda text: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, leave=False, bar_format="{desc} {bar} {elapsed}") as bar:
        started = False

        def announce(text: str) -> None:
            nonlocal started
            bar.update(int(started))
            started = True
            bar.set_description_str(text)

        yield announce
        bar.update(1)
