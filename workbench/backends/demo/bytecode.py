"""The instruction list of the demo backends: values, instructions on them, and constant data.

All numbers are little-endian; the native half `native_runtime/backends/demo/blob.h` mirrors the layout.

    header       u32 magic "WBDM", u32 version 1, u32 values, u32 inputs, u32 outputs, u32 instructions, u64
    bytes of data value        u8 kind (0 input, 1 output, 2 temporary, 3 constant), u8 rank, u16 0, u32 0,
    u64 offset into the data, i32 sizes[8] instruction  u16 opcode, u16 operands, i32 debug identifier, u32
    operand[3], u32 result, f32 alpha, u32 0 data         float32, each constant at a multiple of 16 bytes

Values are numbered: inputs first, in the order of the delegate's arguments, then outputs, then the rest. All
are float32 and contiguous. `add` computes `a + alpha * b`; `add` and `mul` broadcast as PyTorch does.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import has_free_symbols

from workbench.backends.base import CompileSpec, PreprocessResult, Supported, WhyNot, target_name
from workbench.backends.debug import DelegateMappingBuilder
from workbench.backends.named_data import tensor_bytes
from workbench.backends.stateless import check_stateless
from workbench.errors import PartitionError

__all__ = ["DEFAULT_MAX_RANK", "MAX_RANK", "Opcode", "compile_program", "max_rank_of", "supports"]

# Largest rank that the format can hold, and the limit where no compile spec sets a lower one.
MAX_RANK = 8
DEFAULT_MAX_RANK = 4

_MAGIC = b"WBDM"
_VERSION = 1
_ALIGNMENT = 16
_HEADER = struct.Struct("<4sIIIIIQ")
_VALUE = struct.Struct("<BBHIQ8i")
_INSTRUCTION = struct.Struct("<HHi3IIfI")


class Opcode(IntEnum):
    """What an instruction computes."""

    COPY = 0
    SIN = 1
    ADD = 2
    MUL = 3
    MM = 4
    LINEAR = 5


class _Kind(IntEnum):
    INPUT = 0
    OUTPUT = 1
    TEMPORARY = 2
    CONSTANT = 3


def max_rank_of(compile_specs: Sequence[CompileSpec]) -> int:
    """The limit that the compile spec `max_value` sets.

    It is     the largest rank of a tensor, one unsigned little-endian number.

    Raises:
        PartitionError: It is out of range.
    """
    for spec in compile_specs:
        if spec.key == "max_value":
            value = int.from_bytes(spec.value, "little")
            if not 0 < value <= MAX_RANK:
                raise PartitionError(
                    "compile spec 'max_value'", expected=f"1 to {MAX_RANK}", found=str(value)
                )
            return value
    return DEFAULT_MAX_RANK


def supports(node: Node, opcodes: Mapping[object, Opcode], max_rank: int) -> Supported | WhyNot:
    """Can this operator be written as an instruction?

    Args:
        node: An operator with its `val`.
        opcodes: The operators that the backend has.
        max_rank: Largest rank of an operand or result.
    """
    if node.target not in opcodes:
        names = ", ".join(sorted(str(target) for target in opcodes))
        return WhyNot(node, f"the backend has no {target_name(node)}", f"it were one of {names}")
    for name, value in [("the result", node.meta.get("val")), *_tensor_operands(node)]:
        if not isinstance(value, torch.Tensor):
            return WhyNot(node, f"{name} is no tensor")
        if value.dtype != torch.float32:
            return WhyNot(node, f"{name} is {value.dtype}", f"{name} were torch.float32")
        if value.dim() > max_rank:
            return WhyNot(
                node, f"{name} has rank {value.dim()}, above max_value {max_rank}", f"rank <= {max_rank}"
            )
        if has_free_symbols(value.shape):
            return WhyNot(
                node, f"{name} has the dynamic shape {tuple(value.shape)}", "all shapes were static"
            )
        if not value.is_contiguous():
            return WhyNot(node, f"{name} is not contiguous", "its dim order were the default one")
    return _check_operands(node, opcodes[node.target])


def _check_operands(node: Node, opcode: Opcode) -> Supported | WhyNot:
    """What the operator's schema allows beyond what an instruction can hold."""
    for operand in _operands(node):
        number = isinstance(operand, (int, float)) and not isinstance(operand, bool)
        if not isinstance(operand, Node) and not number:
            return WhyNot(node, f"its operand {operand!r} is neither a tensor nor a number")
        if number and opcode not in (Opcode.ADD, Opcode.MUL):
            return WhyNot(node, f"its operand {operand!r} is a number", "it were a tensor")
    if isinstance(node.kwargs.get("alpha", 1), (int, float)):
        return Supported()
    return WhyNot(node, "alpha is not known before the program runs", "alpha were a constant")


def _operands(node: Node) -> list[object]:
    return [operand for operand in node.args if operand is not None]


def _tensor_operands(node: Node) -> list[tuple[str, object]]:
    named = [(f"operand {i}", operand) for i, operand in enumerate(node.args)]
    return [(name, operand.meta.get("val")) for name, operand in named if isinstance(operand, Node)]


