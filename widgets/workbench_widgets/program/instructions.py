"""What instructions do: which values each reads and writes, and which nodes it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workbench import provenance, tables
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context

__all__ = ["Effects", "Origin", "argument_names", "effects", "flat", "method_of", "name_of", "origins"]

_LISTS = (ir.TensorList, ir.OptionalTensorList)


@dataclass(frozen=True, slots=True)
class Effects:
    """Tensors that an instruction touches, as value indices.

    Attributes:
        reads: What it reads.
        writes: What it writes.
        open: Of a delegate: inputs, then outputs; the file does not say where the outputs begin.
    """

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    open: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instruction comes from.

    Attributes:
        handles: Source handles, ascending; the instruction's index + 1 where nothing is known.
        node: Name of its node, `""` where nothing is known.
        module: Path of its module.
        source: `file:line`, or `""`.
    """

    handles: tuple[int, ...]
    node: str = ""
    module: str = ""
    source: str = ""


def method_of(program: ir.Program, name: str) -> ir.Method:
    """A method by name.

    Raises:
        WorkbenchError: There is none.
    """
    for method in program.methods:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in program.methods)
    raise WorkbenchError("there is no such method", expected=known, found=name)


def flat(method: ir.Method) -> Iterator[tuple[int, int, ir.Instruction]]:
    """Chain, index in it, instruction: those of all chains, one after the other."""
    for number, chain in enumerate(method.chains):
        for index, instruction in enumerate(chain.instructions):
            yield number, index, instruction


def name_of(method: ir.Method, instruction: ir.Instruction) -> str:
    """The operator or the backend that an instruction calls, or what else it does."""
    if isinstance(instruction, ir.KernelCall):
        return method.operator_name(instruction.operator)
    if isinstance(instruction, ir.DelegateCall):
        return method.delegates[instruction.delegate].backend_id
    return {ir.Move: "move", ir.JumpFalse: "jump if false", ir.Free: "free"}[type(instruction)]


def effects(method: ir.Method, instruction: ir.Instruction) -> Effects:
    """What an instruction reads and writes."""
    if isinstance(instruction, ir.KernelCall):
        written = _results(method, instruction)
        reads = tuple(index for index in _tensors(method, instruction.args) if index not in written)
        return Effects(reads, written)
    if isinstance(instruction, ir.DelegateCall):
        return Effects(open=tuple(_tensors(method, instruction.args)))
    if isinstance(instruction, ir.Move):
        return Effects(
            tuple(_tensors(method, (instruction.source,))), tuple(_tensors(method, (instruction.target,)))
        )
    condition = instruction.condition if isinstance(instruction, ir.JumpFalse) else instruction.value
    return Effects(tuple(_tensors(method, (condition,))))


def _results(method: ir.Method, call: ir.KernelCall) -> tuple[int, ...]:
    """What a kernel returns, which stands last among its arguments: a tensor, or a list of them."""
    if not call.args:
        return ()
    if method.operator_name(call.operator).startswith("executorch_prim::et_copy_index"):
        return (call.args[0],)
    return tuple(_tensors(method, call.args[-1:]))


def _tensors(method: ir.Method, args: Iterable[int]) -> Iterator[int]:
    for index in args:
        value = method.values[index]
        if isinstance(value, ir.Tensor):
            yield index
        elif isinstance(value, _LISTS):
            yield from (item for item in value.items if item >= 0)


@lru_cache(maxsize=1024)
def argument_names(name: str, count: int) -> tuple[str, ...]:
    """What the arguments of an operator are called; empty texts where its schema is not known.

    Args:
        name: As in files: `aten::add.out`.
        count: How many arguments there are; what is beyond the schema is what the kernel returns.
    """
    schema = _schema(name)
    known = [argument.name for argument in schema.arguments] if schema is not None else []
    return (*known[:count], *[""] * (count - len(known)))


def _schema(name: str) -> Any:
    import torch

    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), operator, None)
    found = getattr(packet, overload or "default", None) if packet is not None else None
    return getattr(found, "_schema", None)


def origins(context: Context, method: str) -> list[Origin]:
    """Where each instruction of a method comes from, in the order of `flat`."""
    count = sum(1 for _ in flat(method_of(context.program, method)))
    emitted, program = _planned(context, method)
    if emitted is None:
        return [Origin((index + 1,)) for index in range(count)]
    nodes: dict[int, list[Any]] = {}
    for node in _all_nodes(program.graph_module):
        handle = node.meta.get("debug_handle")
        if isinstance(handle, int):
            nodes.setdefault(handle, []).append(node)
    sources = provenance.source_map(program)
    stood_for: Mapping[int, tuple[int, ...]] = emitted.debug_handle_map.get(method, {})
    return [
        _origin([node for handle in stood_for.get(index, ()) for node in nodes.get(handle, ())], sources)
        for index in range(count)
    ]


def _origin(nodes: list[Any], sources: provenance.SourceMap) -> Origin:
    handles = sorted(frozenset().union(*(provenance.handles(node) for node in nodes)))
    known = sources.resolve(handles)
    module = next((item.module_path for item in known if item.module_path), "")
    line = next((line for node in nodes if (line := provenance.source_line(node))), None)
    line = line or next((item.source for item in known if item.source), None)
    return Origin(tuple(handles), nodes[0].name if len(nodes) == 1 else "", module, line or "")


def _planned(context: Context, method: str) -> tuple[Any, Any]:
    """What was emitted, and the graph that it was emitted from; nothing for a program from a file."""
    try:
        stage: Any = context.stage("planned")
    except WorkbenchError:
        return None, None
    program = stage._programs.get(method)
    return (stage.emitted, program) if program is not None else (None, None)


def _all_nodes(graph_module: Any) -> Iterator[Any]:
    """All nodes, those inside of delegates included."""
    from workbench.backends.lowered_module import LoweredBackendModule

    for node in provenance.nodes_of(graph_module):
        yield node
        if node.op == "get_attr":
            inner = getattr(graph_module, str(node.target), None)
            if isinstance(inner, LoweredBackendModule):
                yield from inner.original_module.graph.nodes


def readable(method: ir.Method, index: int) -> str:
    """A value as an argument of an instruction: tensors by number and shape, the rest as it is."""
    if index < 0:
        return "None"
    value = method.values[index]
    if isinstance(value, ir.Tensor):
        return f"%{index} {tables.dtype_name(value)}{list(value.sizes)}"
    if isinstance(value, ir.Null):
        return "None"
    if isinstance(value, ir.IntList):
        return "[" + ", ".join(_number(method, item) for item in value.items) + "]"
    if isinstance(value, _LISTS):
        return "[" + ", ".join("None" if item < 0 else f"%{item}" for item in value.items) + "]"
    if isinstance(value, (ir.DoubleList, ir.BoolList)):
        return str(list(value.items))
    return repr(value.value)


def _number(method: ir.Method, index: int) -> str:
    value = method.values[index]
    return str(value.value) if isinstance(value, ir.Int) else f"%{index}"
