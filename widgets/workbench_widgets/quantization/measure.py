"""The accuracy of each operator: measured when it is asked for, and again where an edit changed something."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from torch.utils._pytree import tree_leaves

from workbench.errors import QuantizationError
from workbench.stages import Stage
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument, OverlayColumn
from workbench_widgets.quantization.contract import (
    QuantizationAccuracy,
    QuantizationMeasure,
    QuantizationProgress,
)
from workbench_widgets.quantization.document import operators_of, part_of

if TYPE_CHECKING:
    from workbench.quantization.accuracy.incremental import Measurement

__all__ = ["Known", "accuracy_document", "again", "known_of", "measure", "overlays"]


@dataclass(frozen=True)
class Known:
    """What was measured of one method at one stage.

    Attributes:
        measurement: The numbers.
        most: How many samples were asked for; None for all.
        seconds: How long it took.
    """

    measurement: Measurement
    most: int | None
    seconds: float


# By quantized stage and method. A stage lives as long as its program is what the lowering makes.
_known: WeakKeyDictionary[Stage, dict[str, Known]] = WeakKeyDictionary()


def known_of(context: Context, method: str) -> Known | None:
    """What was measured of a method."""
    return _known.get(context.stage("quantized"), {}).get(method)


def measure(context: Context, request: QuantizationMeasure) -> QuantizationAccuracy:
    """Measure all operators of a method with the recipe's calibration data.

    Raises:
        WorkbenchError: There is no such method, no data, or the data does not fit.
    """
    from workbench.quantization.accuracy.incremental import Measurement

    part = part_of(context, request.method)
    if not hasattr(part, "observers"):
        raise QuantizationError(
            "that is not calibrated yet", stage="accuracy", hint="show the lowering, or its stage `quantized`"
        )
    most = request.samples or None
    start = time.perf_counter()
    made = Measurement.of(
        part, _data(context, part), method=request.method, most=most, tell=_teller(context, request.method)
    )
    _keep(context, request.method, Known(made, most, time.perf_counter() - start))
    context.changed("quantization.accuracy", "overlays")
    return accuracy_document(context, request.method)


def again(context: Context, method: str, before: Known) -> Known:
    """Measure what a change of the plan reaches; the caller tells who shows it."""
    start = time.perf_counter()
    made = before.measurement.again(part_of(context, method), tell=_teller(context, method))
    known = Known(made, before.most, time.perf_counter() - start)
    _keep(context, method, known)
    return known


def _keep(context: Context, method: str, known: Known) -> None:
    _known.setdefault(context.stage("quantized"), {})[method] = known


def _teller(context: Context, method: str) -> Any:
    return lambda done, total: context.emit(
        "quantization.progress", QuantizationProgress(method, done, total)
    )


def _data(context: Context, part: Any) -> Any:
    """The recipe's calibration data; the example inputs where it has none."""
    lowering = context.lowering
    calibration = None if lowering is None else lowering.recipe.calibration
    if calibration is not None:
        return calibration.make()
    if part.program.example_inputs is None:
        raise QuantizationError(
            "there is no data to measure with",
            stage="accuracy",
            expected="calibration data in the recipe, or a capture with example inputs",
            found="neither",
            hint="wb.Recipe(quantizer=..., calibration=[(input,), ...])",
        )
    return [tuple(tree_leaves(part.program.example_inputs))]


def accuracy_document(context: Context, key: str) -> QuantizationAccuracy:
    """What was measured; empty columns where nothing was. Key and errors as of `quantization_document`."""
    method = key or context.methods[0]
    names = operators_of(context, method)
    known = known_of(context, method)
    available = _available(context)
    none = np.zeros(0)
    if known is None:
        return QuantizationAccuracy(method, False, 0, available, None, 0.0, 0, none, none, none, none)
    report = known.measurement.report
    affected = len(known.measurement.affected.intersection(names))
    columns = [
        _aligned(report.table, name, names) for name in ("sqnr_db", "own_db", "inherited_db", "saturation")
    ]
    db = report.sqnr_db if math.isfinite(report.sqnr_db) else None
    return QuantizationAccuracy(
        method, True, report.samples, available, db, known.seconds, affected, *columns
    )


def _available(context: Context) -> int:
    lowering = context.lowering
    calibration = None if lowering is None else lowering.recipe.calibration
    if calibration is None:
        return 1
    data = calibration.make()
    return len(data) if isinstance(data, Sized) and not isinstance(data, Mapping) else -1


def _aligned(table: Any, column: str, names: Iterable[str]) -> Any:
    values = dict(zip(table["node"], table[column], strict=True))
    found = (values.get(name) for name in names)
    return np.array([math.nan if value is None else float(value) for value in found], np.float64)


# ---- colours of the graph ----------------------------------------------------------------------------------

_OVERLAYS = (
    ("quantization_own", "Own error (SQNR)", "own_db", "dB", "min"),
    ("quantization_inherited", "Inherited error (SQNR)", "inherited_db", "dB", "min"),
    ("quantization_sqnr", "Whole error (SQNR)", "sqnr_db", "dB", "min"),
    ("quantization_saturation", "Saturation", "saturation", "share", "max"),
)


def overlays(context: Context, document: GraphDocument) -> Iterator[OverlayColumn]:
    """What was measured, by the names of the float nodes, which the quantized graph keeps."""
    if document.stage != "quantized":
        return
    known = known_of(context, document.method)
    if known is None:
        return
    table = known.measurement.report.table
    names = list(document.name)
    for name, title, column, unit, aggregate in _OVERLAYS:
        values = _aligned(table, column, names)
        if not np.isnan(values).all():
            yield OverlayColumn(name, title, unit, aggregate, values)  # type: ignore[arg-type]
