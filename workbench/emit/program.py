"""Methods in the edge dialect -> one program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from workbench.edge.program import input_specs
from workbench.emit import ir
from workbench.emit.config import ExecutorchBackendConfig
from workbench.emit.constants import DataPool, bytes_of, named_tensor
from workbench.emit.emitter import MethodEmitter, emit_graph
from workbench.emit.planning import check_pins, plan_memory
from workbench.emit.results import own_memory
from workbench.errors import EmitError
from workbench.memory import MemoryReport, MethodMemory
from workbench.passes.alias_views import AliasViews
from workbench.passes.debug_handles import DebugHandles
from workbench.passes.foreign import apply
from workbench.passes.out_variants import OutVariants
from workbench.passes.spec_propagation import SpecPropagation, TensorSpec, constant_spec
from workbench.passes.to_runtime import prepare_for_runtime

__all__ = ["EmitResult", "emit"]


@dataclass
class EmitResult:
    """What emission makes.

    Attributes:
        program: The program in memory.
        debug_handle_map: By method and instruction, the debug handles of the nodes it stands for.
        delegate_map: By method and instruction of a delegate, `{"name": backend, "delegate_map": ...}`.
        instruction_id_to_num_outs: By method and instruction of a delegate, how many results it has.
        memory_report: The memory plans.
    """

    program: ir.Program
    debug_handle_map: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    delegate_map: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    instruction_id_to_num_outs: dict[str, dict[int, int]] = field(default_factory=dict)
    memory_report: MemoryReport = field(default_factory=lambda: MemoryReport({}))


def emit(
    methods: Mapping[str, ExportedProgram],
    config: ExecutorchBackendConfig | None = None,
    constant_methods: Mapping[str, Any] | None = None,
) -> EmitResult:
    """Plan and write methods.

    Args:
        methods: By name, programs in the edge dialect: private copies, whose graphs are prepared for the
            runtime and annotated in place.
        config: Options.
        constant_methods: By name, methods that return a constant: a number, a text, a tensor, or containers
            of them.

    Returns:
        The program, with maps from its instructions back to nodes.

    Raises:
        MissingKernelError: An operator has no kernel in the target runtime.
        MemoryPlanError: No plan within the limits exists.
        EmitError: A graph can't be written.
    """
    config = config or ExecutorchBackendConfig()
    return _ProgramEmitter(config).run(methods, constant_methods or {})


class _ProgramEmitter:
    """What the methods of one program share."""

    def __init__(self, config: ExecutorchBackendConfig) -> None:
        self.config = config
        self.program = ir.Program(
            segment_alignment=config.segment_alignment,
            constant_alignment=config.constant_tensor_alignment or 16,
            delegate_alignment=config.delegate_alignment or 16,
            extract_delegates=config.extract_delegate_segments,
        )
        self.constants = DataPool(self.program.constants)
        self.states = DataPool(self.program.states)
        self.blobs: dict[bytes, int] = {}
        self.folded: dict[Any, Any] = {}
        self.result = EmitResult(self.program)
        self.plans: dict[str, MethodMemory] = {}

    def run(self, methods: Mapping[str, ExportedProgram], constant_methods: Mapping[str, Any]) -> EmitResult:
        for name, program in methods.items():
            self.method(name, program)
        check_pins({name: self.config.planning(name) for name in methods}, self.plans)
        for name, value in constant_methods.items():
            self.program.methods.append(self.constant_method(name, value))
        self.program.delegate_data.extend(map(memoryview, self.blobs))
        self.result.memory_report = MemoryReport(self.plans)
        return self.result

    def method(self, name: str, program: ExportedProgram) -> None:
        external = self.prepare(name, program)
        emitter = MethodEmitter(name, self.blobs, stacktrace=self.config.emit_stacktrace)
        planning = self.config.planning(name)
        inputs, outputs = emit_graph(emitter, program)
        if not (planning.plan_inputs and planning.plan_outputs):
            outputs = own_memory(emitter, outputs, planning)
        sizes, self.plans[name] = plan_memory(emitter, inputs, outputs, planning)
        for index, spec in emitter.table.specs.items():
            if spec.root.data is not None:
                value = emitter.table.values[index]
                assert isinstance(value, ir.Tensor)
                self.store(value, spec, external)
        for lowered in emitter.lowered:
            self.named_data(lowered)
        self.program.methods.append(
            ir.Method(
                name,
                emitter.table.values,
                inputs,
                outputs,
                [ir.Chain(emitter.instructions, emitter.stacktrace or [])],
                list(emitter.operators),
                emitter.delegates,
                sizes,
                *_trees(program),
            )
        )
        self.result.debug_handle_map[name] = emitter.handles
        self.result.delegate_map[name] = emitter.delegate_map
        self.result.instruction_id_to_num_outs[name] = emitter.num_outs

    def prepare(self, name: str, program: ExportedProgram) -> dict[str, str]:
        """Run the passes; returns by fully qualified name the data file of each external constant."""
        config, planning = self.config, self.config.planning(name)
        if config.passes:
            # The result of passes is a copy; what the caller looks at afterwards is the program it gave.
            changed, _ = apply(program, list(config.passes))
            if changed is not program:
                _adopt(program, changed)
        DebugHandles()(program, check=False)
        # Constants in data files keep the names and the values that the model gives them.
        fold = config.fold_weights and config.external_constants is False
        prepare_for_runtime(program, fold_weights=fold, cache=self.folded)
        DebugHandles()(program, check=False)  # of what those passes added, for profiles
        external = self.external(program)
        SpecPropagation(alignment=planning.alignment)(program, check=False)
        if config.remove_view_copy:
            AliasViews(
                plan_inputs=planning.plan_inputs,
                plan_outputs=planning.plan_outputs,
                external=frozenset(external),
            )(program, check=False)
        else:
            AliasViews(plan_inputs=False, plan_outputs=False).mark_results(program)
        OutVariants(_kernels() if config.check_kernels else None)(program, check=False)
        return external

    def external(self, program: ExportedProgram) -> dict[str, str]:
        choice = self.config.external_constants
        if choice is False:
            return {}
        found = {}
        specs = input_specs(program)
        for node in program.graph.find_nodes(op="placeholder"):
            declared = specs.get(node.name)
            if declared is None or declared.target is None:
                continue
            file = _file_of(choice, node)
            if file is not None:
                found[declared.target] = file
        return found

    def store(self, value: ir.Tensor, spec: TensorSpec, external: Mapping[str, str]) -> None:
        """Write the data of a constant, or the initial state of a buffer."""
        root = spec.root
        if root.mutable:
            if self.config.emit_mutable_buffer_names and spec is root:
                value.fqn = root.fqn
            if self.config.init_mutable_buffers and spec is root:
                value.buffer = self.states.add_tensor(root)
            return
        file = external.get(root.fqn or "")
        if file is None:
            value.buffer = self.constants.add_tensor(root)
            return
        assert root.fqn is not None
        value.fqn, value.external = root.fqn, True
        entries = self.program.external_data.setdefault(file, {})
        entry = named_tensor(root, self.program.constant_alignment)
        known = entries.setdefault(root.fqn, entry)
        if known is not entry and bytes(known.data) != bytes(entry.data):
            raise EmitError(f"two different external constants are called `{root.fqn}`", found=file)

    def named_data(self, lowered: Any) -> None:
        output = lowered.named_data_store_output
        if output is None:
            return
        self.merge(self.program.named_data, output.pte_data, output.buffers)
        for tag, entries in output.external_data.items():
            self.merge(self.program.external_data.setdefault(tag, {}), entries, output.buffers)

    def merge(self, into: dict[str, ir.NamedBytes], entries: Mapping[str, Any], buffers: list[Any]) -> None:
        for key, entry in entries.items():
            data = memoryview(buffers[entry.buffer_index]).cast("B")
            known = into.get(key)
            if known is None:
                number = ir.scalar_type(entry.dtype) if entry.dtype is not None else None
                sizes = tuple(entry.sizes or ())
                order = tuple(range(len(sizes)))
                into[key] = ir.NamedBytes(data, entry.alignment, number, sizes, order)
                continue
            if known.data is not data and known.data != data:
                raise EmitError(
                    f"two different pieces of named data are called `{key}`",
                    found=f"{known.data.nbytes} bytes and {data.nbytes} bytes",
                    hint="put a hash of the data into the name",
                )
            known.alignment = max(known.alignment, entry.alignment)

    def constant_method(self, name: str, value: Any) -> ir.Method:
        """A method that only returns constants."""
        leaves, tree = pytree.tree_flatten(value)
        method = ir.Method(name, output_tree=_json(tree))
        emitter = MethodEmitter(name, self.blobs)
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                spec = constant_spec(name, leaf)
                method.values.append(
                    ir.Tensor(
                        _number(leaf, name), spec.sizes, spec.dim_order, 0, self.constants.add(bytes_of(spec))
                    )
                )
            else:
                index = emitter.table.constant(leaf)
                method.values.append(emitter.table.values[index])
        method.outputs = list(range(len(leaves)))
        return method


def _number(tensor: torch.Tensor, name: str) -> int:
    number = ir.scalar_type(tensor.dtype)
    if number is None:
        raise EmitError(f"constant method `{name}`: a tensor of {tensor.dtype} can't be written")
    return number


def _file_of(choice: Any, node: Node) -> str | None:
    if choice is True:
        return "_default_external_constant"
    found = choice(node)
    return None if found is None else str(found)


def _trees(program: ExportedProgram) -> tuple[str, str]:
    spec = program.call_spec
    return _json(spec.in_spec), _json(spec.out_spec)


def _json(tree: pytree.TreeSpec | None) -> str:
    if tree is None:
        return ""
    try:
        return str(pytree.treespec_dumps(tree))
    except (NotImplementedError, TypeError, ValueError):
        return ""  # A container that torch has no name for; inputs and results then count as flat.


def _adopt(program: ExportedProgram, changed: ExportedProgram) -> None:
    program._graph_module = changed.graph_module
    program._graph_signature = changed.graph_signature
    program._state_dict = changed.state_dict
    program._constants = changed.constants


def _kernels() -> frozenset[str]:
    """What the target runtime has."""
    # The registry imports every operator family; programs that skip the check need not wait for it.
    from workbench.ops.registry import runtime_kernels

    return frozenset(runtime_kernels())
