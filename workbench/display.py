"""How stages look: the one hook between the workbench and what draws it.

A package of widgets takes over with `register(views)`, or by being installed: the entry point group
`lowering_workbench.views` names an object with the methods of `workbench.stages.Views`, which is loaded when
something is shown for the first time, in a notebook a little earlier (`prepare`). Without one, everything
shows itself as a static picture (SVG, which code hosts and nbconvert can show) with a table behind it.
"""

from __future__ import annotations

import html
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pandas as pd
from torch.fx import Node

from workbench import provenance, tables
from workbench.errors import DisplayError
from workbench.stages import Partitioned, Planned, Program, Stage, Views, set_views
from workbench.svg import Rectangle, bars, rectangles

__all__ = [
    "ENTRY_POINT_GROUP",
    "Shown",
    "StaticViews",
    "in_kernel",
    "node_table",
    "picture",
    "prepare",
    "register",
    "save_report",
    "views",
    "workbench",
]

ENTRY_POINT_GROUP = "lowering_workbench.views"
_SHOWN_ROWS = 30


_INSTALL = "pip install 'lowering-workbench[widgets]'"


class Shown:
    """What shows itself in a notebook through the views that are installed."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude  # the notebook filters what it is given
        return views().mimebundle(self)

    def _static_html(self) -> str:
        """What stands in for a view where no script runs, complete in itself."""
        return f"<pre>{html.escape(repr(self))}</pre>"


class StaticViews:
    """The views without widgets."""

    def prepare(self) -> None:
        """Load what the first picture needs; called from a thread of its own, at most once."""

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        """An HTML representation, with an SVG in it where there is a picture, and plain text.

        Raises:
            DisplayError: The object is nothing that the workbench shows.
        """
        if isinstance(shown, Stage):
            return self._stage(shown)
        if not isinstance(shown, Shown):
            raise DisplayError(
                "there is no view of this object",
                expected="a lowering, one of its stages, a run, an opened program or a comparison",
                found=type(shown).__name__,
            )
        return {"text/html": shown._static_html(), "text/plain": repr(shown)}

    def workbench(self, subject: Any, **options: Any) -> Any:
        """Needs widgets: raises `DisplayError`."""
        del options
        raise _not_installed("the panel of all views", subject)

    def report(self, subject: Any, **options: Any) -> str:
        """Needs widgets: raises `DisplayError`."""
        del options
        raise _not_installed("the HTML report", subject)

    def _stage(self, stage: Stage) -> dict[str, Any]:
        table = self.table(stage)
        rows = table.head(_SHOWN_ROWS).to_html(border=0, index=False, max_cols=12)
        more = len(table) - _SHOWN_ROWS
        rest = f"<p>and {more} more rows: <code>.table</code></p>" if more > 0 else ""
        title = html.escape(repr(stage).strip("<>"))
        body = (
            f"<div><p><b>{title}</b></p>{picture(stage)}"
            f"<details><summary>{len(table)} rows</summary>{rows}{rest}</details></div>"
        )
        return {
            "text/html": body,
            "text/plain": f"{stage!r}\n{table.head(_SHOWN_ROWS).to_string(index=False)}",
        }

    def table(self, stage: Stage) -> pd.DataFrame:
        """The rows of a stage."""
        if isinstance(stage, Program):
            return _instructions(stage)
        if isinstance(stage, Planned):
            plan: pd.DataFrame = stage.report.table()
            return plan
        frames = [node_table(stage, method) for method in stage.methods]
        table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        return _with_partition(table, stage) if isinstance(stage, Partitioned) else table


def picture(stage: Stage) -> str:
    """A stage as SVG: how often each operator is there, what lies where in memory, what takes the bytes."""
    if isinstance(stage, Program):
        return bars(_segments(stage), unit="bytes")
    if isinstance(stage, Planned):
        return "".join(_plans(stage))
    return bars(_operators(stage), unit="nodes")


class _Installed:
    """The views of the package that is installed, or the static ones; looked up when they are needed."""

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        installed = _found()
        try:
            return installed.mimebundle(shown)
        except Exception as error:
            if type(installed) is StaticViews:
                raise
            # A view that fails must not take the result of a cell with it.
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"{type(shown).__name__} is shown without widgets: {reason}", stacklevel=3)
            return StaticViews().mimebundle(shown)

    def table(self, stage: Stage) -> pd.DataFrame:
        return _found().table(stage)

    def workbench(self, subject: Any, **options: Any) -> Any:
        return _found().workbench(subject, **options)

    def report(self, subject: Any, **options: Any) -> str:
        return _found().report(subject, **options)


_views: Views = _Installed()
_known: Views | None = None  # what the entry point gave, or the static views
_problem: str | None = None  # why it gave nothing
_told = False  # whether the user knows of the problem
_prepared = False
# Held while the entry point is loaded: who shows something meanwhile waits, and does not load it again.
_loading = threading.RLock()


def views() -> Views:
    """What draws the workbench's objects."""
    return _views


