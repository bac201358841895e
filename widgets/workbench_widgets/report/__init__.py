"""The report: one HTML file with all views of a subject. Not shown by itself; the panel asks for it."""

from __future__ import annotations

from workbench_widgets.report.saving import save_report
from workbench_widgets.report.writing import page, write
from workbench_widgets.view import View

__all__ = ["VIEW", "page", "write"]

VIEW = View(name="report", title="Report", calls={"panel.report": save_report})
