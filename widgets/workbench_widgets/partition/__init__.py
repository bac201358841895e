"""The partition editor: who runs what, why not, and what it costs; edited by hand, checked live."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_widgets.context import Context
from workbench_widgets.partition.answers import apply, move, preview
from workbench_widgets.partition.document import partition_document, state_document
from workbench_widgets.partition.measure import relower
from workbench_widgets.partition.picture import picture
from workbench_widgets.view import View

__all__ = ["VIEW"]


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    method = context.about("partition").method
    return [("graph", f"partitioned/{method}"), ("partition", method), ("partition.state", method)]


def _report(context: Context) -> Iterable[tuple[str, str]]:
    for method in context.methods:
        yield from (("graph", f"partitioned/{method}"), ("partition", method), ("partition.state", method))


VIEW = View(
    name="partition",
    title="Partition",
    documents={"partition": partition_document, "partition.state": state_document},
    calls={
        "partition.preview": preview,
        "partition.apply": apply,
        "partition.move": move,
        "partition.relower": relower,
    },
    initial=_initial,
    report=_report,
    picture=picture,
    shows=("partitioned",),
)
