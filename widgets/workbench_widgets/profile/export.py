"""A profile as a file: for Perfetto, for a spreadsheet, for ExecuTorch's Inspector."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import os
from pathlib import Path

import numpy as np

from workbench.errors import TraceError
from workbench.inspector import Inspector, Trace
from workbench.inspector.perfetto import timeline
from workbench.lowering import Run
from workbench.serialize.etdump import write_etdump
from workbench_widgets.profile.contract import ExportedFile, ProfileDocument
from workbench_widgets.profile.measured import complete

__all__ = ["export", "save"]

_MIMES = {"perfetto": "application/json", "csv": "text/csv", "etdump": "application/octet-stream"}
_SUFFIXES = {"perfetto": ".perfetto.json", "csv": ".csv", "etdump": ".etdp"}
_MOST_EVENTS = 1 << 16
_COLUMNS = (
    *("name", "operator", "backend", "module", "source", "shape", "parent", "chain", "instruction"),
    *("count", "calls", "mean", "median", "p10", "p90", "min", "max", "flops", "bytes"),
    *("sqnr", "max_error", "max_reference"),
)


def export(document: ProfileDocument, run: Run | None, form: str) -> ExportedFile:
    """The measurements in one of the formats; timelines and ETDumps of the latest executions only.

    Args:
        document: The profile.
        run: The run that it is of.
        form: `perfetto`, `csv` or `etdump`.

    Raises:
        TraceError: Nothing was recorded.
    """
    if run is None or run.trace is None:
        raise TraceError("nothing was recorded", hint="run the program first")
    text, data = "", b""
    if form == "csv":
        text = _csv(document)
    elif form == "perfetto":
        text = json.dumps(timeline(_inspector(run)))
    else:
        data = write_etdump(run.trace.to_etdump(executions=_latest(run.trace)))
    return ExportedFile(
        name=f"{document.method}{_SUFFIXES[form]}",
        mime=_MIMES[form],
        text=text,
        base64=base64.b64encode(data).decode("ascii"),
    )


def _inspector(run: Run) -> Inspector:
    assert run.trace is not None
    dump = run.trace.to_etdump(executions=_latest(run.trace))
    lowering = run.lowering if run._origin is not None else None
    return Inspector(dump, program=lowering, edge=None if lowering is None else lowering.edge)


def _latest(trace: Trace) -> frozenset[int]:
    """Numbers of the latest executions, as many as a timeline is of use with."""
    numbers, sizes = np.unique(complete(trace).events["execution"], return_counts=True)
    fits = np.cumsum(sizes[::-1]) <= _MOST_EVENTS
    taken = max(int(fits.sum()), 1)
    return frozenset(numbers[::-1][:taken].tolist())


def save(document: ProfileDocument, run: Run | None, form: str, path: str | os.PathLike[str]) -> None:
    """Write what `export` gives to a file."""
    made = export(document, run, form)
    if made.base64:
        Path(path).write_bytes(base64.b64decode(made.base64))
    else:
        Path(path).write_text(made.text, encoding="utf-8")


def _csv(document: ProfileDocument) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    columns = [list(getattr(document, name)) for name in _COLUMNS]
    for row in zip(*columns, strict=True):
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])
    return file.getvalue()
