"""The pipeline's steps of quantization: from one stage and a recipe to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from workbench.backends.programs import copy_program
from workbench.quantization.calibrate import calibrate
from workbench.quantization.convert import convert
from workbench.quantization.edits import LayerEdit
from workbench.quantization.plan import Plan
from workbench.quantization.prepare import prepare
from workbench.quantization.programs import CalibratedProgram, PreparedProgram
from workbench.recipe import Recipe
from workbench.stages import Calibrated, Exported, Prepared, Quantized

__all__ = ["calibrated", "prepared", "quantized"]

# By exported stage and what else decides on the values: the observers of the last calibration. Where the plan
# changes but not the values, what was seen of them is kept.
_seen: WeakKeyDictionary[Any, tuple[Any, dict[str, list[Any]]]] = WeakKeyDictionary()


def prepared(stage: Exported, recipe: Recipe) -> Prepared:
    """Plan the quantization of all methods."""
    assert recipe.quantizer is not None
    parts = {}
    for method, program in stage._programs.items():
        edits = [
            LayerEdit.from_data(edit.data) for edit in recipe.edits_of("prepare") if edit.method == method
        ]
        parts[method] = prepare(program, recipe.quantizer.make(), edits=edits)
    return Prepared({name: part.program for name, part in parts.items()}, copy=copy_program, parts=parts)


def calibrated(stage: Prepared, recipe: Recipe) -> Calibrated:
    """Calibrate all methods."""
    data = None if recipe.calibration is None else recipe.calibration.make()
    parts = {}
    for method, part in stage.parts.items():
        given = _example(part.program) if data is None else data
        parts[method] = calibrate(part, given, method=method)
    return Calibrated({name: part.program for name, part in parts.items()}, copy=copy_program, parts=parts)


def quantized(stage: Calibrated, recipe: Recipe) -> Quantized:
    """Write q/dq operators into all methods."""
    programs = {name: convert(part) for name, part in stage.parts.items()}
    return Quantized(programs, copy=copy_program, parts=stage.parts)


def _example(program: ExportedProgram) -> Any:
    """The example inputs as calibration data."""
    return None if program.example_inputs is None else [tuple(tree_leaves(program.example_inputs))]
