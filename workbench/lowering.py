"""From a model to a program in one call, with every stage kept: `wb.lower`."""

from __future__ import annotations

import html
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pandas as pd
import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from workbench import display, pipeline, provenance
from workbench.backends.partitioning import unfused
from workbench.emit import ir
from workbench.errors import ExecutionError, QuantizationError, RecipeError
from workbench.inspector import Symbols, Trace
from workbench.recipe import Recipe
from workbench.run import Run, Runnable, new_trace
from workbench.selection import Selection
from workbench.serialize.etrecord import generate_etrecord
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

S = TypeVar("S", bound=Stage)
_LOG = logging.getLogger(__name__)

__all__ = ["Lowering", "Run", "lower", "new_trace"]


def lower(
    model: Any,
    example_inputs: tuple[Any, ...] = (),
    *,
    recipe: Recipe | None = None,
    dynamic_shapes: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Lowering:
    """Capture a model and lower it to a program.

    Args:
        model: A module in evaluation mode, TorchScript, an exported program, the path of a saved one, or
            several exported programs by method name.
        example_inputs: Positional example inputs. Their sizes and dtypes hold for all runs, except what
            `dynamic_shapes` frees.
        recipe: All choices; by default nothing is delegated.
        dynamic_shapes: As of `torch.export.export`. Give each `torch.export.Dim` a `max`: memory is planned
            for it.
        kwargs: Keyword example inputs.
        progress: Show the running stage; by default on a terminal and in a notebook.

    Returns:
        The stages, the program, and the means to run it.

    Raises:
        ExportError: The model can't be captured.
        WorkbenchError: A later step failed; its kind and its field `stage` say which.
    """
    chosen = recipe if recipe is not None else Recipe()
    _check_recipe(chosen)
    exported, seconds = pipeline.capture(
        model, example_inputs, kwargs=kwargs, dynamic_shapes=dynamic_shapes, progress=progress
    )
    return Lowering(pipeline.run(exported, chosen, progress=progress), seconds)


class _Read:
    """What `Symbols` asks of a lowering, without copies of the graphs, which it only reads."""

    def __init__(self, lowering: Lowering, stage: Stage) -> None:
        self.methods = stage.methods
        self.debug_handle_map = lowering.debug_handle_map
        self.delegate_map = lowering.delegate_map
        self.instruction_id_to_num_outs_map = lowering.instruction_id_to_num_outs_map
        self._programs = stage._programs

    def exported_program(self, method: str) -> ExportedProgram:
        return self._programs[method]


_symbols: WeakKeyDictionary[Planned, Symbols] = WeakKeyDictionary()


def _check_recipe(recipe: Any) -> None:
    if not isinstance(recipe, Recipe):
        raise RecipeError("that is no recipe", expected="workbench.Recipe", found=type(recipe).__name__)


class Lowering(Runnable):
    """A lowered model: its stages and its program.

    Made by `lower` and `relower`; not by hand.

    Attributes:
        recipe: The recipe that was followed.
        ran: The steps that ran for this lowering, or for its last update; those that are not named kept the
            stage of the lowering before.
        seconds: How long each step that ran took.
    """

    recipe: Recipe
    seconds: Mapping[str, float]
    ran: tuple[str, ...]

    def __init__(
        self,
        result: pipeline.Result,
        export_seconds: float | None = None,
        *,
        selection: Selection | None = None,
    ) -> None:
        first = next(iter(result.stages["export"].methods), None)
        super().__init__(Selection(first) if selection is None else selection)
        self._listeners: dict[object, Callable[[Lowering], object]] = {}
        self._take(result, export_seconds)

    def _take(self, result: pipeline.Result, export_seconds: float | None = None) -> None:
        self._result = result
        self._loaded.clear()
        self.recipe = result.recipe
        exporting = {} if export_seconds is None else {"export": export_seconds}
        self.seconds = MappingProxyType({**exporting, **result.seconds})
        self.ran = tuple(self.seconds)

    @property
    def exported(self) -> Exported:
        """What `torch.export` captured."""
        return self._stage("export", Exported)

    @property
    def pruned(self) -> Pruned:
        """The exported program after the recipe's pruners.

        Raises:
            RecipeError: The recipe has none.
        """
        if "prune" not in self._result.stages:
            raise RecipeError("nothing was pruned", hint="wb.Recipe(pruning=wb.StructuredPruner(0.3))")
        return self._stage("prune", Pruned)

    @property
    def prepared(self) -> Prepared:
        """What shall be quantized, and how; raises `QuantizationError` where there is no quantizer."""
        return self._quantization("prepare", Prepared)

    @property
    def calibrated(self) -> Calibrated:
        """What observers saw of the values; raises as `prepared`."""
        return self._quantization("calibrate", Calibrated)

    @property
    def quantized(self) -> Quantized:
        """The program with quantize and dequantize operators; raises as `prepared`."""
        return self._quantization("quantize", Quantized)

    @property
    def quantization_report(self) -> pd.DataFrame:
        """A row for each operator: quantized (how), float (why), or quantized and yet not fused (why).

        Raises:
            QuantizationError: This lowering is not quantized.
        """
        report = self.quantized.report
        from workbench.quantization.report import with_backend  # it needs torchao

        tables = []
        for method in self.quantized.methods:
            program = self.partitioned._programs[method]
            reasons = [*self.partitioned.reasons[method], *unfused(self.lowered._programs[method])]
            tables.append(with_backend(report[report["method"] == method], program, reasons))
        return pd.concat(tables, ignore_index=True)

    def _quantization(self, step: str, kind: type[S]) -> S:
        if step not in self._result.stages:
            raise QuantizationError(
                "this lowering is not quantized",
                stage=step,
                hint="give the recipe a quantizer: wb.Recipe(quantizer=wb.XNNPACKQuantizer()...)",
            )
        return self._stage(step, kind)

    @property
    def edge(self) -> Edge:
        """The program in the edge dialect."""
        return self._stage("edge", Edge)

    @property
    def partitioned(self) -> Partitioned:
        """Which node goes to which backend, and why the others don't."""
        return self._stage("partition", Partitioned)

    @property
    def lowered(self) -> Lowered:
        """The program with calls of delegates."""
        return self._stage("lower", Lowered)

    @property
    def plan(self) -> Planned:
        """Where each tensor lives, and when."""
        return self._stage("plan", Planned)

    @property
    def program(self) -> Program:
        """The file."""
        return self._stage("program", Program)

    def _stage(self, step: str, kind: type[S]) -> S:
        stage = self._result.stages[step]
        assert isinstance(stage, kind)
        stage._taken_from(self)
        return stage

    def has(self, stage: Stage) -> bool:
        """Whether this is one of the lowering's stages."""
        return any(own is stage for own in self._result.stages.values())

    def relower(self, recipe: Recipe, *, progress: bool | None = None) -> Lowering:
        """Lower the same capture with another recipe; only what the change concerns runs again.

        Raises:
            WorkbenchError: A step failed.
        """
        return Lowering(self._lowered_again(recipe, progress), selection=self._selection)

    def update(self, recipe: Recipe, *, progress: bool | None = None) -> Lowering:
        """Lower the same capture with another recipe, in place: the stages of this object are new then.

        Methods that were loaded are let go; runs keep the program that they ran.

        Returns:
            This object.

        Raises:
            WorkbenchError: A step failed; nothing has changed then.
        """
        self._take(self._lowered_again(recipe, progress))
        errors = []
        for key, callback in list(self._listeners.items()):
            if key in self._listeners:
                try:
                    callback(self)
                except Exception as error:
                    errors.append(error)
        for other in errors[1:]:
            _LOG.error("a listener of a lowering failed", exc_info=other)
        if errors:
            raise errors[0]
        return self

    def _lowered_again(self, recipe: Recipe, progress: bool | None) -> pipeline.Result:
        _check_recipe(recipe)
        return pipeline.run(self.exported, recipe, before=self._result, progress=progress)

    def on_change(self, callback: Callable[[Lowering], object]) -> Callable[[], None]:
        """Call back with this lowering after each `update`.

        What a callback raises is raised by `update` after all others were called.

        Returns:
            A function that ends it.
        """
        key = object()
        self._listeners[key] = callback

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    # ---- looking at it -------------------------------------------------------------------------------------

    def _source(self) -> bytes:
        return self.program.buffer

    def _program(self) -> ir.Program:
        program: ir.Program = self.program.emitted.program
        return program

    def _origin(self) -> Callable[[], Lowering]:
        result, selection = self._result, self._selection
        return lambda: self if self._result is result else Lowering(result, selection=selection)

    def _names(self) -> Iterator[tuple[str, Mapping[str, frozenset[int]]]]:
        """Handles by node name, of the selected method first, and there of the earliest stage."""
        for method in self._methods_first():
            for stage in self._result.stages.values():
                program = stage._programs.get(method)
                if program is not None:
                    nodes = provenance.nodes_of(program.graph_module)
                    yield method, {node.name: provenance.handles(node) for node in nodes}

    def _modules(self) -> Iterator[tuple[str, Mapping[str, frozenset[int]]]]:
        """Handles of the operators of each module, those of the modules in it included."""
        for method in self._methods_first():
            found: dict[str, set[int]] = {}
            program = self.exported._programs[method]
            for source in provenance.source_map(program):
                path = source.module_path
                while path:
                    found.setdefault(path, set()).add(source.handle)
                    path = path.rpartition(".")[0]
            yield method, {path: frozenset(handles) for path, handles in found.items()}

    def _methods_first(self) -> list[str]:
        chosen = self._selection.method
        return sorted(self.methods, key=lambda name: name != chosen)

    def example_inputs(self, method: str = "forward") -> list[Any]:
        """Inputs that a method can be run with: copies of the example that it was captured with.

        Raises:
            ExecutionError: There is no such method, or its capture came without an example.
        """
        program = self.exported._programs.get(method)
        if program is None:
            raise ExecutionError(
                f"there is no method '{method}'", code="InvalidArgument", expected=", ".join(self.methods)
            )
        if program.example_inputs is None:
            raise ExecutionError(
                f"method '{method}' was captured without example inputs",
                code="InvalidState",
                hint="give the inputs",
            )
        leaves = tree_leaves(program.example_inputs)
        return [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    @property
    def why_not(self) -> pd.DataFrame:
        """For each node that stayed with the runtime, why.

        Columns: method, node, target, source, reason, eligible_if, by. Empty where no partitioner was asked.
        """
        columns = ["node", "target", "source", "reason", "eligible_if", "by"]
        rows = [
            (method, *(getattr(reason, column) for column in columns))
            for method, reasons in self.partitioned.reasons.items()
            for reason in reasons
        ]
        return pd.DataFrame(rows, columns=["method", *columns])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the `.pte` file."""
        self.program.save(path)

    def save_etrecord(self, path: str | os.PathLike[str]) -> None:
        """Write the ETRecord that joins a trace with this program, for our Inspector and ExecuTorch's."""
        programs = {name: self.edge.exported_program(name) for name in self.edge.methods}
        generate_etrecord(path, programs, self, self.exported.exported_program(self.methods[0]))

    # ---- running -------------------------------------------------------------------------------------------

    def execute(self, *inputs: Any, method: str = "forward", trace: Trace | None = None) -> Any:
        """Run a method once and return its outputs as a list; for more, see `run`."""
        loaded = self.load_method(method)
        return loaded.execute(list(inputs), trace=None if trace is None else trace.session)

    def new_trace(self, *, values: bool = False) -> Trace:
        """A trace that several executions may write to; `values` records what instructions write, too."""
        return new_trace(values=values)

    def profile(self, trace: Trace, *, method: str = "forward") -> Run:
        """A trace that executions of this program wrote, as a run without outputs of its own."""
        trace.collect()
        return Run(self, method, trace)

    # ---- what the Inspector asks of a program --------------------------------------------------------------

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return self.program.methods

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The planned program of a method, as a copy."""
        return self.plan.exported_program(method_name)

    @property
    def debug_handle_map(self) -> Any:
        """By method and instruction the debug handles of the nodes that it stands for."""
        return self.plan.emitted.debug_handle_map

    @property
    def delegate_map(self) -> Any:
        """By method and instruction what a delegate says about its inside."""
        return self.plan.emitted.delegate_map

    @property
    def instruction_id_to_num_outs_map(self) -> Any:
        """By method and instruction how many results it has."""
        return self.plan.emitted.instruction_id_to_num_outs

    def _static_html(self) -> str:
        parts = []
        for step, stage in self._result.stages.items():
            title = html.escape(repr(stage).strip("<>"))
            took = f" ({self.seconds[step]:.2f} s)" if step in self.seconds else ""
            parts.append(f"<details><summary>{title}{took}</summary>{display.picture(stage)}</details>")
        return f"<div><p><b>{html.escape(repr(self).strip('<>'))}</b></p>{''.join(parts)}</div>"

    @property
    def symbols(self) -> Symbols:
        """From the instructions of the program back to nodes, modules and source lines."""
        plan = self.plan
        if plan not in _symbols:
            _symbols[plan] = Symbols.from_manager(_Read(self, plan), _Read(self, self.edge))
        return _symbols[plan]

    def __repr__(self) -> str:
        steps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
        return (
            f"<Lowering of {', '.join(self.methods)}: {len(self.program.serialized.buffer):,} bytes; {steps}>"
        )
