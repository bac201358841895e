"""A second, slow reading of what an emitted program means: torch operators on one arena of bytes.

Tensors are views of the arenas at the places that the plan gives, so that a wrong lifetime shows as a wrong
answer. Kernels are torch's own out-variants.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from workbench.emit import ir

_DTYPES = {number: getattr(torch, name) for name, number in ir.SCALAR_TYPES.items() if hasattr(torch, name)}
_PRIMITIVES = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "neg": lambda a: -a,
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "le": lambda a, b: a <= b,
    "sym_not": lambda a: not a,
    "sym_max": max,
    "sym_min": min,
    "sym_ite": lambda p, a, b: a if p else b,
}


class Interpreter:
    """Runs one method of a program.

    Args:
        program: The program.
        method: Its name.
    """

    def __init__(self, program: ir.Program, method: str = "forward") -> None:
        self.program = program
        self.method = program.method(method)
        # What nobody wrote must not look like an answer.
        self.arenas = [torch.full((size,), 0xAB, dtype=torch.uint8) for size in self.method.arena_sizes]
        self.values: list[Any] = [self._made(value) for value in self.method.values]
        self.steps = 0

    def run(self, *inputs: Any) -> list[Any]:
        """Execute the method."""
        values = self.values
        for index, given in zip(self.method.inputs, inputs, strict=True):
            value = self.method.values[index]
            if not isinstance(value, ir.Tensor):
                values[index] = given
            elif value.allocation is None:
                values[index] = given.clone()
            else:
                values[index] = self._place(value, given.shape)
                values[index].copy_(given)
        position, self.steps = 0, 0
        instructions = self.method.instructions
        while position < len(instructions):
            position = self._step(instructions[position], position)
            self.steps += 1
            assert self.steps < 100_000, "the program does not end"
        return [
            values[index].clone() if isinstance(values[index], torch.Tensor) else values[index]
            for index in self.method.outputs
        ]

    def _made(self, value: ir.Value) -> Any:
        if isinstance(value, ir.Tensor):
            if value.allocation is None and value.buffer:
                return self._data(self.program.constants[value.buffer], value)
            tensor = self._place(value, value.sizes)
            if value.buffer:
                tensor.copy_(self._data(self.program.states[value.buffer], value))
            return tensor
        if isinstance(value, ir.Null):
            return None
        return value.items if hasattr(value, "items") else value.value

    def _data(self, data: memoryview, value: ir.Tensor) -> torch.Tensor:
        flat = torch.frombuffer(
            bytearray(data[: value.nbytes]) or bytearray(8), dtype=_DTYPES[value.scalar_type]
        )
        return self._shaped(flat, value, value.sizes)

    def _place(self, value: ir.Tensor, sizes: Any) -> torch.Tensor:
        """The tensor in its arena, or in memory of its own (the caller's)."""
        if value.allocation is None:
            flat = torch.empty(max(value.nbytes, 8), dtype=torch.uint8).view(_DTYPES[value.scalar_type])
        else:
            arena, offset = value.allocation
            flat = self.arenas[arena][offset : offset + value.nbytes].view(_DTYPES[value.scalar_type])
        return self._shaped(flat, value, sizes)

    def _shaped(self, flat: torch.Tensor, value: ir.Tensor, sizes: Any) -> torch.Tensor:
        strides = [0] * len(sizes)
        step = 1
        for dim in reversed(value.dim_order):
            strides[dim] = step
            step *= sizes[dim]
        return torch.as_strided(flat, tuple(sizes), tuple(strides))

    def _step(self, item: ir.Instruction, position: int) -> int:
        if isinstance(item, ir.JumpFalse):
            return position + 1 if bool(self.values[item.condition]) else item.destination
        if isinstance(item, ir.Move):
            self.values[item.target] = self.values[item.source]
        elif isinstance(item, ir.KernelCall):
            self._call(self.method.operator_name(item.operator), item.args)
        else:
            raise NotImplementedError(type(item).__name__)
        return position + 1

    def _argument(self, index: int) -> Any:
        value = self.method.values[index]
        if isinstance(value, ir.IntList):
            return [self.values[i] for i in value.items]
        if isinstance(value, (ir.TensorList, ir.OptionalTensorList)):
            return [None if i < 0 else self.values[i] for i in value.items]
        return self.values[index]

    def _call(self, name: str, args: tuple[int, ...]) -> None:
        namespace, _, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if namespace == "executorch_prim" or operator.startswith("sym_"):
            self._primitive(operator, args)
            return
        if namespace == "dim_order_ops":
            self._write(args[-1], self._argument(args[0]).to(self._dtype(args[-1])))
            return
        function = getattr(getattr(getattr(torch.ops, namespace), operator), overload or "default")
        schema = function._schema.arguments
        outs = [item for item in schema if item.is_out]
        inputs = [self._argument(index) for index in args[: len(schema) - len(outs)]]
        by_name = {item.name: value for item, value in zip(schema, inputs, strict=False) if item.kwarg_only}
        plain = [value for item, value in zip(schema, inputs, strict=False) if not item.kwarg_only]
        if not outs:
            function(*plain, **by_name)
            return
        targets = list(args[len(inputs) : len(inputs) + len(outs)])
        listed = self.method.values[targets[0]]
        if isinstance(listed, ir.TensorList):
            targets = list(listed.items)
        # Compute first and write then: an out that overlaps an input would otherwise hide a wrong plan.
        fresh = [torch.empty(0, dtype=self._dtype(index)) for index in targets]
        if isinstance(listed, ir.TensorList):
            by_name[outs[0].name] = fresh
        else:
            by_name.update(zip([item.name for item in outs], fresh, strict=True))
        function(*plain, **by_name)
        for index, result in zip(targets, fresh, strict=True):
            self._write(index, result)

    def _dtype(self, index: int) -> torch.dtype:
        value = self.method.values[index]
        assert isinstance(value, ir.Tensor)
        return _DTYPES[value.scalar_type]

    def _write(self, index: int, result: torch.Tensor) -> None:
        value = self.method.values[index]
        assert isinstance(value, ir.Tensor)
        if value.dynamism == 0:
            assert tuple(result.shape) == value.sizes
        assert all(a <= b for a, b in zip(result.shape, value.sizes, strict=True))
        self.values[index] = self._place(value, result.shape) if value.allocation else self.values[index]
        if self.values[index].shape != result.shape:
            self.values[index] = self._place(value, result.shape)
        self.values[index].copy_(result)

    def _primitive(self, operator: str, args: tuple[int, ...]) -> None:
        values = self.values
        if operator == "et_view":
            source, sizes, out = values[args[0]], self._argument(args[1]), args[2]
            values[out] = source.view(sizes)
        elif operator == "et_copy_index":
            target, source, index = args[0], values[args[1]], values[args[2]]
            value = self.method.values[target]
            assert isinstance(value, ir.Tensor)
            assert value.dynamism == 1
            grown = (index + 1, *source.shape)
            whole = values[target]
            if value.allocation is not None:
                whole = self._place(value, grown)
            elif whole.shape != grown:
                fresh = whole.new_empty(value.sizes)[: index + 1]
                fresh[:index] = whole[:index]
                whole = fresh
            whole[index].copy_(source)
            values[target] = whole
        elif operator == "sym_size":
            values[args[2]] = values[args[0]].shape[values[args[1]]]
        else:
            values[args[-1]] = _PRIMITIVES[operator](*(values[index] for index in args[:-1]))


@pytest.fixture
def interpreter() -> type[Interpreter]:
    """The interpreter, for tests of what programs compute."""
    return Interpreter
