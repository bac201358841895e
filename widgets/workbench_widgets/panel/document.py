"""The recipe as a document, and which documents of the other views travel with the panel."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version

from workbench.errors import RecipeError, WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.panel.contract import RecipeDocument
from workbench_widgets.view import View, all_views

__all__ = ["first_documents", "recipe_document", "report_documents", "versions"]

# Above this many nodes in all stages together only the shown stage travels with the widget; the others are
# asked for when they are shown.
_MANY_NODES = 6000
_LOG = logging.getLogger("workbench_widgets")
_PACKAGES = ("lowering-workbench", "torch", "executorch", "torchao")
# These show several subjects, or are made of the others.
_COMPOSED = ("panel", "report", "compare")


def versions() -> dict[str, str]:
    """The versions that a result depends on, by package; only of what is installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "python": sys.version.split()[0]}


def recipe_document(context: Context, key: str) -> RecipeDocument:
    """The recipe of the lowering.

    Raises:
        WorkbenchError: There is no lowering: a program from a file does not say how it was made.
    """
    del key
    if context.lowering is None:
        raise WorkbenchError("a program from a file has no recipe", hint="show the lowering")
    recipe = context.lowering.recipe
    try:
        python, text, problem = recipe.to_python(), recipe.to_json(), ""
    except RecipeError as error:
        python, text, problem = "", "", f"This recipe can't be written: {error}"
    return RecipeDocument(python, text, problem, versions())


def _parts() -> Iterator[View]:
    return (view for view in all_views().values() if view.name not in _COMPOSED)


def _named(name: Callable[[Context], Iterable[tuple[str, str]]], context: Context) -> list[tuple[str, str]]:
    """The documents that a view names; none where it has nothing to say of this subject."""
    try:
        return list(name(context))
    except WorkbenchError as error:
        _LOG.debug("a view has no documents of %s: %s", context.shown, error)
        return []


def _stage_documents(context: Context, stages: Iterable[str]) -> list[tuple[str, str]]:
    """What the natural views of some stages, and the graph beside them, need to draw at once."""
    found: dict[tuple[str, str], None] = {}
    for stage in stages:
        at = context.at(stage)
        for view in _parts():
            if view.name == "graph" or stage in view.shows:
                found.update(dict.fromkeys(_named(view.initial, at)))
    return list(found)


def first_documents(context: Context) -> list[tuple[str, str]]:
    """The documents that travel with the panel: of all stages, or of the shown one where they are large."""
    own = [("recipe", "")] if context.lowering is not None else []
    many = context.node_count() > _MANY_NODES
    return own + _stage_documents(context, [context.shown] if many else context.stages)


def report_documents(context: Context) -> list[tuple[str, str]]:
    """All documents that the views can show without a kernel."""
    found = dict.fromkeys(_stage_documents(context, context.stages))
    for view in _parts():
        found.update(dict.fromkeys(_named(view.report, context)))
    return list(found)
