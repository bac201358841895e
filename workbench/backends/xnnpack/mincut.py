"""The cheapest cut between a source and a sink, by Dinic's algorithm (1970)."""

from __future__ import annotations

from collections import deque

__all__ = ["Network"]


class Network:
    """A directed network with whole capacities. Vertices are numbers; 0 is the source, 1 the sink."""

    SOURCE, SINK = 0, 1
    UNLIMITED = 1 << 62

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]  # of each vertex, numbers of arcs
        self._to: list[int] = []
        self._left: list[int] = []

    def vertex(self) -> int:
        """Add a vertex."""
        self._edges.append([])
        return len(self._edges) - 1

    def arc(self, start: int, end: int, capacity: int) -> None:
        """Add an arc."""
        if start == end:
            return
        for a, b, room in ((start, end, capacity), (end, start, 0)):
            self._edges[a].append(len(self._to))
            self._to.append(b)
            self._left.append(room)

    def sink_side(self) -> set[int]:
        """The vertices on the sink's side of the cheapest cut that has the fewest there."""
        while True:
            levels = self._levels()
            if levels[self.SINK] < 0:
                break
            places = [0] * len(self._edges)
            while self._push(levels, places):
                pass
        return self._reaching_sink()

    def _levels(self) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[self.SOURCE] = 0
        queue = deque([self.SOURCE])
        while queue:
            vertex = queue.popleft()
            for arc in self._edges[vertex]:
                if self._left[arc] > 0 and levels[self._to[arc]] < 0:
                    levels[self._to[arc]] = levels[vertex] + 1
                    queue.append(self._to[arc])
        return levels

    def _push(self, levels: list[int], places: list[int]) -> int:
        """Send flow along one shortest path, found without recursion; gives its amount."""
        path: list[int] = []
        vertex = self.SOURCE
        while vertex != self.SINK:
            arcs = self._edges[vertex]
            while places[vertex] < len(arcs):
                arc = arcs[places[vertex]]
                if self._left[arc] > 0 and levels[self._to[arc]] == levels[vertex] + 1:
                    path.append(arc)
                    vertex = self._to[arc]
                    break
                places[vertex] += 1
            else:
                if not path:
                    return 0
                vertex = self._to[path.pop() ^ 1]
                places[vertex] += 1
        amount = min(self._left[arc] for arc in path)
        for arc in path:
            self._left[arc] -= amount
            self._left[arc ^ 1] += amount
        return amount

    def _reaching_sink(self) -> set[int]:
        found = {self.SINK}
        queue = deque(found)
        while queue:
            vertex = queue.popleft()
            for arc in self._edges[vertex]:
                source = self._to[arc]
                # The arc's partner leads here.
                if self._left[arc ^ 1] > 0 and source not in found:
                    found.add(source)
                    queue.append(source)
        return found
