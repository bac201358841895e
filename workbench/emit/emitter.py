"""One method: from an annotated graph to values and instructions.

The graph is walked in order, control-flow branches in place. Memory is planned afterwards, on the
instructions: what runs is what decides how long a tensor lives.
"""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.backends.call_delegate import is_call_delegate, lowered_module_of
from workbench.emit import ir, symbols
from workbench.emit.values import ValueTable
from workbench.errors import EmitError
from workbench.passes.alias_views import ALIAS_KEY
from workbench.passes.debug_handles import DEBUG_HANDLE_KEY
from workbench.passes.out_variants import KERNEL_KEY, SYMBOL_KERNELS, Kernel
from workbench.passes.spec_propagation import SPEC_KEY, TensorSpec

__all__ = ["MethodEmitter", "emit_graph"]

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.*)\n\s*(?P<context>.*)')
_NAME_LIMIT = 99
"""Bytes of `name.overload` that ExecuTorch's runtime has room for."""


class MethodEmitter:
    """The state of writing one method.

    Attributes:
        table: The values.
        instructions: The instructions so far.
        env: What a node stands for: the index of a value, or a tuple of them.
        bound: Results of nodes (with the position among several) that must be written to a value that is
            there already: results of branches.
        loops: First instruction of each loop and the last that belongs to it, inner loops first.
        blobs: The delegates' blobs, shared by all methods of the program.
        handles: By instruction, the debug handles of the nodes it stands for.
        delegate_map: By instruction of a delegate, what it says about its inside.
        num_outs: By instruction of a delegate, how many results it has.
        lowered: The lowered modules that the method calls.
    """

    def __init__(self, name: str, blobs: dict[bytes, int], *, stacktrace: bool = False) -> None:
        self.name = name
        self.table = ValueTable()
        self.instructions: list[ir.Instruction] = []
        self.env: dict[Node, Any] = {}
        self.bound: dict[tuple[Node, int], int] = {}
        self.loops: list[tuple[int, int]] = []
        self.operators: dict[tuple[str, str], int] = {}
        self.delegates: list[ir.Delegate] = []
        self.blobs = blobs
        self.lowered: list[Any] = []
        self.handles: dict[int, tuple[int, ...]] = {}
        self.delegate_map: dict[int, dict[str, Any]] = {}
        self.num_outs: dict[int, int] = {}
        self.stacktrace: list[list[tuple[str, int, str, str]]] | None = [] if stacktrace else None
        self.node: Node | None = None

    # ---- instructions ----

    def append(self, instruction: ir.Instruction) -> int:
        """Add an instruction; returns its index."""
        self.instructions.append(instruction)
        if self.stacktrace is not None:
            trace = self.node.meta.get("stack_trace") if self.node is not None else None
            self.stacktrace.append(_frames(trace or ""))
        return len(self.instructions) - 1

    def call(self, name: str, overload: str, args: tuple[int, ...]) -> int:
        """Add a call of a kernel; returns its index."""
        key = (name, overload)
        index = self.operators.get(key)
        if index is None:
            if len(name.encode()) + len(overload.encode()) + 1 > _NAME_LIMIT:
                raise EmitError(
                    "the name of an operator is too long for the runtimes",
                    stage="plan",
                    node=self.node.name if self.node is not None else None,
                    expected="under 100 bytes",
                    found=f"{name}.{overload}",
                )
            index = self.operators[key] = len(self.operators)
        return self.append(ir.KernelCall(index, args))

    def clone(self, source: int, target: int) -> None:
        """Copy a tensor, its sizes included."""
        none = self.table.none()
        self.call("aten::clone", "out", (source, none, target, target))

    def assign(self, source: int, target: int) -> None:
        """Give a value (a tensor, or a number) to another one that has memory of its own."""
        if source == target:
            return
        spec = self.table.specs.get(target)
        if spec is None:
            self.append(ir.Move(source, target))
        elif spec.is_static:
            self.call("aten::copy_", "", (target, source, self.table.boolean(False), target))
        else:
            self.clone(source, target)

    def temporary(self, like: TensorSpec, name: str) -> int:
        """A tensor with memory of its own, of another one's type and sizes."""
        spec = replace(
            like, name=name, base=None, data=None, fqn=None, mutable=False, is_input=False, is_output=False,
            mem_id=None, offset=None, lifetime=None,
        )  # fmt: skip
        return self.table.tensor(spec)

    # ---- nodes ----

    def graph(self, graph_module: GraphModule) -> None:
        """Write the nodes of a graph; inputs must be in `env` already."""
        for node in graph_module.graph.nodes:
            if node.op == "call_function":
                self.node = node
                self.function(graph_module, node)
            elif node.op == "get_attr":
                spec = node.meta.get(SPEC_KEY)
                if isinstance(spec, TensorSpec):
                    self.env[node] = self.table.tensor(spec)

    def function(self, graph_module: GraphModule, node: Node) -> None:
        """Write one call."""
        target = node.target
        if target is operator.getitem:
            source: Any = node.args[0]
            index: Any = node.args[1]
            found = self.env[source]
            self.env[node] = found[index] if isinstance(found, tuple) else found
            return
        alias = node.meta.get(ALIAS_KEY)
        if alias is not None:
            self.alias(node, alias)
            return
        kernel: Kernel | None = node.meta.get(KERNEL_KEY)
        if kernel is not None:
            self.env[node] = self.symbol(node, kernel) if kernel.symbolic else self.kernel(node, kernel)
        elif is_call_delegate(node):
            self.delegate(node)
            return
        elif isinstance(target, HigherOrderOperator):
            from workbench.emit.control_flow import emit_control_flow

            emit_control_flow(self, graph_module, node)
            return
        elif node.users:
            self.env[node] = symbols.composed(self, node)
        else:
            return  # An assertion, or an unused number: nothing to compute.
        handle = node.meta.get(DEBUG_HANDLE_KEY)
        if handle is not None:
            self.handles[len(self.instructions) - 1] = (handle,)

    def out(self, node: Node, position: int, spec: TensorSpec | None) -> int:
        """The value that receives a result of a node."""
        if self.bound:
            known = self.bound.get((node, position))
            if known is not None:
                if spec is not None:
                    spec.base = self.table.specs[known]
                return known
        if spec is None:
            value = node.meta["val"]
            item = value[position] if isinstance(value, (tuple, list)) else value
            return self.table.empty() if item is None else self.table.result(item)
        return self.table.tensor(spec)

    def outs(self, node: Node) -> tuple[int, ...]:
        """The values that receive all results of a node."""
        specs = node.meta[SPEC_KEY]
        if isinstance(specs, tuple):
            return tuple(self.out(node, position, spec) for position, spec in enumerate(specs))
        return (self.out(node, 0, specs),)

    def argument(self, node: Node, parameter: Any) -> int:
        """The value of one input of a kernel."""
        position = parameter.position
        if position is not None and position < len(node.args):
            value: Any = node.args[position]
        else:
            value = node.kwargs.get(parameter.name, parameter.default)
        if isinstance(value, Node):
            found = self.env[value]
            if type(found) is int:
                return found
        return self.table.of_kind(value, parameter.kind, parameter.optional, self.env, node)

    def kernel(self, node: Node, kernel: Kernel) -> Any:
        """Write a call of a kernel with out tensors."""
        inputs = tuple([self.argument(node, parameter) for parameter in kernel.parameters])
        schema = node.target._schema  # type: ignore[union-attr]
        if schema.is_mutable and not any(item.is_out for item in schema.arguments):
            self.call(kernel.name, kernel.overload, (*inputs, inputs[0]))
            return inputs[0]
        outs = self.outs(node)
        if len(outs) == 1 and not kernel.list_out:
            self.call(kernel.name, kernel.overload, (*inputs, outs[0], outs[0]))
            return outs if isinstance(node.meta[SPEC_KEY], tuple) else outs[0]
        listed = self.table.tensor_list(outs)
        args = (*inputs, listed, listed) if kernel.list_out else (*inputs, *outs, listed)
        self.call(kernel.name, kernel.overload, args)
        return outs

    def symbol(self, node: Node, kernel: Kernel) -> int:
        """Write a computation on numbers."""
        inputs = tuple([self.argument(node, parameter) for parameter in kernel.parameters])
        out = self.out(node, 0, None)
        self.call(kernel.name, kernel.overload, (*inputs, out))
        return out

    def primitive(self, function: Any, *inputs: int, boolean: bool = False) -> int:
        """Write one computation on numbers; returns the value of its result."""
        kernel = SYMBOL_KERNELS[function]
        out = self.table.fresh(ir.Bool(False) if boolean else ir.Int(0))
        self.call(kernel.name, kernel.overload, (*inputs, out))
        return out

    def alias(self, node: Node, sizes: tuple[Any, ...]) -> None:
        """A view without a copy: no instruction, or one that sets sizes and pointer."""
        out = self.table.tensor(node.meta[SPEC_KEY])
        self.env[node] = out
        if not sizes and not _needs_view(self, node):
            return
        source = self.env[node.args[0]]  # type: ignore[index]
        listed = self.table.of_kind(list(sizes), "int[]", False, self.env, node)
        index = self.call("executorch_prim::et_view", "default", (source, listed, out))
        if (handle := node.meta.get(DEBUG_HANDLE_KEY)) is not None:
            self.handles[index] = (handle,)

    def delegate(self, node: Node) -> None:
        """Write a call of a delegate."""
        lowered = lowered_module_of(node)
        self.lowered.append(lowered)
        inputs = tuple(self.table.of_kind(item, "Scalar", True, self.env, node) for item in node.args[1:])
        outs = self.outs(node)
        blob = self.blobs.setdefault(bytes(lowered.processed_bytes), len(self.blobs))
        specs = [(item.key, bytes(item.value)) for item in lowered.compile_specs]
        self.delegates.append(ir.Delegate(lowered.backend_id, blob, specs))
        index = self.append(ir.DelegateCall(len(self.delegates) - 1, (*inputs, *outs)))
        self.env[node] = outs if isinstance(node.meta[SPEC_KEY], tuple) else outs[0]
        self.handles[index] = tuple(
            inner.meta[DEBUG_HANDLE_KEY]
            for inner in lowered.original_module.graph.nodes
            if inner.op == "call_function" and inner.meta.get(DEBUG_HANDLE_KEY) is not None
        )
        self.num_outs[index] = len(outs)
        self.delegate_map[index] = {
            "name": lowered.backend_id,
            "delegate_map": (lowered.meta or {}).get("debug_handle_map", {}),
        }