def register(views: Views | None) -> None:
    """Let another object draw from now on; None: again what is installed, looked up anew."""
    global _views, _known, _problem, _told, _prepared
    with _loading:
        _known = _problem = None
        _told = _prepared = False
        _views = _Installed() if views is None else views
        set_views(_views)


def in_kernel() -> bool:
    """Whether a Jupyter kernel runs this, whose front end might show widgets."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return getattr(shell, "kernel", None) is not None


def prepare() -> None:
    """Load the installed views in the background where something may be shown soon: in a Jupyter kernel.

    Called when there is a stage that could be shown. What fails here is told at the first display.
    """
    global _prepared
    if _prepared or not isinstance(_views, _Installed) or not in_kernel():
        return
    _prepared = True
    threading.Thread(target=_prepare, name="workbench-views", daemon=True).start()


def _prepare() -> None:
    with _loading:
        try:
            getattr(_load(), "prepare", lambda: None)()
        except Exception:  # the display meets the same problem, and has somebody to tell it to
            return


def workbench(subject: Any, **options: Any) -> Any:
    """All views of a subject in one panel, with one selection.

    Args:
        subject: A lowering, a run, a comparison or an opened program.
        **options: As of the installed views; `run`, a run to show the measurements of, and `height` in
            pixels.

    Returns:
        The widget; as the last value of a cell it shows itself.

    Raises:
        DisplayError: The widgets are not installed.
    """
    return _views.workbench(subject, **options)


def save_report(subject: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write all views of a subject as one HTML file; raises `DisplayError` without widgets."""
    Path(path).write_text(_views.report(subject, **options), encoding="utf-8")


def _found() -> Views:
    global _told
    with _loading:
        found = _load()
        untold, _told = _problem is not None and not _told, True
    if untold:
        warnings.warn(f"shown without widgets: {_problem}", stacklevel=4)
    return found


def _load() -> Views:
    global _known, _problem
    if _known is None:
        _known, _problem = _look_up()
    return _known


def _look_up() -> tuple[Views, str | None]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            found: Views = point.load()
        except Exception as error:  # whatever a broken installation does; there is always a static picture
            return StaticViews(), f"{point.value} can't be loaded ({type(error).__name__}: {error})"
        return found, None
    return StaticViews(), None


def _not_installed(what: str, subject: Any) -> DisplayError:
    return DisplayError(
        f"{what} needs the widgets",
        expected="an installed package with the entry point " + ENTRY_POINT_GROUP,
        found=_problem,
        hint=_INSTALL,
        stage=getattr(subject, "name", None) if isinstance(subject, Stage) else None,
    )


