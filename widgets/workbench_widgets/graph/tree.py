"""Containers of a graph: the modules, control flow, delegates, and groups where one would hold too many."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LIMIT", "Tree", "finish", "lift"]

Ints = npt.NDArray[np.int32]

# A container with more parts than this is cut into groups of about `_GROUP`.
LIMIT = 300
_GROUP = 110


class Tree:
    """Containers as columns; the first is the root. Parents come first.

    Attributes:
        parents: Of each container the one around it; -1 for the root.
        names: Name within it.
        paths: Unique paths.
        types: Class, backend or operator.
        kinds: As `GraphDocument.module_kind`.
    """

    def __init__(self) -> None:
        self.parents: list[int] = [-1]
        self.names: list[str] = [""]
        self.paths: list[str] = [""]
        self.types: list[str] = [""]
        self.kinds: list[str] = ["module"]
        self._keys: dict[tuple[int, str], int] = {}
        self._taken: set[str] = {""}

    def __len__(self) -> int:
        return len(self.parents)

    def root(self, kind: str) -> None:
        """The class of the whole."""
        self.types[0] = self.types[0] or kind

    def known(self, scope: int, key: str) -> int | None:
        """The container of a module's call, by torch's key for it, within a graph (the scope)."""
        return self._keys.get((scope, key))

    def remember(self, scope: int, key: str, module: int) -> None:
        """Let `known` find a container."""
        self._keys[scope, key] = module

    def module(self, parent: int, scope: int, key: str, path: str, kind: str) -> int:
        """A new container for a module's call. Several calls of a module are told apart."""
        call = key.rpartition("@")[2] if "@" in key else ""
        around = self._module_path(parent)
        inner = path[len(around) + 1 :] if around and path.startswith(f"{around}.") else path
        name = f"{inner}@{call}" if call else inner
        full = f"{path}@{call}" if call else path
        if scope:
            full = f"{self.paths[scope]}!{full}"
        made = self._append(parent, name, full, kind, "module")
        self._keys[scope, key] = made
        return made

    def add(self, parent: int, name: str, kind: str, group: str) -> int:
        """A new container that is no module."""
        return self._append(parent, name, f"{self.paths[parent]}/{name}", kind, group)

    def _append(self, parent: int, name: str, path: str, kind: str, group: str) -> int:
        unique, count = path, 1
        while unique in self._taken:
            count += 1
            unique = f"{path}#{count}"
        self._taken.add(unique)
        self.parents.append(parent)
        self.names.append(name)
        self.paths.append(unique)
        self.types.append(kind)
        self.kinds.append(group)
        return len(self.parents) - 1

    def _module_path(self, module: int) -> str:
        """The path of the innermost module around, without the number of its call."""
        while module > 0 and self.kinds[module] != "module":
            module = self.parents[module]
        return self.paths[module].rpartition("!")[2].partition("@")[0].partition("#")[0]

    def common(self, first: int, second: int) -> int:
        """The innermost container that holds both."""
        above = set()
        while first >= 0:
            above.add(first)
            first = self.parents[first]
        while second not in above:
            second = self.parents[second]
        return second


def lift(tree: Tree, module: Ints, src: Ints, dst: Ints) -> tuple[Ints, Ints, Ints]:
    """Where each edge runs: the innermost container that holds both ends, and the parts of it that hold them.

    Returns:
        container int32[edges], source int32[edges], target int32[edges]; a part is a node's row, or the
        number of nodes plus a container's row.
    """
    parent = np.array(tree.parents, np.int32)
    depth = np.zeros(len(parent), np.int32)
    for index in range(1, len(parent)):
        depth[index] = depth[parent[index]] + 1
    nodes = len(module)
    a, b = module[src], module[dst]
    left, right = src.astype(np.int32), dst.astype(np.int32)
    while True:
        apart = np.nonzero(a != b)[0]
        if not len(apart):
            return a, left, right
        deeper = depth[a[apart]] - depth[b[apart]]
        up, down = apart[deeper >= 0], apart[deeper <= 0]
        left[up] = nodes + a[up]
        right[down] = nodes + b[down]
        a[up], b[down] = parent[a[up]], parent[b[down]]


