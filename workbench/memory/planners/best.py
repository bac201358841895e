"""Several orders, then a local search on the best of them; stops as soon as the lower bound is reached.

The orders: by size and by the load at the buffer's moments ("greedy by size" and "greedy by breadth" of
Pisarchyk and Lee, arXiv:2001.03288), by lifetime (after Sekiyama et al., "Profile-guided memory optimization
for deep neural networks", arXiv:1804.10001), by size times lifetime, by first moment and by last moment. The
search is a hill climb on the order, as Arm's Vela compiler does it: what lies on top of the peak, and what is
in its way, goes to the front. It ends after a fixed amount of work, not of time, so that equal problems get
equal plans.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from workbench.memory.placement import place
from workbench.memory.problem import Problem

__all__ = ["plan"]

WORK = 400_000
"""Neighbours that the search may look at, in all; some 0.1 s."""

_TURNS = 1000


def plan(problem: Problem) -> list[int]:
    """The plan that takes the fewest bytes of those that were tried."""
    best: list[int] | None = None
    best_order: list[int] = []
    peak = None
    for order in _orders(problem):
        for best_fit in (True, False):
            found = place(problem, order, best_fit=best_fit, stop=peak)
            if found is None:
                continue
            size = problem.peak(found)
            if peak is None or size < peak:
                best, best_order, peak = found, order, size
            if peak <= problem.lower_bound:
                return best or []
    if best is None or peak is None:
        return []
    return _climb(problem, best_order, best, peak)


def _orders(problem: Problem) -> Iterator[list[int]]:
    indices = range(len(problem))
    size, first, last = problem.sizes, problem.first, problem.last
    yield sorted(indices, key=lambda i: (-size[i], first[i], i))
    yield sorted(indices, key=lambda i: (-size[i] * (last[i] - first[i] + 1), first[i], i))
    yield sorted(indices, key=lambda i: (first[i] - last[i], -size[i], i))
    breadth = _breadth(problem)
    yield sorted(indices, key=lambda i: (-breadth[i], -size[i], first[i], i))
    yield sorted(indices, key=lambda i: (first[i], -size[i], i))
    yield sorted(indices, key=lambda i: (-last[i], -size[i], i))


def _breadth(problem: Problem) -> list[int]:
    """For each buffer the greatest load during its life."""
    load = [0] * len(problem)
    for index, own in enumerate(problem.neighbors):
        load[index] = problem.sizes[index] + sum(problem.sizes[other] for other in own)
    moments = problem.load
    if len(moments) * len(problem) > WORK:
        return load  # An upper bound will do.
    for index in range(len(problem)):
        inside = (
            bytes_ for moment, bytes_ in moments if problem.first[index] <= moment <= problem.last[index]
        )
        load[index] = max(inside, default=0)
    return load


def _climb(problem: Problem, order: list[int], best: list[int], peak: int) -> list[int]:
    """Move buffers at the peak to the front of the order as long as the work lasts."""
    draw = random.Random(0)
    pairs = sum(map(len, problem.neighbors)) + len(problem)
    rank = list(order)
    for _ in range(min(_TURNS, WORK // (pairs + 20 * len(problem)))):
        top = [i for i in range(len(problem)) if problem.sizes[i] and best[i] + problem.sizes[i] == peak]
        victim = draw.choice(top)
        crowd = [*problem.neighbors[victim], victim]
        trial = list(rank)
        for moved in {victim, draw.choice(crowd)}:
            trial.remove(moved)
            trial.insert(draw.randrange(max(1, len(trial) // draw.choice((1, 2, 8)))), moved)
        found = place(problem, trial, best_fit=draw.random() < 0.5, stop=peak + 1)
        if found is None:
            continue
        rank = trial
        size = problem.peak(found)
        if size <= peak:
            best, peak = found, size
        if peak <= problem.lower_bound:
            break
    return best
