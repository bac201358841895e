"""What the planner and the emitter need to know of each tensor: type, bounded sizes, order in memory.

A `TensorSpec` is made for every tensor in a graph and kept in `node.meta["spec"]` (a tuple of them for a node
with several results, None in place of a number). Symbolic sizes become their upper bounds, from the
constraints of the export.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from workbench import provenance
from workbench.edge.fake import dim_order
from workbench.edge.program import input_specs, lifted_tensor, mutated_targets
from workbench.errors import LoweringError, MemoryPlanError
from workbench.passes.base import InPlacePass

__all__ = ["SPEC_KEY", "Bounds", "Dynamism", "SpecPropagation", "TensorSpec", "constant_spec", "specs_of"]

SPEC_KEY = "spec"
_LARGEST_SIZE = (1 << 31) - 1


class Dynamism(enum.IntEnum):
    """Whether the sizes of a tensor may change between executions."""

    STATIC = 0
    BOUND = 1
    UNBOUND = 2


@dataclass(eq=False, slots=True)
class TensorSpec:
    """A tensor as the planner and the emitter see it.

    Attributes:
        name: The name of its node.
        dtype: Element type.
        sizes: Upper bounds of the sizes, in elements.
        dim_order: Dimensions from the outermost in memory to the innermost.
        dynamism: Whether the sizes may change.
        nbytes: Bytes at the upper bounds.
        handles: Source handles of the node.
        data: The value, of a constant and of a mutable buffer.
        fqn: Fully qualified name of a parameter or buffer.
        mutable: It is a buffer (or an input) that the method writes.
        is_input: The caller gives its value.
        is_output: It is handed back to the caller.
        base: The tensor whose memory it shares; None for a tensor with memory of its own.
        mem_id: The arena, from 1; None for memory that is not planned.
        offset: Bytes from the start of the arena.
        lifetime: First and last instruction during which its memory is in use.
        alignment: Bytes.
    """

    name: str
    dtype: torch.dtype
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: Dynamism
    nbytes: int
    handles: frozenset[int] = frozenset()
    data: torch.Tensor | None = None
    fqn: str | None = None
    mutable: bool = False
    is_input: bool = False
    is_output: bool = False
    base: TensorSpec | None = None
    mem_id: int | None = None
    offset: int | None = None
    lifetime: tuple[int, int] | None = None
    alignment: int = 16

    @property
    def root(self) -> TensorSpec:
        """The tensor that owns the memory."""
        spec = self
        while spec.base is not None:
            spec = spec.base
        return spec

    @property
    def const(self) -> bool:
        """Whether it has a value that never changes."""
        return self.data is not None and not self.mutable

    @property
    def is_static(self) -> bool:
        """Whether its sizes never change."""
        return self.dynamism == Dynamism.STATIC

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in row-major order."""
        return self.dim_order == tuple(range(len(self.sizes)))


@dataclass
class Bounds:
    """Upper bounds of symbolic sizes.

    Attributes:
        ranges: By symbol, what the export's constraints allow.
    """

    ranges: Mapping[Any, Any]
    _known: dict[Any, int] = field(default_factory=dict)

    def upper(self, size: Any, node: Node) -> int:
        """The greatest value of a size.

        Raises:
            MemoryPlanError: It has no upper bound.
        """
        if type(size) is int:
            return size
        expression = size.node.expr
        known = self._known.get(expression)
        if known is None:
            known = self._known[expression] = self._bound(expression, size, node)
        return known

    def _bound(self, expression: Any, size: Any, node: Node) -> int:
        environment = size.node.shape_env
        ranges = {}
        for symbol in expression.free_symbols:
            found = self.ranges.get(symbol)
            inferred = environment.var_to_range.get(symbol) if environment is not None else None
            both = [item for item in (found, inferred) if item is not None]
            ranges[symbol] = (
                ValueRanges(max((item.lower for item in both), default=0), min(item.upper for item in both))
                if both
                else ValueRanges.unknown_int()
            )
        upper = bound_sympy(expression, ranges).upper
        if upper.is_Integer and upper <= _LARGEST_SIZE:
            return int(upper)
        raise MemoryPlanError(
            f"the size `{expression}` has no upper bound, so no memory can be planned for it",
            stage="plan",
            node=node.name,
            source=provenance.source_line(node),
            expected="a bounded size",
            found=f"{expression} <= {upper}",
            hint="give the dimension a maximum, as in torch.export.Dim('batch', max=64), or call "
            "torch._check(size <= maximum) on a size that depends on data",
        )


