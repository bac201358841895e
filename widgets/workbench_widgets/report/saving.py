"""The report as the panel asks for it."""

from __future__ import annotations

import re

from workbench_widgets.context import Context
from workbench_widgets.panel.contract import ReportFile, ReportOptions
from workbench_widgets.report.writing import page

__all__ = ["save_report"]


def save_report(context: Context, options: ReportOptions) -> ReportFile:
    """The report of what the panel shows; raises as `workbench_widgets.report.writing`."""
    subject = context.comparison or context.lowering or context.opened
    stem = re.sub(r"[^\w-]+", "_", context.methods[0]) if subject is not None else "stage"
    return ReportFile(f"report_{stem}.html", page(context.at(options.stage)))
