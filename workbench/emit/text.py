"""A program as text, for people and for golden files."""

from __future__ import annotations

from workbench.emit import ir

__all__ = ["format_program", "format_value"]


def format_program(program: ir.Program, *, verbose: bool = False) -> str:
    """One line per value and instruction.

    Args:
        program: The program.
        verbose: Every value, not only tensors, and every field of a tensor.
    """
    lines = [
        f"program version {program.version}: {len(program.constants) - 1} constants of "
        f"{sum(map(len, program.constants)):,} bytes, {len(program.states) - 1} initial states, "
        f"{len(program.delegate_data)} delegate blobs, {len(program.named_data)} named"
    ]
    for method in program.methods:
        lines.append(f"method {method.name}: inputs {method.inputs}, outputs {method.outputs}")
        lines += [f"  arena {i}: {size:,} bytes" for i, size in enumerate(method.arena_sizes) if i]
        for index, value in enumerate(method.values):
            if verbose or isinstance(value, ir.Tensor):
                lines.append(f"  %{index} = {format_value(value, verbose=verbose)}")
        for number, chain in enumerate(method.chains):
            if number:
                lines.append(f"  chain {number}")
            lines += [f"  {i:4d}: {_instruction(method, item)}" for i, item in enumerate(chain.instructions)]
    return "\n".join(lines)


def format_value(value: ir.Value, *, verbose: bool = False) -> str:
    """A value in one line."""
    if isinstance(value, ir.Tensor):
        return _tensor(value, verbose)
    if isinstance(value, ir.Null):
        return "None"
    if isinstance(value, (ir.IntList, ir.TensorList, ir.OptionalTensorList)):
        items = ", ".join("None" if item < 0 else f"%{item}" for item in value.items)
        return f"{type(value).__name__} [{items}]"
    if isinstance(value, (ir.DoubleList, ir.BoolList)):
        return f"{type(value).__name__} {list(value.items)}"
    return f"{type(value).__name__} {value.value!r}"


def _tensor(value: ir.Tensor, verbose: bool) -> str:
    dynamism = ("", " bounded", " unbounded")[value.dynamism]
    parts = [f"{ir.TYPE_NAMES.get(value.scalar_type, '?')} {list(value.sizes)}{dynamism}"]
    if verbose or value.dim_order != tuple(range(len(value.sizes))):
        parts.append(f"order {list(value.dim_order)}")
    if value.allocation is not None:
        parts.append(f"arena {value.allocation[0]} at {value.allocation[1]:,}")
    if value.buffer:
        parts.append(f"{'state' if value.allocation else 'constant'} {value.buffer}")
    if value.external:
        parts.append("external")
    if value.fqn is not None:
        parts.append(f"`{value.fqn}`")
    return ", ".join(parts)


def _instruction(method: ir.Method, item: ir.Instruction) -> str:
    if isinstance(item, ir.KernelCall):
        return f"{method.operator_name(item.operator)}({', '.join(f'%{a}' for a in item.args)})"
    if isinstance(item, ir.DelegateCall):
        backend = method.delegates[item.delegate].backend_id
        return f"delegate {item.delegate} {backend}({', '.join(f'%{a}' for a in item.args)})"
    if isinstance(item, ir.Move):
        return f"move %{item.source} -> %{item.target}"
    if isinstance(item, ir.JumpFalse):
        return f"jump to {item.destination} if not %{item.condition}"
    return f"free %{item.value}"
