"""The rows of a profile: instructions, what runs inside of delegates, and what was fused there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from workbench.emit import ir
from workbench.inspector import Symbols
from workbench.inspector.roofline import group_work
from workbench.inspector.symbols import MethodSymbols, Node
from workbench.inspector.totals import RowKey
from workbench.lowering import Lowering
from workbench.stages import Stage

__all__ = ["Row", "describe", "symbols_of"]

RUNTIME = "runtime"
_known: WeakKeyDictionary[Stage, Symbols] = WeakKeyDictionary()


@dataclass(frozen=True)
class Row:
    """One row; the fields are those of `ProfileDocument`.

    Attributes:
        identifier: The backend's identifier of something inside a delegate, or None.
        key: What the events of the row have in common; None for an instruction that has not run.
    """

    key: RowKey | None
    chain: int
    instruction: int
    identifier: int | str | None
    name: str
    operator: str
    backend: str
    module: str
    source: str
    shape: str
    parent: int
    flops: float
    bytes: float
    handles: tuple[int, ...]


def symbols_of(lowering: Lowering | None, method: str) -> MethodSymbols | None:
    """What the lowering knows of a method's instructions; None for a program from a file."""
    if lowering is None:
        return None
    stage = lowering.program
    known = _known.get(stage)
    if known is None:
        known = _known[stage] = Symbols.from_manager(lowering, lowering.edge)
    return known.method(method)


def describe(program: ir.Method, symbols: MethodSymbols | None, keys: Sequence[RowKey]) -> list[Row]:
    """The rows of a method: all instructions in order, each followed by what was seen inside it.

    What ran as one, a fused group, is followed by its members, which have no times of their own.

    Args:
        program: The method.
        symbols: What its lowering knows.
        keys: What has run; what a delegate announced stands for what runs inside until then.
    """
    ran = {(key.chain, key.instruction): key for key in keys if key.identifier is None}
    inside: dict[tuple[int, int], list[RowKey]] = {}
    for key in keys:
        if key.identifier is not None:
            inside.setdefault((key.chain, key.instruction), []).append(key)
    rows: list[Row] = []
    for chain, body in enumerate(program.chains):
        for index, instruction in enumerate(body.instructions):
            here = (chain, index)
            name, backend = _instruction(program, instruction)
            call = len(rows)
            rows.append(_row(ran.get(here), here, None, name, backend, -1, symbols))
            known: Iterable[tuple[RowKey | None, int | str]] = [
                (key, key.identifier) for key in inside.get(here, ()) if key.identifier is not None
            ]
            if not keys and symbols is not None and backend != RUNTIME:
                announced = symbols.delegate_map.get(index, {}).get("delegate_map") or {}
                known = [(None, identifier) for identifier in announced]
            for event, identifier in known:
                shown = str(identifier) if event is None or not isinstance(identifier, int) else event.name
                group = len(rows)
                rows.append(_row(event, here, identifier, shown, backend, call, symbols))
                for part in _members(identifier, here, symbols):
                    rows.append(_row(None, here, part, part, backend, group, symbols))
    return rows


def _members(identifier: int | str, place: tuple[int, int], symbols: MethodSymbols | None) -> Iterable[str]:
    """The identifiers of what was fused into one event, which is called by all of them: "12+13"."""
    parts = [] if symbols is None else str(identifier).split("+")
    if symbols is None or len(parts) < 2 or not symbols.handles(place[1], identifier):
        return ()
    return parts


def _instruction(method: ir.Method, instruction: Any) -> tuple[str, str]:
    if isinstance(instruction, ir.KernelCall):
        return method.operator_name(instruction.operator), RUNTIME
    if isinstance(instruction, ir.DelegateCall):
        backend = method.delegates[instruction.delegate].backend_id
        return backend, backend
    names: dict[type[Any], str] = {ir.Move: "move", ir.JumpFalse: "jump_false", ir.Free: "free"}
    return names.get(type(instruction), type(instruction).__name__), RUNTIME


def _row(
    key: RowKey | None,
    place: tuple[int, int],
    identifier: int | str | None,
    operator: str,
    backend: str,
    parent: int,
    symbols: MethodSymbols | None,
) -> Row:
    chain, instruction = place
    nodes: list[Node] = []
    handles: tuple[int, ...] = (instruction + 1,) if symbols is None and chain == 0 else ()
    if symbols is not None:
        nodes = symbols.resolve(symbols.handles(instruction, identifier))
        handles = tuple(sorted({handle for node in nodes for handle in node.source_handles}))
    work = group_work(nodes)
    last = nodes[-1] if nodes else None
    is_call = identifier is None and backend != RUNTIME
    name = operator.removeprefix("aten::") if last is None else last.name
    if is_call and nodes:
        name = ", ".join(node.name for node in nodes[:3]) + (", …" if len(nodes) > 3 else "")
    if key is None and last is not None and str(identifier).isdecimal():
        operator = last.op  # announced and not seen yet, or a part of what ran as one
    if identifier is not None and str(identifier) != operator:
        operator = f"{operator} #{identifier}"
    return Row(
        key=key,
        chain=chain,
        instruction=instruction,
        identifier=identifier,
        name=name,
        operator=operator,
        backend=backend,
        module=_common([node.module for node in nodes if node.module_stack]),
        source=(last.source or "") if last is not None else "",
        shape=last.shapes if last is not None else "",
        parent=parent,
        flops=math.nan if work is None else float(work.flops),
        bytes=math.nan if work is None else float(work.bytes_moved),
        handles=handles,
    )


def _common(paths: Sequence[str]) -> str:
    """The innermost module that holds all of these."""
    if not paths:
        return ""
    first, last = min(paths).split("."), max(paths).split(".")
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return ".".join(first[:shared])
