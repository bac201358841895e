"""The graph of a program: its instructions, and the values that go from one to another."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from workbench import provenance
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.tables import dtype_name
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.graph.document import assemble, rows_of
from workbench_widgets.graph.tree import Tree

__all__ = ["Instructions", "Known", "known_of", "program_document", "tensor_text"]

_documents: WeakKeyDictionary[Any, dict[str, GraphDocument]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Known:
    """What a lowering knows of one instruction.

    Attributes:
        handles: Source handles.
        chain: Names, paths and classes of its modules, outermost first.
        source: `file:line`.
    """

    handles: tuple[int, ...] = ()
    chain: tuple[tuple[str, str, str], ...] = ()
    source: str = ""


def program_document(context: Context, method: str) -> GraphDocument:
    """The graph of a method's instructions.

    Args:
        context: A lowering, whose provenance the instructions get, or an opened program, whose handles are
            the instructions' numbers plus one.
        method: The method.

    Raises:
        WorkbenchError: There is no program or no such method.
    """
    owner: Any = context.lowering.program if context.lowering is not None else context.opened
    if owner is None:
        owner = context.stage("program")
    documents = _documents.setdefault(owner, {})
    if method not in documents:
        try:
            found = context.program.method(method)
        except KeyError as error:
            known = ", ".join(item.name for item in context.program.methods)
            raise WorkbenchError("the program has no such method", expected=known, found=method) from error
        documents[method] = _document(found, known_of(context, method))
    return documents[method]


def known_of(context: Context, method: str) -> Mapping[int, Known] | None:
    """What is known of each instruction of a method; None for a program from a file."""
    lowering = context.lowering
    if lowering is None:
        return None
    rows = rows_of(lowering.plan, method)
    # Inner nodes of delegates come before the call, whose handles they share: the first one stands for all.
    by_debug: dict[int, list[int]] = {}
    for row, node in enumerate(rows.nodes):
        if isinstance(debug := node.meta.get("debug_handle"), int):
            by_debug.setdefault(debug, []).append(row)
    found = {}
    for instruction, debugs in lowering.plan.emitted.debug_handle_map.get(method, {}).items():
        members = [row for debug in debugs for row in by_debug.get(debug, ())]
        calls = [row for row in members if rows.kinds[row] == "call"] or members
        handles = sorted({handle for row in calls for handle in provenance.handles(rows.nodes[row])})
        if not calls:
            continue
        around = rows.modules[calls[0]]
        for row in calls[1:]:
            around = rows.tree.common(around, rows.modules[row])
        source = next((line for row in calls if (line := provenance.source_line(rows.nodes[row]))), None)
        found[instruction] = Known(tuple(handles), tuple(_chain(rows.tree, around)), source or "")
    return found


def _chain(tree: Tree, module: int) -> Iterator[tuple[str, str, str]]:
    links = []
    while module > 0:
        if tree.kinds[module] == "module" and "!" not in tree.paths[module]:
            links.append((tree.names[module], tree.paths[module], tree.types[module]))
        module = tree.parents[module]
    return reversed(links)


@dataclass
class Instructions:
    """Reads and writes of a method's instructions, in order.

    Attributes:
        reads: By instruction, indices of the values that it reads.
        writes: Indices of those that it writes.
    """

    method: ir.Method
    reads: list[list[int]] = field(default_factory=list)
    writes: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        given = {*self.method.inputs, *(index for index, tensor in self.method.tensors() if tensor.buffer)}
        written = set(given)
        for instruction in self.method.instructions:
            reads, writes = self._ends(instruction, written)
            self.reads.append(reads)
            self.writes.append(writes)
            written.update(writes)

    def _ends(self, instruction: ir.Instruction, written: set[int]) -> tuple[list[int], list[int]]:
        match instruction:
            case ir.KernelCall():
                return self._kernel(instruction)
            case ir.DelegateCall():
                # The file does not say how many arguments are results: those that nothing wrote before.
                values = [i for i in instruction.args if isinstance(self.method.values[i], ir.Tensor)]
                return [i for i in values if i in written], [i for i in values if i not in written]
            case ir.Move():
                return [instruction.source], [instruction.target]
            case ir.JumpFalse():
                return [instruction.condition], []
            case _:
                return [instruction.value], []

    def _kernel(self, call: ir.KernelCall) -> tuple[list[int], list[int]]:
        if not call.args:
            return [], []
        *given, result = call.args
        outs = self._tensors(result) or [result]
        name = self.method.operators[call.operator][0]
        if given and not name.endswith("_") and given[-1] in (result, *outs):
            # Out variants name their results twice: as arguments, and as what they return.
            given = given[: len(given) - (1 if given[-1] == result else len(outs))]
        return [index for item in given for index in self._parts(item)], outs

    def _tensors(self, index: int) -> list[int]:
        value = self.method.values[index]
        if isinstance(value, ir.TensorList | ir.OptionalTensorList):
            return [item for item in value.items if item >= 0]
        return []

    def _parts(self, index: int) -> list[int]:
        value = self.method.values[index]
        if isinstance(value, ir.IntList):
            return list(value.items)
        return self._tensors(index) or [index]


def tensor_text(value: Any) -> tuple[str, str, float]:
    """Shape, dtype and bytes of a value; empty for what is no tensor."""
    if not isinstance(value, ir.Tensor):
        return "", type(value).__name__, 0.0
    bound = "≤" if value.dynamism else ""
    return f"({', '.join(f'{bound}{size}' for size in value.sizes)})", dtype_name(value), float(value.nbytes)


class _Memory:
    """Who wrote which bytes of an arena last."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.spans: list[tuple[int, int]] = []  # end, row

    def write(self, start: int, end: int, row: int) -> None:
        """Forget what lies there, if only in part: its value is gone."""
        first = max(0, bisect.bisect_left(self.starts, start) - 1)
        if first < len(self.starts) and self.spans[first][0] <= start:
            first += 1
        last = first
        while last < len(self.starts) and self.starts[last] < end:
            last += 1
        self.starts[first:last] = [start]
        self.spans[first:last] = [(end, row)]

    def holder(self, offset: int) -> int | None:
        """The row that wrote the byte at an offset."""
        at = bisect.bisect_right(self.starts, offset) - 1
        return self.spans[at][1] if at >= 0 and offset < self.spans[at][0] else None