class _Parts:
    """The parts of each container in the order of their first rows, and the edges between them."""

    def __init__(self, tree: Tree, module: Ints, hidden: npt.NDArray[np.bool_], src: Ints, dst: Ints) -> None:
        nodes, containers = len(module), len(tree)
        first = np.full(nodes + containers, nodes, np.int64)
        first[:nodes] = np.arange(nodes)
        # A constant stands before its first user, not where all constants are declared.
        user = np.full(nodes, nodes, np.int64)
        np.minimum.at(user, src, dst)
        first[:nodes][hidden] = user[hidden]
        np.minimum.at(first, nodes + module[~hidden], first[:nodes][~hidden])
        parent = tree.parents
        for index in range(containers - 1, 0, -1):
            above = nodes + parent[index]
            first[above] = min(first[above], first[nodes + index])
        holder = np.concatenate([module, np.array(parent, np.int32)])
        order = np.lexsort((np.concatenate([~hidden, np.ones(containers, bool)]), first, holder))
        order = order[holder[order] >= 0]
        cuts = np.searchsorted(holder[order], np.arange(containers + 1))
        self.of = [order[cuts[i] : cuts[i + 1]] for i in range(containers)]
        self.place = np.zeros(nodes + containers, np.int64)
        for parts in self.of:
            self.place[parts] = np.arange(len(parts))
        at, left, right = lift(tree, module, src, dst)
        by = np.lexsort((self.place[right], self.place[left], at))
        self.left, self.right = left[by], right[by]
        self.cuts = np.searchsorted(at[by], np.arange(containers + 1))

    def edges(self, container: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of both ends of the edges within a container."""
        span = slice(self.cuts[container], self.cuts[container + 1])
        return self.place[self.left[span]], self.place[self.right[span]]


def finish(
    tree: Tree, module: Ints, hidden: npt.NDArray[np.bool_], signature: Any, src: Ints, dst: Ints
) -> tuple[Ints, npt.NDArray[np.uint32]]:
    """Cut what is too large into groups, and number the containers' structures.

    Args:
        tree: The containers; changed in place.
        module: Of each node its container, int32[nodes].
        hidden: Which nodes are constants, bool[nodes].
        signature: Of each node a number that is equal for equal operators on equal shapes, int64[nodes].
        src: Producers, int32[edges].
        dst: Consumers, int32[edges].

    Returns:
        The containers of the nodes, int32[nodes], and for each container the number of its structure,
        uint32[containers].
    """
    while True:
        parts = _Parts(tree, module, hidden, src, dst)
        shape = _structures(tree, parts, len(module), hidden, signature)
        grouped = _group(tree, parts, module, hidden, shape)
        if grouped is None:
            return module, shape
        module = grouped


def _structures(tree: Tree, parts: _Parts, nodes: int, hidden: Any, signature: Any) -> npt.NDArray[np.uint32]:
    # Equal tuples get equal numbers, so that equal numbers are a proof and not a likelihood.
    known: dict[Any, int] = {}
    number = np.zeros(nodes + len(tree), np.int64)
    number[:nodes] = -1 - np.asarray(signature, np.int64)
    for container in range(len(tree) - 1, -1, -1):
        members = parts.of[container]
        left, right = parts.edges(container)
        key = (tree.types[container], number[members].tobytes(), left.tobytes(), right.tobytes())
        number[nodes + container] = known.setdefault(key, len(known))
    return number[nodes:].astype(np.uint32)


def _group(tree: Tree, parts: _Parts, module: Ints, hidden: Any, shape: Any) -> Ints | None:
    """Cut each container with too many parts once; None where there is none."""
    nodes = len(module)
    moved = module.copy()
    parents = list(tree.parents)
    names: list[str] = []
    for container, members in enumerate(parts.of):
        count = _visible(members, nodes, hidden, shape)
        if count <= LIMIT:
            continue
        cuts = _cuts(parts, container, members, nodes, shape, max(2, min(LIMIT, round(count / _GROUP))))
        for number, (start, end) in enumerate(itertools.pairwise(cuts), start=1):
            made = len(tree) + len(names)
            parents.append(container)
            names.append(f"{tree.paths[container]}/part {number}")
            inside = members[start:end]
            moved[inside[inside < nodes]] = made
            for item in inside[inside >= nodes]:
                parents[int(item) - nodes] = made
    if not names:
        return None
    _append_groups(tree, parents, names)
    return _sorted(tree, moved)


def _visible(members: Any, nodes: int, hidden: Any, shape: Any) -> int:
    """How many boxes a container shows: equal modules in a row are one."""
    count, last = 0, -1
    for item in members.tolist():
        if item < nodes:
            count += not hidden[item]
            last = -1
        else:
            own = int(shape[item - nodes])
            count += own != last
            last = own
    return count


def _cuts(parts: _Parts, container: int, members: Any, nodes: int, shape: Any, groups: int) -> list[int]:
    """Places where to cut: near equal lengths, where the fewest edges are cut, and in no stack of equals."""
    length = len(members)
    left, right = parts.edges(container)
    low, high = np.minimum(left, right), np.maximum(left, right)
    crossing = np.cumsum(
        np.bincount(low + 1, minlength=length + 2) - np.bincount(high + 1, minlength=length + 2)
    )
    own = np.where(members >= nodes, shape[np.maximum(members - nodes, 0)].astype(np.int64), -1)
    stacked = np.zeros(length + 1, bool)
    stacked[1:length] = (own[1:] == own[:-1]) & (own[1:] >= 0)
    cost = np.where(stacked, np.inf, crossing[: length + 1].astype(np.float64))
    step = length / groups
    cuts = [0]
    for number in range(1, groups):
        middle, reach = round(number * step), max(1, round(step / 4))
        begin, end = max(cuts[-1] + 1, middle - reach), min(length - 1, middle + reach)
        if begin > end:
            continue
        window = cost[begin : end + 1] + np.abs(np.arange(begin, end + 1) - middle) / (reach + 1)
        best = begin + int(np.argmin(window))
        if np.isfinite(cost[best]):
            cuts.append(best)
    return [*cuts, length]


def _append_groups(tree: Tree, parents: list[int], names: list[str]) -> None:
    for name in names:
        tree._append(0, name.rpartition("/")[2], name, "", "group")
    tree.parents = parents


def _sorted(tree: Tree, module: Ints) -> Ints:
    """Put parents before what they hold."""
    depth: dict[int, int] = {0: 0}

    def deep(index: int) -> int:
        if index not in depth:
            depth[index] = deep(tree.parents[index]) + 1
        return depth[index]

    order = sorted(range(len(tree)), key=deep)
    place = np.zeros(len(tree), np.int32)
    place[order] = np.arange(len(tree), dtype=np.int32)
    tree.parents = [-1 if tree.parents[i] < 0 else int(place[tree.parents[i]]) for i in order]
    for column in (tree.names, tree.paths, tree.types, tree.kinds):
        column[:] = [column[i] for i in order]
    return place[module]
