"""What the workbench asks for how its objects look: widgets in a notebook, static pictures elsewhere."""

from __future__ import annotations

import html
import logging
from typing import Any
from weakref import WeakValueDictionary

from workbench.collecting import uncollected
from workbench.display import StaticViews, in_kernel
from workbench.stages import Stage
from workbench_widgets.context import Context
from workbench_widgets.contract import Failure
from workbench_widgets.still import still_picture
from workbench_widgets.view import View, all_views, find
from workbench_widgets.widget import ViewWidget, failure

__all__ = ["WidgetViews", "views"]

_LOG = logging.getLogger("workbench_widgets")


class WidgetViews(StaticViews):
    """The views with widgets."""

    def __init__(self) -> None:
        # One widget an object: showing it again adds a picture of the same model, not a second model with its
        # own copy of the data. By address, as widgets hold their objects: a weak key would never go.
        self._widgets: WeakValueDictionary[int, ViewWidget] = WeakValueDictionary()

    def prepare(self) -> None:
        """Import all views: the first picture asks each for what it shows."""
        all_views()

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        """A widget where a front end can show it; always a static picture and text beside it.

        What fails is left out: a widget that can't be made says so above the picture.

        Raises:
            WorkbenchError: The object is nothing that the workbench shows.
        """
        context = Context(shown)
        try:
            with uncollected():
                return self._bundle(_view(context, shown), context, shown)
        finally:
            context.close()

    def _bundle(self, view: View, context: Context, shown: Any) -> dict[str, Any]:
        static = still_picture(view, context)
        if not in_kernel():
            return static
        try:
            live = self._live(view, shown)
        except Exception as error:
            _LOG.exception("the view '%s' can't be shown", view.name)
            return _with_problem(static, view, failure(error))
        return {**live, **static}

    def _live(self, view: View, shown: Any) -> dict[str, Any]:
        known = self._widgets.get(id(shown))
        if known is None or known.context.subject is not shown or known.closed:
            known = self._widgets[id(shown)] = ViewWidget(view, Context(shown))
        return known.live_bundle()

    def workbench(self, subject: Any, **options: Any) -> ViewWidget:
        """All views of a subject in one panel.

        Args:
            subject: A lowering, one of its stages, a run, an opened program, or a comparison, which has its
                own view.
            **options: `run`, a run to show measurements of; `height` in pixels.

        Raises:
            WorkbenchError: There is no view of this object.
            TypeError: There is no such option.
        """
        run = options.pop("run", None)
        context = Context(subject, run=run)
        name = "compare" if context.comparison is not None else "panel"
        try:
            return ViewWidget(all_views()[name], context, **options)
        except BaseException:
            context.close()
            raise

    def report(self, subject: Any, **options: Any) -> str:
        """One HTML file with all views, that needs no kernel and no network."""
        from workbench_widgets.report import write

        return write(subject, **options)


def _view(context: Context, shown: Any) -> View:
    if isinstance(shown, Stage) or context.shown in ("run", "compare", "program"):
        return find(context.shown)
    return all_views()["panel"]


def _with_problem(static: dict[str, Any], view: View, problem: Failure) -> dict[str, Any]:
    """The static picture, and above it why there is no widget."""
    facts = {**problem.details}
    facts.setdefault("hint", "the picture below stands in for it; the log of the kernel has the whole error")
    rows = "".join(f"<li>{html.escape(name)}: {html.escape(text)}</li>" for name, text in facts.items())
    title = f"The view '{view.title}' can't be shown: {problem.message}"
    box = (
        '<div role="alert" style="border:1px solid var(--jp-error-color1,#d1242f);border-left-width:4px;'
        f'padding:6px 12px;margin-bottom:8px"><b>{html.escape(title)}</b> '
        f'<small>{html.escape(problem.kind)}</small><ul style="margin:4px 0 0">{rows}</ul></div>'
    )
    text = "\n".join([title, *(f"  {name}: {value}" for name, value in facts.items())])
    return {"text/html": box + static["text/html"], "text/plain": f"{text}\n{static['text/plain']}"}


views = WidgetViews()