_COLUMNS = (
    *("names", "ops", "kinds", "shapes", "dtypes", "attributes", "sizes", "modules", "sources", "tags"),
    *("handles", "instructions"),
)


class _Builder:
    """Collects the rows of a method's graph."""

    def __init__(self, method: ir.Method, known: Mapping[int, Known] | None) -> None:
        self.method, self.known = method, known
        self.tree = Tree()
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.edges: tuple[list[int], list[int]] = ([], [])
        self.edge_bytes: list[float] = []
        self.writers: dict[int, list[tuple[int, int]]] = {}  # value -> rows, each with its block
        self.memory: dict[int, _Memory] = {}
        self.paths: dict[str, int] = {"": 0}

    def add(self, name: str, op: str, kind: str, values: list[int], **more: Any) -> int:
        texts = [tensor_text(self.method.values[index]) for index in values]
        row = len(self.columns["names"])
        entry = {
            "names": name,
            "ops": op,
            "kinds": kind,
            "modules": 0,
            "instructions": -1,
            "handles": [],
            **dict.fromkeys(("attributes", "sources", "tags"), ""),
            "shapes": "; ".join(text[0] for text in texts if text[0]),
            "dtypes": "; ".join(text[1] for text in texts),
            "sizes": sum(text[2] for text in texts),
            **more,
        }
        for column, value in entry.items():
            self.columns[column].append(value)
        return row

    def read(self, index: int, row: int) -> None:
        """An edge from what wrote a value; numbers in the file and memory at rest have no row."""
        value = self.method.values[index]
        writers = self.writers.get(index, [])
        if not writers and isinstance(value, ir.Tensor) and value.allocation is not None:
            # A view has no instruction: it is another value in the same memory.
            arena, offset = value.allocation
            holder = self.memory[arena].holder(offset) if arena in self.memory else None
            writers = [] if holder is None else [(holder, 0)]
        for source, _ in writers:
            self.edges[0].append(source)
            self.edges[1].append(row)
            self.edge_bytes.append(value.nbytes if isinstance(value, ir.Tensor) else 0.0)

    def write(self, index: int, row: int, block: int = 0) -> None:
        """From now on a value is what this row wrote; after branches, what either of them wrote."""
        self.writers[index] = [known for known in self.writers.get(index, ()) if known[1] not in (0, block)]
        self.writers[index].append((row, block))
        value = self.method.values[index]
        if isinstance(value, ir.Tensor) and value.allocation is not None:
            arena, offset = value.allocation
            self.memory.setdefault(arena, _Memory()).write(offset, offset + max(1, value.nbytes), row)

    def module(self, chain: tuple[tuple[str, str, str], ...]) -> int:
        """The container of a chain of modules."""
        at = 0
        for _, path, kind in chain:
            known = self.paths.get(path)
            if known is None:
                # The path tells several calls of a module apart, as torch's keys do.
                known = self.paths[path] = self.tree.module(at, 0, path, path.partition("@")[0], kind)
            at = known
        return at


