"""From a partition to the graph of the engine.

Each operator is handed to its entry (`nodes/`), which adds nodes. Values are those of the source graph in its
order of dimensions; an entry that wants images as NHWC puts transposes round its node, which the engine's
layout pass cancels. What depends on constants alone is computed here when a node needs it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from workbench.backends.cpu import graph as ir
from workbench.backends.cpu.constants import Constants
from workbench.backends.cpu.entry import Call, Context, Entry, Size, refusal
from workbench.backends.cpu.integers import Integers, integers_of, packed
from workbench.backends.named_data import NamedDataStore
from workbench.backends.stateless import check_stateless
from workbench.edge.fake import dim_order
from workbench.errors import PartitionError

__all__ = ["BACKEND_ID", "Emitter"]

BACKEND_ID = "CpuBackend"
aten = torch.ops.aten
# Rearrangements of constants that can stay views.
_VIEWS: Mapping[Any, Any] = {
    aten.permute_copy.default: torch.Tensor.permute,
    aten.t_copy.default: torch.Tensor.t,
    aten.transpose_copy.int: torch.Tensor.transpose,
    aten.unsqueeze_copy.default: torch.Tensor.unsqueeze,
    aten.squeeze_copy.dims: torch.Tensor.squeeze,
    aten.select_copy.int: torch.Tensor.select,
    aten.expand_copy.default: torch.Tensor.expand,
    aten.view_copy.default: torch.Tensor.reshape,
    operator.getitem: operator.getitem,
}
# Constants of at most this many bytes stand in the blob.
_INLINE = 64


class Emitter:
    """Collects the nodes of one partition.

    Args:
        program: The partition, with constants among its inputs.
        entries: By operator.
        constants: Names of constants, shared between the delegates of a program.
        store: Takes their data.

    Attributes:
        graph: What was made so far.
        context: The partition, as entries ask about it.
        sources: The operators of the partition; a node's source is an index into it.
    """

    def __init__(
        self,
        program: ExportedProgram,
        entries: Mapping[OpOverload, Entry],
        constants: Constants,
        store: NamedDataStore,
    ) -> None:
        self.graph = ir.Graph()
        self.context = Context(program)
        self.sources: list[Node] = []
        self._program = program
        self._entries = entries
        self._constants = constants
        self._store = store
        self._dims: list[tuple[Size, ...]] = []
        self._values: dict[Any, int] = {}
        self._tensors: dict[Node, Any] = {}
        self._known: dict[Any, int] = {}
        self._results: dict[Any, int] = {}
        self._name = ""

    def run(self) -> ir.Graph:
        """Write all operators.

        Raises:
            PartitionError: An operator has no entry or is refused, or the partition keeps state.
        """
        check_stateless(BACKEND_ID, self._program)
        results: Any = self._program.graph.output_node().args[0]
        inputs = [n for n in self._program.graph.nodes if n.op == "placeholder" and not self.is_constant(n)]
        self.graph.inputs, self.graph.outputs = len(inputs), len(results)
        for index, node in enumerate(inputs):
            self._input(node, index)
        self._place_results(results)
        for node in self._program.graph.nodes:
            if node.op == "call_function" and not self.is_constant(node):
                self._operator(node)
        for index, node in enumerate(results):
            self._output(node, index)
        return self.graph

    # ---- what entries use ----------------------------------------------------------------------------------

    def is_constant(self, node: object) -> bool:
        """Whether a value follows from constants alone."""
        return self.context.is_constant(node)

    def value(self, node: Any, dtype: torch.dtype | None = None) -> int:
        """The value of an operand; `NO_VALUE` for None, a constant for a number."""
        if node is None:
            return ir.NO_VALUE
        if not isinstance(node, Node):
            return self.constant(torch.tensor(node, dtype=dtype))
        key = _element_of(node)
        found = self._values.get(key)
        if found is None:
            integers = self.integers(node)
            if integers is None:
                found = self.constant(self.tensor(node), node.name)
            else:
                found = self.numbers(integers, node.name, node.meta["val"].dtype)
            self._values[key] = found
        return found

    def tensor(self, node: Node) -> torch.Tensor:
        """The tensor of a constant node; a rearrangement of a stored one is a view of it."""
        if node not in self._tensors:
            self._tensors[node] = self._evaluate(node)
        found: torch.Tensor = self._tensors[node]
        return found

    def number(self, node: Any) -> float | int | bool | None:
        """The number that an operand is: itself, or the element of a constant of one; else None."""
        if isinstance(node, (int, float, bool)):
            return node
        if isinstance(node, Node) and self.is_constant(node):
            tensor = self.tensor(node)
            if tensor.numel() == 1:
                return tensor.item()
        return None

    def constant(self, tensor: torch.Tensor, name: str = "") -> int:
        """A constant; the same tensor gives the same value."""
        tensor = tensor.detach()
        known = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if tensor.numel() and known in self._known and tensor.data_ptr():
            return self._known[known]
        value = ir.Value(ir.ValueKind.CONSTANT, tensor.dtype, tuple(tensor.shape), name=name)
        self._hold(value, tensor)
        self._known[known] = self._append(value, tuple(tensor.shape))
        return self._known[known]

    def integers(self, node: Any) -> Integers | None:
        """The integers that a constant is the numbers of, if a graph dequantizes them."""
        if not isinstance(node, Node) or not self.is_constant(node):
            return None
        return integers_of(node, self.tensor)

    def numbers(self, integers: Integers, name: str, dtype: torch.dtype = torch.float32) -> int:
        """A value of the numbers that constant integers stand for."""
        sizes = tuple(integers.tensor.shape)
        tensor, q = packed(integers) if integers.nibbles else (integers.tensor, integers.quantization)
        value = ir.Value(ir.ValueKind.CONSTANT, tensor.dtype, sizes, name=name)
        self._hold(value, tensor.detach())
        if integers.scales is not None:
            scales = self._constants.entry(integers.scales)
            if len(scales.data) <= _INLINE:
                q = replace(q, scales=tuple(integers.scales.tolist()))
            else:
                q = replace(q, scales_key=scales.key)
                self._constants.store(scales, self._store)
        value.quantization = q
        found = self.temporary(dtype, sizes)
        self.add(ir.Op.Dequantize, [self._append(value, sizes)], [found])
        return found

    def dims(self, value: int) -> tuple[Size, ...]:
        """Sizes of a value, symbols where they are dynamic."""
        return self._dims[value]

    def temporary(self, dtype: torch.dtype, dims: Sequence[Size]) -> int:
        """A new value between nodes."""
        return self._append(self._described(ir.ValueKind.TEMPORARY, dtype, dims), tuple(dims))

    def result(self, call: Call, index: int = 0) -> int:
        """The value of the call's result, to be written by a node."""
        several = isinstance(call.node.meta["val"], (tuple, list))
        key = (call.node, index if several else 0)
        if key not in self._values:
            found = call.result(index)
            placed = self._results.get(key)
            self._values[key] = self.temporary(found.dtype, found.shape) if placed is None else placed
        return self._values[key]

    def define(self, call: Call, value: int, index: int = 0) -> None:
        """Let a result be a value that exists already."""
        self._values[call.node, index] = value

    def add(self, op: int, inputs: Sequence[int], outputs: Sequence[int], **attributes: Any) -> None:
        """Add a node for the current operator."""
        steps = attributes.pop("steps", ())
        source = len(self.sources) - 1
        self.graph.nodes.append(ir.Node(op, tuple(inputs), tuple(outputs), attributes, tuple(steps), source))

    def pointwise(
        self, fn: int, inputs: Sequence[int], output: int, *, a: float = 0.0, b: float = 0.0
    ) -> int:
        """Add a node of one elementwise function; returns its output."""
        operands = tuple(ir.INPUT + position for position in range(len(inputs)))
        self.add(ir.Op.Pointwise, inputs, [output], steps=[ir.Step(fn, operands, a, b)])
        return output

    def truth(self, node: Any) -> int:
        """An operand as booleans: whether its elements differ from 0."""
        value = self.value(node, torch.bool)
        dtype = self.graph.values[value].dtype
        if dtype == torch.bool:
            return value
        zero = self.constant(torch.zeros((), dtype=dtype))
        return self.pointwise(ir.Fn.Ne, [value, zero], self.temporary(torch.bool, self._dims[value]))

    def transposed(self, value: int, permutation: Sequence[int], output: int | None = None) -> int:
        """The value with its dimensions in another order."""
        order = tuple(permutation)
        if order == tuple(range(len(order))) and output is None:
            return value
        dims = self._dims[value]
        if output is None:
            output = self.temporary(self.graph.values[value].dtype, [dims[d] for d in order])
        self.add(ir.Op.Transpose, [value], [output], permutation=order)
        return output

    def reshaped(self, value: int, dims: Sequence[Size], output: int | None = None) -> int:
        """The value's elements with other sizes."""
        if output is None:
            if same_sizes(dims, self._dims[value]):
                return value
            output = self.temporary(self.graph.values[value].dtype, dims)
        rules = size_rules(dims, self._dims[value], infer=True)
        assert rules is not None, "the entry's check allows only sizes that can be said"
        self.add(ir.Op.Reshape, [value], [output], sizes=rules)
        return output

    def _hold(self, value: ir.Value, tensor: torch.Tensor) -> None:
        entry = self._constants.entry(tensor)
        if len(entry.data) <= _INLINE:
            value.data = bytes(entry.data)
        else:
            value.key = entry.key
            self._constants.store(entry, self._store)

    # ---- the walk ------------------------------------------------------------------------------------------

    def _append(self, value: ir.Value, dims: tuple[Size, ...]) -> int:
        self.graph.values.append(value)
        self._dims.append(dims)
        return len(self.graph.values) - 1

    def _described(self, kind: ir.ValueKind, dtype: torch.dtype, dims: Sequence[Size]) -> ir.Value:
        upper = self.context.bounds.upper
        node = self.sources[-1] if self.sources else self._program.graph.output_node()
        sizes = tuple(size if type(size) is int else upper(size, node) for size in dims)
        dynamic = sum(1 << d for d, size in enumerate(dims) if type(size) is not int)
        return ir.Value(kind, dtype, sizes, dynamic)

    def _input(self, node: Node, index: int) -> None:
        found = node.meta["val"]
        if not isinstance(found, torch.Tensor):
            return  # A size: the engine finds it by itself.
        order = dim_order(found)
        value = self._described(ir.ValueKind.INPUT, found.dtype, [found.shape[d] for d in order])
        value.external, value.name = index, node.name
        given = self._append(value, tuple(found.shape[d] for d in order))
        back = sorted(range(len(order)), key=order.__getitem__)
        self._values[node, 0] = self.transposed(given, back)

    def _place_results(self, results: Sequence[Any]) -> None:
        """Where a node can write into the caller's memory itself, its result is an output."""
        for index, node in enumerate(results):
            if not isinstance(node, Node):
                raise PartitionError(
                    f"the backend '{BACKEND_ID}' can't return the constant {node!r}", stage="lower"
                )
            key = _element_of(node)
            if node.op != "call_function" or self.is_constant(node) or key in self._results:
                continue
            found = node.meta["val"]
            if dim_order(found) == tuple(range(found.dim())):
                self._results[key] = self._output_value(node, index)

    def _output_value(self, node: Node, index: int) -> int:
        found = node.meta["val"]
        dims = tuple(found.shape[d] for d in dim_order(found))
        value = self._described(ir.ValueKind.OUTPUT, found.dtype, dims)
        value.external, value.name = index, node.name
        return self._append(value, dims)

    def _output(self, node: Node, index: int) -> None:
        value = self.value(node)
        placed = self._results.get(_element_of(node))
        if placed is not None and self.graph.values[placed].external == index:
            if placed != value:
                self.add(ir.Op.Copy, [value], [placed])
            return
        order = dim_order(node.meta["val"])
        target = self._output_value(node, index)
        if order == tuple(range(len(order))):
            self.add(ir.Op.Copy, [value], [target])
        else:
            self.transposed(value, order, target)

    def _operator(self, node: Node) -> None:
        if node.target is operator.getitem or not isinstance(node.target, OpOverload):
            if _element_of(node) in self._values or isinstance(node.meta.get("val"), torch.SymInt):
                return
            raise PartitionError(
                f"the backend '{BACKEND_ID}' can't run '{node.name}'", stage="lower", node=node.name
            )
        entry = self._entries.get(node.target)
        if entry is None:
            raise PartitionError(
                f"the backend '{BACKEND_ID}' has no {node.target}", stage="lower", node=node.name
            )
        answer = refusal(entry, node, self.context)
        if answer is not None:
            raise PartitionError(
                f"the backend '{BACKEND_ID}' can't run '{node.name}': {answer.reason}",
                stage="lower",
                node=node.name,
                source=answer.source,
                hint=answer.eligible_if and f"eligible if {answer.eligible_if}",
            )
        self.sources.append(node)
        entry.emit(self, Call(node, self.context))

    def _evaluate(self, node: Node) -> Any:
        stored = self.context.stored(node)
        if stored is not None:
            return stored.detach()
        args, kwargs = map_arg((node.args, node.kwargs), self.tensor)
        function: Any = _VIEWS.get(node.target, node.target)
        with torch.no_grad():
            return function(*args, **kwargs)


