"""Views share the memory of what they view.

A `view_copy` (or its kin) of a tensor in row-major order is that tensor under other sizes. With sizes that
never change, and memory whose place is known ahead, nothing is left to do at run time: the node gets no
instruction. Otherwise the primitive `executorch_prim::et_view` sets sizes and pointer, and still copies
nothing.

What must keep memory of its own stays a copy: results of control-flow branches, results that would alias an
input, a constant, a buffer that the method writes, or another result, and results that the caller gives
memory for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node

from workbench.passes.base import InPlacePass
from workbench.passes.spec_propagation import SPEC_KEY, TensorSpec, specs_of

__all__ = ["ALIAS_KEY", "AliasViews", "operands_of"]

ALIAS_KEY = "alias"
"""`node.meta["alias"]`: `()` for a node without an instruction, else the sizes for `et_view`."""

aten = torch.ops.aten
_VIEWS = frozenset(
    {
        aten.view_copy.default,
        aten.unsqueeze_copy.default,
        aten.squeeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.alias_copy.default,
        aten.detach_copy.default,
    }
)
_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


class AliasViews(InPlacePass):
    """Mark views with `node.meta["alias"]` and let their specs share memory.

    Needs the specs of `spec_propagation`.

    Args:
        plan_inputs: The inputs lie in the arena.
        plan_outputs: The outputs lie in the arena.
        external: Constants of these names stand in data files, where each has one shape only.
    """

    name = "alias_views"

    def __init__(
        self, *, plan_inputs: bool = True, plan_outputs: bool = True, external: frozenset[str] = frozenset()
    ) -> None:
        self.plan_inputs = plan_inputs
        self.plan_outputs = plan_outputs
        self.external = external

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Annotate the graphs in place."""
        run = _Run(self)
        run.results(program)
        run.graph(program.graph_module)
        return {"views without copy": run.count}

    def mark_results(self, program: ExportedProgram) -> None:
        """Only say which tensors are results, and which inputs are written."""
        _Run(self).results(program)


class _Run:
    """One run: which memory is taken by results of the method."""

    def __init__(self, options: AliasViews) -> None:
        self.options = options
        self.outputs: set[Node] = set()
        self.claimed: set[TensorSpec] = set()
        self.own: set[Node] = set()
        self.count = 0

    def results(self, program: ExportedProgram) -> None:
        results: Any = program.graph.output_node().args[0]
        inputs = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
        for spec, node in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                for item in specs_of(inputs[str(spec.target)]):
                    item.mutable = True
            if not isinstance(node, Node) or not isinstance(node.meta.get(SPEC_KEY), TensorSpec):
                continue
            self.outputs.add(node)
            if spec.kind not in _MUTATIONS:
                node.meta[SPEC_KEY].is_output = True
                if node.target not in _VIEWS:
                    self.claimed.add(node.meta[SPEC_KEY])

    def graph(self, graph_module: GraphModule) -> None:
        for node in graph_module.graph.nodes:
            if node.op != "call_function":
                continue
            if node.target in _VIEWS:
                self.view(node)
            elif isinstance(node.target, torch._ops.HigherOrderOperator):
                self.branches(graph_module, node)

    def branches(self, graph_module: GraphModule, node: Node) -> None:
        """Let the inputs of branches stand for the operands, then look into the branches."""
        for inner, operands in operands_of(graph_module, node):
            for placeholder, operand in zip(inner.graph.find_nodes(op="placeholder"), operands, strict=True):
                own = placeholder.meta[SPEC_KEY]
                if isinstance(own, TensorSpec) and isinstance(operand, TensorSpec):
                    own.base = operand.root
            results: Any = inner.graph.output_node().args[0]
            for result in results if isinstance(results, (list, tuple)) else (results,):
                if isinstance(result, Node):
                    self.own.add(result)
            self.graph(inner)

    def view(self, node: Node) -> None:
        node.meta.pop(ALIAS_KEY, None)
        source, spec = _spec(node.args[0]), _spec(node)
        if source is None or spec is None or node in self.own or node.args[0] in self.own:
            return
        same_order = source.is_contiguous and spec.is_contiguous
        if not (same_order or (source.sizes == spec.sizes and source.dim_order == spec.dim_order)):
            return
        root = source.root
        if spec.dtype != root.dtype or spec.nbytes == 0 or (root.const and root.fqn in self.options.external):
            return
        if node in self.outputs and not self.may_be_result(root, node):
            return
        placed = root.const or root.mutable or self.options.plan_inputs or not root.is_input
        if root.is_output and not self.options.plan_outputs:
            placed = False
        sizes: tuple[Any, ...] | None = ()
        if not (spec.is_static and source.is_static and placed and spec.nbytes == source.nbytes):
            sizes = _view_sizes(node) if not root.const else None
        if sizes is None:
            return
        spec.base = root
        node.meta[ALIAS_KEY] = sizes
        self.count += 1
        if node in self.outputs:
            self.claimed.add(root)
            root.is_output = root.is_output or spec.is_output

    def may_be_result(self, root: TensorSpec, node: Node) -> bool:
        """Whether a result of the method may share this memory."""
        spec = _spec(node)
        if spec is not None and not spec.is_output:
            return not root.mutable  # It is only copied to a buffer.
        free = not (root.is_input or root.mutable or root.const) and root not in self.claimed
        return free and self.options.plan_outputs


