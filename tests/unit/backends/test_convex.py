import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.backends.convex import group_supported


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[bool]]:
    count = draw(st.integers(1, 24))
    predecessors = [
        sorted(draw(st.sets(st.integers(0, node - 1), max_size=4))) if node else [] for node in range(count)
    ]
    return predecessors, draw(st.lists(st.booleans(), min_size=count, max_size=count))


def contracted_is_acyclic(predecessors: list[list[int]], groups: list[int]) -> bool:
    vertex = [("group", g) if g >= 0 else ("node", n) for n, g in enumerate(groups)]
    successors: dict[object, set[object]] = {v: set() for v in vertex}
    for node, sources in enumerate(predecessors):
        for source in sources:
            if vertex[source] != vertex[node]:
                successors[vertex[source]].add(vertex[node])
    waiting = dict.fromkeys(successors, 0)
    for targets in successors.values():
        for target in targets:
            waiting[target] += 1
    ready = [v for v, n in waiting.items() if n == 0]
    done = 0
    while ready:
        done += 1
        for target in successors[ready.pop()]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return done == len(successors)


@settings(max_examples=400, deadline=None)
@given(graphs(), st.booleans())
def test_groups_cover_exactly_the_supported_nodes_and_are_acyclic(graph, merge):
    predecessors, supported = graph
    groups = group_supported(predecessors, supported, merge_disconnected=merge)
    assert [g >= 0 for g in groups] == supported
    assert contracted_is_acyclic(predecessors, groups)


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_no_two_connected_groups_could_be_merged(graph):
    predecessors, supported = graph
    groups = group_supported(predecessors, supported)
    for node, sources in enumerate(predecessors):
        for source in sources:
            a, b = groups[source], groups[node]
            if a >= 0 and b >= 0 and a != b:
                merged = [a if g == b else g for g in groups]
                assert not contracted_is_acyclic(predecessors, merged)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_groups_are_connected_unless_asked_otherwise(graph):
    predecessors, supported = graph
    groups = group_supported(predecessors, supported)
    neighbours: dict[int, set[int]] = {n: set() for n in range(len(groups))}
    for node, sources in enumerate(predecessors):
        for source in sources:
            if groups[source] == groups[node] >= 0:
                neighbours[source].add(node)
                neighbours[node].add(source)
    for number in set(groups) - {-1}:
        members = {n for n, g in enumerate(groups) if g == number}
        seen, stack = set(), [min(members)]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(neighbours[node])
        assert seen == members


def test_residual_around_an_unsupported_node_makes_two_groups():
    # 0 -> 1 (unsupported) -> 2, and 0 -> 2 directly: {0, 2} would enclose 1.
    assert group_supported([[], [0], [0, 1]], [True, False, True]) == [0, -1, 1]


def test_chain_that_feeds_a_later_group_joins_it():
    # 0 and 2 (after the unsupported 1) meet in 3; 0 has no other use, so it belongs to the later group.
    groups = group_supported([[], [], [1], [0, 2]], [True, False, True, True])
    assert groups == [0, -1, 0, 0]


def test_disconnected_parts_of_a_level_share_a_group_only_when_asked():
    assert group_supported([[], []], [True, True]) == [0, 1]
    assert group_supported([[], []], [True, True], merge_disconnected=True) == [0, 0]


@pytest.mark.parametrize("reach", [50, 10_000])
def test_ten_thousand_nodes_take_less_than_a_second(reach):
    rng = random.Random(7)
    count = 10_000
    predecessors = [
        sorted({rng.randrange(max(0, node - reach), node) for _ in range(2)}) if node else []
        for node in range(count)
    ]
    supported = [rng.random() < 0.8 for _ in range(count)]
    start = time.perf_counter()
    groups = group_supported(predecessors, supported)
    assert time.perf_counter() - start < 1.0
    assert contracted_is_acyclic(predecessors, groups)
