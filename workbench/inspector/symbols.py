"""From instructions of a program back to the nodes, modules and source lines that they come from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node as FxNode

from workbench import provenance
from workbench.errors import SerializationError, TraceError
from workbench.inspector import roofline
from workbench.serialize.etrecord import ETRecord, StoredProgram

__all__ = ["MethodSymbols", "Node", "Symbols", "operator_name"]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the lowered graph.

    Attributes:
        name: Its name in the graph.
        op: The operator as `namespace.name.overload`.
        debug_handle: Its debug handle.
        stack_trace: The user's lines that made it, or None.
        module_stack: From a key per module to `(path, class)`, outermost first.
        source_handles: The exported nodes that it comes from.
        source: `file:line` of the user's code, or None.
        shapes: Its results' dtypes and shapes, as text.
        work: Its arithmetic and traffic, where they are known.
        reads: The tensors that it reads.
        users: Names of the nodes that read what it writes.
    """

    name: str
    op: str
    debug_handle: int
    stack_trace: str | None = None
    module_stack: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    source_handles: frozenset[int] = frozenset()
    source: str | None = None
    shapes: str = ""
    work: roofline.Work | None = None
    reads: tuple[roofline.Read, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The path of the innermost module; empty for the root and where it is not known."""
        return list(self.module_stack.values())[-1][0] if self.module_stack else ""


@dataclass(slots=True)
class MethodSymbols:
    """What is known of one method.

    Attributes:
        handle_map: From instruction to debug handles.
        delegate_map: From instruction to `{"name": backend, "delegate_map": {identifier: handles}}`.
        num_outs: From instruction to how many results it has.
        nodes: From debug handle to nodes.
        reference: Makes the program to compare intermediate outputs with; its nodes have debug handles.
    """

    handle_map: Mapping[int, tuple[int, ...]]
    delegate_map: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    num_outs: Mapping[int, int] = field(default_factory=dict)
    nodes: Mapping[int, list[Node]] = field(default_factory=dict)
    reference: Callable[[], ExportedProgram] | None = None

    def handles(self, instruction: int, delegate_id: int | str | None) -> tuple[int, ...]:
        """The debug handles that an event stands for; empty where it is not known."""
        if delegate_id is None:
            return tuple(self.handle_map.get(instruction, ()))
        inside = self.delegate_map.get(instruction, {}).get("delegate_map") or {}
        found = _announced(inside, delegate_id)
        if found is None:
            found = _united(inside, str(delegate_id))
        if found is None:
            # Some backends log more than they announced: "Convolution (NHWC) #1" for "Convolution".
            found = next((inside[key] for key in inside if str(key) in str(delegate_id)), ())
        return (found,) if isinstance(found, int) else tuple(found)

    def backend(self, instruction: int) -> str | None:
        """The name of the backend that an instruction calls, or None."""
        name = self.delegate_map.get(instruction, {}).get("name")
        return None if name is None else str(name)

    def resolve(self, handles: Iterable[int]) -> list[Node]:
        """The nodes of some debug handles."""
        return [node for handle in handles for node in self.nodes.get(handle, ())]


def _announced(inside: Mapping[Any, Any], identifier: int | str) -> Any:
    """The entry of a delegate map for an identifier: numbers and their texts are the same; None for none."""
    for key in (identifier, str(identifier)):
        if key in inside:
            return inside[key]
    return inside.get(int(identifier)) if str(identifier).isdecimal() else None


def _united(inside: Mapping[Any, Any], identifier: str) -> tuple[int, ...] | None:
    """The handles of a fused group, whose event is called by the identifiers of its members: "12+13"."""
    if "+" not in identifier:
        return None
    united: dict[int, None] = {}
    for part in identifier.split("+"):
        found = _announced(inside, part)
        if found is None:
            return None
        united.update(dict.fromkeys((found,) if isinstance(found, int) else found))
    return tuple(united)


class Symbols:
    """What is known of each method of a program.

    Args:
        methods: By name.
    """

    def __init__(self, methods: Mapping[str, MethodSymbols]) -> None:
        self.methods = dict(methods)

    def method(self, name: str) -> MethodSymbols | None:
        """What is known of a method, or None."""
        return self.methods.get(name)

    @classmethod
    def from_etrecord(cls, record: ETRecord) -> Symbols:
        """What an ETRecord says, whoever wrote it."""
        methods = {}
        for name, handle_map in record.debug_handle_map.items():
            program = record.edge.get(name)
            methods[name] = MethodSymbols(
                handle_map=handle_map,
                delegate_map=record.delegate_map.get(name, {}),
                num_outs=record.num_outs.get(name, {}),
                nodes={} if program is None else _stored_nodes(program),
                reference=None if program is None else program.load,
            )
        return cls(methods)

    @classmethod
    def from_manager(cls, program: Any, edge: Any = None) -> Symbols:
        """What a lowered program in this process says.

        Args:
            program: An `ExecutorchProgramManager`, or anything with its `methods`, `exported_program(method)`
                and maps.
            edge: What holds the edge programs before delegation, for intermediate outputs: anything with
                `exported_program(method)`. By default the planned programs are asked.

        Raises:
            TraceError: The object has no map of debug handles.
        """
        handle_map = getattr(program, "debug_handle_map", None)
        if handle_map is None:
            raise TraceError(
                "the program has no debug handles to join a trace with",
                found=type(program).__name__,
                hint="give the ExecutorchProgramManager, or an ETRecord",
            )
        methods = {}
        for name in sorted(program.methods):
            planned = program.exported_program(name)
            source = planned
            if edge is not None and name in edge.methods:
                source = edge.exported_program(name)
            methods[name] = MethodSymbols(
                handle_map=handle_map.get(name, {}),
                delegate_map=(program.delegate_map or {}).get(name, {}),
                num_outs=(program.instruction_id_to_num_outs_map or {}).get(name, {}),
                nodes=_nodes_by_handle(source, planned),
                reference=lambda source=source: source,  # type: ignore[misc]
            )
        return cls(methods)


def _stored_nodes(program: StoredProgram) -> dict[int, list[Node]]:
    """The nodes of a stored program: with shapes if torch can rebuild it, and else what the file says."""
    nodes: dict[int, list[Node]] = {}
    try:
        loaded = program.load()
    except SerializationError:
        for info in program.nodes():
            if info.debug_handle is not None:
                node = Node(info.name, info.op, info.debug_handle, info.stack_trace, info.module_stack)
                nodes.setdefault(info.debug_handle, []).append(node)
        return nodes
    _collect(loaded, nodes)
    return nodes


def _nodes_by_handle(edge: ExportedProgram, planned: ExportedProgram) -> dict[int, list[Node]]:
    """Nodes of the edge program first; of the planned one and its delegates what that lacks."""
    nodes: dict[int, list[Node]] = {}
    for program in (edge, *_inside(planned), planned):
        _collect(program, nodes)
    return nodes


def _collect(program: ExportedProgram, nodes: dict[int, list[Node]]) -> None:
    """Add the nodes of a program under handles that have none yet."""
    found: dict[int, list[Node]] = {}
    for node in provenance.nodes_of(program.graph_module):
        handle = node.meta.get("debug_handle")
        is_call = node.op == "call_function" and node.target is not operator.getitem
        if is_call and isinstance(handle, int) and handle not in nodes:
            found.setdefault(handle, []).append(_describe(node, handle))
    nodes.update(found)


def _inside(program: ExportedProgram) -> Iterable[ExportedProgram]:
    """The programs inside of the delegates of a program, nested ones included."""
    for node in provenance.nodes_of(program.graph_module):
        if node.op != "get_attr":
            continue
        inner = getattr(getattr(program.graph_module, str(node.target), None), "original_module", None)
        if isinstance(inner, ExportedProgram):
            yield inner
            yield from _inside(inner)


def operator_name(target: Any) -> str:
    """The name of a call's target as `namespace.name.overload`."""
    schema = getattr(target, "_schema", None)
    if schema is not None and hasattr(target, "_overloadname"):
        return f"{schema.name.replace('::', '.')}.{target._overloadname}"
    return str(getattr(target, "__name__", target))


def _describe(node: FxNode, handle: int) -> Node:
    stack = {
        str(key): (str(path), kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items()
    }
    return Node(
        name=node.name,
        op=operator_name(node.target),
        debug_handle=handle,
        stack_trace=node.meta.get("stack_trace"),
        module_stack=stack,
        source_handles=provenance.handles(node),
        source=provenance.source_line(node),
        shapes=roofline.shapes_of(node),
        work=roofline.work_of(node),
        reads=tuple(roofline.reads_of(node)),
        users=tuple(roofline.users_of(node)),
    )
