"""Every planner, on problems that hypothesis makes up."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import MemoryPlanError
from workbench.memory import Buffer, Problem, check_plan, plan, planner_names, register
from workbench.memory import planners as registry
from workbench.memory.planners import best, greedy, naive

ALIGNMENT = 16


@st.composite
def buffers(draw: st.DrawFn) -> list[Buffer]:
    made = []
    for index in range(draw(st.integers(0, 30))):
        first = draw(st.integers(0, 40))
        last = first + draw(st.integers(0, 12))
        made.append(Buffer(f"t{index}", draw(st.integers(0, 500)), first, last))
    return made


def brute_force_overlap(problem: Problem, offsets: list[int]) -> bool:
    for i, a in enumerate(problem.buffers):
        for j, b in enumerate(problem.buffers[:i]):
            together = a.first <= b.last and b.first <= a.last
            shared = offsets[i] < offsets[j] + b.nbytes and offsets[j] < offsets[i] + a.nbytes
            if together and shared and a.nbytes and b.nbytes:
                return True
    return False


@pytest.mark.parametrize("name", ["naive", "greedy", "best"])
@given(items=buffers())
@settings(max_examples=60, deadline=None)
def test_plans_do_not_overlap_are_aligned_and_reach_no_less_than_the_lower_bound(
    name: str, items: list[Buffer]
) -> None:
    problem = Problem(items, ALIGNMENT)
    offsets = registry.planner(name)(problem)
    assert len(offsets) == len(items)
    assert all(offset % ALIGNMENT == 0 and offset >= 0 for offset in offsets)
    assert not brute_force_overlap(problem, offsets)
    assert problem.lower_bound <= problem.peak(offsets) <= sum(problem.sizes)


@given(items=buffers())
@settings(max_examples=60, deadline=None)
def test_best_is_never_worse_than_greedy(items: list[Buffer]) -> None:
    problem = Problem(items, ALIGNMENT)
    assert problem.peak(best.plan(problem)) <= problem.peak(greedy.plan(problem))


def test_best_beats_greedy_where_size_order_fragments() -> None:
    better = 0
    for seed in range(30):
        draw = random.Random(seed)
        starts = [draw.randrange(30) for _ in range(40)]
        items = [
            Buffer(f"t{i}", 16 * draw.randint(1, 40), s, s + draw.randint(1, 10))
            for i, s in enumerate(starts)
        ]
        problem = Problem(items, ALIGNMENT)
        ours, theirs = problem.peak(best.plan(problem)), problem.peak(greedy.plan(problem))
        assert ours <= theirs
        better += ours < theirs
    assert better >= 15


def test_equal_problems_get_equal_plans() -> None:
    draw = random.Random(3)
    items = [Buffer(f"t{i}", draw.randrange(1, 900), i, i + draw.randrange(9)) for i in range(60)]
    assert best.plan(Problem(items)) == best.plan(Problem(items))


def test_naive_gives_each_buffer_its_own_memory() -> None:
    problem = Problem([Buffer("a", 10, 0, 0), Buffer("b", 20, 5, 5)], ALIGNMENT)
    assert naive.plan(problem) == [0, 16]


@pytest.mark.parametrize("name", ["naive", "greedy", "best"])
def test_a_pin_is_honoured(name: str) -> None:
    items = [Buffer("a", 100, 0, 3), Buffer("b", 60, 1, 2, pin=32), Buffer("c", 40, 2, 4)]
    offsets, report = plan(items, planner_name=name)
    assert offsets[1] == 32
    assert [item.name for item in report.arenas[0].tensors if item.pinned] == ["b"]


def test_pins_that_contradict_each_other_are_refused() -> None:
    items = [Buffer("a", 100, 0, 3, pin=0), Buffer("b", 60, 1, 2, pin=32)]
    with pytest.raises(MemoryPlanError, match="pins that overlap") as caught:
        plan(items)
    assert "bytes 0 to" in str(caught.value) or "bytes 32 to" in str(caught.value)


def test_a_pin_off_the_alignment_is_refused() -> None:
    with pytest.raises(MemoryPlanError, match="alignment"):
        plan([Buffer("a", 100, 0, 3, pin=8)])


def test_arenas_are_planned_apart_and_limits_name_the_largest_tensors() -> None:
    items = [Buffer("big", 400, 0, 3), Buffer("small", 16, 0, 3), Buffer("other", 100, 0, 1, arena=3)]
    offsets, report = plan(items)
    assert report.arena_sizes == {1: 416, 3: 112}
    assert offsets[2] == 0
    with pytest.raises(MemoryPlanError) as caught:
        plan(items, arena_limits={1: 200})
    message = str(caught.value)
    assert "arena 1" in message
    assert "200" in message
    assert "416" in message
    assert "big (400)" in message


def test_an_unknown_planner_is_refused_by_name() -> None:
    with pytest.raises(MemoryPlanError, match="no such planner") as caught:
        plan([], planner_name="clever")
    assert caught.value.found == "clever"
    assert "greedy" in str(caught.value.expected)


def test_a_registered_planner_is_used_and_its_faults_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    register("stacked", lambda problem: [0] * len(problem))
    assert "stacked" in planner_names()
    with pytest.raises(MemoryPlanError, match="same memory"):
        plan([Buffer("a", 16, 0, 1), Buffer("b", 16, 1, 2)], planner_name="stacked")
    with pytest.raises(MemoryPlanError, match="already"):
        register("greedy", lambda problem: [0] * len(problem))


@given(items=buffers(), seed=st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_the_check_agrees_with_a_comparison_of_all_pairs(items: list[Buffer], seed: int) -> None:
    draw = random.Random(seed)
    offsets = [16 * draw.randrange(60) for _ in items]
    size = max((o + b.nbytes for o, b in zip(offsets, items, strict=True)), default=0)
    wrong = brute_force_overlap(Problem(items), offsets)
    if wrong:
        with pytest.raises(MemoryPlanError, match="same memory"):
            check_plan(items, offsets, 16, size)
    else:
        check_plan(items, offsets, 16, size)


@pytest.mark.parametrize(
    ("offsets", "size", "message"),
    [([8], 200, "not aligned"), ([16], 100, "outside"), ([0], 200, "pin")],
)
def test_the_check_refuses_a_misplaced_buffer(offsets: list[int], size: int, message: str) -> None:
    with pytest.raises(MemoryPlanError, match=message):
        check_plan([Buffer("a", 100, 0, 1, pin=16)], offsets, 16, size)


def test_a_thousand_tensors_are_planned_within_the_work_limit() -> None:
    draw = random.Random(1)
    items = [
        Buffer(f"t{i}", draw.randrange(16, 4000), i, i + draw.choice([1, 1, 2, 3, 8, 40]))
        for i in range(1300)
    ]
    problem = Problem(items)
    assert problem.peak(best.plan(problem)) <= 1.1 * problem.lower_bound
