"""Is a partition legal, and if not, which nodes and which path show it? For all tags, before lowering.

All checks together take time linear in the size of the program, so that an editor can ask after each stroke.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.backends import registry
from workbench.backends.base import DelegationSpec
from workbench.backends.graphs import (
    constant_inputs,
    graphs_of,
    is_getitem,
    is_structured,
    is_symbolic_scalar,
    mutated_buffers,
    tag_of,
)
from workbench.errors import PartitionError

__all__ = ["Legality", "Violation", "check_partition", "raise_on", "verify_partition"]


@dataclass(frozen=True)
class Violation:
    """One reason why a partition can't be lowered.

    Attributes:
        kind: `unknown-tag`, `no-backend`, `not-delegable`, `spans-graphs`, `split-result`,
            `symbolic-output`, `cycle`, `constant` or `mutable-buffer`.
        tag: The tag.
        nodes: The nodes that break the rule, by name.
        message: The rule and how it is broken, in one sentence.
        path: For a cycle: the nodes along which data leaves the tag and comes back to it.
        hint: What would make it legal.
        source: `file:line` of the first node.
    """

    kind: str
    tag: str
    nodes: tuple[str, ...]
    message: str
    path: tuple[str, ...] = ()
    hint: str = ""
    source: str | None = None


def verify_partition(program: ExportedProgram, partition_tags: Mapping[str, DelegationSpec]) -> None:
    """Raise if the tags of a program can't be lowered.

    Raises:
        PartitionError: Names the tag, the nodes and, for a cycle, the path that closes it.
    """
    raise_on(check_partition(program, partition_tags))


def raise_on(violations: Sequence[Violation]) -> None:
    """Raise the first violation as an error, with the number of the others.

    Raises:
        PartitionError: There is one.
    """
    if not violations:
        return
    first = violations[0]
    others = len(violations) - 1
    raise PartitionError(
        first.message,
        stage="partition",
        node=", ".join(first.nodes) or None,
        source=first.source,
        found=" -> ".join(first.path) or None,
        hint=first.hint + (f" ({others} more violations)" if others else "") or None,
    )


def check_partition(
    program: ExportedProgram, partition_tags: Mapping[str, DelegationSpec]
) -> list[Violation]:
    """All rules that the tags of a program break; an empty list means that it can be lowered."""
    return Legality(program).check(partition_tags)


class Legality:
    """The checks of one program, to be asked again and again while its tags change.

    Args:
        program: The program. Only its tags may change.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        constants = frozenset(constant_inputs(program))
        self._graphs = [
            _Graph(path, graph_module, constants if path == "" else frozenset())
            for path, graph_module in graphs_of(program)
        ]

    def check(self, partition_tags: Mapping[str, DelegationSpec]) -> list[Violation]:
        """All rules that the tags break now."""
        return list(self.violations(partition_tags))

    def violations(self, partition_tags: Mapping[str, DelegationSpec]) -> Iterator[Violation]:
        """The rules that the tags break now, found one after the other."""
        yield from _check_names(self._graphs, partition_tags)
        for graph in self._graphs:
            for node in graph.watched:
                if tag_of(node) is not None:
                    yield from _check_node(node, graph.constants)
                elif is_getitem(node):
                    yield from _check_getitem(node)
            yield from _check_cycles(graph)
        yield from _check_mutable_buffers(self._program)

    def stuck_tags(self) -> set[str]:
        """The tags that lie on a cycle of the contracted graph, or between two."""
        return {vertex for graph in self._graphs for vertex in graph.stuck() if isinstance(vertex, str)}


