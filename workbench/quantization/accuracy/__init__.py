"""Where the accuracy of a quantized program goes.

report = accuracy(lowering, data)          # own and inherited error of each node
found = sensitivity(lowering, data)        # what if only this layer were quantized, or all but this one
"""

from __future__ import annotations

from workbench.quantization.accuracy.report import AccuracyReport, accuracy
from workbench.quantization.accuracy.sensitivity import Sensitivity, sensitivity
from workbench.quantization.accuracy.simulation import Simulation

__all__ = ["AccuracyReport", "Sensitivity", "Simulation", "accuracy", "sensitivity"]