def node_table(stage: Stage, method: str = "forward") -> pd.DataFrame:
    """One row per node of a method, control-flow branches included.

    Columns: method, node, op, shape (symbolic sizes as text), dtype, module (path), source (`file:line`),
    handles (tuple of source handles).
    """
    program = stage._programs[method]
    known = provenance.source_map(program)
    rows = []
    for node in provenance.nodes_of(program.graph_module):
        own = provenance.handles(node)
        shape, dtype = _tensor(node.meta.get("val"))
        path, source = provenance.module_path(node)[0], provenance.source_line(node)
        if (not path or source is None) and own:
            origins = known.resolve(own)
            path = path or next((origin.module_path for origin in origins if origin.module_path), "")
            source = source or next((origin.source for origin in origins if origin.source), None)
        rows.append(
            (method, node.name, _operator(node), shape, dtype, path, source or "", tuple(sorted(own)))
        )
    columns = ["method", "node", "op", "shape", "dtype", "module", "source", "handles"]
    return pd.DataFrame(rows, columns=columns)


def _instructions(stage: Program) -> pd.DataFrame:
    """The instructions, with source handles as long as there is a lowering that knows them."""
    table = tables.instruction_table(stage.emitted.program)
    symbols = getattr(stage.owner, "symbols", None)
    handles: list[tuple[int, ...]] = []
    for method, chain, index in zip(table["method"], table["chain"], table["index"], strict=True):
        known = None if symbols is None or chain else symbols.method(method)
        nodes = [] if known is None else known.resolve(known.handles(index, None))
        handles.append(tuple(sorted({handle for node in nodes for handle in node.source_handles})))
    return table.assign(handles=handles)


def _with_partition(table: pd.DataFrame, stage: Partitioned) -> pd.DataFrame:
    tags: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str], str] = {}
    for method in stage.methods:
        for node in provenance.nodes_of(stage._programs[method].graph_module):
            if (tag := node.meta.get("delegation_tag")) is not None:
                tags[method, node.name] = str(tag)
        for reason in stage.reasons.get(method, ()):
            text = reason.reason + (f"; eligible if {reason.eligible_if}" if reason.eligible_if else "")
            reasons[method, reason.node] = text
    keys = list(zip(table["method"], table["node"], strict=True))
    return table.assign(
        tag=[tags.get(key, "") for key in keys], why_not=[reasons.get(key, "") for key in keys]
    )


def _operator(node: Node) -> str:
    if node.op == "call_function":
        return (
            str(getattr(node.target, "__name__", node.target))
            if not hasattr(node.target, "_schema")
            else str(node.target)
        )
    return node.op


def _tensor(value: Any) -> tuple[str, str]:
    if isinstance(value, list | tuple):
        shapes = [_tensor(item) for item in value]
        return "; ".join(shape for shape, _ in shapes), "; ".join(dtype for _, dtype in shapes)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return "(" + ", ".join(map(str, value.shape)) + ")", str(value.dtype).removeprefix("torch.")
    return "", type(value).__name__ if value is not None else ""


def _operators(stage: Stage) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for program in stage._programs.values():
        for node in provenance.nodes_of(program.graph_module):
            if node.op == "call_function":
                counts[_operator(node)] = counts.get(_operator(node), 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _plans(stage: Planned) -> Iterator[str]:
    for method in stage.report.methods.values():
        for arena in method.arenas:
            items = [
                Rectangle(
                    f"{t.name}: {t.nbytes:,} bytes at {t.offset:,}",
                    t.first,
                    t.last,
                    t.offset,
                    t.nbytes,
                    t.at_peak,
                )
                for t in arena.tensors
            ]
            bounds = f"{arena.size:,} bytes, at least {arena.lower_bound:,} needed"
            title = f"{method.method}, arena {arena.arena}: {bounds}"
            yield rectangles(items, size=arena.size, title=title)


def _segments(stage: Program) -> list[tuple[str, int]]:
    table = tables.size_table(stage.emitted.program)
    return list(zip(table["segment"], table["bytes"], strict=True))


register(None)
