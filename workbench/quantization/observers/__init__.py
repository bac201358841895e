"""Observers: what of the values that were seen is represented. One file each."""

from __future__ import annotations

from workbench.errors import QuantizationError
from workbench.quantization.observers.base import Observer, ObserverReport
from workbench.quantization.observers.dynamic import Dynamic
from workbench.quantization.observers.histogram import Histogram
from workbench.quantization.observers.min_max import MinMax
from workbench.quantization.observers.moving_average import MovingAverage
from workbench.quantization.observers.mse import MeanSquaredError
from workbench.quantization.observers.percentile import Percentile
from workbench.quantization.observers.weights import Weights

__all__ = ["OBSERVERS", "Observer", "ObserverReport", "named"]

OBSERVERS: dict[str, type[Observer]] = {
    kind.kind: kind
    for kind in (MinMax, MovingAverage, Histogram, Percentile, MeanSquaredError, Weights, Dynamic)
}


def named(name: str) -> type[Observer]:
    """The observer of a short name.

    Raises:
        QuantizationError: There is none.
    """
    if name not in OBSERVERS:
        raise QuantizationError("there is no such observer", expected=", ".join(OBSERVERS), found=repr(name))
    return OBSERVERS[name]
