"""What stands in for a widget where no script runs: on code hosts, in nbconvert."""

from __future__ import annotations

import logging

from workbench.display import StaticViews
from workbench_widgets.context import Context
from workbench_widgets.view import View

__all__ = ["still_picture"]

_LOG = logging.getLogger("workbench_widgets")


def still_picture(view: View, context: Context) -> dict[str, str]:
    """A picture with its table, and text: the view's own, or what the workbench shows without widgets.

    Returns:
        Representations by MIME type: `text/html` and `text/plain`.
    """
    if view.picture is not None:
        try:
            picture = view.picture(context)
        except Exception:
            _LOG.exception("the picture of the view '%s' can't be made", view.name)
        else:
            return {"text/html": picture.html, "text/plain": picture.text}
    return StaticViews().mimebundle(context.subject)
