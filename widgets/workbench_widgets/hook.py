"""What the workbench asks for how its objects look: widgets in a notebook, static pictures elsewhere."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

from workbench.display import StaticViews
from workbench.stages import Stage
from workbench_widgets.context import Context
from workbench_widgets.view import View, all_views, find
from workbench_widgets.widget import ViewWidget

__all__ = ["WidgetViews", "views"]


class WidgetViews(StaticViews):
    """The views with widgets."""

    def __init__(self) -> None:
        # One widget an object: showing it again adds a picture of the same model, not a second model with its
        # own copy of the data.
        self._widgets: WeakKeyDictionary[Any, ViewWidget] = WeakKeyDictionary()

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        """A widget where a front end can show it; always a static picture and text beside it."""
        context = Context(shown)
        view = _view(context, shown)
        static = self._static(view, context, shown)
        if not _in_kernel():
            return static
        widget = self._widget(view, context, shown)
        bundle = widget._repr_mimebundle_()
        live = bundle[0] if isinstance(bundle, tuple) else bundle
        return {**static, **{kind: data for kind, data in live.items() if kind not in static}}

    def _widget(self, view: View, context: Context, shown: Any) -> ViewWidget:
        known = self._widgets.get(shown)
        if known is None or known.comm is None:
            known = self._widgets[shown] = ViewWidget(view, context)
        else:
            context.close()
        return known

    def _static(self, view: View, context: Context, shown: Any) -> dict[str, Any]:
        if view.picture is None:
            return super().mimebundle(shown)
        picture = view.picture(context)
        return {"text/html": picture.html, "text/plain": picture.text}

    def workbench(self, subject: Any, **options: Any) -> ViewWidget:
        """All views of a subject in one panel.

        Args:
            subject: A lowering, a run, an opened program.
            **options: `run`, a run to show measurements of; `height` in pixels.
        """
        run = options.pop("run", None)
        return ViewWidget(all_views()["panel"], Context(subject, run=run), **options)

    def report(self, subject: Any, **options: Any) -> str:
        """One HTML file with all views, that needs no kernel and no network."""
        from workbench_widgets.report import write

        return write(subject, **options)


def _view(context: Context, shown: Any) -> View:
    if isinstance(shown, Stage) or context.shown in ("run", "compare", "program"):
        return find(context.shown)
    return all_views()["panel"]


def _in_kernel() -> bool:
    """Whether a Jupyter kernel runs this, whose front end might show widgets."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return getattr(shell, "kernel", None) is not None


views = WidgetViews()
