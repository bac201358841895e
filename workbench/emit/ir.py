"""The program as it is written to a `.pte` file, in memory: methods of values and instructions.

Every class mirrors a table of `schema/program.fbs`; what the wire format expresses by an index into a list of
bytes is an index here too, so that reading and writing are plain walks. Sizes are in bytes. Bulk data
(constants, initial states, delegates, named data) is held as memoryviews of where it already lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Bool",
    "BoolList",
    "Chain",
    "Delegate",
    "DelegateCall",
    "Double",
    "DoubleList",
    "Free",
    "Instruction",
    "Int",
    "IntList",
    "JumpFalse",
    "KernelCall",
    "Method",
    "Move",
    "NamedBytes",
    "Null",
    "OptionalTensorList",
    "Program",
    "String",
    "Tensor",
    "TensorList",
    "Value",
]


@dataclass(slots=True)
class Null:
    """The value None."""


@dataclass(slots=True)
class Int:
    """A 64-bit integer."""

    value: int


@dataclass(slots=True)
class Bool:
    """A truth value."""

    value: bool


@dataclass(slots=True)
class Double:
    """A 64-bit floating-point number."""

    value: float


@dataclass(slots=True)
class String:
    """A text."""

    value: str


@dataclass(slots=True)
class IntList:
    """Integers, each the index of an `Int` value."""

    items: tuple[int, ...]


@dataclass(slots=True)
class DoubleList:
    """Numbers, literal."""

    items: tuple[float, ...]


@dataclass(slots=True)
class BoolList:
    """Truth values, literal."""

    items: tuple[bool, ...]


@dataclass(slots=True)
class TensorList:
    """Tensors, each the index of a `Tensor` value."""

    items: tuple[int, ...]


@dataclass(slots=True)
class OptionalTensorList:
    """As `TensorList`; -1 stands for None."""

    items: tuple[int, ...]


@dataclass(slots=True)
class Tensor:
    """A dense tensor.

    Attributes:
        scalar_type: The number of the element type, as in `schema/scalar_type.fbs`.
        sizes: Sizes, upper bounds if dynamic.
        dim_order: Dimensions from the outermost in memory to the innermost.
        dynamism: 0 static, 1 bounded, 2 unbounded.
        buffer: Index into the constants (or, with `allocation`, into the initial states); 0 is none.
        allocation: Arena (from 1) and offset in it; None for memory that is not planned.
        fqn: Fully qualified name; None where nobody looks it up.
        external: The data stands in a data file, under `fqn`.
        segment: Index into the lists of initial states.
        extra: The file has an `ExtraTensorInfo` for it.
    """

    scalar_type: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: int = 0
    buffer: int = 0
    allocation: tuple[int, int] | None = None
    fqn: str | None = None
    external: bool = False
    segment: int = 0
    requires_grad: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes at the sizes given."""
        count = ELEMENT_SIZES.get(self.scalar_type, 1)
        for size in self.sizes:
            count *= size
        return count


Value = (
    Null
    | Int
    | Bool
    | Double
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
    | Tensor
)


@dataclass(slots=True)
class KernelCall:
    """Run a kernel: inputs, outs, then what it returns (the outs again)."""

    operator: int
    args: tuple[int, ...]


@dataclass(slots=True)
class DelegateCall:
    """Run a delegate: inputs, then outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(slots=True)
class Move:
    """Make one value the same as another."""

    source: int
    target: int


@dataclass(slots=True)
class JumpFalse:
    """Go on at an instruction if a value is false."""

    condition: int
    destination: int


@dataclass(slots=True)
class Free:
    """Give back memory that was found at run time."""

    value: int


Instruction = KernelCall | DelegateCall | Move | JumpFalse | Free


@dataclass(slots=True)
class Chain:
    """Instructions that run one after the other.

    Attributes:
        instructions: The instructions.
        stacktrace: Per instruction the frames `(file, line, function, context)`; empty for none at all.
        inputs: Value indices; always empty in our files.
        outputs: As `inputs`.
    """

    instructions: list[Instruction] = field(default_factory=list)
    stacktrace: list[list[tuple[str, int, str, str]]] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(slots=True)
class Delegate:
    """A part of a method that a backend runs.

    Attributes:
        backend_id: The backend.
        data: Index into `Program.delegate_data`.
        compile_specs: Keys and values.
    """

    backend_id: str
    data: int
    compile_specs: list[tuple[str, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Method:
    """A method.

    Attributes:
        name: By which it is loaded.
        values: The value table.
        inputs: Value indices.
        outputs: Value indices.
        chains: One, in our files.
        operators: Name and overload.
        delegates: The delegates.
        arena_sizes: Bytes of each arena; entry 0 is reserved and 0.
        input_tree: Structure of the inputs, as torch's pytree writes it in JSON.
        output_tree: As `input_tree`.
    """

    name: str
    values: list[Value] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=lambda: [Chain()])
    operators: list[tuple[str, str]] = field(default_factory=list)
    delegates: list[Delegate] = field(default_factory=list)
    arena_sizes: list[int] = field(default_factory=lambda: [0])
    input_tree: str = ""
    output_tree: str = ""

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions of the only chain (of the first, in a file with several)."""
        return self.chains[0].instructions if self.chains else []

    def operator_name(self, index: int) -> str:
        """Name and overload of an operator, as kernels are looked up."""
        name, overload = self.operators[index]
        return f"{name}.{overload}" if overload else name

    def tensors(self) -> Iterator[tuple[int, Tensor]]:
        """The tensors of the value table, with their indices."""
        return ((index, value) for index, value in enumerate(self.values) if isinstance(value, Tensor))


