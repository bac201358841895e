"""Planners, one a file: `plan(problem) -> offsets`.

A planner is found by its name: a module of this package, or a function registered with `register`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from workbench.errors import MemoryPlanError
from workbench.memory.problem import Problem

__all__ = ["Planner", "names", "planner", "register"]

Planner = Callable[[Problem], list[int]]
"""From a problem to an offset in bytes for each buffer."""

_registered: dict[str, Planner] = {}


def register(name: str, function: Planner) -> None:
    """Add a planner.

    Args:
        name: By which `MemoryPlanning(planner=name)` asks for it.
        function: What it does. Its plans are verified like those of any other.

    Raises:
        MemoryPlanError: The name is taken.
    """
    if name in names():
        raise MemoryPlanError(f"there is a planner `{name}` already", expected="a name of its own")
    _registered[name] = function


def names() -> list[str]:
    """The names of all planners."""
    return sorted({*_registered, *(item.name for item in pkgutil.iter_modules(__path__))})


def planner(name: str) -> Planner:
    """A planner by name.

    Raises:
        MemoryPlanError: There is none of this name.
    """
    if name in _registered:
        return _registered[name]
    if name not in names():
        raise MemoryPlanError("there is no such planner", expected=", ".join(names()), found=name)
    function: Planner = importlib.import_module(f"{__name__}.{name}").plan
    return function
