from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import search_metrics
import workbench as wb
from workbench.errors import CalibrationError, SearchError, WorkerDiedError
from workbench.search import Choice
from workbench.search.budget import front_of
from workbench.search.executors import Died, LocalProcesses, gather
from workbench.search.greedy import hull, path
from workbench.search.store import Outcome, Store, samples


def model() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 4)
    made = nn.Sequential(*layers).eval()
    with torch.no_grad():
        made[2].weight[0, 0] = 30.0  # one layer that 8 bits per tensor can't hold
    return made


INPUTS = [torch.randn(1, 12, generator=torch.Generator().manual_seed(seed)) for seed in range(6)]
OPTIONS: dict[str, Any] = {
    "recipe": wb.Recipe(),
    "schemes": ["int8", "int8 per tensor", "dynamic"],
    "pruning": (0.25,),
    "evaluations": 10,
    "timing": 0.01,
    "progress": False,
}


class Here(Executor):
    """Runs what it is given at once, in this thread, and remembers it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append(function.__name__)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search")


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    budget = wb.Budget(metric=25.0)
    return wb.search(model(), INPUTS, "sqnr", budget, folder=folder, executor=Here(), **OPTIONS)


def test_search_finds_a_smaller_program_within_the_budget(found: Any) -> None:
    assert not found.failed and not found.cancelled and found.floats is not None
    assert found.floats.metric > 100  # in floats, the answers are those of floats
    best = found.best
    assert best.metric >= 25 and best.bytes < found.floats.bytes
    assert all(point.bytes >= best.bytes for point in found.points if point.metric >= 25)
    uniform = {str(point.choice): point for point in found.points}
    assert uniform["int8 per tensor"].metric < uniform["int8"].metric
    assert len(found.points) <= 10 and len({point.choice for point in found.points}) == len(found.points)


def test_front_holds_what_nothing_is_better_than(found: Any) -> None:
    front = found.front
    for point in found.points:
        if point in front:
            continue
        assert any(
            other.metric >= point.metric and other.bytes <= point.bytes
            for other in found.points
            if other is not point
        )
    assert [point.bytes for point in front] == sorted(point.bytes for point in front)
    table = found.table
    assert set(table["number"]) == set(range(len(found.points)))
    assert set(table[table["front"]]["number"]) == {point.number for point in front}
    assert table["milliseconds"].min() > 0 and (table["median"] >= table["milliseconds"]).all()
    assert "<svg" in (shown := found._repr_html_()) and shown.count("<circle") == len(found.points)
    named = found.picture({"<mine>": (60.0, 9000, None)}).svg
    assert "&lt;mine&gt;: 60, 9,000 bytes" in named and named.count("<path") == 2


def test_every_point_is_lowered_again_to_the_same_file(found: Any) -> None:
    for point in found.front[:4]:
        recipe = wb.Recipe.from_json(point.recipe.to_json())
        assert recipe == point.recipe
        lowering = wb.lower(model(), (INPUTS[0],), recipe=recipe)
        buffer = lowering.program.buffer
        assert len(buffer) == point.bytes
        assert hashlib.blake2b(buffer, digest_size=16).hexdigest() == point.outcome.digest
        total = 0.0
        for inputs in INPUTS:
            with torch.no_grad():
                wanted = model()(inputs)
            noise = (
                lowering.run(inputs).outputs[0] - wanted
            ).double().square().sum() / wanted.double().square().sum()
            total += min(120.0, float(-10 * torch.log10(noise.clamp_min(1e-12))))
        assert total / len(INPUTS) == pytest.approx(point.metric)


def test_search_goes_on_from_what_is_in_its_folder(found: Any, folder: Path) -> None:
    executor = Here()
    again = wb.search(
        model(), INPUTS, "sqnr", wb.Budget(metric=25.0), folder=folder, executor=executor, **OPTIONS
    )
    assert executor.calls == []
    assert again.table.equals(found.table)
    journal = folder / "journal.jsonl"
    gone = {point.outcome.key for point in found.points[3:6]}
    kept = [line for line in journal.read_text().splitlines() if json.loads(line)["key"] not in gone]
    journal.write_text("\n".join(kept) + '\n{"key": "cut sho')  # somebody pulled the plug
    more = wb.search(
        model(), INPUTS, "sqnr", wb.Budget(metric=25.0), folder=folder, executor=executor, **OPTIONS
    )
    assert executor.calls == ["evaluate"] * 3
    assert [(p.choice, p.outcome.digest) for p in more.points] == [
        (p.choice, p.outcome.digest) for p in found.points
    ]


def test_same_seed_tries_the_same(found: Any, tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(2)
    again = wb.search(
        model(), INPUTS, "sqnr", wb.Budget(metric=25.0), folder=tmp_path, executor=pool, **OPTIONS
    )
    assert [point.choice for point in again.points] == [point.choice for point in found.points]
    assert [(p.metric, p.bytes) for p in again.points] == [(p.metric, p.bytes) for p in found.points]


def test_limit_on_bytes_gives_the_best_metric_below_it(found: Any, folder: Path) -> None:
    limit = sorted(point.bytes for point in found.points)[len(found.points) // 2]
    result = wb.search(model(), INPUTS, "sqnr", {"bytes": limit}, folder=folder, executor=Here(), **OPTIONS)
    assert result.best.bytes <= limit
    assert result.best.metric == max(point.metric for point in result.points if point.bytes <= limit)


def test_limit_on_time_is_looked_at(folder: Path) -> None:
    budget = wb.Budget(milliseconds=1e-9)
    options = {**OPTIONS, "evaluations": 4}
    result = wb.search(model(), INPUTS, "sqnr", budget, folder=folder, executor=Here(), **options)
    with pytest.raises(SearchError, match="no candidate is within the budget"):
        _ = result.best
    slow = wb.search(
        model(), INPUTS, "sqnr", wb.Budget(milliseconds=1e3), folder=folder, executor=Here(), **options
    )
    assert slow.best.metric == max(point.metric for point in slow.points)


def test_candidates_run_in_processes_of_this_machine(tmp_path: Path) -> None:
    labelled = [(inputs, model()(inputs).argmax(-1)) for inputs in INPUTS]
    options = {**OPTIONS, "evaluations": 2, "schemes": ["int8"], "pruning": ()}
    result = wb.search(model(), labelled, workers=1, folder=tmp_path, **options)
    assert not result.failed and [str(point.choice) for point in result.points] == ["float", "int8"]
    assert result.floats is not None and result.floats.metric == 1.0


def test_candidates_run_on_a_dask_cluster(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    options = {**OPTIONS, "evaluations": 4}
    data = [(inputs, model()(inputs).detach()) for inputs in INPUTS]
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        result = wb.search(
            model(),
            data,
            search_metrics.negative_error,
            wb.Budget(loss=0.1),
            executor=client.get_executor(),
            folder=tmp_path,
            **options,
        )
    assert not result.failed and len(result.points) == 4
    assert result.best.bytes < result.floats.bytes  # type: ignore[union-attr]


def test_candidate_that_fails_is_reported(tmp_path: Path) -> None:
    data = [(inputs, model()(inputs).detach()) for inputs in INPUTS]
    metric = search_metrics.refuses_numbers_of_eight_bits
    result = wb.search(
        model(), data, metric, wb.Budget(loss=0.0), folder=tmp_path, executor=Here(), **OPTIONS
    )
    assert [str(point.choice) for point in result.points] == ["float"]
    assert {point.outcome.kind for point in result.failed} == {"ValueError"}
    assert result.table["error"].str.contains("these outputs are rounded").sum() == len(result.failed)
    assert any("`int8` is left out" in note for note in result.notes)
    assert result.points[0].error is None and "ValueError" in str(result.failed[0].error)
    assert result.best is result.points[0]


def test_worker_that_dies_is_an_outcome_and_is_tried_again_later(tmp_path: Path) -> None:
    class Dying(Here):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if function.__name__ == "evaluate" and args[0].recipe.quantizer is not None:
                future: Future[Any] = Future()
                future.set_exception(BrokenExecutor("a process was terminated abruptly"))
                return future
            return super().submit(function, *args, **kwargs)

    options = {**OPTIONS, "evaluations": 3}
    first = wb.search(model(), INPUTS, "sqnr", folder=tmp_path, executor=Dying(), **options)
    assert {point.outcome.kind for point in first.failed} == {"WorkerDied"} and len(first.failed) == 2
    error = first.failed[0].error
    assert isinstance(error, WorkerDiedError) and "terminated abruptly" in str(error)
    second = wb.search(model(), INPUTS, "sqnr", folder=tmp_path, executor=Here(), **options)
    assert not second.failed and len(second.points) == 3


def test_process_that_kills_its_pool_takes_no_other_task_along() -> None:
    where = LocalProcesses(1, prepare=None)
    try:
        tasks = [(value,) for value in range(5)]
        results = dict(gather(search_metrics.kills, tasks, where, lambda: False))
        assert {index: results[index] for index in (0, 1, 3, 4)} == {0: 0, 1: 1, 3: 9, 4: 16}
        assert isinstance(results[2], Died)
        assert dict(gather(search_metrics.square, [(6,)], where, lambda: False)) == {0: 36}
    finally:
        where.close()


def test_search_that_is_cancelled_keeps_what_it_has(tmp_path: Path) -> None:
    cancel = threading.Event()

    class Stopping(Here):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if self.calls.count("evaluate") == 2:
                cancel.set()
                return Future()  # one that never begins
            return super().submit(function, *args, **kwargs)

    result = wb.search(
        model(), INPUTS, "sqnr", folder=tmp_path, executor=Stopping(), cancel=cancel, **OPTIONS
    )
    assert result.cancelled and len(result.points) == 2 and "cancelled" in repr(result)
    options = {**OPTIONS, "evaluations": 3}
    done = wb.search(model(), INPUTS, "sqnr", folder=tmp_path, executor=Here(), **options)
    assert not done.cancelled and len(done.points) == 3


def test_interrupt_keeps_what_there_is(tmp_path: Path) -> None:
    class Interrupted(Here):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if function.__name__ == "measure_layers":
                raise KeyboardInterrupt
            return super().submit(function, *args, **kwargs)

    result = wb.search(model(), INPUTS, "sqnr", folder=tmp_path, executor=Interrupted(), **OPTIONS)
    assert result.cancelled and len(result.points) == 6


def test_calibration_that_can_be_named_is_named_and_other_data_is_kept(tmp_path: Path) -> None:
    options = {**OPTIONS, "evaluations": 2, "schemes": ["int8"], "pruning": ()}
    named = wb.search(
        model(), INPUTS, "sqnr", calibration=calibration, folder=tmp_path, executor=Here(), **options
    )
    assert named[1].recipe.calibration.target.endswith(":calibration")
    kept = wb.search(
        model(), INPUTS, "sqnr", calibration=INPUTS[:5], folder=tmp_path, executor=Here(), **options
    )
    stored = samples(kept[1].recipe.calibration.options["path"])
    assert len(stored) == 5 and torch.equal(stored[0], INPUTS[0])
    assert named[1].recipe != kept[1].recipe


def calibration() -> Iterator[torch.Tensor]:
    yield from INPUTS[:6]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": []}, "no data"),
        ({"data": INPUTS, "metric": "accuracy"}, "has no target"),
        ({"metric": "beauty"}, "no metric 'beauty'"),
        ({"metric": 3}, "no metric"),
        ({"budget": {"loss": -1}}, "no number from 0"),
        ({"budget": {"size": 3}}, "no budget"),
        ({"budget": wb.Budget(loss=0.1).loss}, "no budget"),
        ({"schemes": ["int7"]}, "no such scheme"),
        ({"evaluations": 0}, "number from 1"),
        ({"recipe": wb.Recipe(quantizer=wb.XNNPACKQuantizer())}, "quantizes already"),
        ({"recipe": wb.Recipe(passes=[lambda program: None])}, "can't be handed to workers"),
        ({"executor": None, "metric": lambda outputs, target: 0.0}, "can't be handed to other processes"),
    ],
)
def test_wrong_argument_is_refused_before_anything_runs(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    executor = Here()
    given = {"metric": "sqnr", "data": INPUTS, "folder": tmp_path, "executor": executor, **OPTIONS, **changes}
    with pytest.raises(SearchError, match=words):
        wb.search(model(), **given)
    assert executor.calls == []


def test_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    data = [INPUTS[0], torch.zeros(1, 5)]
    with pytest.raises(CalibrationError, match="does not fit the model"):
        wb.search(model(), data, "sqnr", folder=tmp_path, executor=Here(), **OPTIONS)


def test_budget_without_a_limit_is_refused() -> None:
    with pytest.raises(SearchError, match="no limit"):
        wb.Budget()


def test_corners_of_the_hull_grow_in_damage_per_saving() -> None:
    options = {"a": (1.0, 1.0), "b": (2.0, 5.0), "c": (3.0, 4.0), "d": (3.0, 9.0), "e": (0.5, 3.0)}
    assert hull(options) == [("a", 1.0), ("c", 1.5)]


def test_path_moves_the_cheapest_layer_first_and_each_layer_in_order() -> None:
    moves = path({"x": {"8": (3.0, 0.3), "4": (4.0, 2.3)}, "y": {"8": (1.0, 0.5), "4": (2.0, 0.9)}})
    assert [(move.layer, move.scheme) for move in moves] == [("x", "8"), ("y", "4"), ("x", "4")]
    slopes = [move.slope for move in moves]
    assert slopes == sorted(slopes)


def test_front_counts_times_only_where_they_differ() -> None:
    outcomes = [
        Outcome("a", 0.9, 100, milliseconds=1.0),
        Outcome("b", 0.9, 110, milliseconds=0.98),  # not faster, as times go
        Outcome("c", 0.8, 120, milliseconds=0.5),
        Outcome("d", 0.95, 200, milliseconds=2.0),
    ]
    assert [item.key for item in front_of(outcomes)] == ["a", "c", "d"]
    assert [item.key for item in front_of(outcomes, timed=False)] == ["a", "d"]


def test_choice_in_its_shortest_form() -> None:
    choice = Choice.of("int8", {"b": "float", "a": "int8", "c": "float"}, 0.25, "test")
    assert choice == Choice("int8", (("b", "float"), ("c", "float")), 0.25, "other origin")
    assert str(choice) == "int8, 2 x float, pruned 25%"


def test_store_keeps_samples_by_content_and_refuses_objects(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    first, digest = store.keep_samples("data", [torch.ones(2), 3])
    again, same = store.keep_samples("data", [torch.ones(2), 3])
    other, _ = store.keep_samples("data", [torch.zeros(2), 3])
    assert (first, digest) == (again, same) and other != first
    with pytest.raises(SearchError, match="can't be handed to other processes"):
        store.keep_samples("data", [Path("x")])
    with pytest.raises(SearchError, match="can't be read"):
        samples(str(tmp_path / "missing.pt"))


def test_journal_says_what_was_tried(found: Any, folder: Path) -> None:
    lines = [
        json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines() if line.endswith("}")
    ]
    recipes = {line["key"]: line["recipe"] for line in lines}
    for point in found.points:
        assert wb.Recipe.from_data(recipes[point.outcome.key]) == point.recipe
    assert not list(folder.glob("*.pte"))
