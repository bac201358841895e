"""What the backend knows of one operator, and one use of it as entries see it.

An entry is the one place to add an operator: its targets, what it can't do (in words for the user), how it is
written as nodes of the engine, and sample arguments for the test that holds it to eager PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.graphs import constant_inputs, mutated_buffers
from workbench.errors import MemoryPlanError
from workbench.passes.spec_propagation import Bounds

if TYPE_CHECKING:
    from workbench.backends.cpu.emitter import Emitter

__all__ = [
    "ANY",
    "BOOL",
    "FLOATS",
    "INDICES",
    "MAX_RANK",
    "Call",
    "Context",
    "Entry",
    "Refusal",
    "Samples",
    "Size",
    "no",
    "refusal",
]

MAX_RANK = 8
FLOATS = (torch.float32, torch.float16)
BOOL = (torch.bool,)
INDICES = (torch.int64, torch.int32)
ANY = (*FLOATS, *INDICES, *BOOL)

# A size is a number, or a symbol of torch.
Size = Any
Dtypes = tuple[torch.dtype, ...]


class Refusal(NamedTuple):
    """Why the backend doesn't take an operator, and what would make it eligible."""

    reason: str
    eligible_if: str | None = None


def no(reason: str, eligible_if: str | None = None) -> Refusal:
    """A refusal."""
    return Refusal(reason, eligible_if)


class Context:
    """A program, as entries ask about it.

    Args:
        program: The program; before or after decomposition.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.bounds = Bounds(program.range_constraints)
        written = mutated_buffers(program)
        self._specs = {name: spec for name, spec in constant_inputs(program).items() if name not in written}
        self._program = program
        self._constant: dict[Node, bool] = {}

    def stored(self, node: Node) -> torch.Tensor | None:
        """The tensor of a constant that the program holds; None for other nodes."""
        if node.op == "get_attr":
            found = getattr(self._program.graph_module, str(node.target), None)
            return found if isinstance(found, torch.Tensor) else None  # a graph of a branch is no constant
        spec = self._specs.get(node.name) if node.op == "placeholder" else None
        if spec is None:
            return None
        target = str(spec.target)
        tensor: Any = self._program.state_dict.get(target)
        if tensor is None:
            tensor = self._program.constants.get(target)
        return tensor if isinstance(tensor, torch.Tensor) else None

    def is_constant(self, node: object) -> bool:
        """Whether a node's value follows from constants alone."""
        if not isinstance(node, Node):
            return True
        known = self._constant.get(node)
        if known is None:
            known = self._constant[node] = self._follows(node)
        return known

    def _follows(self, node: Node) -> bool:
        if node.op != "call_function":
            return self.stored(node) is not None
        if not isinstance(node.target, OpOverload) and getattr(node.target, "__name__", "") != "getitem":
            return False
        if isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
            return False
        sources = node.all_input_nodes
        return bool(sources) and all(self.is_constant(source) for source in sources)


@cache
def _parameters(target: OpOverload) -> tuple[tuple[str, Any], ...]:
    arguments = target._schema.arguments
    return tuple((a.name, a.default_value if a.has_default_value() else None) for a in arguments)


class Call:
    """One use of an operator.

    Args:
        node: The node.
        context: The program that it stands in.
    """

    __slots__ = ("args", "context", "node")

    def __init__(self, node: Node, context: Context) -> None:
        self.node = node
        self.context = context
        self.args: dict[str, Any] = {}
        for position, (name, default) in enumerate(_parameters(node.target)):
            if position < len(node.args):
                self.args[name] = node.args[position]
            else:
                self.args[name] = node.kwargs.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def tensor(self, name: str) -> Any:
        """The (fake) tensor of an operand, by the name that the operator's schema gives it; or None."""
        given = self.args[name]
        return given.meta["val"] if isinstance(given, Node) else None

    def sizes(self, name: str) -> tuple[int, ...]:
        """Upper bounds of an operand's sizes."""
        return self.upper(self.tensor(name).shape)

    def upper(self, sizes: Sequence[Size]) -> tuple[int, ...]:
        """Upper bounds of sizes."""
        return tuple(self.context.bounds.upper(size, self.node) for size in sizes)

    def result(self, index: int = 0) -> Any:
        """The (fake) tensor that the operator returns."""
        found = self.node.meta["val"]
        return found[index] if isinstance(found, (tuple, list)) else found

    def numbers(self, name: str, count: int, default: int | None = None) -> tuple[int, ...]:
        """A list of numbers; one stands for all, none for `default`."""
        given = self.args[name]
        listed = list(given) if isinstance(given, (tuple, list)) else [given]
        if not listed or listed == [None]:
            listed = [default]
        return tuple(listed * count if len(listed) == 1 else listed)

    def dim(self, name: str = "dim", of: str = "self") -> int:
        """A dimension of an operand, counted from the front."""
        rank: int = max(self.tensor(of).dim(), 1)
        return int(self.args[name]) % rank

    def constant(self, name: str) -> bool:
        """Whether an operand is known before the program runs."""
        return self.context.is_constant(self.args[name])

    def used(self) -> set[int]:
        """Which of its results are read, for an operator that returns several."""
        return {int(user.args[1]) for user in self.node.users if len(user.args) > 1 and not user.kwargs}  # type: ignore[arg-type]


