"""A program in memory (`workbench.emit.ir.Program`) as tables, wherever it came from."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = [
    "delegate_table",
    "dtype_name",
    "instruction_table",
    "method_table",
    "operator_table",
    "plan_table",
    "size_table",
    "value_table",
]


def method_table(program: Any) -> pd.DataFrame:
    """One row per method: what goes in and out, and how much there is of everything.

    Columns: method, inputs, outputs (as text), instructions, values, delegates, arena_bytes.
    """
    rows = [
        (
            method.name,
            ", ".join(_described(method.values[index]) for index in method.inputs),
            ", ".join(_described(method.values[index]) for index in method.outputs),
            sum(len(chain.instructions) for chain in method.chains),
            len(method.values),
            len(method.delegates),
            int(sum(method.arena_sizes)),
        )
        for method in program.methods
    ]
    columns = ["method", "inputs", "outputs", "instructions", "values", "delegates", "arena_bytes"]
    return pd.DataFrame(rows, columns=columns)


def instruction_table(program: Any) -> pd.DataFrame:
    """One row per instruction.

    Columns: method, chain, index, kind, name (operator or backend), arguments (value indices), outputs (as
        text).
    """
    rows = []
    for method in program.methods:
        for number, chain in enumerate(method.chains):
            for index, instruction in enumerate(chain.instructions):
                kind, name, arguments = _instruction(method, instruction)
                result = _described(method.values[arguments[-1]]) if name and arguments else ""
                shown = " ".join(map(str, arguments))
                rows.append((method.name, number, index, kind, name, shown, result))
    columns = ["method", "chain", "index", "kind", "name", "arguments", "result"]
    return pd.DataFrame(rows, columns=columns)


def value_table(program: Any) -> pd.DataFrame:
    """One row per entry of the value tables.

    Columns: method, index, kind, value (shape and dtype of a tensor), bytes, place (constant, arena and
        offset, ...).
    """
    rows = []
    for method in program.methods:
        for index, value in enumerate(method.values):
            nbytes = value.nbytes if _kind(value) == "Tensor" else 0
            rows.append((method.name, index, _kind(value), _described(value), nbytes, _place(method, index)))
    return pd.DataFrame(rows, columns=["method", "index", "kind", "value", "bytes", "place"])


def operator_table(program: Any) -> pd.DataFrame:
    """One row per operator that is called: method, operator, calls; the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for method in program.methods:
        for chain in method.chains:
            for instruction in chain.instructions:
                if _kind(instruction) == "KernelCall":
                    key = (method.name, method.operator_name(instruction.operator))
                    counts[key] = counts.get(key, 0) + 1
    rows = [(*key, calls) for key, calls in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return pd.DataFrame(rows, columns=["method", "operator", "calls"])


def delegate_table(program: Any) -> pd.DataFrame:
    """One row per delegate: method, index, backend, bytes, compile_specs (as text)."""
    rows = [
        (
            method.name,
            index,
            delegate.backend_id,
            len(program.delegate_data[delegate.data]),
            ", ".join(f"{key}={value!r}" for key, value in delegate.compile_specs),
        )
        for method in program.methods
        for index, delegate in enumerate(method.delegates)
    ]
    return pd.DataFrame(rows, columns=["method", "index", "backend", "bytes", "compile_specs"])


def plan_table(program: Any) -> pd.DataFrame:
    """One row per tensor that has a place in an arena, by arena and offset.

    Columns: method, arena, offset, bytes, value (index), tensor (shape and dtype), first, last (instructions
        that use it;
    -1 is before the first, that is an input).
    """
    rows = []
    for method in program.methods:
        uses = _uses(method)
        for index, tensor in method.tensors():
            if tensor.allocation is not None:
                arena, offset = tensor.allocation
                first, last = uses.get(index, (-1, -1))
                shown = _described(tensor)
                rows.append((method.name, arena, offset, tensor.nbytes, index, shown, first, last))
    columns = ["method", "arena", "offset", "bytes", "value", "tensor", "first", "last"]
    return pd.DataFrame(rows, columns=columns).sort_values(["method", "arena", "offset"], ignore_index=True)


def size_table(program: Any) -> pd.DataFrame:
    """Where the bytes of the file are: segment, parts, bytes (without padding)."""
    groups = {
        "constants": [len(data) for data in program.constants[1:]],
        "initial states": [len(data) for data in program.states[1:]],
        "delegates": [len(data) for data in program.delegate_data],
        "named data": [len(entry.data) for entry in program.named_data.values()],
    }
    rows = [(name, len(sizes), sum(sizes)) for name, sizes in groups.items()]
    return pd.DataFrame(rows, columns=["segment", "parts", "bytes"])


# Numbers of `schema/scalar_type.fbs`.
_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
    15: "bfloat16",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}


def dtype_name(tensor: Any) -> str:
    """The name of a tensor's element type, as torch calls it."""
    return _DTYPES.get(tensor.scalar_type, f"type {tensor.scalar_type}")


def _kind(item: Any) -> str:
    return type(item).__name__


def _instruction(method: Any, instruction: Any) -> tuple[str, str, tuple[int, ...]]:
    kind = _kind(instruction)
    if kind == "KernelCall":
        return "kernel", method.operator_name(instruction.operator), tuple(instruction.args)
    if kind == "DelegateCall":
        return "delegate", method.delegates[instruction.delegate].backend_id, tuple(instruction.args)
    if kind == "Move":
        return "move", "", (instruction.source, instruction.target)
    if kind == "JumpFalse":
        return "jump if false", f"to {instruction.destination}", (instruction.condition,)
    return "free", "", (instruction.value,)


def _described(value: Any) -> str:
    kind = _kind(value)
    if kind == "Tensor":
        bound = "<=" if value.dynamism else ""
        order = "" if list(value.dim_order) == sorted(value.dim_order) else f" order {list(value.dim_order)}"
        return f"{dtype_name(value)} {bound}{list(value.sizes)}{order}"
    if kind == "Null":
        return "None"
    shown = getattr(value, "value", getattr(value, "items", ""))
    return f"{kind} {shown}"


def _place(method: Any, index: int) -> str:
    value = method.values[index]
    if _kind(value) != "Tensor":
        return ""
    if value.allocation is not None:
        state = ", initial state" if value.buffer else ""
        return f"arena {value.allocation[0]} at {value.allocation[1]}{state}"
    if value.external:
        return f"data file: {value.fqn}"
    if value.buffer:
        return f"constant {value.buffer}"
    return "given by the caller" if index in (*method.inputs, *method.outputs) else "found at run time"


def _uses(method: Any) -> dict[int, tuple[int, int]]:
    uses = dict.fromkeys(method.inputs, (-1, -1))
    last = 0
    for chain in method.chains:
        for position, instruction in enumerate(chain.instructions):
            last = position
            for index in _instruction(method, instruction)[2]:
                first = uses.get(index, (position, position))[0]
                uses[index] = (first, position)
    for index in method.outputs:
        uses[index] = (uses.get(index, (last, last))[0], last)
    return uses