class _Graph:
    """One graph of a program: what its checks need and tags don't change."""

    def __init__(self, path: str, graph_module: GraphModule, constants: frozenset[str]) -> None:
        self.path = path
        self.constants = constants
        self.nodes: list[Node] = list(graph_module.graph.nodes)
        # The others are plain operators, which may have any tag.
        self.watched = [n for n in self.nodes if _is_watched(n)]
        index = {node: at for at, node in enumerate(self.nodes)}
        self._inputs = [[index[source] for source in node.all_input_nodes] for node in self.nodes]
        self._users = [[index[user] for user in node.users] for node in self.nodes]
        self._is_operator = [node.op == "call_function" for node in self.nodes]

    def members(self) -> dict[str, list[Node]]:
        """The operators of each tag, in graph order."""
        found: dict[str, list[Node]] = {}
        for node, operator in zip(self.nodes, self._is_operator, strict=True):
            if operator and (tag := tag_of(node)) is not None:
                found.setdefault(tag, []).append(node)
        return found

    def stuck(self) -> set[str | Node]:
        """The vertices of the contracted graph that lie on a cycle or between two."""
        # Vertices are numbers: a node its own, a tag one behind all nodes.
        numbers: dict[str, int] = {}
        vertex = list(range(len(self.nodes)))
        inside: list[list[int]] = []
        for at, node in enumerate(self.nodes):
            if not self._is_operator[at] or (tag := tag_of(node)) is None:
                continue
            number = numbers.setdefault(tag, len(numbers))
            if number == len(inside):
                inside.append([])
            inside[number].append(at)
            vertex[at] = len(self.nodes) + number
        if not numbers:
            return set()
        # What a topological order reaches from the front, and what it reaches from the back of the rest.
        done = bytearray(len(self.nodes) + len(inside))
        self._reach(vertex, inside, self._inputs, self._users, done)
        if all(done[number] for number in vertex):
            return set()
        self._reach(vertex, inside, self._users, self._inputs, done)
        left: set[str | Node] = {
            node for at, node in enumerate(self.nodes) if vertex[at] == at and not done[at]
        }
        left.update(tag for tag, number in numbers.items() if not done[len(self.nodes) + number])
        return left

    def _reach(
        self,
        vertex: list[int],
        inside: list[list[int]],
        before: list[list[int]],
        behind: list[list[int]],
        done: bytearray,
    ) -> None:
        """Mark the vertices that a topological order of those that aren't marked yet reaches."""
        size = len(self.nodes)
        waiting = [0] * len(done)
        for at, sources in enumerate(before):
            own = vertex[at]
            for source in sources:
                if vertex[source] != own and not done[vertex[source]]:
                    waiting[own] += 1
        ready = [number for number, inputs in enumerate(waiting) if inputs == 0 and not done[number]]
        while ready:
            number = ready.pop()
            done[number] = 1
            for at in inside[number - size] if number >= size else (number,):
                if vertex[at] != number:
                    continue
                for user in behind[at]:
                    target = vertex[user]
                    if target != number and not done[target]:
                        waiting[target] -= 1
                        if waiting[target] == 0:
                            ready.append(target)


def _is_watched(node: Node) -> bool:
    return node.op != "call_function" or is_getitem(node) or is_symbolic_scalar(node)


def _violation(kind: str, tag: str, nodes: Sequence[Node], message: str, *, hint: str = "") -> Violation:
    source = next(filter(None, map(provenance.source_line, nodes)), None)
    return Violation(kind, tag, tuple(node.name for node in nodes), message, hint=hint, source=source)


def _check_names(graphs: Sequence[_Graph], partition_tags: Mapping[str, DelegationSpec]) -> list[Violation]:
    """Every tag has a backend, and stands in one graph only."""
    found = []
    first_node: dict[str, tuple[str, Node]] = {}
    spanning: set[str] = set()
    for graph in graphs:
        for node in graph.nodes:
            tag = tag_of(node)
            if tag is None:
                continue
            known_path, known = first_node.setdefault(tag, (graph.path, node))
            if known_path != graph.path and tag not in spanning:
                spanning.add(tag)
                places = " and ".join(f"'{p}'" if p else "the top graph" for p in (known_path, graph.path))
                found.append(
                    _violation(
                        "spans-graphs",
                        tag,
                        [known, node],
                        f"the tag '{tag}' stands in {places}",
                        hint="a delegate can't reach across control flow: give each graph its own tags",
                    )
                )
    for tag, (_, node) in first_node.items():
        spec = partition_tags.get(tag)
        if spec is None:
            known_tags = ", ".join(partition_tags) or "none"
            found.append(
                _violation(
                    "unknown-tag",
                    tag,
                    [node],
                    f"the tag '{tag}' is in no entry of partition_tags",
                    hint=f"known tags: {known_tags}",
                )
            )
            continue
        try:
            registry.get_backend(spec.backend_id)
        except PartitionError as error:
            found.append(
                _violation(
                    "no-backend",
                    tag,
                    [node],
                    f"the tag '{tag}' names a backend that isn't there: {error.message}",
                    hint=error.hint or "",
                )
            )
    return found


def _check_node(node: Node, constants: frozenset[str]) -> list[Violation]:
    """The node is of a kind that can be delegated, and what it hands out can leave a delegate."""
    tag = tag_of(node)
    assert tag is not None
    if node.op == "placeholder":
        if node.name in constants:
            return _check_constant(node, tag)
        return [
            _violation(
                "not-delegable",
                tag,
                [node],
                f"the tag '{tag}' stands on the input '{node.name}'",
                hint="only parameters, buffers and constants can be owned by a delegate",
            )
        ]
    if node.op not in ("call_function", "get_attr"):
        return [
            _violation(
                "not-delegable",
                tag,
                [node],
                f"the tag '{tag}' stands on an '{node.op}' node",
                hint="tag operators only",
            )
        ]
    if node.op == "get_attr":
        return []
    found = _check_getitem(node)
    outside = [user for user in node.users if tag_of(user) != tag]
    if outside and is_symbolic_scalar(node):
        found.append(
            _violation(
                "symbolic-output",
                tag,
                [node, *outside[:1]],
                f"'{outside[0].name}' outside the tag '{tag}' uses the number that '{node.name}' computes",
                hint="a delegate returns tensors only: leave the node out of the tag, or take its users in",
            )
        )
    return found