@dataclass(slots=True)
class NamedBytes:
    """Data that is looked up by name.

    Attributes:
        data: The bytes.
        alignment: Of its offset in the file, in bytes.
        scalar_type: Element type, if it is a tensor.
        sizes: Sizes, if it is a tensor.
        dim_order: Order of the dimensions, if it is a tensor.
    """

    data: memoryview
    alignment: int = 1
    scalar_type: int | None = None
    sizes: tuple[int, ...] = ()
    dim_order: tuple[int, ...] = ()


@dataclass(slots=True)
class Program:
    """A program.

    Attributes:
        methods: The methods.
        constants: Data of constant tensors; entry 0 stands for "none" and is empty.
        states: Initial data of mutable buffers; entry 0 as of `constants`.
        delegate_data: Blobs of the delegates; equal ones once.
        named_data: Data that delegates look up by name.
        external_data: By the name of a `.ptd` file, what stands in it by name.
        segment_alignment: Of each segment's offset in the file, in bytes.
        constant_alignment: Of each constant's offset in its segment, in bytes.
        delegate_alignment: Of inline delegate data, in bytes.
        extract_delegates: Blobs go into segments, not into the flatbuffer.
        version: Of the format.
    """

    methods: list[Method] = field(default_factory=list)
    constants: list[memoryview] = field(default_factory=lambda: [memoryview(b"")])
    states: list[memoryview] = field(default_factory=lambda: [memoryview(b"")])
    delegate_data: list[memoryview] = field(default_factory=list)
    named_data: dict[str, NamedBytes] = field(default_factory=dict)
    external_data: dict[str, dict[str, NamedBytes]] = field(default_factory=dict)
    segment_alignment: int = 128
    constant_alignment: int = 16
    delegate_alignment: int = 16
    extract_delegates: bool = True
    version: int = 0

    def method(self, name: str) -> Method:
        """A method by name. Raises `KeyError` where there is none."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    def format(self, verbose: bool = False) -> str:
        """The program as text: one line per value and instruction; `verbose` with all fields."""
        from workbench.emit.text import format_program

        return format_program(self, verbose=verbose)

    def __repr__(self) -> str:
        parts = (
            f"{m.name}: {len(m.values)} values, {len(m.instructions)} instructions" for m in self.methods
        )
        return f"<Program {'; '.join(parts)}>"


ELEMENT_SIZES: dict[int, int] = {
    **dict.fromkeys((0, 1, 11, 12, 13, 16, 17, 23, 24, 25, 26), 1),
    **dict.fromkeys((2, 5, 15, 22, 27), 2),
    **dict.fromkeys((3, 6, 14, 28), 4),
    **dict.fromkeys((4, 7, 29), 8),
}
"""Bytes of an element, by the number of its type."""

SCALAR_TYPES: dict[str, int] = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "bool": 11, "qint8": 12, "quint8": 13, "qint32": 14, "bfloat16": 15, "quint4x2": 16, "quint2x4": 17,
    "bits16": 22, "float8_e5m2": 23, "float8_e4m3fn": 24, "float8_e5m2fnuz": 25, "float8_e4m3fnuz": 26,
    "uint16": 27, "uint32": 28, "uint64": 29,
}  # fmt: skip
"""Numbers of the element types, by torch's name."""

TYPE_NAMES: dict[int, str] = {number: name for name, number in SCALAR_TYPES.items()}


def scalar_type(dtype: Any) -> int | None:
    """The number of a torch dtype; None for a type that no file holds."""
    return SCALAR_TYPES.get(str(dtype).removeprefix("torch."))
