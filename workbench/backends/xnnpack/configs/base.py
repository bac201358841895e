"""What a config is: one kind of operator, when XNNPACK takes it, why not, and the calls that compute it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from workbench.backends.base import WhyNot
from workbench.edge.fake import dim_order
from workbench.edge.program import input_specs, lifted_tensor, mutated_targets

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = [
    "MAX_RANK",
    "Config",
    "ConfigPrecisionType",
    "Context",
    "argument",
    "config_of",
    "dim_order_of",
    "is_free",
    "sizes_of",
    "spec_of",
]

MAX_RANK = 6
_FLOATS = (torch.float32, torch.float16)
_UNBOUNDED = 1 << 20


class ConfigPrecisionType(Enum):
    """In which arithmetic a config runs its operators."""

    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3


aten = torch.ops.aten
# Rearrangements of constants that can stay views.
_VIEWS: Mapping[Any, Any] = {
    aten.permute_copy.default: torch.Tensor.permute,
    aten.t_copy.default: torch.Tensor.t,
    aten.transpose_copy.int: torch.Tensor.transpose,
    aten.unsqueeze_copy.default: torch.Tensor.unsqueeze,
    aten.select_copy.int: torch.Tensor.select,
    aten.view_copy.default: torch.Tensor.reshape,
}
# Operators that make a tensor out of numbers.
_FACTORIES = frozenset(
    {
        aten.arange.default,
        aten.arange.start,
        aten.arange.start_step,
        aten.full.default,
        aten.ones.default,
        aten.scalar_tensor.default,
        aten.zeros.default,
    }
)


class Context:
    """A program that configs are asked about: which of its nodes are constants, and their tensors.

    Args:
        program: An exported program, an edge program, or a partition.
        exported: It is as `torch.export` made it: what depends on constants alone is folded later.
        dynamic_weights: Weights of linear operators may be computed at run time, and are passed in.
        configs: Those that are asked, by operator.
    """

    def __init__(
        self,
        program: ExportedProgram,
        *,
        exported: bool = False,
        dynamic_weights: bool = False,
        configs: Mapping[Any, Config] | None = None,
    ) -> None:
        self.exported = exported
        self.dynamic_weights = dynamic_weights
        self.configs = {} if configs is None else configs
        self._tensors: dict[Node, Any] = {}
        self._program = program
        self._specs = input_specs(program)
        self._written = mutated_targets(program)
        self._constant: dict[Node, bool] = {}

    def stored(self, node: Node) -> torch.Tensor | None:
        """The tensor behind a placeholder that never changes, or behind an attribute."""
        if node.op == "get_attr":
            found = getattr(node.graph.owning_module, str(node.target), None)
            return found if isinstance(found, torch.Tensor) else None
        if node.graph is not self._program.graph:
            return None  # A branch is given its constants.
        spec = self._specs.get(node.name) if node.op == "placeholder" else None
        if spec is None or spec.target in self._written:
            return None
        return lifted_tensor(self._program, spec)

    def is_constant(self, node: Any) -> bool:
        """Whether an operand is a number or a tensor that depends on constants alone."""
        if not isinstance(node, Node):
            return not isinstance(node, (torch.SymInt, torch.SymFloat))
        if node not in self._constant:
            if node.op != "call_function":
                self._constant[node] = self.stored(node) is not None
            else:
                inputs = node.all_input_nodes
                made = bool(inputs) or node.target in _FACTORIES
                self._constant[node] = made and all(map(self.is_constant, inputs))
        return self._constant[node]

    def tensor(self, node: Node) -> Any:
        """The tensor of a node that is constant, computed where it is not stored.

        Rearrangements are views of what is stored.
        """
        if node not in self._tensors:
            stored = self.stored(node)
            if stored is not None:
                self._tensors[node] = stored.detach()
            else:
                args, kwargs = map_arg((node.args, node.kwargs), self.tensor)
                function: Any = _VIEWS.get(node.target, node.target)
                with torch.no_grad():
                    self._tensors[node] = function(*args, **kwargs)
        return self._tensors[node]

    def chain(self, node: Any) -> tuple[Node, ...]:
        """The operators that make a constant from what is stored."""
        if not isinstance(node, Node) or node.op != "call_function":
            return ()
        return (*(n for source in node.all_input_nodes for n in self.chain(source)), node)


class Config(ABC):
    """One kind of operator.

    Attributes:
        targets: The operators, as they stand in the edge dialect, or the names of those that may not exist.
        whole: Operators that `ops_to_not_decompose` asks to keep for it.
        dtypes: Element types of tensors.
        precisions: Arithmetics that it knows.
    """

    targets: ClassVar[tuple[Any, ...]] = ()
    whole: ClassVar[tuple[Any, ...]] = ()
    dtypes: ClassVar[tuple[torch.dtype, ...]] = _FLOATS
    precisions: ClassVar[frozenset[ConfigPrecisionType]] = frozenset(
        {ConfigPrecisionType.FP32, ConfigPrecisionType.STATIC_QUANT}
    )

    def refusal(self, node: Node, context: Context) -> WhyNot | None:
        """Why the operator is left behind; None if it is taken."""
        return self._check_tensors(node, context) or self.check(node, context)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """What this kind of operator demands beyond the types and ranks of its tensors."""
        del node, context
        return None

    def together(self, node: Node, context: Context) -> tuple[Node, ...]:
        """Operators that must stand in the same partition: those that make its constants."""
        operands = dict.fromkeys(n for source in node.all_input_nodes for n in self._chain(source, context))
        return tuple(operands)

    def takes_rows(self, node: Node, operand: Node, context: Context) -> bool:
        """Whether an operand may be numbers that were quantized at run time, a scale for each row."""
        del node, operand, context
        return False

    @abstractmethod
    def build(self, node: Node, builder: Builder) -> None:
        """Add the calls and define the node's value."""

    def _chain(self, source: Node, context: Context) -> tuple[Node, ...]:
        return context.chain(source) if context.is_constant(source) else ()

    def _check_tensors(self, node: Node, context: Context) -> WhyNot | None:
        del context
        found = node.meta.get("val")
        results = found if isinstance(found, (tuple, list)) else [found]
        named = [("its result", item) for item in results[: self.results]]
        named += [(f"'{source.name}'", source.meta.get("val")) for source in self.operands(node)]
        for source in node.all_input_nodes:
            if not isinstance(source.meta.get("val"), (torch.Tensor, tuple, list)):
                return WhyNot(
                    node,
                    f"'{source.name}' is a number computed at run time, and a delegate is given tensors",
                    "it were a constant (of a view: -1)",
                )
        for name, item in named:
            if isinstance(item, (tuple, list)):
                item = item[0]
            answer = self._check_tensor(node, name, item)
            if answer is not None:
                return answer
        return None

    results: ClassVar[int | None] = None
    """Of how many of its results the type matters; None: of all."""

    def operands(self, node: Node) -> Sequence[Node]:
        """The tensors that it reads."""
        return node.all_input_nodes

    def _check_tensor(self, node: Node, name: str, item: Any) -> WhyNot | None:
        if not isinstance(item, torch.Tensor):
            return WhyNot(node, f"{name} is {type(item).__name__}, no tensor", "it were a tensor")
        if item.dtype not in self.dtypes:
            names = " or ".join(str(dtype).removeprefix("torch.") for dtype in self.dtypes)
            return WhyNot(node, f"{name} is {str(item.dtype).removeprefix('torch.')}", f"{name} were {names}")
        if item.dim() > MAX_RANK:
            return WhyNot(node, f"{name} has {item.dim()} dimensions", f"it had at most {MAX_RANK}")
        if any(type(size) is int and size == 0 for size in item.shape):
            return WhyNot(node, f"{name} is empty, of sizes {tuple(item.shape)}", "no size were 0")
        return None


