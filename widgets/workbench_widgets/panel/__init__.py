"""All views of one subject in one panel, with a bar of stages."""

from __future__ import annotations

from workbench_widgets.panel.document import first_documents, recipe_document, report_documents
from workbench_widgets.view import View

__all__ = ["VIEW"]

VIEW = View(
    name="panel",
    title="Workbench",
    documents={"recipe": recipe_document},
    initial=first_documents,
    report=report_documents,
    height=680,
)