def _check_getitem(node: Node) -> list[Violation]:
    """A node with several outputs and the nodes that take them apart stay together."""
    producer = node.args[0] if is_getitem(node) else None
    if not isinstance(producer, Node) or not is_structured(producer) or tag_of(producer) == tag_of(node):
        return []
    here, there = tag_of(node), tag_of(producer)
    tag = here or there
    assert tag is not None
    return [
        _violation(
            "split-result",
            tag,
            [producer, node],
            f"'{node.name}' takes an element of the result of '{producer.name}', but "
            f"{_tagged(here)} while the producer {_tagged(there).removeprefix('it ')}",
            hint="give both the same tag",
        )
    ]


def _tagged(tag: str | None) -> str:
    return "it has no tag" if tag is None else f"it has the tag '{tag}'"


def _check_constant(node: Node, tag: str) -> list[Violation]:
    if not node.meta.get("no_copy"):
        return []
    others = [user for user in node.users if tag_of(user) != tag]
    if not others:
        return []
    return [
        _violation(
            "constant",
            tag,
            [node, others[0]],
            f"the constant '{node.name}' belongs to the tag '{tag}' and must not be copied, "
            f"but '{others[0].name}' outside the tag uses it",
            hint="drop the mark `no_copy`, or leave the constant untagged so that it is passed in",
        )
    ]


def _check_mutable_buffers(program: ExportedProgram) -> list[Violation]:
    """A delegate that owns a buffer's state owns its every use."""
    writers = mutated_buffers(program)
    if not writers:
        return []
    by_name = {node.name: node for node in program.graph.nodes}
    found = []
    for name, writer_name in writers.items():
        node, writer = by_name[name], by_name[writer_name]
        tag = tag_of(node)
        if tag is None:
            continue
        strangers = [
            other for other in (*node.users, writer) if other.op != "output" and tag_of(other) != tag
        ]
        if strangers:
            found.append(
                _violation(
                    "mutable-buffer",
                    tag,
                    [node, strangers[0]],
                    f"the state in buffer '{name}' would belong to '{tag}', but '{strangers[0].name}' "
                    f"outside the tag {'writes' if strangers[0] is writer else 'reads'} it",
                    hint="leave the buffer untagged: then its value goes in and the new value comes out",
                )
            )
    return found


def _check_cycles(graph: _Graph) -> Iterator[Violation]:
    """With each tag contracted to one vertex, the graph has no cycle."""
    stuck = graph.stuck()
    if not stuck:
        return
    members = graph.members()
    for tag, nodes in members.items():
        path = _closing_path(tag, nodes, members, stuck) if tag in stuck else []
        if path:
            between = [node for node in path[1:-1] if tag_of(node) != tag]
            yield Violation(
                "cycle",
                tag,
                tuple(node.name for node in between),
                f"the tag '{tag}' isn't convex: its result '{path[0].name}' goes through "
                f"'{between[0].name}' outside the tag back into it, to '{path[-1].name}'",
                path=tuple(node.name for node in path),
                hint=f"put '{between[0].name}' into the tag as well, or split the tag in two there",
                source=provenance.source_line(between[0]),
            )


def _vertex(node: Node) -> str | Node:
    tag = tag_of(node)
    return tag if tag is not None and node.op == "call_function" else node


def _closing_path(
    tag: str, nodes: Sequence[Node], members: Mapping[str, Sequence[Node]], stuck: set[str | Node]
) -> list[Node]:
    """The shortest way out of a tag and back into it, as nodes; empty if the tag only lies behind a cycle."""
    came_from: dict[Node, Node | None] = {}
    visited: set[str | Node] = set()
    queue: deque[Node] = deque()
    for node in nodes:
        came_from[node] = None
        queue.append(node)
    while queue:
        node = queue.popleft()
        for user in node.users:
            vertex = _vertex(user)
            if vertex == tag:
                if tag_of(node) != tag:
                    return _walk_back(came_from, node, user)
                continue
            if vertex not in stuck or vertex in visited:
                continue
            visited.add(vertex)
            came_from[user] = node
            queue.append(user)
            # Another tag runs as a whole: whoever enters it can leave it from any of its nodes.
            for inner in members[vertex] if isinstance(vertex, str) else ():
                if inner is not user:
                    came_from[inner] = user
                    queue.append(inner)
    return []


def _walk_back(came_from: Mapping[Node, Node | None], last: Node, end: Node) -> list[Node]:
    path, step = [end], last
    while True:
        path.append(step)
        previous = came_from[step]
        if previous is None:
            return path[::-1]
        step = previous