def argument(node: Node, name: str, default: Any = None) -> Any:
    """An argument of an operator by its name in the operator's schema."""
    if name in node.kwargs:
        return node.kwargs[name]
    for index, parameter in enumerate(_parameters(node.target)):
        if parameter == name:
            return node.args[index] if index < len(node.args) else default
    return default


_names: dict[Any, tuple[str, ...]] = {}


def _parameters(target: Any) -> tuple[str, ...]:
    if target not in _names:
        _names[target] = tuple(item.name for item in target._schema.arguments)
    return _names[target]


def is_free(size: Any) -> bool:
    """Whether a size is known only at run time."""
    return not isinstance(size, int)


def sizes_of(tensor: torch.Tensor) -> tuple[tuple[int, ...], frozenset[int]]:
    """The sizes of a fake tensor, upper bounds where they are free, and which are free."""
    sizes, free = [], []
    for index, size in enumerate(tensor.shape):
        if is_free(size):
            free.append(index)
            sizes.append(_largest(size))
        else:
            sizes.append(int(size))
    return tuple(sizes), frozenset(free)


def _largest(size: Any) -> int:
    upper = size.node.shape_env.bound_sympy(size.node.expr).upper
    if upper.is_Integer and upper < _UNBOUNDED:
        return int(upper)
    hint = size.node.hint
    return int(hint) if hint is not None else _UNBOUNDED


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The dim order of a fake tensor; of several that fit, the default one."""
    return tuple(dim_order(tensor))


def spec_of(configs: Sequence[Config]) -> Mapping[Any, Config]:
    """The configs by operator, or by its name."""
    return {target: config for config in configs for target in (*config.targets, *config.whole)}


def config_of(configs: Mapping[Any, Config], node: Node) -> Config | None:
    """The config of a node's operator."""
    found = configs.get(node.target)
    return configs.get(str(node.target)) if found is None else found
