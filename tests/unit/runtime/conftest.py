"""Programs that are put together by hand, so that the runtime is tested without the steps before it."""

from __future__ import annotations

import struct

import pytest

from workbench.emit import ir
from workbench.serialize import write_program

FLOAT, LONG, BOOL = 6, 4, 11


class Builder:
    """Makes a program of one method, value by value."""

    def __init__(self) -> None:
        self.method = ir.Method(name="forward", arena_sizes=[0, 0])
        self.program = ir.Program(methods=[self.method])

    def value(self, value: ir.Value) -> int:
        self.method.values.append(value)
        return len(self.method.values) - 1

    def tensor(self, *sizes: int, dtype: int = FLOAT, planned: bool = True, dynamism: int = 0) -> int:
        tensor = ir.Tensor(dtype, sizes, tuple(range(len(sizes))), dynamism)
        if planned:
            tensor.allocation = (1, self.method.arena_sizes[1])
            self.method.arena_sizes[1] += -(-tensor.nbytes // 16) * 16
        return self.value(tensor)

    def constant(self, *numbers: float) -> int:
        self.program.constants.append(memoryview(struct.pack(f"<{len(numbers)}f", *numbers)))
        buffer = len(self.program.constants) - 1
        return self.value(ir.Tensor(FLOAT, (len(numbers),), (0,), buffer=buffer))

    def call(self, name: str, *args: int) -> None:
        base, _, overload = name.partition(".")
        if (base, overload) not in self.method.operators:
            self.method.operators.append((base, overload))
        self.add(ir.KernelCall(self.method.operators.index((base, overload)), args))

    def add(self, instruction: ir.Instruction) -> None:
        self.method.instructions.append(instruction)

    def scalar(self, value: int | float | bool) -> int:
        if isinstance(value, bool):
            return self.value(ir.Bool(value))
        return self.value(ir.Int(value) if isinstance(value, int) else ir.Double(value))

    def sum_of(self, a: int, b: int, out: int) -> None:
        self.call("aten::add.out", a, b, self.scalar(1), out, out)

    def bytes(self, inputs: list[int], outputs: list[int]) -> bytes:
        self.method.inputs, self.method.outputs = inputs, outputs
        return bytes(write_program(self.program).buffer)


@pytest.fixture
def builder() -> Builder:
    return Builder()
