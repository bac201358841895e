"""What the program view draws, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass

from workbench_widgets.columns import F64, I32, U8, Strings

__all__ = [
    "DOCUMENTS",
    "ProgramDelegateDocument",
    "ProgramDocument",
    "ProgramMethod",
    "ProgramMethodDocument",
]


@dataclass(frozen=True)
class ProgramMethod:
    """A method in figures.

    Attributes:
        name: Its name.
        instructions: How many.
        values: How many.
        delegates: How many.
        inputs: As text.
        outputs: As text.
        arena_bytes: Bytes of all arenas.
    """

    name: str
    instructions: int
    values: int
    delegates: int
    inputs: str
    outputs: str
    arena_bytes: int


@dataclass(frozen=True)
class ProgramDocument:
    """Where the bytes of a file are, and which operators and delegates it calls.

    Parts of the file form a tree, parents before children; the bytes of the leaves add up to the file's size.

    Attributes:
        size: Bytes of the file.
        saved: Bytes that storing equal data once would save.
        duplicates: How many pieces of data repeat another one.
        methods: The methods.
        part_name: Name of a part.
        part_kind: `file`, `flatbuffer`, `section`, `constants`, `constant`, `states`, `state`, `delegates`,
            `delegate`, `named data`, `data` or `padding`.
        part_parent: Row of the part that it is in; -1 for the file.
        part_start: First byte, from the file's start.
        part_bytes: Bytes, all that is inside included.
        part_detail: Type and shape, backend, or what else is known.
        part_same: The same number for parts of equal content; -1 where there is no other.
        part_operator: What uses it: operators or backends.
        part_module: Path of the module that it belongs to.
        part_index: Number of a constant, state or delegate blob; -1 for others.
        part_uses: How many instructions use it.
        part_handle_start: Of each part's handles, [parts + 1].
        part_handles: Source handles of what uses it.
        operator_method: Method of an operator's row.
        operator_name: Operator, or `delegate` and the backend.
        operator_calls: How many instructions call it.
        operator_kernel: 1: our runtime has the kernel; 0: it does not; 2: a backend runs it.
        operator_constant_bytes: Bytes of constants (or blobs) that it reads, each counted once.
        operator_written_bytes: Bytes of tensors that it writes, in one execution.
        operator_handle_start: Of each operator's handles, [operators + 1].
        operator_handles: Source handles of its instructions.
        delegate_method: Method of a delegate's row.
        delegate_index: Its number in the method.
        delegate_backend: The backend.
        delegate_data: Number of its blob.
        delegate_bytes: Bytes of the blob.
        delegate_specs: Compile specs as text.
        delegate_format: What the blob is known as, or nothing.
        delegate_handle_start: Of each delegate's handles, [delegates + 1].
        delegate_handles: Source handles of the instructions that call it.
    """

    size: int
    saved: int
    duplicates: int
    methods: list[ProgramMethod]
    part_name: Strings
    part_kind: Strings
    part_parent: I32
    part_start: F64
    part_bytes: F64
    part_detail: Strings
    part_same: I32
    part_operator: Strings
    part_module: Strings
    part_index: I32
    part_uses: I32
    part_handle_start: I32
    part_handles: I32
    operator_method: Strings
    operator_name: Strings
    operator_calls: I32
    operator_kernel: U8
    operator_constant_bytes: F64
    operator_written_bytes: F64
    operator_handle_start: I32
    operator_handles: I32
    delegate_method: Strings
    delegate_index: I32
    delegate_backend: Strings
    delegate_data: I32
    delegate_bytes: F64
    delegate_specs: Strings
    delegate_format: Strings
    delegate_handle_start: I32
    delegate_handles: I32


@dataclass(frozen=True)
class ProgramMethodDocument:
    """Instructions and values of one method.

    Attributes:
        method: Its name.
        chain: By instruction its chain.
        index: Its number in the chain; jumps name these.
        kind: `kernel`, `delegate`, `move`, `jump` or `free`.
        name: Operator or backend.
        arguments: Named, as text.
        results: What it writes, as text.
        node: Name of the node in the planned graph, where known.
        module: Path of its module, where known.
        source: `file:line`, where known.
        constant_bytes: Bytes of the constants that it reads.
        written_bytes: Bytes of what it writes.
        delegate: Number of the delegate that it calls, or -1.
        handle_start: Of each instruction's handles, [instructions + 1].
        handles: Source handles.
        value_kind: By value `Tensor`, `Int`, ...
        value_text: What it is.
        value_bytes: Of tensors; 0 for others.
        value_place: Constant, arena and offset, given by the caller, ...
        value_part: Number of the constant (from 1), or -1.
        use_start: Of each value's uses, [values + 1].
        uses: Rows of the instructions that name it.
    """

    method: str
    chain: I32
    index: I32
    kind: Strings
    name: Strings
    arguments: Strings
    results: Strings
    node: Strings
    module: Strings
    source: Strings
    constant_bytes: F64
    written_bytes: F64
    delegate: I32
    handle_start: I32
    handles: I32
    value_kind: Strings
    value_text: Strings
    value_bytes: F64
    value_place: Strings
    value_part: I32
    use_start: I32
    uses: I32


@dataclass(frozen=True)
class ProgramDelegateDocument:
    """The inside of a delegate.

    Attributes:
        method: Its method.
        index: Its number in the method.
        backend: The backend.
        format: What the blob is known as; empty where it is not.
        note: Why it could not be read, if it could not.
        facts: Names and values of its header and of its compile specs.
        section_name: Parts of the blob.
        section_start: First byte, from the blob's start.
        section_bytes: Bytes.
        step_name: Its instructions, in order.
        step_inputs: As text.
        step_outputs: As text.
        step_detail: Options of the instruction.
        step_node: Name of the node that it comes from, where known.
        step_handle_start: Of each step's handles, [steps + 1].
        step_handles: Source handles.
        value_name: Its values.
        value_role: Input, output, constant, temporary.
        value_text: Type and sizes.
        hex: Its first bytes, 16 a line.
        texts: Texts that stand in it, the first of them.
    """

    method: str
    index: int
    backend: str
    format: str
    note: str
    facts: dict[str, str]
    section_name: Strings
    section_start: F64
    section_bytes: F64
    step_name: Strings
    step_inputs: Strings
    step_outputs: Strings
    step_detail: Strings
    step_node: Strings
    step_handle_start: I32
    step_handles: I32
    value_name: Strings
    value_role: Strings
    value_text: Strings
    hex: Strings
    texts: Strings


DOCUMENTS = {
    "program": ProgramDocument,
    "program_method": ProgramMethodDocument,
    "program_delegate": ProgramDelegateDocument,
}
CALLS: dict[str, tuple[type, type]] = {}
