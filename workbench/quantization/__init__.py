"""Quantization through PT2E: quantizer, calibration, conversion, and a report of what became of each node.

    prepared = prepare(exported_program, quantizer)
    calibrated = calibrate(prepared, data)
    quantized = convert(calibrated)

The only package that imports torchao.
"""

from __future__ import annotations

from workbench.errors import CalibrationError, CalibrationWarning, QuantizationError
from workbench.quantization.accuracy import AccuracyReport, Sensitivity, accuracy, sensitivity
from workbench.quantization.bias_correction import correct_bias
from workbench.quantization.calibrate import calibrate, load_calibration, save_calibration
from workbench.quantization.config import QuantizationConfig, get_symmetric_quantization_config
from workbench.quantization.convert import convert
from workbench.quantization.edits import LayerEdit
from workbench.quantization.equalize import equalize
from workbench.quantization.observers import OBSERVERS, ObserverReport
from workbench.quantization.plan import Decision, Group, Plan, Point, Spec
from workbench.quantization.prepare import prepare
from workbench.quantization.programs import CalibratedProgram, PreparedProgram
from workbench.quantization.qat import TrainingProgram, prepare_qat
from workbench.quantization.quantizer import XNNPACKQuantizer
from workbench.quantization.report import with_backend
from workbench.quantization.smooth import smooth, smoothable

__all__ = [
    "OBSERVERS",
    "AccuracyReport",
    "CalibratedProgram",
    "CalibrationError",
    "CalibrationWarning",
    "Decision",
    "Group",
    "LayerEdit",
    "ObserverReport",
    "Plan",
    "Point",
    "PreparedProgram",
    "QuantizationConfig",
    "QuantizationError",
    "Sensitivity",
    "Spec",
    "TrainingProgram",
    "XNNPACKQuantizer",
    "accuracy",
    "calibrate",
    "convert",
    "correct_bias",
    "equalize",
    "get_symmetric_quantization_config",
    "load_calibration",
    "prepare",
    "prepare_qat",
    "save_calibration",
    "sensitivity",
    "smooth",
    "smoothable",
    "with_backend",
]