def _needs_view(emitter: MethodEmitter, node: Node) -> bool:
    """A 0-dimensional dynamic view has no sizes either, but needs its pointer."""
    spec = node.meta[SPEC_KEY]
    return not spec.is_static


def emit_graph(emitter: MethodEmitter, program: ExportedProgram) -> tuple[list[int], list[int]]:
    """Write the main graph of a method.

    Returns:
        The values of the user's inputs and of the results.
    """
    inputs = []
    for node in program.graph.find_nodes(op="placeholder"):
        spec = node.meta[SPEC_KEY]
        if isinstance(spec, TensorSpec):
            if not spec.is_input and not spec.mutable and not _is_read(node):
                continue
            emitter.env[node] = emitter.table.tensor(spec)
            if not spec.is_input:
                continue
        else:
            emitter.env[node] = _given(emitter, node)
        inputs.append(emitter.env[node])
    try:
        emitter.graph(program.graph_module)
    except EmitError as error:
        node_now = emitter.node
        if node_now is not None:
            error.stage = error.stage or "plan"
            error.node = error.node or node_now.name
            error.source = error.source or provenance.source_line(node_now)
        raise
    from workbench.emit.results import emit_results

    return inputs, emit_results(emitter, program)


def _is_read(node: Node) -> bool:
    """Whether an instruction names a constant itself, and not only views of it."""
    return any(user.meta.get(ALIAS_KEY) != () for user in node.users)


def _given(emitter: MethodEmitter, node: Node) -> int:
    """The value of an input that is no tensor."""
    value = node.meta.get("val")
    if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)):
        return emitter.table.result(value)
    if value is None:
        return emitter.table.fresh(ir.Null())
    if isinstance(value, bool):
        return emitter.table.fresh(ir.Bool(value))
    if isinstance(value, int):
        return emitter.table.fresh(ir.Int(value))
    if isinstance(value, float):
        return emitter.table.fresh(ir.Double(value))
    if isinstance(value, str):
        return emitter.table.fresh(ir.String(value))
    raise EmitError(f"an input of the type `{type(value).__name__}` can't be written", node=node.name)


def _frames(trace: str) -> list[tuple[str, int, str, str]]:
    return [
        (match["file"], int(match["line"]), match["name"].strip(), match["context"].strip())
        for match in _FRAME.finditer(trace)
    ]
