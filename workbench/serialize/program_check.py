"""What must hold in a program beyond a well-formed flatbuffer: every index, size, offset and permutation."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.emit import ir
from workbench.errors import SerializationError

__all__ = ["check_program"]


def check_program(program: ir.Program) -> None:
    """Check every method of a program.

    Raises:
        SerializationError: The first thing that is wrong, with the method, the place, what was expected and
            found.
    """
    names = [method.name for method in program.methods]
    for name in names:
        if names.count(name) > 1:
            raise SerializationError(f"there are two methods `{name}`")
    for method in program.methods:
        _Check(program, method).run()


class _Check:
    """The checks of one method."""

    def __init__(self, program: ir.Program, method: ir.Method) -> None:
        self.program = program
        self.method = method

    def run(self) -> None:
        method = self.method
        for index, size in enumerate(method.arena_sizes):
            if size < 0:
                raise self.bad(f"arena {index}", "a size", str(size))
        for index, value in enumerate(method.values):
            self.value(index, value)
        self.indices("inputs", method.inputs)
        self.indices("outputs", method.outputs)
        for index, (name, overload) in enumerate(method.operators):
            if not name or len(name.encode()) + len(overload.encode()) + 1 >= 100:
                raise self.bad(f"operator {index}", "a name of 1 to 99 bytes", f"{name}.{overload}")
        for chain in method.chains:
            for index, instruction in enumerate(chain.instructions):
                self.instruction(index, instruction, len(chain.instructions))

    def value(self, index: int, value: ir.Value) -> None:
        if isinstance(value, ir.Tensor):
            self.tensor(index, value)
        elif isinstance(value, ir.IntList):
            self.items(index, value.items, ir.Int, optional=False)
        elif isinstance(value, ir.TensorList):
            self.items(index, value.items, ir.Tensor, optional=False)
        elif isinstance(value, ir.OptionalTensorList):
            self.items(index, value.items, ir.Tensor, optional=True)

    def items(self, index: int, items: Iterable[int], kind: type[ir.Value], *, optional: bool) -> None:
        values = self.method.values
        for position, item in enumerate(items):
            if optional and (item == -1 or (0 <= item < len(values) and isinstance(values[item], ir.Null))):
                continue
            found = type(values[item]).__name__ if 0 <= item < len(values) else f"value {item}"
            if found != kind.__name__:
                raise self.bad(f"value {index}, entry {position}", f"the index of a {kind.__name__}", found)

    def tensor(self, index: int, tensor: ir.Tensor) -> None:
        where = f"value {index}"
        if tensor.scalar_type not in ir.ELEMENT_SIZES:
            raise self.bad(where, "a known element type", str(tensor.scalar_type))
        if any(size < 0 for size in tensor.sizes):
            raise self.bad(where, "sizes of at least 0", str(list(tensor.sizes)))
        if sorted(tensor.dim_order) != list(range(len(tensor.sizes))):
            raise self.bad(
                where, f"a dim order of {len(tensor.sizes)} dimensions", str(list(tensor.dim_order))
            )
        if not 0 <= tensor.dynamism <= 2:
            raise self.bad(where, "a dynamism from 0 to 2", str(tensor.dynamism))
        if tensor.external and tensor.fqn is None:
            raise self.bad(where, "a fully qualified name of external data", "none")
        if tensor.allocation is not None:
            self.place(where, tensor)
        if tensor.buffer and not tensor.external:
            pool = self.program.states if tensor.allocation is not None else self.program.constants
            if tensor.buffer >= len(pool):
                raise self.bad(where, f"data below index {len(pool)}", str(tensor.buffer))
            if pool[tensor.buffer].nbytes < tensor.nbytes:
                raise self.bad(where, f"{tensor.nbytes} bytes of data", str(pool[tensor.buffer].nbytes))

    def place(self, where: str, tensor: ir.Tensor) -> None:
        assert tensor.allocation is not None
        arena, offset = tensor.allocation
        if not 0 < arena < len(self.method.arena_sizes):
            raise self.bad(where, f"an arena from 1 to {len(self.method.arena_sizes) - 1}", str(arena))
        size = self.method.arena_sizes[arena]
        if offset + tensor.nbytes > size:
            raise self.bad(
                where, f"inside the {size} bytes of arena {arena}", f"{tensor.nbytes} bytes at {offset}"
            )

    def indices(self, what: str, items: Iterable[int]) -> None:
        for item in items:
            if not 0 <= item < len(self.method.values):
                raise self.bad(what, f"values below {len(self.method.values)}", str(item))

    def instruction(self, index: int, item: ir.Instruction, count: int) -> None:
        where = f"instruction {index}"
        if isinstance(item, ir.KernelCall):
            if not 0 <= item.operator < len(self.method.operators):
                raise self.bad(where, f"an operator below {len(self.method.operators)}", str(item.operator))
            self.indices(where, item.args)
        elif isinstance(item, ir.DelegateCall):
            if not 0 <= item.delegate < len(self.method.delegates):
                raise self.bad(where, f"a delegate below {len(self.method.delegates)}", str(item.delegate))
            self.indices(where, item.args)
        elif isinstance(item, ir.Move):
            self.indices(where, (item.source, item.target))
        elif isinstance(item, ir.JumpFalse):
            self.indices(where, (item.condition,))
            if not 0 <= item.destination <= count:
                raise self.bad(where, f"a destination from 0 to {count}", str(item.destination))
        else:
            self.indices(where, (item.value,))

    def bad(self, where: str, expected: str, found: str) -> SerializationError:
        return SerializationError(
            f"method `{self.method.name}`, {where}: the program is not valid", expected=expected, found=found
        )
