"""A partitioner made from one question: can the backend run this node, and if not, why?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import count

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.backends.base import (
    TAG_KEY,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    Supported,
    WhyNot,
)
from workbench.backends.call_delegate import is_call_delegate
from workbench.backends.constants import tag_constant_data, tag_mutated_buffer
from workbench.backends.convex import group_supported
from workbench.backends.graphs import graphs_of, is_getitem, is_structured, is_symbolic_scalar

__all__ = ["CapabilityPartitioner", "group_nodes", "is_delegated"]


class CapabilityPartitioner(Partitioner):
    """Gathers what a backend supports into few convex partitions. Subclasses implement `supports`.

    Args:
        backend_id: The backend.
        compile_specs: Its settings, the same for all partitions.
        min_nodes: Partitions with fewer operators are left behind (the crossing costs more than it gains).
        merge_disconnected: See `group_supported`.
        own_state: Give mutable buffers to the delegate that writes them, see `tag_mutated_buffer`.
    """

    def __init__(
        self,
        backend_id: str,
        compile_specs: Sequence[CompileSpec] = (),
        *,
        min_nodes: int = 1,
        merge_disconnected: bool = False,
        own_state: bool = False,
    ) -> None:
        super().__init__({"backend_id": backend_id, "min_nodes": min_nodes})
        self.delegation_spec = DelegationSpec(backend_id, list(compile_specs))
        self.min_nodes = min_nodes
        self.merge_disconnected = merge_disconnected
        self.own_state = own_state

    @abstractmethod
    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        """Can the backend run this operator?

        It is asked for each operator but `getitem` (which follows its producer) and those that are delegated
        already.

        Args:
            node: The operator, with its `val` in the meta.
            program: The program that it stands in.
        """

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what `supports` takes; the reasons say why the rest stays."""
        tags: dict[str, DelegationSpec] = {}
        reasons: list[WhyNot] = []
        numbers = count()
        by = self.delegation_spec.backend_id
        for _, graph_module in graphs_of(exported_program):
            answers = self._ask(graph_module, exported_program)
            groups, left = group_nodes(graph_module, answers, merge_disconnected=self.merge_disconnected)
            taken = {node for group in groups for node in group}
            left.update((n, a) for n, a in answers.items() if isinstance(a, WhyNot) and n not in taken)
            for group in groups:
                members = set(group)
                if all(user in members for node in group for user in node.users):
                    left.update((node, WhyNot(node, "nothing uses its result")) for node in group)
                    continue
                size = sum(not is_getitem(node) for node in group)
                if size < self.min_nodes:
                    reason = f"its partition would hold {size} operators, below min_nodes {self.min_nodes}"
                    left.update((node, WhyNot(node, reason, f"min_nodes <= {size}")) for node in group)
                    continue
                tag = f"{by}_{next(numbers)}"
                tags[tag] = self.delegation_spec
                for node in group:
                    node.meta[TAG_KEY] = tag
            reasons += (replace_by(left[node], by) for node in graph_module.graph.nodes if node in left)
        tag_constant_data(exported_program)
        if self.own_state:
            tag_mutated_buffer(exported_program)
        return PartitionResult(exported_program, tags, reasons)

    def _ask(self, graph_module: GraphModule, program: ExportedProgram) -> dict[Node, Supported | WhyNot]:
        answers: dict[Node, Supported | WhyNot] = {}
        for node in graph_module.graph.nodes:
            if node.op != "call_function" or is_delegated(node):
                continue
            producer = node.args[0] if is_getitem(node) else None
            if isinstance(producer, Node) and is_structured(producer):
                if isinstance(answers.get(producer), Supported):
                    answers[node] = Supported()
                else:
                    answers[node] = WhyNot(
                        node, f"its producer '{producer.name}' was left behind", f"'{producer.name}' is"
                    )
            elif is_symbolic_scalar(node):
                answers[node] = WhyNot(node, "it computes a number, and a delegate returns tensors only")
            else:
                answers[node] = self.supports(node, program)
        return answers


def replace_by(reason: WhyNot, by: str) -> WhyNot:
    """The reason with its author filled in."""
    if reason.by:
        return reason
    return WhyNot(
        reason.node,
        reason.reason,
        reason.eligible_if,
        target=reason.target,
        source=reason.source,
        handles=reason.handles,
        by=by,
    )


def is_delegated(node: Node) -> bool:
    """True for the call of a delegate and for what takes its results apart."""
    if is_call_delegate(node):
        return True
    return is_getitem(node) and isinstance(node.args[0], Node) and is_call_delegate(node.args[0])