def _document(method: ir.Method, known: Mapping[int, Known] | None) -> GraphDocument:
    builder = _Builder(method, known)
    for number, index in enumerate(method.inputs):
        builder.write(index, builder.add(f"input {number}", "input", "placeholder", [index]))
    ends = Instructions(method)
    blocks = _blocks(method)
    for number, instruction in enumerate(method.instructions):
        entry = None if known is None else known.get(number, Known())
        # A constant has its row before its first reader: rows are in topological order.
        for index in ends.reads[number]:
            _constant(builder, index)
        name, kind, attributes, tag = _described(method, instruction)
        row = builder.add(
            f"{number}: {name}",
            name,
            kind,
            ends.writes[number],
            attributes=attributes,
            tags=tag,
            instructions=number,
            handles=[number + 1] if entry is None else list(entry.handles),
            modules=0 if entry is None else builder.module(entry.chain),
            sources="" if entry is None else entry.source,
        )
        for index in dict.fromkeys(ends.reads[number]):
            builder.read(index, row)
        for index in ends.writes[number]:
            builder.write(index, row, blocks[number])
    row = builder.add("output", "output", "output", list(method.outputs))
    for index in dict.fromkeys(method.outputs):
        builder.read(index, row)
    return assemble(
        "program",
        method.name,
        edges=builder.edges,
        edge_bytes=builder.edge_bytes,
        tree=builder.tree,
        **builder.columns,
    )


def _blocks(method: ir.Method) -> list[int]:
    """The number, from 1, of the stretch without jumps that each instruction is in."""
    starts = {0}
    for number, instruction in enumerate(method.instructions):
        if isinstance(instruction, ir.JumpFalse):
            starts |= {number + 1, instruction.destination}
    return list(itertools.accumulate(int(number in starts) for number in range(len(method.instructions))))


def _constant(builder: _Builder, index: int) -> None:
    value = builder.method.values[index]
    if index in builder.writers or not isinstance(value, ir.Tensor) or not (value.buffer or value.external):
        return
    name = value.fqn or f"constant {value.buffer}"
    builder.writers[index] = [(builder.add(name, "constant", "constant", [index]), 0)]


def _described(method: ir.Method, instruction: ir.Instruction) -> tuple[str, str, str, str]:
    """Name, kind, attributes and partition of an instruction."""
    match instruction:
        case ir.KernelCall():
            return method.operator_name(instruction.operator), "call", _numbers(method, instruction), ""
        case ir.DelegateCall():
            delegate = method.delegates[instruction.delegate]
            specs = ", ".join(f"{key}={value!r}" for key, value in delegate.compile_specs)
            return (
                delegate.backend_id,
                "delegate",
                specs,
                f"delegate {instruction.delegate}: {delegate.backend_id}",
            )
        case ir.JumpFalse():
            return "jump if false", "control", f"to {instruction.destination}", ""
        case ir.Move():
            return "move", "call", "", ""
        case _:
            return "free", "call", "", ""


def _numbers(method: ir.Method, call: ir.KernelCall) -> str:
    """The arguments of a call that are no tensors, in their order."""
    texts = []
    for index in call.args[:-1]:
        value = method.values[index]
        if isinstance(value, ir.IntList):
            parts = [getattr(method.values[item], "value", "?") for item in value.items]
            texts.append(f"[{', '.join(map(str, parts))}]")
        elif isinstance(value, ir.Int | ir.Bool | ir.String):
            texts.append(str(value.value))
        elif isinstance(value, ir.Double):
            texts.append(f"{value.value:.6g}")
        elif isinstance(value, ir.DoubleList | ir.BoolList):
            texts.append(str(list(value.items)))
    return ", ".join(texts)
