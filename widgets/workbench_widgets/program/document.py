"""The program view's first document: the parts of the file, its operators, its delegates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from workbench import tables
from workbench.emit import ir
from workbench_widgets.columns import F64, I32, Strings
from workbench_widgets.context import Context
from workbench_widgets.program.contract import ProgramDocument, ProgramMethod
from workbench_widgets.program.model import MethodModel, Model, Use, model_of
from workbench_widgets.program.ranges import Range, file_ranges, flatbuffer_ranges

__all__ = ["csr", "program_document"]

GROUPS = {"constant": "constants", "state": "states", "delegate": "delegates", "data": "named data"}


@dataclass
class Part:
    """A row of the tree."""

    name: str
    kind: str
    parent: int
    start: int
    size: int = 0
    detail: str = ""
    key: tuple[str, int] | None = None
    uses: list[Use] = field(default_factory=list)
    module: str = ""
    handles: frozenset[int] = frozenset()


def program_document(context: Context, key: str) -> ProgramDocument:
    """The document of a program.

    Args:
        context: A lowering, its program, or a program from a file.
        key: Not used.

    Raises:
        WorkbenchError: There is no program yet.
    """
    del key
    model = model_of(context)
    parts = _tree(model)
    saved, duplicates = _saved(model)
    operators = _operators(model)
    delegates = [
        (name, index, item)
        for name, method in model.methods.items()
        for index, item in enumerate(method.method.delegates)
    ]
    part_starts, part_handles = csr(sorted(_handles(model, part)) for part in parts)
    op_starts, op_handles = csr(sorted(row.handles) for row in operators)
    calls = [_calls(model.methods[name], index) for name, index, _ in delegates]
    delegate_starts, delegate_handles = csr(calls)
    data = [item.data for _, _, item in delegates]
    blobs = [model.blobs[number] for number in data]
    return ProgramDocument(
        size=len(model.parts.data),
        saved=saved,
        duplicates=duplicates,
        methods=_methods(model),
        part_name=Strings(part.name for part in parts),
        part_kind=Strings(part.kind for part in parts),
        part_parent=_ints(part.parent for part in parts),
        part_start=_floats(part.start for part in parts),
        part_bytes=_floats(part.size for part in parts),
        part_detail=Strings(part.detail for part in parts),
        part_same=_ints(model.same.get(part.key, -1) if part.key else -1 for part in parts),
        part_operator=Strings(_users(model, part.uses) for part in parts),
        part_module=Strings(part.module for part in parts),
        part_index=_ints(part.key[1] if part.key else -1 for part in parts),
        part_uses=_ints(len(part.uses) for part in parts),
        part_handle_start=part_starts,
        part_handles=part_handles,
        operator_method=Strings(row.method for row in operators),
        operator_name=Strings(row.name for row in operators),
        operator_calls=_ints(row.calls for row in operators),
        operator_kernel=np.array([row.kernel for row in operators], np.uint8),
        operator_constant_bytes=_floats(sum(row.constants.values()) for row in operators),
        operator_written_bytes=_floats(row.written for row in operators),
        operator_handle_start=op_starts,
        operator_handles=op_handles,
        delegate_method=Strings(name for name, _, _ in delegates),
        delegate_index=_ints(index for _, index, _ in delegates),
        delegate_backend=Strings(item.backend_id for _, _, item in delegates),
        delegate_data=_ints(data),
        delegate_bytes=_floats(len(model.program.delegate_data[number]) for number in data),
        delegate_specs=Strings(specs_text(item) for _, _, item in delegates),
        delegate_format=Strings("" if blob is None else blob.format for blob in blobs),
        delegate_handle_start=delegate_starts,
        delegate_handles=delegate_handles,
    )


def specs_text(delegate: ir.Delegate) -> str:
    """Compile specs as text."""
    return ", ".join(f"{key}={bytes(value)[:40]!r}" for key, value in delegate.compile_specs)


def _methods(model: Model) -> list[ProgramMethod]:
    rows = tables.method_table(model.program).itertuples(index=False)
    return [
        ProgramMethod(
            row.method,
            int(row.instructions),
            int(row.values),
            int(row.delegates),
            row.inputs,
            row.outputs,
            int(row.arena_bytes),
        )
        for row in rows
    ]


# ---- the parts of the file ---------------------------------------------------------------------------------


def _tree(model: Model) -> list[Part]:
    """The parts, parents before children; bytes of a parent are those of its children."""
    parts = [Part("file", "file", -1, 0)]
    groups: dict[str, int] = {}
    inside: dict[int, list[tuple[int, Part]]] = {}

    def group(name: str, kind: str, start: int) -> int:
        if kind not in groups:
            groups[kind] = len(parts)
            parts.append(Part(name, kind, 0, start))
        return groups[kind]

    flatbuffer = model.parts.data[: model.parts.flatbuffer]
    held = 0
    last = group("flatbuffer", "flatbuffer", 0)
    for item in file_ranges(model.parts):
        if item.kind == "flatbuffer":
            held += item.end - item.start
        elif item.kind == "padding":
            inside.setdefault(last, []).append((item.end - item.start, _padding(item)))
        else:
            last = group(GROUPS[item.kind], GROUPS[item.kind], item.start)
            inside.setdefault(last, []).append((item.end - item.start, _piece(model, item)))
    inside.setdefault(groups["flatbuffer"], [])[:0] = _sections(flatbuffer, held)
    for parent, members in list(inside.items()):
        padding = sum(size for size, part in members if part.kind == "padding")
        for size, part in members:
            if part.kind != "padding":
                _add(parts, parent, part, size, model)
        if padding:
            first = next(part for _, part in members if part.kind == "padding")
            _add(parts, parent, first, padding, model)
    return parts


def _add(parts: list[Part], parent: int, part: Part, size: int, model: Model) -> None:
    part.parent = parent
    row = len(parts)
    parts.append(part)
    blob = model.blobs[part.key[1]] if part.key and part.key[0] == "delegate" else None
    sections = blob.sections if blob is not None else ()
    known = sum(section.size for section in sections)
    up = row
    while up >= 0:
        parts[up].size += size
        up = parts[up].parent
    if len(sections) < 2 or known > size:
        return
    for section in sections:
        if section.size:
            parts.append(Part(section.name, "section", row, part.start + section.start, section.size))
    if known < size:
        parts.append(Part("padding", "padding", row, part.start, size - known))


def _padding(item: Range) -> Part:
    return Part("padding", "padding", 0, item.start)


def _sections(flatbuffer: memoryview, held: int) -> list[tuple[int, Part]]:
    """What the flatbuffer is for; in files that hold data in it, that data is listed on its own."""
    sections = [(size, Part(name, "section", 0, 0)) for name, size in flatbuffer_ranges(flatbuffer)]
    if held == len(flatbuffer):
        return sections
    return [(held, Part("tables", "section", 0, 0))] if held else []


def _piece(model: Model, item: Range) -> Part:
    key = (item.kind, item.index)
    part = Part("", item.kind, 0, item.start, key=key, uses=model.uses.get(key, []))
    if item.kind == "delegate":
        _describe_delegate(model, part)
    elif item.kind == "data":
        _describe_data(model, part)
    else:
        _describe_constant(model, part)
    return part


def _describe_constant(model: Model, part: Part) -> None:
    assert part.key is not None
    named = model.named.get(part.key)
    tensor = model.tensors.get(part.key)
    if tensor is not None:
        part.detail = f"{tables.dtype_name(tensor)} {list(tensor.sizes)}"
    if named is not None:
        part.name, part.module, part.handles = named.name, named.module, named.handles
        part.detail = ", ".join(text for text in (part.detail, named.note) if text)
        return
    use = part.uses[0] if part.uses else None
    stem = tensor.fqn if tensor is not None and tensor.fqn else ""
    if not stem and use is not None:
        stem = f"{_short(model.methods[use.method].names[use.row])} {use.argument}".strip()
    part.name = f"#{part.key[1]} {stem}".strip()
    part.module = model.methods[use.method].origins[use.row].module if use is not None else ""


def _describe_delegate(model: Model, part: Part) -> None:
    assert part.key is not None
    number = part.key[1]
    callers = [
        f"{item.backend_id} {index}"
        for method in model.methods.values()
        for index, item in enumerate(method.method.delegates)
        if item.data == number
    ]
    part.name = callers[0] if callers else f"blob {number}"
    blob = model.blobs[number]
    known = "" if blob is None else f"{blob.format}, {len(blob.steps)} steps"
    shared = f"shared by {len(callers)} delegates" if len(callers) > 1 else ""
    part.detail = ", ".join(text for text in (known, shared) if text)
    use = part.uses[0] if part.uses else None
    part.module = model.methods[use.method].origins[use.row].module if use is not None else ""


def _describe_data(model: Model, part: Part) -> None:
    assert part.key is not None
    name = list(model.program.named_data)[part.key[1]]
    part.name = name if len(name) < 40 else f"{name[:10]}…"
    for number, blob in enumerate(model.blobs):
        if blob is None:
            continue
        for value in blob.values:
            if value.data != name:
                continue
            step = next((s for s in blob.steps if any(i.endswith(f"{value.name}") for i in s.inputs)), None)
            role = next((i for i in step.inputs if i.endswith(value.name)), "") if step else ""
            if step is not None:
                part.name = f"{number} {step.name} {role.removesuffix(value.name).strip()}".strip()
            part.detail = f"{value.text}, {name}"
            part.uses = [*part.uses, *model.uses.get(("delegate", number), [])]
            return
    part.detail = name


def _handles(model: Model, part: Part) -> frozenset[int]:
    found = set(part.handles)
    for use in part.uses:
        found.update(model.methods[use.method].origins[use.row].handles)
    return frozenset(found)


def _users(model: Model, uses: list[Use]) -> str:
    names = dict.fromkeys(_short(model.methods[use.method].names[use.row]) for use in uses)
    return ", ".join(names)


def _short(operator: str) -> str:
    """`aten::add.out` -> `add`."""
    return operator.rpartition("::")[2].partition(".")[0]


def _saved(model: Model) -> tuple[int, int]:
    """Bytes that storing equal pieces once would save, and how many pieces would go."""
    sizes: dict[int, list[int]] = {}
    for (kind, index), number in model.same.items():
        sizes.setdefault(number, []).append(_size(model.program, kind, index))
    return sum(sum(group[1:]) for group in sizes.values()), sum(len(group) - 1 for group in sizes.values())


def _size(program: ir.Program, kind: str, index: int) -> int:
    if kind == "data":
        return len(list(program.named_data.values())[index].data)
    pool = {"constant": program.constants, "state": program.states, "delegate": program.delegate_data}[kind]
    return len(pool[index])


# ---- operators ---------------------------------------------------------------------------------------------


@dataclass
class _Operator:
    method: str
    name: str
    kernel: int
    calls: int = 0
    written: int = 0
    constants: dict[tuple[str, int], int] = field(default_factory=dict)
    handles: set[int] = field(default_factory=set)


def _operators(model: Model) -> list[_Operator]:
    # Loads parts of torch that take longer than all of the views.
    from workbench.ops.registry import runtime_kernels

    kernels = runtime_kernels()
    found: dict[tuple[str, str], _Operator] = {}
    for name, method in model.methods.items():
        read = _constants_by_row(model, name)
        for row, (_, _, instruction) in enumerate(method.rows):
            if not isinstance(instruction, (ir.KernelCall, ir.DelegateCall)):
                continue
            kernel = isinstance(instruction, ir.KernelCall)
            title = method.names[row] if kernel else f"delegate {method.names[row]}"
            available = int(method.names[row] in kernels) if kernel else 2
            entry = found.setdefault((name, title), _Operator(name, title, available))
            entry.calls += 1
            entry.written += written_bytes(method, row)
            entry.handles.update(method.origins[row].handles)
            for key in read.get(row, ()):
                entry.constants[key] = _size(model.program, *key)
    return sorted(found.values(), key=lambda row: (-row.calls, row.name))


def _constants_by_row(model: Model, name: str) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = {}
    for key, uses in model.uses.items():
        for use in uses:
            if use.method == name:
                found.setdefault(use.row, []).append(key)
    return found


def constant_bytes(model: Model, name: str) -> list[int]:
    """For each instruction of a method the bytes of the constants and blobs that it reads."""
    found = _constants_by_row(model, name)
    rows = range(len(model.methods[name].rows))
    return [sum(_size(model.program, *key) for key in found.get(row, ())) for row in rows]


def written_bytes(method: MethodModel, row: int) -> int:
    """Bytes of the tensors that an instruction writes."""
    tensors = [method.method.values[index] for index in method.effects[row].writes]
    return sum(tensor.nbytes for tensor in tensors if isinstance(tensor, ir.Tensor))


def _calls(method: MethodModel, delegate: int) -> list[int]:
    found: set[int] = set()
    for (_, _, item), origin in zip(method.rows, method.origins, strict=True):
        if isinstance(item, ir.DelegateCall) and item.delegate == delegate:
            found.update(origin.handles)
    return sorted(found)


def _ints(items: Iterable[int]) -> I32:
    return np.fromiter(items, np.int32)


def _floats(items: Iterable[int]) -> F64:
    return np.fromiter(items, np.float64)


def csr(rows: Iterable[Iterable[int]]) -> tuple[I32, I32]:
    """Lists of numbers as two columns: where each begins, and the numbers."""
    starts = [0]
    values: list[int] = []
    for row in rows:
        values.extend(row)
        starts.append(len(values))
    return np.array(starts, np.int32), np.array(values, np.int32)