Emit = Callable[["Emitter", Call], None]
Check = Callable[[Call], Refusal | None]
# Arguments for one call: positional and by keyword, with float32 where a tensor is floating.
Samples = Callable[[], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True)
class Entry:
    """One operator, or several that are written alike.

    Attributes:
        targets: The operators.
        emit: Writes one use as nodes.
        check: What can't be done beyond dtypes, ranks and bounds.
        dtypes: Element types of tensors, operands and results, where `operands` says nothing else.
        operands: Element types of single operands by name; the key "->" stands for the results.
        keep: The operators shall be kept whole, though decompositions exist.
        results: Which of several results can be read; None: all.
        samples: Arguments for operators that the operator registry has no samples of; for all targets, or
            by target.
    """

    targets: tuple[OpOverload, ...]
    emit: Emit
    check: Check | None = None
    dtypes: Dtypes = FLOATS
    operands: Mapping[str, Dtypes] = field(default_factory=dict)
    keep: bool = False
    results: tuple[int, ...] | None = None
    samples: Samples | Mapping[OpOverload, Samples] | None = None

    def samples_of(self, target: OpOverload) -> Iterator[tuple[Any, ...]]:
        """Sample arguments of one of the targets, positional ones and, last, a dict of those by keyword."""
        given = self.samples.get(target) if isinstance(self.samples, Mapping) else self.samples
        return iter(()) if given is None else given()


def refusal(entry: Entry, node: Node, context: Context) -> WhyNot | None:
    """Why the backend can't run a use of an operator; None if it can."""
    call = Call(node, context)
    found = _unfit(entry, call)
    if found is None and entry.check is not None:
        found = entry.check(call)
    return None if found is None else WhyNot(node, found.reason, found.eligible_if)


def _unfit(entry: Entry, call: Call) -> Refusal | None:
    for name, given in call.args.items():
        allowed = entry.operands.get(name, entry.dtypes)
        for item in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(item, Node) and isinstance(item.meta.get("val"), torch.Tensor):
                found = _unfit_tensor(f"operand `{name}`", item.meta["val"], allowed, call)
                if found is not None:
                    return found
    values = call.node.meta.get("val")
    several = isinstance(values, (tuple, list))
    used = call.used() if several else {0}
    if several and entry.results is not None and not used <= set(entry.results):
        extra = min(used - set(entry.results))
        return no(
            f"its result {extra} is read, which the engine does not compute", "only the first were read"
        )
    allowed = entry.operands.get("->", entry.dtypes)
    for index, value in enumerate(values if several else (values,)):  # type: ignore[arg-type]
        if index in used or not several:
            name = f"result {index}" if several else "the result"
            found = _unfit_tensor(name, value, allowed, call)
            if found is not None:
                return found
    return None


def _unfit_tensor(name: str, value: Any, allowed: Dtypes, call: Call) -> Refusal | None:
    if not isinstance(value, torch.Tensor):
        return no(f"{name} is no tensor")
    if value.dtype not in allowed:
        names = ", ".join(str(item).removeprefix("torch.") for item in allowed)
        return no(f"{name} is {str(value.dtype).removeprefix('torch.')}", f"it were one of {names}")
    if value.dim() > MAX_RANK:
        return no(f"{name} has {value.dim()} dimensions", f"it had at most {MAX_RANK}")
    try:
        call.upper(value.shape)
    except MemoryPlanError as error:
        return no(f"{name} has a size without an upper bound ({error.found})", "the size were bounded")
    if value.layout != torch.strided:
        return no(f"{name} is {str(value.layout).removeprefix('torch.')}", "it were dense")
    return None