def group_nodes(
    graph_module: GraphModule,
    answers: Mapping[Node, Supported | WhyNot],
    *,
    merge_disconnected: bool = False,
) -> tuple[list[list[Node]], dict[Node, WhyNot]]:
    """Group the supported nodes of one graph into convex partitions, in linear time.

    Args:
        graph_module: The graph.
        answers: For each operator whether it is supported. Those it doesn't name are unsupported.
        merge_disconnected: See `group_supported`.

    Returns:
        The groups, each in graph order, ordered by their first node; and the nodes that had to be left out
        although they are supported, since what they must stand together with is unsupported or doesn't fit
        into one partition.
    """
    nodes = [node for node in graph_module.graph.nodes if node.op == "call_function"]
    left: dict[Node, WhyNot] = {}
    while True:
        known = len(left)
        units = _units(nodes, answers, left)
        order, entangled = _unit_order(nodes, units)
        for node in entangled:
            left[node] = WhyNot(
                node, "it can't be in one partition with the nodes that it must stand together with"
            )
        if len(left) == known:
            break
    supported = [any(isinstance(answers.get(n), Supported) and n not in left for n in unit) for unit in order]
    index = {node: i for i, unit in enumerate(order) for node in unit}
    predecessors = [
        sorted({index[s] for node in unit for s in node.all_input_nodes if s in index} - {i})
        for i, unit in enumerate(order)
    ]
    numbers = group_supported(predecessors, supported, merge_disconnected=merge_disconnected)
    groups: dict[int, list[Node]] = {}
    for node in nodes:
        number = numbers[index[node]]
        if number >= 0:
            groups.setdefault(number, []).append(node)
    return list(groups.values()), left


def _units(
    nodes: Sequence[Node], answers: Mapping[Node, Supported | WhyNot], left: dict[Node, WhyNot]
) -> dict[Node, list[Node]]:
    """The nodes that must stay together, as lists shared by their members."""
    unit: dict[Node, list[Node]] = {node: [node] for node in nodes}

    def join(a: Node, b: Node) -> None:
        small, large = sorted((unit[a], unit[b]), key=len)
        if small is not large:
            large.extend(small)
            unit.update((node, large) for node in small)

    for node in nodes:
        answer = answers.get(node)
        if not isinstance(answer, Supported) or node in left:
            continue
        producer = node.args[0] if is_getitem(node) else None
        needed = (
            (*answer.together, producer)
            if isinstance(producer, Node) and producer in unit
            else answer.together
        )
        missing = [n for n in needed if n not in unit or n in left]
        if missing:
            left[node] = WhyNot(
                node, f"it must stand together with '{missing[0].name}', which was left behind"
            )
            continue
        for other in needed:
            join(node, other)
    return unit


def _unit_order(
    nodes: Sequence[Node], unit: Mapping[Node, list[Node]]
) -> tuple[list[list[Node]], list[Node]]:
    """The units in topological order, and the members of units that lie on a cycle."""
    waiting: dict[int, int] = {}
    lists: dict[int, list[Node]] = {}
    for node in nodes:
        members = unit[node]
        lists[id(members)] = members
        inputs = sum(1 for s in node.all_input_nodes if s in unit and unit[s] is not members)
        waiting[id(members)] = waiting.get(id(members), 0) + inputs
    ready = [key for key, inputs in waiting.items() if inputs == 0]
    order = []
    while ready:
        key = ready.pop()
        order.append(lists[key])
        del waiting[key]
        for node in lists[key]:
            for user in node.users:
                if user in unit and (target := id(unit[user])) != key:
                    waiting[target] -= 1
                    if waiting[target] == 0:
                        ready.append(target)
    return order, [
        node for key in _on_cycles(waiting, lists, unit) if len(lists[key]) > 1 for node in lists[key]
    ]


def _on_cycles(
    waiting: Mapping[int, int], lists: Mapping[int, list[Node]], unit: Mapping[Node, list[Node]]
) -> list[int]:
    """Of the units that a topological order doesn't reach, those that don't merely lie behind a cycle."""
    remaining = {
        key: {id(unit[user]) for node in lists[key] for user in node.users if user in unit}
        & (waiting.keys() - {key})
        for key in waiting
    }
    sources: dict[int, list[int]] = {}
    for key, targets in remaining.items():
        for target in targets:
            sources.setdefault(target, []).append(key)
    ends = [key for key, targets in remaining.items() if not targets]
    while ends:
        key = ends.pop()
        del remaining[key]
        for source in sources.get(key, ()):
            remaining[source].discard(key)
            if not remaining[source]:
                ends.append(source)
    return list(remaining)
