"""The history of edits of one method: what was made, what was refused, what can be undone and redone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch.fx import Node

from workbench.backends.editor import PartitionEditor
from workbench.backends.edits import EditOutcome, PartitionEdit
from workbench.backends.tags import Change
from workbench.errors import PartitionError

__all__ = ["Entry", "History", "describe"]

# Refused edits that are kept to be looked at.
_REFUSED = 50


@dataclass(frozen=True)
class Entry:
    """One edit as the history shows it.

    Attributes:
        outcome: What became of it.
        state: As of `PartitionStep`.
        index: Place among the edits that are made; -1 for the others.
    """

    outcome: EditOutcome
    state: Literal["lowered", "pending", "refused", "undone"]
    index: int


@dataclass(frozen=True)
class _Made:
    outcome: EditOutcome
    change: Change


@dataclass(frozen=True)
class _Action:
    """What undo takes back in one go: the edits that stood before, and those after."""

    title: str
    before: tuple[PartitionEdit, ...]
    after: tuple[PartitionEdit, ...]


class History:
    """Edits one partition, and remembers.

    Args:
        editor: Of the partition before all edits by hand.
        edits: Those of the recipe.

    Raises:
        PartitionError: One of them can't be made.
    """

    def __init__(self, editor: PartitionEditor, edits: Sequence[PartitionEdit]) -> None:
        self.editor = editor
        self._made: list[_Made] = []
        # A refused edit with the number of edits that were made before it.
        self._refused: list[tuple[int, EditOutcome]] = []
        self._done: list[_Action] = []
        self._undone: list[_Action] = []
        self._lowered: tuple[PartitionEdit, ...] = tuple(edits)
        self._make_all(edits)

    # ---- what there is -------------------------------------------------------------------------------------

    @property
    def edits(self) -> tuple[PartitionEdit, ...]:
        """The edits that are made, in order."""
        return tuple(made.outcome.edit for made in self._made)

    @property
    def outcomes(self) -> list[EditOutcome]:
        """What became of them."""
        return [made.outcome for made in self._made]

    @property
    def waiting(self) -> int:
        """How many edits are made or taken back that the recipe does not know."""
        same = self._common(self._lowered)
        return len(self._made) - same + len(self._lowered) - same

    @property
    def undo_title(self) -> str:
        """What `undo` would take back; empty for nothing."""
        return self._done[-1].title if self._done else ""

    @property
    def redo_title(self) -> str:
        """What `redo` would make again; empty for nothing."""
        return self._undone[-1].title if self._undone else ""

    def before(self) -> dict[Node, str | None]:
        """For each node that edits wrote: its tag before all edits."""
        found: dict[Node, str | None] = {}
        for made in self._made:
            for node, tag in made.change.tags.items():
                found.setdefault(node, tag)
        return found

    def entries(self) -> list[Entry]:
        """All edits, in order: made, refused in between, and at the end those that can be redone."""
        same = self._common(self._lowered)
        found: list[Entry] = []
        for index, made in enumerate(self._made):
            found += [Entry(outcome, "refused", -1) for at, outcome in self._refused if at == index]
            found.append(Entry(made.outcome, "lowered" if index < same else "pending", index))
        found += [Entry(outcome, "refused", -1) for at, outcome in self._refused if at >= len(self._made)]
        for action in reversed(self._undone):
            known = len(action.before)
            again = action.after[known:] if action.after[:known] == action.before else ()
            found += [Entry(EditOutcome(edit, False), "undone", -1) for edit in again]
        return found

    def _common(self, edits: Sequence[PartitionEdit]) -> int:
        """How many edits both lists begin with."""
        pairs = zip(self._made, edits, strict=False)
        for index, (made, edit) in enumerate(pairs):
            if made.outcome.edit != edit:
                return index
        return min(len(self._made), len(edits))

    # ---- making and taking back ----------------------------------------------------------------------------

    def apply(self, edit: PartitionEdit) -> EditOutcome:
        """Make an edit; a refused one is remembered, too."""
        before = self.edits
        outcome = self._make(edit)
        if outcome.applied:
            self._done.append(_Action(describe(edit, self.editor), before, self.edits))
            self._undone.clear()
        else:
            self.refuse(outcome)
        return outcome

    def refuse(self, outcome: EditOutcome) -> None:
        """Remember an edit that was refused."""
        self._refused = [*self._refused, (len(self._made), outcome)][-_REFUSED:]

    def undo(self) -> str:
        """Take the last action back; returns its title, empty where there is none."""
        if not self._done:
            return ""
        action = self._done[-1]
        self._move_to(action.before)
        self._undone.append(self._done.pop())
        return action.title

    def redo(self) -> str:
        """Make the last action that was taken back again; returns its title, empty where there is none."""
        if not self._undone:
            return ""
        action = self._undone[-1]
        self._move_to(action.after)
        self._done.append(self._undone.pop())
        return action.title

    def remove(self, index: int) -> str:
        """Take one edit out of the list; those after it are made again.

        Raises:
            PartitionError: There is no such edit, or one after it can't be made without it.
        """
        edits = self.edits
        if not 0 <= index < len(edits):
            raise PartitionError("there is no such edit", expected=f"0 to {len(edits) - 1}", found=str(index))
        title = f"remove: {describe(edits[index], self.editor)}"
        self._act(title, (*edits[:index], *edits[index + 1 :]))
        return title

    def replace(self, edits: Sequence[PartitionEdit], title: str) -> str:
        """Make the list of edits another one, in one action that can be undone.

        Raises:
            PartitionError: One of them can't be made; nothing changes then.
        """
        self._act(title, tuple(edits))
        return title

    def discard(self) -> str:
        """Go back to what is lowered."""
        return self.replace(self._lowered, "discard what is not lowered")

    def lowered(self, edits: Sequence[PartitionEdit]) -> None:
        """The recipe holds these edits now."""
        self._lowered = tuple(edits)

    def _act(self, title: str, after: tuple[PartitionEdit, ...]) -> None:
        before = self.edits
        if after == before:
            return
        self._move_to(after)
        self._done.append(_Action(title, before, after))
        self._undone.clear()

    def _move_to(self, edits: Sequence[PartitionEdit]) -> None:
        """Make this list of edits; what both lists begin with stays as it is."""
        before, same = self.edits, self._common(edits)
        while len(self._made) > same:
            self.editor.revert(self._made.pop().change)
        try:
            self._make_all(edits[same:])
        except PartitionError:
            while len(self._made) > same:
                self.editor.revert(self._made.pop().change)
            self._make_all(before[same:])
            raise

    def _make_all(self, edits: Sequence[PartitionEdit]) -> None:
        for edit in edits:
            outcome = self._make(edit)
            if not outcome.applied:
                raise PartitionError(
                    f"the edit '{describe(edit, self.editor)}' can't be made any more: {outcome.reason}",
                    stage="partition",
                    hint=outcome.hint or "remove it as well",
                )

    def _make(self, edit: PartitionEdit) -> EditOutcome:
        outcome, change = self.editor.change(edit)
        if change is not None:
            self._made.append(_Made(outcome, change))
        return outcome


def describe(edit: PartitionEdit, editor: PartitionEditor) -> str:
    """An edit in a few words."""
    if edit.action == "merge":
        return f"merge {', '.join(edit.tags)}" + (f" into {edit.tag}" if edit.tag else "")
    by_handle = editor.tags.by_handle
    found = dict.fromkeys(node.name for handle in edit.handles for node in by_handle.get(handle, ()))
    names = list(edit.nodes or found)
    what = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else "nothing"
    if edit.action == "erase":
        return f"erase {what}"
    to = edit.tag or (f"a new tag of {edit.backend_id}" if edit.action == "assign" else "a new tag")
    return f"assign {what} to {to}" if edit.action == "assign" else f"split {what} off into {to}"