class SpecPropagation(InPlacePass):
    """Write `node.meta["spec"]` for each node, branches included."""

    name = "spec_propagation"

    def __init__(self, *, alignment: int = 16) -> None:
        self.alignment = alignment

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Annotate the graphs in place; a branch that is called twice gets a second copy."""
        bounds = Bounds(program.range_constraints)
        copies = _unshare(program.graph_module, set())
        count = 0
        for graph_module in _graphs(program.graph_module):
            count += self._graph(graph_module, bounds)
        self._inputs(program)
        return {"specs": count, "branches copied": copies}

    def _graph(self, graph_module: GraphModule, bounds: Bounds) -> int:
        count = 0
        for node in graph_module.graph.nodes:
            if node.op == "get_attr":
                node.meta[SPEC_KEY] = self._attribute(graph_module, node)
                continue
            if node.op == "output":
                continue
            if node.target is operator.getitem and node.op == "call_function":
                source, index = node.args
                specs = source.meta[SPEC_KEY]
                node.meta[SPEC_KEY] = specs[index] if isinstance(specs, tuple) else specs
                continue
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                node.meta[SPEC_KEY] = self._spec(value, node, bounds)
                count += 1
            elif isinstance(value, (tuple, list)):
                node.meta[SPEC_KEY] = tuple(
                    self._spec(item, node, bounds, position) if isinstance(item, torch.Tensor) else None
                    for position, item in enumerate(value)
                )
                count += len(value)
            else:
                node.meta[SPEC_KEY] = None
        return count

    def _spec(self, value: torch.Tensor, node: Node, bounds: Bounds, index: int | None = None) -> TensorSpec:
        shape = value.shape
        sizes = []
        dynamism = Dynamism.STATIC
        numel = 1
        for size in shape:
            if type(size) is not int:
                dynamism = Dynamism.BOUND
                size = bounds.upper(size, node)
            sizes.append(size)
            numel *= size
        name = node.name if index is None else f"{node.name}.{index}"
        return TensorSpec(
            name,
            value.dtype,
            tuple(sizes),
            dim_order(value),
            dynamism,
            numel * value.dtype.itemsize,
            provenance.handles(node),
            alignment=self.alignment,
        )

    def _attribute(self, graph_module: GraphModule, node: Node) -> TensorSpec | None:
        found: Any = graph_module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if not isinstance(found, torch.Tensor):
            return None
        spec = constant_spec(node.name, found, provenance.handles(node))
        spec.fqn = str(node.target)
        return spec

    def _inputs(self, program: ExportedProgram) -> None:
        """Mark inputs, constants and mutable buffers of the main graph."""
        specs = input_specs(program)
        mutated = mutated_targets(program)
        for node in program.graph.find_nodes(op="placeholder"):
            declared = specs.get(node.name)
            spec = node.meta[SPEC_KEY]
            tensor = lifted_tensor(program, declared) if declared is not None else None
            if tensor is None:
                for item in specs_of(node):
                    item.is_input = True
                continue
            assert declared is not None
            if not isinstance(spec, TensorSpec):
                raise LoweringError(
                    f"the constant `{declared.target}` has no tensor in the graph", node=node.name
                )
            mutable = declared.target in mutated
            spec = constant_spec(node.name, tensor, provenance.handles(node))
            spec.alignment = self.alignment
            spec.mutable = mutable
            spec.fqn = declared.target
            node.meta[SPEC_KEY] = spec


def specs_of(node: Node) -> Iterator[TensorSpec]:
    """The specs of a node's tensors."""
    found = node.meta.get(SPEC_KEY)
    if isinstance(found, TensorSpec):
        yield found
    elif isinstance(found, tuple):
        yield from (item for item in found if item is not None)


def constant_spec(name: str, tensor: torch.Tensor, handles: frozenset[int] = frozenset()) -> TensorSpec:
    """The spec of a constant, in the order of dimensions in which it is written."""
    order = dim_order(tensor)
    plain = tuple(range(tensor.dim()))
    if order != plain:
        dense = tensor.permute(order).is_contiguous()
        channels_last = order == (0, *plain[2:], 1)
        # Kernels know two orders; a weight in another one is written in row-major order.
        order = order if dense and channels_last and tensor.dim() in (4, 5) else plain
    return TensorSpec(
        name,
        tensor.dtype,
        tuple(tensor.shape),
        order,
        Dynamism.STATIC,
        tensor.numel() * tensor.dtype.itemsize,
        handles,
        data=tensor,
    )


def _graphs(graph_module: GraphModule) -> Iterator[GraphModule]:
    """As `workbench.edge.program.graph_modules`, inner before outer."""
    for node in graph_module.graph.find_nodes(op="get_attr"):
        inner = getattr(graph_module, str(node.target), None)
        if isinstance(inner, GraphModule) and node.users:
            yield from _graphs(inner)
    yield graph_module


def _unshare(graph_module: GraphModule, seen: set[int]) -> int:
    """Give each use of a branch a graph of its own, since a graph holds the places of one use."""
    copies = 0
    for node in graph_module.graph.find_nodes(op="get_attr"):
        inner = getattr(graph_module, str(node.target), None)
        if not isinstance(inner, GraphModule) or not node.users:
            continue
        users = list(node.users)
        if id(inner) in seen or len(users) > 1:
            for position, user in enumerate(users):
                if position == 0 and id(inner) not in seen:
                    continue
                copies += 1
                _give_copy(graph_module, node, user, inner)
        seen.add(id(inner))
        copies += _unshare(inner, seen)
    return copies


def _give_copy(owner: GraphModule, node: Node, user: Node, inner: GraphModule) -> None:
    number = 0
    while hasattr(owner, f"{node.target}_{number}"):
        number += 1
    name = f"{node.target}_{number}"
    fresh = GraphModule(inner, inner.graph.__deepcopy__({}))
    for old, new in zip(inner.graph.nodes, fresh.graph.nodes, strict=True):
        new.meta = copy(old.meta)
    owner.add_module(name, fresh)
    with owner.graph.inserting_before(user):
        attribute = owner.graph.get_attr(name)
    attribute.meta = dict(node.meta)
    user.replace_input_with(node, attribute)
