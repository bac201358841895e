"""What a search may cost, and what it shall make best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workbench.errors import SearchError

__all__ = ["Budget", "dominates", "front_of"]


@dataclass(frozen=True)
class Budget:
    """Limits; None where there is none.

    With a limit on the metric alone the smallest program within it is best (or the fastest, with
    `best="milliseconds"`); with a limit on bytes or time, the one with the best metric.

    Attributes:
        loss: How far the metric may fall below that of the program in floats.
        metric: The least metric.
        bytes: The largest size of the `.pte` file.
        milliseconds: The longest execution, on one core of this machine.
        best: `"bytes"`, `"milliseconds"` or `"metric"`; empty for what the limits suggest.
    """

    loss: float | None = None
    metric: float | None = None
    bytes: int | None = None
    milliseconds: float | None = None
    best: str = ""

    def __post_init__(self) -> None:
        for name in ("loss", "bytes", "milliseconds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                raise SearchError(f"the budget of {name} is no number from 0", found=repr(value))
        if self.best not in ("", "bytes", "milliseconds", "metric"):
            raise SearchError(
                "there is no such aim", expected="bytes, milliseconds or metric", found=repr(self.best)
            )
        if all(getattr(self, name) is None for name in ("loss", "metric", "bytes", "milliseconds")):
            raise SearchError(
                "the budget has no limit", expected="at least one of loss, metric, bytes, milliseconds"
            )

    @property
    def aim(self) -> str:
        """What is made best within the limits."""
        limited = self.bytes is not None or self.milliseconds is not None
        return self.best or ("metric" if limited else "bytes")

    @property
    def timed(self) -> bool:
        """Whether the search looks at times to decide."""
        return self.milliseconds is not None or self.aim == "milliseconds"

    def holds(self, outcome: Any, floats: float) -> bool:
        """Whether an outcome is within all limits.

        Args:
            outcome: What has `metric`, `bytes` and `milliseconds`.
            floats: The metric of the program in floats.
        """
        if self.loss is not None and floats - outcome.metric > self.loss + 1e-12:
            return False
        if self.metric is not None and outcome.metric < self.metric:
            return False
        if self.bytes is not None and outcome.bytes > self.bytes:
            return False
        time = outcome.milliseconds
        return self.milliseconds is None or (time is not None and time <= self.milliseconds)

    def rank(self, outcome: Any) -> tuple[float, ...]:
        """A key by which the best of what is within the limits is the least."""
        time = outcome.milliseconds if outcome.milliseconds is not None else float("inf")
        keys = {"bytes": outcome.bytes, "milliseconds": time, "metric": -outcome.metric}
        # Times differ from run to run: they decide only where they are what is asked for.
        others = [keys[name] for name in ("metric", "bytes") if name != self.aim]
        return (keys[self.aim], *others)


def dominates(one: Any, other: Any, *, timed: bool = True) -> bool:
    """Whether an outcome is at least as good in everything, and better in something.

    Times that differ by less than a twentieth count as equal; without `timed` they don't count at all.
    """
    better = one.metric > other.metric or one.bytes < other.bytes
    worse = one.metric < other.metric or one.bytes > other.bytes
    if timed and one.milliseconds is not None and other.milliseconds is not None:
        better |= one.milliseconds < 0.95 * other.milliseconds
        worse |= one.milliseconds > 1.05 * other.milliseconds
    return better and not worse


def front_of(outcomes: Iterable[Any], *, timed: bool = True) -> list[Any]:
    """The outcomes that no other dominates, from small to large; of equals the first."""
    known = list(outcomes)
    found = [item for item in known if not any(dominates(other, item, timed=timed) for other in known)]
    unique = {(item.metric, item.bytes): item for item in reversed(found)}
    return sorted(unique.values(), key=lambda item: (item.bytes, -item.metric))
