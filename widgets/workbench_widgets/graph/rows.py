"""The nodes of an FX graph as rows: branches and the insides of delegates included, each in its container."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench_widgets.graph.tree import Tree

__all__ = ["Rows", "describe", "numbers_of", "operator_of"]

_INPUTS = {
    InputKind.USER_INPUT: "placeholder",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.CUSTOM_OBJ: "constant",
    InputKind.TOKEN: "placeholder",
}
HIDDEN = frozenset(("parameter", "buffer", "constant", "attribute"))


class Rows:
    """The rows of a program, collected in topological order.

    A call with branches and the call of a delegate is the last row of a container that holds what it runs:
    the operands go to the placeholders inside, the inner outputs to the call.

    Args:
        program: The program. It is read, not changed.

    Attributes:
        nodes: The node of each row.
        kinds: Its kind.
        modules: Its container.
        sources: Producers, one an edge.
        targets: Consumers.
        tree: The containers.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.nodes: list[Node] = []
        self.kinds: list[str] = []
        self.modules: list[int] = []
        self.sources: list[int] = []
        self.targets: list[int] = []
        self.tree = Tree()
        self.row: dict[Node, int] = {}
        self._sources = provenance.source_map(program)
        self._by_handle: dict[int, int] = {}
        self._lost: list[int] = []
        self._graph(program.graph_module, _input_kinds(program), 0, ())
        self._find_lost()
        self._place_constants()

    def origins(self, handles: Iterable[int]) -> list[provenance.Source]:
        """The exported nodes of some handles."""
        return self._sources.resolve(handles)

    # ---- walking -------------------------------------------------------------------------------------------

    def _graph(
        self, owner: GraphModule, inputs: Mapping[str, str], scope: int, prefix: tuple[str, ...]
    ) -> tuple[list[Node], list[Node]]:
        """Add a graph in a scope; returns its placeholders and its outputs."""
        placeholders: list[Node] = []
        outputs: list[Node] = []
        for node in owner.graph.nodes:
            if node.op == "call_function":
                self._call(owner, node, scope, prefix)
                continue
            if node.op == "placeholder":
                placeholders.append(node)
                kind = inputs.get(node.name, "placeholder")
            elif node.op == "get_attr":
                kind = "constant" if isinstance(_held(owner, node), torch.Tensor) else "attribute"
            else:
                kind = node.op
            if node.op == "output":
                outputs.append(node)
            self._add(node, kind, scope, node._input_nodes)
        return placeholders, outputs

    def _call(self, owner: GraphModule, node: Node, scope: int, prefix: tuple[str, ...]) -> None:
        held = {}
        for item in node._input_nodes:
            if item.op == "get_attr" and not isinstance(found := _held(owner, item), torch.Tensor):
                held[item] = found
        graphs = {item: found for item, found in held.items() if isinstance(found, GraphModule)}
        inner = next(
            (p for p in (getattr(f, "original_module", None) for f in held.values()) if p is not None), None
        )
        if isinstance(inner, ExportedProgram):
            self._delegate(node, next(iter(held.values())), inner, scope, prefix)
        elif graphs:
            self._control(node, graphs, scope, prefix)
        else:
            self._add(node, "call", self._module(node, scope, prefix), node._input_nodes)

    def _control(self, node: Node, graphs: Mapping[Node, Any], scope: int, prefix: tuple[str, ...]) -> None:
        around = self._module(node, scope, prefix)
        container = self.tree.add(around, node.name, str(node.target), "control")
        operands = [item for item in _flat(node.args) if item not in graphs]
        used: set[Node] = set()
        ends: list[Node] = []
        for item, graph in graphs.items():
            branch = self.tree.add(container, str(item.target), "", "branch")
            placeholders, outputs = self._graph(graph, {}, branch, _stack_keys(node))
            ends += outputs
            # The first operands may be what the call itself looks at: a predicate.
            behind = operands[len(operands) - len(placeholders) :] if placeholders else []
            for operand, placeholder in zip(behind, placeholders, strict=False):
                if isinstance(operand, Node):
                    used.add(operand)
                    self._edge(operand, placeholder)
        left = [item for item in node._input_nodes if item not in used]
        self._add(node, "control", container, [*left, *ends])

    def _delegate(
        self, node: Node, lowered: Any, program: ExportedProgram, scope: int, prefix: tuple[str, ...]
    ) -> None:
        stacks = [s for n in program.graph.nodes if n.op == "call_function" and (s := _stack_of(n))]
        shared = _shared(stacks)
        around = self._chain(shared, scope, prefix) if shared else self._module(node, scope, prefix)
        name = str(node.args[0].target) if isinstance(node.args[0], Node) else node.name
        container = self.tree.add(around, name, str(getattr(lowered, "backend_id", "")), "delegate")
        inside = tuple(key for key, _ in shared)
        placeholders, outputs = self._graph(program.graph_module, _input_kinds(program), container, inside)
        wanted = set(program.graph_signature.user_inputs)
        given = [p for p in placeholders if p.name in wanted]
        used: set[Node] = set()
        for operand, placeholder in zip(node.args[1:], given, strict=False):
            if isinstance(operand, Node):
                used.add(operand)
                self._edge(operand, placeholder)
        left = [item for item in node._input_nodes if item not in used]
        self._add(node, "delegate", container, [*left, *outputs])

    def _add(self, node: Node, kind: str, module: int, inputs: Iterable[Node]) -> None:
        row = self.row[node] = len(self.nodes)
        self.nodes.append(node)
        self.kinds.append(kind)
        self.modules.append(module)
        for item in inputs:
            self.sources.append(self.row[item])
            self.targets.append(row)

    def _edge(self, source: Node, target: Node) -> None:
        self.sources.append(self.row[source])
        self.targets.append(self.row[target])

    # ---- containers ----------------------------------------------------------------------------------------

    def _module(self, node: Node, scope: int, prefix: tuple[str, ...]) -> int:
        stack = node.meta.get("nn_module_stack")
        if not stack:
            self._lost.append(len(self.nodes))
            return scope
        known = self.tree.known(scope, next(reversed(stack)))
        module = self._chain(_stack_of(node), scope, prefix) if known is None else known
        for handle in provenance.handles(node):
            self._by_handle.setdefault(handle, module)
        return module

    def _chain(self, stack: list[tuple[str, Any]], scope: int, prefix: tuple[str, ...]) -> int:
        module = scope
        for key, (path, kind) in stack:
            if key in prefix:
                continue
            if module == 0 and path == "":
                self.tree.root(_class(kind))
                self.tree.remember(scope, key, 0)
                continue
            known = self.tree.known(scope, key)
            module = self.tree.module(module, scope, key, str(path), _class(kind)) if known is None else known
        return module

    def _find_lost(self) -> None:
        """Nodes without a module of their own go to that of the exported nodes that they come from."""
        by_path = {
            path: index for index, path in enumerate(self.tree.paths) if self.tree.kinds[index] == "module"
        }
        for row in self._lost:
            if self.kinds[row] not in ("call", "delegate") or self.modules[row] != 0:
                continue
            found = sorted(provenance.handles(self.nodes[row]))
            home = next((self._by_handle[handle] for handle in found if handle in self._by_handle), None)
            if home is None:
                paths = (origin.module_path for origin in self._sources.resolve(found))
                home = next((by_path[path] for path in paths if path and path in by_path), None)
            if home is not None and self.kinds[row] == "call":
                self.modules[row] = home

    def _place_constants(self) -> None:
        """Weights stand in the innermost container that holds all that use them."""
        users: dict[int, int] = {}
        for source, target in zip(self.sources, self.targets, strict=True):
            if self.kinds[source] in HIDDEN:
                module = self.modules[target]
                known = users.get(source)
                users[source] = module if known is None else self.tree.common(known, module)
        for row, module in users.items():
            self.modules[row] = module