def _element_of(node: Node) -> tuple[Node, int]:
    """A node with a number of its result; `getitem` is looked through."""
    if node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], Node):
        return node.args[0], int(node.args[1])  # type: ignore[arg-type]
    return node, 0


def expression(size: Size) -> Any:
    """A size as a number or a sympy expression."""
    return size if type(size) is int else size.node.expr


def same_sizes(first: Sequence[Size], second: Sequence[Size]) -> bool:
    """Whether two lists of sizes are always equal."""
    return len(first) == len(second) and all(
        expression(a) == expression(b) for a, b in zip(first, second, strict=True)
    )


def size_rules(dims: Sequence[Size], given: Sequence[Size], *, infer: bool) -> tuple[ir.SizeRule, ...] | None:
    """How the sizes of a result follow from those of the first input; None if they can't be said.

    Args:
        dims: Sizes of the result.
        given: Sizes of the input.
        infer: One size may be what is left over.
    """
    rules = []
    for size in dims:
        rules.append(_rule(size, given))
    left = [position for position, rule in enumerate(rules) if rule is None]
    if len(left) > int(infer):
        return None
    return tuple(ir.SizeRule(ir.INFER) if rule is None else rule for rule in rules)


def _rule(size: Size, given: Sequence[Size]) -> ir.SizeRule | None:
    if type(size) is int:
        return ir.SizeRule(size)
    wanted = expression(size)
    for position, source in enumerate(given):
        if type(source) is int:
            continue
        if expression(source) == wanted:
            return ir.SizeRule(0, position)
        factor = wanted / expression(source)
        if factor.is_Integer and factor > 0:
            return ir.SizeRule(int(factor), position)
    return None
