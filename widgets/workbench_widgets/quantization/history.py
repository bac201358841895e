"""Undo and redo of decisions by hand: lists of edits before and after."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.recipe import Edit
from workbench_widgets.context import Context
from workbench_widgets.quantization.choices import edits_of

__all__ = ["Action", "History"]


@dataclass(frozen=True)
class Action:
    """What undo takes back in one go.

    Attributes:
        title: In words.
        before: The method's edits before.
        after: The method's edits after.
    """

    title: str
    before: tuple[Edit, ...]
    after: tuple[Edit, ...]


class History:
    """What was done in this widget, by method."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._done: dict[str, list[Action]] = {}
        self._undone: dict[str, list[Action]] = {}

    def now(self, method: str) -> tuple[Edit, ...]:
        """The method's edits as the recipe has them."""
        lowering = self._context.lowering
        return () if lowering is None else tuple(edits_of(lowering.recipe, method))

    def undo(self, method: str) -> Action | None:
        """What would be taken back; None where somebody else changed the edits since."""
        known = self._done.get(method)
        return known[-1] if known and known[-1].after == self.now(method) else None

    def redo(self, method: str) -> Action | None:
        """What would be made again."""
        known = self._undone.get(method)
        return known[-1] if known and known[-1].before == self.now(method) else None

    def undo_title(self, method: str) -> str:
        """What undo would take back; empty for nothing."""
        action = self.undo(method)
        return "" if action is None else action.title

    def redo_title(self, method: str) -> str:
        """What redo would make again; empty for nothing."""
        action = self.redo(method)
        return "" if action is None else action.title

    def did(self, method: str, action: Action) -> None:
        """An action was made."""
        self._done.setdefault(method, []).append(action)
        self._undone.pop(method, None)

    def undid(self, method: str) -> None:
        """The last action was taken back."""
        self._undone.setdefault(method, []).append(self._done[method].pop())

    def redid(self, method: str) -> None:
        """The last action that was taken back was made again."""
        self._done.setdefault(method, []).append(self._undone[method].pop())
