"""The graph of a stage: modules that open and close, and all that is known of each node."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_widgets.context import Context
from workbench_widgets.graph.details import graph_details
from workbench_widgets.graph.document import graph_document
from workbench_widgets.graph.overlays import overlay_document
from workbench_widgets.graph.picture import picture
from workbench_widgets.view import View

__all__ = ["VIEW"]


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    about = context.about("graph")
    yield "graph", f"{about.stage}/{about.method}"


def _report(context: Context) -> Iterable[tuple[str, str]]:
    for stage in context.stages:
        if stage != "run":
            for method in context.methods:
                yield "graph", f"{stage}/{method}"
                yield "overlays", f"{stage}/{method}"


VIEW = View(
    name="graph",
    title="Graph",
    documents={"graph": graph_document, "overlays": overlay_document},
    calls={"graph.details": graph_details},
    initial=_initial,
    report=_report,
    picture=picture,
    shows=("exported", "pruned", "edge", "lowered"),
)