@dataclass
class _Writer:
    """The lists that a program is written into."""

    values: list[tuple[_Kind, tuple[int, ...], int]] = field(default_factory=list)
    instructions: list[bytes] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)

    def value(self, kind: _Kind, sizes: Sequence[int], offset: int = 0) -> int:
        self.values.append((kind, tuple(sizes), offset))
        return len(self.values) - 1

    def constant(self, tensor: torch.Tensor) -> int:
        self.data += bytes(-len(self.data) % _ALIGNMENT)
        offset = len(self.data)
        self.data += tensor_bytes(tensor)
        return self.value(_Kind.CONSTANT, tensor.shape, offset)

    def instruction(
        self, opcode: Opcode, debug_id: int, operands: Sequence[int], result: int, alpha: float = 1.0
    ) -> None:
        padded = [*operands, 0, 0, 0][:3]
        self.instructions.append(
            _INSTRUCTION.pack(opcode, len(operands), debug_id, *padded, result, alpha, 0)
        )

    def finish(self) -> bytes:
        counts = [sum(kind == wanted for kind, _, _ in self.values) for wanted in (_Kind.INPUT, _Kind.OUTPUT)]
        header = _HEADER.pack(
            _MAGIC, _VERSION, len(self.values), *counts, len(self.instructions), len(self.data)
        )
        values = [
            _VALUE.pack(kind, len(sizes), 0, 0, offset, *sizes, *(0,) * (MAX_RANK - len(sizes)))
            for kind, sizes, offset in self.values
        ]
        return b"".join([header, *values, *self.instructions, self.data])


def compile_program(
    backend_id: str,
    program: ExportedProgram,
    opcodes: Mapping[object, Opcode],
    compile_specs: Sequence[CompileSpec],
) -> PreprocessResult:
    """Write a program as an instruction list.

    Args:
        backend_id: Named in errors.
        program: The partition.
        opcodes: The operators that the backend has.
        compile_specs: May set `max_value`, see `max_rank_of`.

    Returns:
        The blob, and a debug handle map from the instruction's number to the node.

    Raises:
        PartitionError: The program holds what the backend can't run.
    """
    max_rank = max_rank_of(compile_specs)
    check_stateless(backend_id, program)
    writer = _Writer()
    number_of = _declare_values(backend_id, program, writer)
    handles = DelegateMappingBuilder()
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        answer = supports(node, opcodes, max_rank)
        if isinstance(answer, WhyNot):
            raise PartitionError(
                f"the backend '{backend_id}' can't run '{node.name}': {answer.reason}",
                stage="lower",
                node=node.name,
                source=answer.source,
                hint=answer.eligible_if and f"eligible if {answer.eligible_if}",
            )
        if node not in number_of:
            number_of[node] = writer.value(_Kind.TEMPORARY, node.meta["val"].shape)
        operands = [
            number_of[o] if isinstance(o, Node) else writer.constant(torch.tensor(o, dtype=torch.float32))
            for o in _operands(node)
        ]
        debug_id = len(writer.instructions)
        writer.instruction(
            opcodes[node.target], debug_id, operands, number_of[node], float(node.kwargs.get("alpha", 1))
        )
        handles.insert_delegate_mapping_entry(node, identifier=debug_id)
    _copy_passed_through(program, writer, number_of)
    return PreprocessResult(
        writer.finish(),
        handles.get_delegate_mapping(),
        delegate_info=f"{len(writer.instructions)} instructions",
    )


def _declare_values(backend_id: str, program: ExportedProgram, writer: _Writer) -> dict[Node, int]:
    """Number the inputs, then the outputs (a node that is given out twice gets two), then the constants."""
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    numbers: dict[Node, int] = {}
    for node in placeholders:
        if specs[node.name].kind == InputKind.USER_INPUT:
            _check_boundary(backend_id, node)
            numbers[node] = writer.value(_Kind.INPUT, node.meta["val"].shape)
    for node in _results(program):
        if not isinstance(node, Node):
            raise PartitionError(
                f"the backend '{backend_id}' can't return the constant {node!r}", stage="lower"
            )
        _check_boundary(backend_id, node)
        number = writer.value(_Kind.OUTPUT, node.meta["val"].shape)
        if node.op == "call_function":
            numbers.setdefault(node, number)
    for node in (n for n in program.graph.nodes if n.op == "get_attr"):
        numbers[node] = writer.constant(getattr(program.graph_module, str(node.target)))
    for node in placeholders:
        if node not in numbers:
            _check_boundary(backend_id, node)
            target = str(specs[node.name].target)
            table = program.state_dict if target in program.state_dict else program.constants
            numbers[node] = writer.constant(table[target])
    return numbers


def _results(program: ExportedProgram) -> tuple[object, ...]:
    return tuple(program.graph.output_node().args[0])


def _check_boundary(backend_id: str, node: Node) -> None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32 or value.dim() > MAX_RANK:
        raise PartitionError(
            f"the backend '{backend_id}' can't pass '{node.name}'",
            stage="lower",
            node=node.name,
            expected=f"a float32 tensor of at most rank {MAX_RANK}",
            found=str(value),
        )
    if has_free_symbols(value.shape) or not value.is_contiguous():
        raise PartitionError(
            f"the backend '{backend_id}' can't pass '{node.name}'",
            stage="lower",
            node=node.name,
            expected="a static shape and the default dim order",
            found=str(tuple(value.shape)),
        )


def _copy_passed_through(program: ExportedProgram, writer: _Writer, number_of: Mapping[Node, int]) -> None:
    """Write the results that no instruction wrote: returned inputs and constants, repeated results."""
    first_output = sum(kind == _Kind.INPUT for kind, _, _ in writer.values)
    for index, node in enumerate(_results(program)):
        assert isinstance(node, Node)
        if number_of[node] != first_output + index:
            writer.instruction(Opcode.COPY, -1, [number_of[node]], first_output + index)
