"""The search itself: generations of candidates, measured wherever the executor runs them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any

from workbench.component import Component
from workbench.progress import shows
from workbench.search.budget import Budget, front_of
from workbench.search.candidates import Candidates
from workbench.search.executors import Died, LocalProcesses, gather
from workbench.search.latency import latency
from workbench.search.result import Point, SearchResult
from workbench.search.space import Choice, Space
from workbench.search.store import DIED, Outcome, Store
from workbench.search.work import LayerDamage, Task, evaluate, measure_layers

__all__ = ["Driver", "Problem"]

GENERATION = 6  # does not depend on the workers, so that the same is tried wherever it runs


class Problem:
    """What is searched: files in the store, and what identifies them.

    Args:
        store: The folder.
        model: Path of the model.
        data: Path of the samples.
        metric: The metric.
        digest: Of model, data and metric.
        inputs: What programs are timed with.
    """

    def __init__(
        self, store: Store, model: str, data: str, metric: Component, digest: str, inputs: Sequence[Any]
    ) -> None:
        self.store, self.model, self.data, self.metric = store, model, data, metric
        self.digest, self.inputs = digest, tuple(inputs)

    def key(self, recipe_json: str) -> str:
        """What identifies a candidate."""
        return hashlib.blake2b(f"{self.digest} {recipe_json}".encode(), digest_size=16).hexdigest()


class Driver:
    """Runs one search.

    Args:
        problem: What is searched.
        space: What can be chosen.
        candidates: What is tried.
        budget: The limits.
        evaluations: How many candidates at most.
        where: What runs them.
        cancelled: Whether to end early.
        progress: Show a bar.
        samples: How many samples the damage of layers is measured with.
        timing: Seconds that each candidate is timed for.
    """

    def __init__(
        self,
        problem: Problem,
        space: Space,
        candidates: Candidates,
        budget: Budget,
        *,
        evaluations: int,
        where: LocalProcesses | Executor,
        cancelled: Callable[[], bool],
        progress: bool | None,
        samples: int,
        timing: float,
    ) -> None:
        self._timing = timing
        self._problem, self._space, self._candidates, self._budget = problem, space, candidates, budget
        self._evaluations, self._where, self._cancelled = evaluations, where, cancelled
        self._samples = samples
        self._progress = progress
        self._known = problem.store.outcomes()
        self._points: dict[Choice, Point] = {}
        self._notes: list[str] = []
        self._tick: Callable[[str], None] = lambda text: None

    def run(self) -> SearchResult:
        """Search until everything is tried, the evaluations are used up, or somebody ends it."""
        interrupted = False
        with _bar(self._progress, self._evaluations) as self._tick:
            try:
                self._search()
            except KeyboardInterrupt:
                interrupted = True
        return self._result(interrupted or self._cancelled())

    def _result(self, cancelled: bool) -> SearchResult:
        tried = list(self._points.values())
        store = self._problem.store
        return SearchResult(tried, self._budget, store.folder, cancelled=cancelled, notes=self._notes)

    def _search(self) -> None:
        self._try(self._candidates.first())
        self._candidates.learn(self._damages(), self._measured())
        count = max(3, min(2 * GENERATION, self._left() // 2))
        self._try(self._candidates.along_the_path(count))
        while self._left() and not self._cancelled():
            halfway = self._candidates.between(self._measured(), self._within)
            if halfway is None:
                break
            self._try([halfway])
        quiet = 0
        while self._left() and not self._cancelled() and quiet < 2:
            front = self._front()
            near = self._candidates.around(self._measured(), self._within, min(GENERATION, self._left()))
            if not near:
                break
            self._try(near)
            quiet = quiet + 1 if self._front() == front else 0

    def _front(self) -> list[Choice]:
        return [point.choice for point in front_of(self._measured(), timed=self._budget.timed)]

    def _left(self) -> int:
        return max(0, self._evaluations - len(self._points))

    def _measured(self) -> list[Point]:
        return [point for point in self._points.values() if not point.outcome.failed]

    def _within(self, point: Point) -> bool:
        return self._result(False).holds(point)

    # ---- one generation ------------------------------------------------------------------------------------

    def _try(self, choices: Iterable[Choice]) -> None:
        """Measure choices that are new, as many as are left; what fails is a result, too."""
        fresh = [choice for choice in dict.fromkeys(choices) if choice not in self._points][: self._left()]
        recipes = {choice: self._space.recipe(choice) for choice in fresh}
        keys = {choice: self._problem.key(recipe.to_json(indent=None)) for choice, recipe in recipes.items()}
        outcomes = {choice: self._known[keys[choice]] for choice in fresh if self._usable(keys[choice])}
        waiting = [choice for choice in fresh if choice not in outcomes]
        problem = self._problem
        tasks = []
        for choice in waiting:
            path = str(problem.store.program_path(keys[choice]))
            tasks.append(
                (Task(keys[choice], recipes[choice], problem.model, problem.data, problem.metric, path),)
            )
        for _ in outcomes:
            self._tick("known")
        try:
            for index, made in gather(evaluate, tasks, self._where, self._cancelled):
                choice = waiting[index]
                if isinstance(made, Died):
                    made = Outcome(keys[choice], kind=DIED, error=str(made))
                outcomes[choice] = made
                self._write(made, recipes[choice])
                self._tick(str(choice))
            # Nobody works now: times are those of a quiet machine.
            for choice in waiting:
                self._time(outcomes.get(choice), recipes[choice])
        finally:
            for choice in fresh:
                if choice in outcomes:
                    number = len(self._points)
                    self._points[choice] = Point(number, choice, recipes[choice], outcomes[choice])

    def _usable(self, key: str) -> bool:
        """Whether an outcome of an earlier search counts: dead workers get another try."""
        known = self._known.get(key)
        return known is not None and known.kind != DIED and (known.failed or known.milliseconds is not None)

    def _write(self, outcome: Outcome, recipe: Any) -> None:
        self._known[outcome.key] = outcome
        self._problem.store.write(outcome, recipe.to_data())

    def _time(self, outcome: Outcome | None, recipe: Any) -> None:
        if outcome is None or outcome.failed or self._cancelled():
            return
        path = self._problem.store.program_path(outcome.key)
        try:
            outcome.milliseconds, outcome.median = latency(str(path), self._problem.inputs, self._timing)
        except Exception as error:
            outcome.kind, outcome.error = type(error).__name__, str(error)
        with suppress(OSError):
            path.unlink()
        self._write(outcome, recipe)

    # ---- what layers cost ----------------------------------------------------------------------------------

    def _damages(self) -> Mapping[str, Mapping[str, LayerDamage]]:
        """By scheme and layer; schemes that can't be measured are left out with a note."""
        if self._cancelled() or not self._left():
            return {}
        schemes = []
        for name in self._space.schemes:
            uniform = self._points.get(Choice(name))
            if uniform is not None and uniform.outcome.failed:
                self._notes.append(
                    f"`{name}` is left out, since it fails for all layers: {uniform.outcome.kind}"
                )
            else:
                schemes.append(name)
        recipes = [self._space.recipe(Choice(name)) for name in schemes]
        problem = self._problem
        files = [
            problem.store.folder / f"layers-{problem.key(recipe.to_json(indent=None))}.json"
            for recipe in recipes
        ]
        found: dict[str, dict[str, LayerDamage]] = {}
        missing = []
        for name, path, recipe in zip(schemes, files, recipes, strict=True):
            if path.exists():
                found[name] = {k: LayerDamage(**v) for k, v in json.loads(path.read_text()).items()}
            else:
                missing.append((name, path, (problem.model, recipe, problem.data, self._samples)))
        tasks = [item[2] for item in missing]
        for index, answer in gather(measure_layers, tasks, self._where, self._cancelled):
            name, path, _ = missing[index]
            if isinstance(answer, Died):
                self._notes.append(f"the layers of `{name}` were not measured: {answer}")
                continue
            damages, why = answer
            if why:
                self._notes.append(f"the layers of `{name}` were not measured: {why}")
                continue
            found[name] = damages
            path.write_text(json.dumps({layer: vars(damage) for layer, damage in damages.items()}))
        return {name: found[name] for name in schemes if name in found}


@contextmanager
def _bar(progress: bool | None, total: int) -> Any:
    if not shows(progress):
        yield lambda text: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="searching", unit="candidate", leave=False) as bar:

        def tick(text: str) -> None:
            bar.set_postfix_str(text[:40], refresh=False)
            bar.update(1)

        yield tick