def operands_of(
    graph_module: GraphModule, node: Node
) -> list[tuple[GraphModule, list[TensorSpec | Node | int | None]]]:
    """The branches of a control-flow node, and for each input of a branch what it stands for.

    Tensors are given as specs: the operand's, the node's own result for a value that a loop carries, and None
    for a slice that gets memory of its own.
    """
    kind = str(node.target)
    found: list[tuple[GraphModule, list[Any]]] = []
    if kind == "cond":
        operands = [_operand(item) for item in (node.args[3] if len(node.args) > 3 else ())]  # type: ignore[union-attr]
        for branch in node.args[1:3]:
            found.append((_branch(graph_module, branch), operands))
    elif kind == "while_loop":
        condition, body, carried, extra = _padded(node.args, 4)
        operands = [*_results(node, len(carried)), *(_operand(item) for item in extra)]
        found = [(_branch(graph_module, item), operands) for item in (condition, body)]
    elif kind == "map_impl":
        body, mapped, extra = _padded(node.args, 3)
        operands = [*(None for _ in mapped), *(_operand(item) for item in extra)]
        found = [(_branch(graph_module, body), operands)]
    elif kind == "scan":
        body, carried, scanned, extra = _padded(node.args, 4)
        operands = [
            *_results(node, len(carried)),
            *(None for _ in scanned),
            *(_operand(item) for item in extra),
        ]
        found = [(_branch(graph_module, body), operands)]
    return found


def _padded(args: Any, count: int) -> list[Any]:
    return [*args, *(() for _ in range(count - len(args)))]


def _branch(graph_module: GraphModule, node: Any) -> GraphModule:
    inner = graph_module.get_submodule(str(node.target))
    assert isinstance(inner, GraphModule)
    return inner


def _operand(item: Any) -> Any:
    if isinstance(item, Node):
        spec = item.meta.get(SPEC_KEY)
        return spec if spec is not None else item
    return item


def _results(node: Node, count: int) -> list[Any]:
    specs = node.meta[SPEC_KEY]
    return list(specs[:count]) if isinstance(specs, tuple) else [specs]


def _spec(node: Any) -> TensorSpec | None:
    found = node.meta.get(SPEC_KEY)
    return found if isinstance(found, TensorSpec) else None


def _view_sizes(node: Node) -> tuple[Any, ...] | None:
    """The sizes for `et_view`, of which one may be left open as -1; None where they can't be said."""
    if node.target is aten.view_copy.default:
        given: Any = node.args[1]
        return tuple(given)
    sizes = [size if type(size) is int else -1 for size in node.meta["val"].shape]
    return tuple(sizes) if sizes.count(-1) <= 1 else None
