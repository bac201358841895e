"""Widgets for the Lowering Workbench: each stage of lowering to look at, change and run in a notebook.

`import workbench` finds this package by itself; stages then show themselves as widgets. By hand:

    import workbench_widgets
    workbench_widgets.show(lowering.edge, view="graph", height=700)
"""

from __future__ import annotations

from typing import Any

__all__ = ["show"]


def show(subject: Any, *, view: str | None = None, height: int | None = None, run: Any = None) -> Any:
    """A widget of one view.

    Args:
        subject: A lowering, one of its stages, a run, an opened program or a comparison.
        view: Name of the view; by default the natural one of the subject.
        height: Pixels; by default the view's own.
        run: A run of the subject whose measurements are shown.

    Returns:
        The widget; as the last value of a cell it shows itself.

    Raises:
        WorkbenchError: There is no such view, or it can't show the subject.
    """
    from workbench.errors import WorkbenchError
    from workbench_widgets.context import Context
    from workbench_widgets.view import all_views, find
    from workbench_widgets.widget import ViewWidget

    context = Context(subject, run=run)
    if view is not None and view not in all_views():
        raise WorkbenchError("there is no such view", expected=", ".join(all_views()), found=view)
    return ViewWidget(find(context.shown) if view is None else all_views()[view], context, height=height)
