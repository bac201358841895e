"""What a search found."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.errors import SearchError, WorkerDiedError
from workbench.recipe import Recipe
from workbench.search.budget import Budget, front_of
from workbench.search.picture import Dot, Picture, scatter
from workbench.search.space import Choice
from workbench.search.store import DIED, Outcome

__all__ = ["Point", "SearchResult"]


@dataclass(frozen=True)
class Point:
    """One candidate with its outcome.

    Attributes:
        number: In the order in which it was tried.
        choice: What was chosen.
        recipe: The recipe: lowering the model by it makes the same file again.
        outcome: What it came to.
    """

    number: int
    choice: Choice
    recipe: Recipe
    outcome: Outcome

    @property
    def metric(self) -> float:
        """Mean over the data, the more the better."""
        return self.outcome.metric

    @property
    def bytes(self) -> int:
        """Size of the `.pte` file."""
        return self.outcome.bytes

    @property
    def milliseconds(self) -> float | None:
        """Fastest execution on one core; None where it was not timed."""
        return self.outcome.milliseconds

    @property
    def error(self) -> SearchError | None:
        """What the candidate ended in; None where it was measured."""
        outcome = self.outcome
        if not outcome.failed:
            return None
        if outcome.kind == DIED:
            return WorkerDiedError(
                "the worker that measured a candidate ended without an answer",
                stage="search",
                expected=str(self.choice),
                found=outcome.error,
                hint="not enough memory, or a fault in native code; searching again tries it once more",
            )
        return SearchError(
            "a candidate could not be measured",
            stage="search",
            expected=str(self.choice),
            found=f"{outcome.kind}: {outcome.error}",
        )


class SearchResult:
    """All candidates of a search.

    Attributes:
        points: Those that could be measured, in the order in which they were tried.
        failed: Those that could not.
        budget: The limits.
        floats: The candidate in floats.
        cancelled: The search was ended before its time.
        folder: Where model, data and outcomes are kept; the calibration data of the recipes, too.
        notes: What could not be looked at, and why.
    """

    def __init__(
        self,
        tried: Sequence[Point],
        budget: Budget,
        folder: Path,
        *,
        cancelled: bool,
        notes: Sequence[str] = (),
    ) -> None:
        self.points = tuple(point for point in tried if not point.outcome.failed)
        self.failed = tuple(point for point in tried if point.outcome.failed)
        self.budget, self.folder, self.cancelled, self.notes = budget, folder, cancelled, tuple(notes)
        plain = [point for point in self.points if point.choice == Choice()]
        self.floats: Point | None = plain[0] if plain else None

    @property
    def front(self) -> tuple[Point, ...]:
        """The points that no other is better than in everything, from small to large."""
        return tuple(front_of(self.points))

    def holds(self, point: Point) -> bool:
        """Whether a point is within the budget."""
        floats = float("-inf") if self.floats is None else self.floats.metric
        return self.budget.holds(point, floats)

    @property
    def best(self) -> Point:
        """The best point within the budget.

        Raises:
            SearchError: There is none.
        """
        within = [point for point in self.points if self.holds(point)]
        if not within:
            near = sorted(self.points, key=lambda point: -point.metric)[:3]
            raise SearchError(
                "no candidate is within the budget",
                expected=str(self.budget),
                found="; ".join(f"{p.choice}: {p.metric:.4g}, {p.bytes:,} bytes" for p in near) or "nothing",
                hint="widen the budget, allow more evaluations, or look at result.table",
            )
        return min(within, key=self.budget.rank)

    @property
    def table(self) -> pd.DataFrame:
        """One row per candidate that was tried.

        Columns: number, origin, choice, metric, loss (against floats), bytes, milliseconds, median, within
        (the budget), front, seconds, error.
        """
        front = {point.number for point in self.front}
        floats = float("nan") if self.floats is None else self.floats.metric
        rows = [
            (
                point.number,
                point.choice.origin,
                str(point.choice),
                point.metric,
                floats - point.metric,
                point.bytes,
                point.milliseconds,
                point.outcome.median,
                not point.outcome.failed and self.holds(point),
                point.number in front,
                point.outcome.seconds,
                f"{point.outcome.kind}: {point.outcome.error}" if point.outcome.failed else "",
            )
            for point in sorted((*self.points, *self.failed), key=lambda item: item.number)
        ]
        columns = [
            "number",
            "origin",
            "choice",
            "metric",
            "loss",
            "bytes",
            "milliseconds",
            "median",
            "within",
        ]
        return pd.DataFrame(rows, columns=[*columns, "front", "seconds", "error"])

    def picture(self, extra: Mapping[str, tuple[float, int, float | None]] | None = None) -> Picture:
        """Bytes, metric and time of all points.

        Args:
            extra: By name the metric, bytes and milliseconds of programs that were made in other ways.
        """
        front = set(map(id, self.front))
        dots = [
            Dot(
                str(point.choice),
                point.bytes,
                point.metric,
                point.milliseconds,
                "front" if id(point) in front else "other",
            )
            for point in self.points
        ]
        for name, (metric, size, time) in (extra or {}).items():
            dots.append(Dot(name, size, metric, time, "extra", named=True))
        return Picture(scatter(dots))

    def __getitem__(self, number: int) -> Point:
        """The candidate of a row of the table; raises `SearchError`."""
        for point in (*self.points, *self.failed):
            if point.number == number:
                return point
        raise SearchError("there is no such candidate", found=str(number))

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        return (
            f"<SearchResult: {len(self.points)} points, {len(self.front)} on the front, "
            f"{len(self.failed)} failed{state}>"
        )

    def _repr_html_(self) -> Any:
        title = html.escape(repr(self).strip("<>"))
        table = self.table
        rows = table[table["front"] | (table["error"] != "")].drop(columns=["front", "seconds"])
        shown = rows.sort_values("bytes").to_html(index=False, border=0, max_rows=40, na_rep="")
        return f"<div><p><b>{title}</b></p>{self.picture().svg}{shown}</div>"
