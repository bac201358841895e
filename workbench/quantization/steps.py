"""The pipeline's steps of quantization: from one stage and a recipe to the next."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from workbench.backends.programs import copy_program
from workbench.progress import progress_wanted
from workbench.quantization.bias_correction import correct_bias
from workbench.quantization.calibrate import calibrate
from workbench.quantization.convert import convert
from workbench.quantization.edits import LayerEdit
from workbench.quantization.prepare import prepare
from workbench.quantization.seen import seen_of
from workbench.recipe import Recipe
from workbench.stages import Calibrated, Exported, Prepared, Quantized

__all__ = ["calibrated", "prepared", "quantized"]


def prepared(stage: Exported, recipe: Recipe) -> Prepared:
    """Plan the quantization of all methods."""
    assert recipe.quantizer is not None
    parts = {}
    for method, program in stage._programs.items():
        edits = [
            LayerEdit.from_data(edit.data) for edit in recipe.edits_of("prepare") if edit.method == method
        ]
        quantizer = recipe.quantizer.make()
        parts[method] = prepare(program, quantizer, edits=edits, equalized=recipe.quantization.equalize)
    return Prepared({name: part.program for name, part in parts.items()}, copy=copy_program, parts=parts)


def calibrated(stage: Prepared, recipe: Recipe) -> Calibrated:
    """Calibrate all methods; what was seen of a value with the same data is kept."""
    parts = {}
    for method, part in stage.parts.items():
        data = _data(part.program, recipe)
        smoothed = recipe.quantization.smooth
        if smoothed:
            parts[method] = calibrate(
                part, data, method=method, smoothed=smoothed, progress=progress_wanted()
            )
            continue
        quantizer = recipe.quantizer.target if recipe.quantizer is not None else ""
        seen = seen_of(part.origin, (recipe.calibration, recipe.quantization.equalize, quantizer))
        made = calibrate(part, data, method=method, known=seen.known(part.plan), progress=progress_wanted())
        seen.add(made)
        parts[method] = made
    return Calibrated({name: part.program for name, part in parts.items()}, copy=copy_program, parts=parts)


def quantized(stage: Calibrated, recipe: Recipe) -> Quantized:
    """Write q/dq operators into all methods."""
    programs = {}
    for method, part in stage.parts.items():
        programs[method] = convert(part)
        if recipe.quantization.correct_bias:
            data = _data(part.program, recipe)
            if data is not None:
                programs[method] = correct_bias(part.program, programs[method], data, method=method)
    return Quantized(programs, copy=copy_program, parts=stage.parts)


def _data(program: ExportedProgram, recipe: Recipe) -> Any:
    """The recipe's calibration data, or the example inputs."""
    if recipe.calibration is not None:
        return recipe.calibration.make()
    return None if program.example_inputs is None else [tuple(tree_leaves(program.example_inputs))]
