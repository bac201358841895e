"""Groups the supported nodes of an acyclic graph: few groups, convex, and acyclic together.

The work is done in three steps, each linear in nodes and edges but for the last, which has a budget:

1. *Levels.* The level of a node is the largest number of times that a path to it goes from an unsupported
node back
   to a supported one. Edges never lead to a lower level, and an edge from an unsupported to a supported node
   leads to a higher one. So the supported nodes of one level are convex, and the levels' groups are acyclic
   together.
2. *Late binding.* Levels are lower bounds. Against the order of the graph, a supported node moves up to the
level of
   the user that it feeds, where all its other users allow it, so that a chain joins what it feeds.
3. *Contraction.* Connected components of a level are the first groups. Then each edge between two groups is
contracted
   if no other path connects them. The search is limited to the part of a topological order between the two,
   which is kept up to date as in Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic
   Graphs" (2006), section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["group_supported"]

_NONE = -1


def group_supported(
    predecessors: Sequence[Sequence[int]], supported: Sequence[bool], *, merge_disconnected: bool = False
) -> list[int]:
    """Group supported nodes.

    Args:
        predecessors: For each of N nodes, in topological order, the nodes whose results it uses.
        supported: For each node whether it may be in a group.
        merge_disconnected: Put all of a level into one group, though no edge connects its parts. Fewer
            groups, and parts that could run one after the other are forced to run together.

    Returns:
        For each node its group, numbered from 0 in the order of their first nodes; -1 for an unsupported
        node. Every supported node is in a group, every group is convex, and the graph with all groups
        contracted is acyclic. Unless the budget of step 3 ran out (about 10 visits for each node and edge),
        no two groups with an edge between them could be merged.
    """
    successors: list[list[int]] = [[] for _ in predecessors]
    for node, sources in enumerate(predecessors):
        for source in sources:
            successors[source].append(node)
    levels = _late_levels(predecessors, successors, supported)
    groups = _level_groups(predecessors, supported, levels, merge_disconnected)
    quotient = _Quotient(predecessors, supported, levels, groups)
    quotient.contract_all(10 * (len(predecessors) + sum(map(len, predecessors))) + 1000)
    return _renumbered(
        quotient.group_of(node) if supported[node] else _NONE for node in range(len(predecessors))
    )


def _late_levels(
    predecessors: Sequence[Sequence[int]], successors: Sequence[Sequence[int]], supported: Sequence[bool]
) -> list[int]:
    """Steps 1 and 2."""
    earliest = [0] * len(predecessors)
    for node, sources in enumerate(predecessors):
        own = supported[node]
        earliest[node] = max((earliest[s] + (own and not supported[s]) for s in sources), default=0)
    top = max(earliest, default=0) + 1  # above all: what feeds no supported node doesn't bind
    levels = [top] * len(predecessors)
    for node in range(len(predecessors) - 1, -1, -1):
        own = supported[node]
        latest = min((levels[u] - (supported[u] and not own) for u in successors[node]), default=top)
        if not own or any(supported[u] and levels[u] == latest for u in successors[node]):
            levels[node] = latest
        else:
            levels[node] = earliest[node]
    return levels


def _level_groups(
    predecessors: Sequence[Sequence[int]], supported: Sequence[bool], levels: Sequence[int], merge: bool
) -> list[int]:
    """For each supported node the smallest node of its component within its level (or of its whole level)."""
    parent = list(range(len(predecessors)))

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    first_of_level: dict[int, int] = {}
    for node, sources in enumerate(predecessors):
        if not supported[node]:
            continue
        joined = [s for s in sources if supported[s] and levels[s] == levels[node]]
        if merge:
            joined.append(first_of_level.setdefault(levels[node], node))
        for source in joined:
            a, b = find(source), find(node)
            parent[max(a, b)] = min(a, b)
    return [find(node) for node in range(len(predecessors))]


class _Quotient:
    """The graph in which each group is one vertex, with a topological order that contractions keep valid."""

    def __init__(
        self,
        predecessors: Sequence[Sequence[int]],
        supported: Sequence[bool],
        levels: Sequence[int],
        groups: Sequence[int],
    ) -> None:
        self._merged_into = list(groups)
        count = len(predecessors)
        self._into: list[set[int]] = [set() for _ in range(count)]
        self._from: list[set[int]] = [set() for _ in range(count)]
        self._fusible: list[tuple[int, int]] = []
        for node, sources in enumerate(predecessors):
            for source in sources:
                a, b = groups[source], groups[node]
                if a == b:
                    continue
                if supported[source] and supported[node] and b not in self._from[a]:
                    self._fusible.append((a, b))
                self._from[a].add(b)
                self._into[b].add(a)
        vertices = [v for v in range(count) if groups[v] == v]
        # Within a level its groups come first (they have no edges to each other), then unsupported nodes.
        vertices.sort(key=lambda v: (levels[v], not supported[v], v))
        self._position = [0] * count
        for position, vertex in enumerate(vertices):
            self._position[vertex] = position

    def group_of(self, node: int) -> int:
        """The vertex that a node is in."""
        merged = self._merged_into
        while merged[node] != node:
            merged[node] = merged[merged[node]]
            node = merged[node]
        return node

    def contract_all(self, budget: int) -> None:
        """Contract edges between groups until none can be, or the budget of visits is spent."""
        pending, changed = self._fusible, True
        while changed and pending:
            changed, blocked = False, []
            for source, target in pending:
                a, b = self.group_of(source), self.group_of(target)
                if a == b:
                    continue
                if budget < 0:
                    return
                forward, cost = self._other_paths(a, b)
                budget -= cost
                if forward is None:
                    blocked.append((a, b))
                else:
                    budget -= self._contract(a, b, forward)
                    changed = True
            pending = blocked

    def _other_paths(self, a: int, b: int) -> tuple[list[int] | None, int]:
        """What a reaches before b, or None if something of it reaches b; and the cost of finding out."""
        if self._position[a] > self._position[b]:  # pragma: no cover - an edge never points backwards
            raise AssertionError("the order of the quotient graph is broken")
        limit, seen, stack, cost = self._position[b], {a}, [a], 0
        while stack:
            vertex = stack.pop()
            for successor in self._from[vertex]:
                cost += 1
                if successor == b:
                    if vertex != a:
                        return None, cost
                elif self._position[successor] < limit and successor not in seen:
                    seen.add(successor)
                    stack.append(successor)
        seen.discard(a)
        return list(seen), cost

    def _contract(self, a: int, b: int, forward: list[int]) -> int:
        """Merge b into a. `forward`: what a reaches before b; it moves behind the merged vertex."""
        floor, seen, stack, cost = self._position[a], {b}, [b], 0
        while stack:
            for source in self._into[stack.pop()]:
                cost += 1
                if source != a and self._position[source] > floor and source not in seen:
                    seen.add(source)
                    stack.append(source)
        seen.discard(b)
        order = [
            *sorted(seen, key=self._position.__getitem__),
            a,
            *sorted(forward, key=self._position.__getitem__),
        ]
        slots = sorted([self._position[v] for v in order] + [self._position[b]])
        # One slot falls free: that of the merged vertex's two that lies further back is not needed.
        for vertex, slot in zip(order[: len(seen)], slots, strict=False):
            self._position[vertex] = slot
        for vertex, slot in zip(order[len(seen) :], slots[len(seen) + 1 :], strict=True):
            self._position[vertex] = slot
        self._relink(a, b)
        return cost

    def _relink(self, a: int, b: int) -> None:
        for successor in self._from[b]:
            self._into[successor].discard(b)
            self._into[successor].add(a)
        for source in self._into[b]:
            self._from[source].discard(b)
            self._from[source].add(a)
        self._from[a] = (self._from[a] | self._from[b]) - {a, b}
        self._into[a] = (self._into[a] | self._into[b]) - {a, b}
        self._merged_into[b] = a


def _renumbered(groups: Iterable[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [_NONE if group == _NONE else numbers.setdefault(group, len(numbers)) for group in groups]
