"""What observers saw, kept while only the plan changes.

Observers change no value. So what is known of a value depends on the program in floats and on the data
alone, and an observer of another kind can take up what one before it counted.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from workbench.quantization.observers import Observer
from workbench.quantization.plan import Group, Plan
from workbench.quantization.programs import CalibratedProgram

__all__ = ["Seen", "seen_of"]

_SIMPLE = (int, float, str, bool, torch.dtype, torch.qscheme, type(None))


class Seen:
    """The observers of one program and one set of data, by the values that they saw."""

    def __init__(self) -> None:
        self._observers: dict[tuple[str, ...], list[Any]] = {}

    def known(self, plan: Plan) -> dict[str, Any]:
        """Observers for groups of a plan that need not see the data again."""
        found = {}
        for group in plan.groups:
            if group.observed and (observer := self._for(group)) is not None:
                found[group.name] = observer
        return found

    def add(self, calibrated: CalibratedProgram) -> None:
        """Take note of what was seen."""
        for group in calibrated.plan.groups:
            observer = calibrated.observers.get(group.name)
            if group.observed and observer is not None:
                kept = self._observers.setdefault(group.values, [])
                if not any(other is observer for other in kept):
                    kept.append(observer)

    def _for(self, group: Group) -> Any:
        assert group.spec.observe is not None
        wanted = group.spec.observe()
        for observer in self._observers.get(group.values, ()):
            if _settings(observer) == _settings(wanted):
                return observer
        for observer in self._observers.get(group.values, ()):
            if _can_take_up(wanted, observer):
                wanted.restore(observer.state())
                wanted.name = group.name
                return wanted
        return None


def _settings(observer: Any) -> Any:
    """What an observer was made with; not what it saw."""
    state = set(getattr(observer, "_STATE", ())) | {"training", "name"}
    return type(observer), {
        key: value for key, value in vars(observer).items() if isinstance(value, _SIMPLE) and key not in state
    }


def _can_take_up(wanted: Any, observer: Any) -> bool:
    """Whether an observer finds all that it would have noted in what another one did."""
    if not isinstance(wanted, Observer) or not isinstance(observer, Observer):
        return False
    counted = wanted.counts is None or observer.counts is not None
    return counted and set(wanted._STATE) <= set(observer._STATE)


# By the exported program, and by whatever else decides on its values.
_kept: WeakKeyDictionary[Any, dict[Any, Seen]] = WeakKeyDictionary()
_MOST = 4


def seen_of(program: Any, key: Any) -> Seen:
    """What was seen of a program under the same circumstances; of many, the oldest are forgotten."""
    known = _kept.setdefault(program, {})
    found = known.pop(key, None) or Seen()
    known[key] = found
    for old in list(known)[:-_MOST]:
        del known[old]
    return found
