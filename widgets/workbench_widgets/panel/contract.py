"""What the panel of all views tells and asks Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecipeDocument:
    """The recipe that was followed.

    Attributes:
        python: The expression that makes it; empty where it can't be written.
        json: The same as JSON.
        problem: Why it can't be written; empty otherwise.
        versions: Package -> version.
    """

    python: str
    json: str
    problem: str
    versions: dict[str, str]


@dataclass(frozen=True)
class ReportOptions:
    """What goes into a report.

    Attributes:
        stage: The stage that it opens with.
        method: The method that it opens with.
    """

    stage: str
    method: str


@dataclass(frozen=True)
class ReportFile:
    """A report.

    Attributes:
        name: A name for the file.
        html: Its text.
    """

    name: str
    html: str


DOCUMENTS = {"recipe": RecipeDocument}
CALLS = {"panel.report": (ReportOptions, ReportFile)}
