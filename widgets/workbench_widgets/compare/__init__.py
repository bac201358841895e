"""Several lowerings or runs side by side."""

from __future__ import annotations

from workbench_widgets.compare.document import (
    compare_document,
    compare_graph,
    first_documents,
    report_documents,
)
from workbench_widgets.compare.peer import add_peer
from workbench_widgets.compare.picture import picture
from workbench_widgets.view import View

__all__ = ["VIEW"]

VIEW = View(
    name="compare",
    title="Compare",
    documents={"compare": compare_document, "compare.graph": compare_graph},
    calls={"compare.peer": add_peer},
    initial=first_documents,
    report=report_documents,
    picture=picture,
    shows=("compare",),
    height=600,
)
