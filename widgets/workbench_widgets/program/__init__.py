"""The program view: where a file's bytes are, what it runs, what its delegates hold."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_widgets.context import Context
from workbench_widgets.program.delegate import delegate_document
from workbench_widgets.program.document import program_document
from workbench_widgets.program.method import method_document
from workbench_widgets.program.picture import picture
from workbench_widgets.view import View

__all__ = ["VIEW"]


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    return [("program", ""), *(("program_method", method) for method in context.methods)]


def _report(context: Context) -> Iterable[tuple[str, str]]:
    """Every delegate, since a report can't ask for more."""
    for method in context.program.methods:
        for index in range(len(method.delegates)):
            yield "program_delegate", f"{method.name}/{index}"


VIEW = View(
    name="program",
    title="Program",
    documents={
        "program": program_document,
        "program_method": method_document,
        "program_delegate": delegate_document,
    },
    initial=_initial,
    report=_report,
    picture=picture,
    shows=("program",),
)