def _input_kinds(program: ExportedProgram) -> dict[str, str]:
    kinds = {}
    for spec in program.graph_signature.input_specs:
        name = getattr(spec.arg, "name", None)
        if name is not None:
            kinds[str(name)] = _INPUTS.get(spec.kind, "constant")
    return kinds


def _held(owner: GraphModule, node: Node) -> Any:
    found: Any = owner
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _stack_of(node: Node) -> list[tuple[str, Any]]:
    return list((node.meta.get("nn_module_stack") or {}).items())


def _stack_keys(node: Node) -> tuple[str, ...]:
    return tuple(node.meta.get("nn_module_stack") or ())


def _shared(stacks: list[list[tuple[str, Any]]]) -> list[tuple[str, Any]]:
    """The modules that all of these stacks begin with."""
    if not stacks:
        return []
    aligned = zip(*stacks, strict=False)
    return [
        level[0] for level in itertools.takewhile(lambda level: len({key for key, _ in level}) == 1, aligned)
    ]


def _class(kind: Any) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


# ---- columns -----------------------------------------------------------------------------------------------


def operator_of(node: Node) -> str:
    """The operator as people read it; for what is no call, its kind."""
    if node.op != "call_function":
        return node.op
    target = node.target
    return str(target) if hasattr(target, "_schema") else str(getattr(target, "__name__", target))


def describe(nodes: Iterable[Node], visit: Callable[[Node, str, str, float], None]) -> None:
    """Tell shape, dtype and bytes of each node's results."""
    texts: dict[Any, tuple[str, str, float]] = {}
    for node in nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            try:
                key = (value.shape, value.dtype)
                known = texts.get(key)
                if known is None:
                    known = texts[key] = _tensor(value)
            except TypeError:  # symbolic sizes can't be hashed
                known = _tensor(value)
            visit(node, *known)
        elif isinstance(value, list | tuple):
            parts = [_tensor(item) for item in value if isinstance(item, torch.Tensor)]
            shape, dtype = "; ".join(p[0] for p in parts), "; ".join(p[1] for p in parts)
            visit(node, shape, dtype, sum(p[2] for p in parts))
        else:
            visit(node, "", "" if value is None else type(value).__name__, 0.0)


def _tensor(value: torch.Tensor) -> tuple[str, str, float]:
    shape = "(" + ", ".join(map(str, value.shape)) + ")"
    count = 1
    for size in numbers_of(value.shape):
        count *= size
    return shape, str(value.dtype).removeprefix("torch."), float(count * value.dtype.itemsize)


def numbers_of(shape: Iterable[Any]) -> list[int]:
    """Sizes as numbers: a symbol counts with its upper bound, and else with the example's size."""
    return [size if isinstance(size, int) else _bound(size) for size in shape]


def _bound(size: Any) -> int:
    node = getattr(size, "node", None)
    environment = getattr(node, "shape_env", None)
    if node is None or environment is None:
        return 1
    upper = environment.bound_sympy(node.expr).upper
    if upper.is_finite and int(upper) < 2**40:
        return int(upper)
    return int(node.hint) if node.hint is not None else 1
