"""The memory view: where each tensor lives, and when; pins, planners and limits to try."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_widgets.context import Context
from workbench_widgets.memory.document import memory_document
from workbench_widgets.memory.picture import picture
from workbench_widgets.memory.planning import apply, preview, python
from workbench_widgets.view import View

__all__ = ["VIEW"]


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    return [("memory", method) for method in context.methods]


VIEW = View(
    name="memory",
    title="Memory",
    documents={"memory": memory_document},
    calls={"memory.preview": preview, "memory.apply": apply, "memory.python": python},
    initial=_initial,
    picture=picture,
    shows=("planned",),
)
