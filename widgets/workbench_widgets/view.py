"""The Python half of a view, and the list of all views.

A view is a folder with an `__init__.py` that defines `VIEW`. Nothing else knows its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.errors import WorkbenchError
from workbench_widgets.context import Context

__all__ = ["Picture", "View", "all_views", "document", "find"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Picture:
    """What stands in for a view where no script runs: on code hosts, in nbconvert.

    Attributes:
        html: A picture and its table, complete in itself.
        text: The same as plain text.
    """

    html: str
    text: str


def _no_documents(context: Context) -> Iterable[tuple[str, str]]:
    return ()


@dataclass(frozen=True)
class View:
    """One view.

    Attributes:
        name: Its folder, its bundle.
        title: What people read.
        documents: By kind of the contract, what makes the document: (context, key) -> dataclass.
        calls: By name of the contract, what answers: (context, arguments) -> result.
        initial: The documents, as (kind, key), that travel with a widget of this view, so that it draws while
            the kernel is busy.
        report: The documents, as (kind, key), that a report without a kernel needs beside `initial`.
        picture: What stands in for the view where no script runs.
        overlays: Numbers by which the graph of a stage can be coloured: (context, the graph's document) ->
            columns of the graph's contract, in its rows.
        shows: Names of the stages (`run` and `compare` included) that this view is the natural display of.
        height: Pixels, where nothing else is asked for.
    """

    name: str
    title: str
    documents: Mapping[str, Callable[[Context, str], Any]] = field(default_factory=dict)
    calls: Mapping[str, Callable[[Context, Any], Any]] = field(default_factory=dict)
    initial: Callable[[Context], Iterable[tuple[str, str]]] = _no_documents
    report: Callable[[Context], Iterable[tuple[str, str]]] = _no_documents
    picture: Callable[[Context], Picture] | None = None
    overlays: Callable[[Context, Any], Iterable[Any]] | None = None
    shows: tuple[str, ...] = ()
    height: int = 520


@cache
def all_views() -> Mapping[str, View]:
    """All views, by name."""
    found: dict[str, View] = {}
    for path in sorted(HERE.glob("*/__init__.py")):
        view = getattr(importlib.import_module(f"workbench_widgets.{path.parent.name}"), "VIEW", None)
        if isinstance(view, View):
            found[view.name] = view
    return MappingProxyType(found)


def find(shown: str) -> View:
    """The natural view of a stage, of `run` or of `compare`.

    Raises:
        WorkbenchError: There is none.
    """
    for view in all_views().values():
        if shown in view.shows:
            return view
    raise WorkbenchError("no view shows this", found=shown)


def document(context: Context, kind: str, key: str) -> Any:
    """A document of whichever view declares its kind.

    Raises:
        WorkbenchError: There is no such kind, or it can't be made.
    """
    for view in all_views().values():
        if kind in view.documents:
            return view.documents[kind](context, key)
    known = sorted(kind for view in all_views().values() for kind in view.documents)
    raise WorkbenchError("there is no such document", expected=", ".join(known), found=kind)
