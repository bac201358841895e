"""The program view's document of one method: its instructions and its values."""

from __future__ import annotations

import numpy as np

from workbench import tables
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.program.contract import ProgramMethodDocument
from workbench_widgets.program.document import constant_bytes, csr, written_bytes
from workbench_widgets.program.instructions import argument_names, readable
from workbench_widgets.program.model import MethodModel, model_of

__all__ = ["method_document"]

_KINDS = {
    ir.KernelCall: "kernel",
    ir.DelegateCall: "delegate",
    ir.Move: "move",
    ir.JumpFalse: "jump",
    ir.Free: "free",
}


def method_document(context: Context, key: str) -> ProgramMethodDocument:
    """Instructions and values of a method.

    Args:
        context: As of `program_document`.
        key: The method's name.

    Raises:
        WorkbenchError: There is no such method.
    """
    model = model_of(context)
    method = model.methods.get(key or next(iter(model.methods)))
    if method is None:
        raise WorkbenchError("there is no such method", expected=", ".join(model.methods), found=key)
    name = method.method.name
    rows = range(len(method.rows))
    items = [item for _, _, item in method.rows]
    starts, handles = csr(origin.handles for origin in method.origins)
    values = tables.value_table(model.program)
    values = values[values["method"] == name]
    use_start, uses = csr(_uses(method))
    return ProgramMethodDocument(
        method=name,
        chain=np.array([chain for chain, _, _ in method.rows], np.int32),
        index=np.array([index for _, index, _ in method.rows], np.int32),
        kind=Strings(_KINDS[type(item)] for item in items),
        name=Strings(method.names),
        arguments=Strings(_arguments(method, row) for row in rows),
        results=Strings(_results(method, row) for row in rows),
        node=Strings(origin.node for origin in method.origins),
        module=Strings(origin.module for origin in method.origins),
        source=Strings(origin.source for origin in method.origins),
        constant_bytes=np.array(constant_bytes(model, name), np.float64),
        written_bytes=np.array([written_bytes(method, row) for row in rows], np.float64),
        delegate=np.array(
            [item.delegate if isinstance(item, ir.DelegateCall) else -1 for item in items], np.int32
        ),
        handle_start=starts,
        handles=handles,
        value_kind=Strings(values["kind"]),
        value_text=Strings(values["value"]),
        value_bytes=values["bytes"].to_numpy(np.float64),
        value_place=Strings(values["place"]),
        value_part=np.array([_constant(value) for value in method.method.values], np.int32),
        use_start=use_start,
        uses=uses,
    )


def _constant(value: ir.Value) -> int:
    plain = isinstance(value, ir.Tensor) and value.allocation is None and not value.external
    return value.buffer if plain and isinstance(value, ir.Tensor) and value.buffer else -1


def _arguments(method: MethodModel, row: int) -> str:
    instruction = method.rows[row][2]
    if isinstance(instruction, ir.KernelCall):
        names = argument_names(method.names[row], len(instruction.args))
        written = set(method.effects[row].writes)
        shown = [
            (f"{name}=" if name else "") + readable(method.method, index)
            for name, index in zip(names, instruction.args, strict=True)
            # What a kernel writes stands in the results; what it returns is that again.
            if index not in written and (name or index != instruction.args[-1])
        ]
        return ", ".join(shown)
    if isinstance(instruction, ir.DelegateCall):
        return ", ".join(readable(method.method, index) for index in method.effects[row].reads)
    if isinstance(instruction, ir.Move):
        return readable(method.method, instruction.source)
    if isinstance(instruction, ir.JumpFalse):
        return f"to {instruction.destination} unless {readable(method.method, instruction.condition)}"
    return readable(method.method, instruction.value)


def _results(method: MethodModel, row: int) -> str:
    instruction = method.rows[row][2]
    if isinstance(instruction, ir.Move):
        return readable(method.method, instruction.target)
    writes = method.effects[row].writes
    if not writes and isinstance(instruction, ir.KernelCall) and instruction.args:
        # Computations on numbers.
        return readable(method.method, instruction.args[-1])
    return ", ".join(readable(method.method, index) for index in writes)


def _uses(method: MethodModel) -> list[list[int]]:
    found: list[dict[int, None]] = [{} for _ in method.method.values]
    for row, (_, _, instruction) in enumerate(method.rows):
        for index in _named(instruction):
            found[index][row] = None
            value = method.method.values[index]
            if isinstance(value, (ir.IntList, ir.TensorList, ir.OptionalTensorList)):
                for item in value.items:
                    if item >= 0:
                        found[item][row] = None
    return [list(rows) for rows in found]


def _named(instruction: ir.Instruction) -> tuple[int, ...]:
    if isinstance(instruction, (ir.KernelCall, ir.DelegateCall)):
        return instruction.args
    if isinstance(instruction, ir.Move):
        return instruction.source, instruction.target
    return (instruction.condition if isinstance(instruction, ir.JumpFalse) else instruction.value,)
