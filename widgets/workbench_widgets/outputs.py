"""Which cells show which widgets: one that no output shows any longer lets go of what it shows.

A page and its kernel keep each other's widgets until somebody closes them, and a widget holds its subject:
without this a cell that lowers anew each time it runs would keep all of its lowerings. Running a cell
replaces its outputs, so at the end of the run the widgets rest that were shown there and nowhere else.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

__all__ = ["Outputs", "Resting", "outputs"]

_LOG = logging.getLogger("workbench_widgets")


class Resting(Protocol):
    """What can rest while nothing shows it."""

    def rest(self) -> None:
        """Let go of the page; showing it again wakes it."""


class Outputs:
    """The cells whose outputs show a widget.

    A widget shown from a place that is not known (no cell, or a front end that does not name them) stays.
    """

    def __init__(self) -> None:
        self._cells: WeakKeyDictionary[Any, set[str | None]] = WeakKeyDictionary()
        self._left: WeakSet[Any] = WeakSet()
        self._watched: WeakSet[Any] = WeakSet()

    def note(self, widget: Resting) -> None:
        """A widget is shown in the output of the cell that runs now."""
        shell = _shell()
        if shell is None:
            return
        self._watch(shell)
        self._cells.setdefault(widget, set()).add(_cell(shell))
        self._left.discard(widget)

    def _watch(self, shell: Any) -> None:
        if shell in self._watched:
            return
        shell.events.register("pre_run_cell", self._starts)
        shell.events.register("post_run_cell", self._ended)
        self._watched.add(shell)

    def _starts(self, info: Any) -> None:
        cell = getattr(info, "cell_id", None)
        if cell is None:
            return
        for widget, cells in list(self._cells.items()):
            if cell in cells:
                cells.discard(cell)
                if not cells:
                    self._left.add(widget)

    def _ended(self, _: Any) -> None:
        # At the end: what is shown again meanwhile goes on, and does not travel a second time.
        left, self._left = list(self._left), WeakSet()
        for widget in left:
            self._cells.pop(widget, None)
            try:
                widget.rest()
            except Exception:  # of a page that is gone, for example; the cell's own result is not to suffer
                _LOG.exception("a widget that is no longer shown can't be put away")


def _shell() -> Any:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def _cell(shell: Any) -> str | None:
    """The cell that runs, as front ends name it beside the code."""
    parent = shell.kernel.get_parent()
    cell = (parent or {}).get("metadata", {}).get("cellId")
    return cell if isinstance(cell, str) else None


outputs = Outputs()
