"""`XnnpackPartitioner`: which nodes go to XNNPACK, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends.base import TAG_KEY, PartitionResult, Supported, WhyNot, target_name
from workbench.backends.capability import CapabilityPartitioner
from workbench.backends.constants import tag_constant_data
from workbench.backends.graphs import is_getitem
from workbench.backends.xnnpack import backend as _backend  # noqa: F401  (registers the backend)
from workbench.backends.xnnpack.builder import BACKEND_ID
from workbench.backends.xnnpack.configs import (
    ALL_CONFIGS,
    Config,
    ConfigPrecisionType,
    Context,
    config_of,
    spec_of,
)
from workbench.backends.xnnpack.configs.constants import MAKES_NUMBERS, name_of
from workbench.backends.xnnpack.configs.dynamic import Dynamic, numbers_of_rows
from workbench.backends.xnnpack.configs.quantize import group_of, is_constant_maker, is_quantize
from workbench.errors import PartitionError

__all__ = ["XnnpackPartitioner"]

Precisions = ConfigPrecisionType | Iterable[ConfigPrecisionType]


class XnnpackPartitioner(CapabilityPartitioner):
    """Gathers what XNNPACK takes into few partitions, by operator and by module.

    By operator: each node is asked for by the config of its operator, greedily, whatever module it comes
    from. By module: nodes that make one layer go together (the transpose of a weight with the product that
    reads it), and `modules` limits the delegation to parts of the model.

    Args:
        configs: Which kinds of operators to take, by default all of `ALL_CONFIGS`; classes or instances.
        config_precisions: Limits the configs to those that run in one of these arithmetics.
        per_op_mode: A partition for each operator, with what it can't be separated from.
        verbose: Print why nodes stay behind.
        force_non_static_weights_for_f32_linear: Weights of linear layers are passed in at run time instead of
            being packed into the delegate (for weights that are exchanged).
        modules: Take only nodes that come from these modules: qualified names (`"encoder.layers"`, with all
            below it) or classes as `nn_module_stack` writes them (`"torch.nn.modules.linear.Linear"` or
            `torch.nn.Linear`).
        min_nodes: As of `CapabilityPartitioner`.
    """

    def __init__(
        self,
        configs: Sequence[Config | type[Config]] | None = None,
        config_precisions: Precisions | None = None,
        per_op_mode: bool = False,
        verbose: bool = False,
        *,
        force_non_static_weights_for_f32_linear: bool = False,
        modules: Collection[str | type] | None = None,
        min_nodes: int = 1,
    ) -> None:
        super().__init__(BACKEND_ID, min_nodes=min_nodes)
        chosen = [c() if isinstance(c, type) else c for c in (ALL_CONFIGS if configs is None else configs)]
        self._configs = spec_of(_in_precisions(chosen, config_precisions))
        self._chosen = spec_of(chosen)
        self._precisions = _as_set(config_precisions)
        self._dynamic_weights = force_non_static_weights_for_f32_linear
        self._modules = None if modules is None else tuple(map(_module_name, modules))
        self._verbose = verbose
        self.per_op_mode = per_op_mode
        self._context: tuple[ExportedProgram, Context] | None = None
        # Makers of constants that have to stand in one partition with all that reads them.
        self._strict: set[Node] = set()

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what XNNPACK takes; the reasons say why the rest stays."""
        self._strict.clear()
        self._context = None
        result = super().partition(exported_program)
        while torn := _gather_constants(exported_program, self._context_of(exported_program)):
            self._strict |= torn
            for node in provenance.nodes_of(exported_program.graph_module):
                node.meta.pop(TAG_KEY, None)
            result = super().partition(exported_program)
        if self.per_op_mode:
            _separate(exported_program, self._context_of(exported_program))
        _tag_constants(exported_program)
        used = {node.meta.get(TAG_KEY) for node in provenance.nodes_of(exported_program.graph_module)}
        result.partition_tags = {str(t): self.delegation_spec for t in sorted(used - {None}, key=_natural)}
        if self._dynamic_weights:
            _leave_weights_outside(exported_program)
        self._context = None
        if self._verbose:
            for reason in result.reasons:
                print(reason)
        return result

    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        """What the config of the node's operator says."""
        answer = self._refusal(node, program)
        if answer is not None:
            return answer
        config = config_of(self._configs, node)
        assert config is not None
        context = self._context_of(program)
        made = config.together(node, context)
        # What dequantizes a weight goes with the layer, and all that stands between them.
        if not any(is_constant_maker(n) for n in made):
            made = tuple(n for n in made if n in self._strict)
        rows = [] if isinstance(config, Dynamic) else self._chains(node, program)
        return Supported((*made, *group_of(node), *rows))

    def _chains(self, node: Node, program: ExportedProgram) -> list[Node]:
        """What quantizes the operands of a layer at run time, if it is taken."""
        found: list[Node] = []
        for operand in node.all_input_nodes:
            chain = numbers_of_rows(operand)
            if chain is not None and self._refusal(chain.choose, program) is None:
                found += chain.nodes
                while operand not in chain.nodes:
                    found.append(operand)
                    operand = operand.all_input_nodes[0]
        return found

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """The operators that XNNPACK has a call for, at the nodes where it takes them."""
        whole = list(dict.fromkeys(t for c in dict.fromkeys(self._configs.values()) for t in c.whole))
        names = {name for name in self._configs if isinstance(name, str)}
        whole += dict.fromkeys(n.target for n in ep.graph.nodes if str(n.target) in names)
        self._context = (
            ep,
            Context(ep, exported=True, dynamic_weights=self._dynamic_weights, configs=self._configs),
        )

        def wanted(node: Node) -> bool:
            if name_of(node) in MAKES_NUMBERS and self._context_of(ep).is_constant(node):
                return any(self._refusal(user, ep) is None for user in node.users)  # It goes with a layer.
            return self._refusal(node, ep) is None

        return whole, wanted

    def _refusal(self, node: Node, program: ExportedProgram) -> WhyNot | None:
        config = config_of(self._configs, node)
        if config is None and config_of(self._chosen, node) is not None:
            return _not_in(_precision_of(node), node)
        if config is None:
            return WhyNot(node, f"XNNPACK has no {target_name(node)}")
        if self._modules is not None and not _within(node, self._modules):
            path, kind = provenance.module_path(node)
            return WhyNot(
                node,
                f"it comes from the module '{path}' ({kind or 'of unknown class'})",
                f"`modules` named it ({', '.join(self._modules)})",
            )
        return config.refusal(node, self._context_of(program)) or self._wrong_precision(node, config)

    def _wrong_precision(self, node: Node, config: Config) -> WhyNot | None:
        """Why a node is not taken in its arithmetic; numbers may be computed wherever floats may."""
        if ConfigPrecisionType.FP32 in self._precisions or ConfigPrecisionType.FP32 not in config.precisions:
            return None
        found = _precision_of(node)
        return None if found in self._precisions else _not_in(found, node)

    def _context_of(self, program: ExportedProgram) -> Context:
        if self._context is None or self._context[0] is not program:
            self._context = (
                program,
                Context(program, dynamic_weights=self._dynamic_weights, configs=self._configs),
            )
        return self._context[1]


def _as_set(wanted: Precisions | None) -> frozenset[ConfigPrecisionType]:
    if wanted is None:
        return frozenset(ConfigPrecisionType)
    return frozenset({wanted} if isinstance(wanted, ConfigPrecisionType) else wanted)


def _precision_of(node: Node) -> ConfigPrecisionType:
    """The arithmetic that the nodes around an operator ask for."""
    if any(numbers_of_rows(operand) is not None for operand in node.all_input_nodes):
        return ConfigPrecisionType.DYNAMIC_QUANT
    around = group_of(node)
    return ConfigPrecisionType.STATIC_QUANT if any(map(is_quantize, around)) else ConfigPrecisionType.FP32


def _not_in(precision: ConfigPrecisionType, node: Node) -> WhyNot:
    return WhyNot(node, f"it computes in {precision.name}", f"config_precisions held {precision.name}")


def _in_precisions(configs: Sequence[Config], wanted: Precisions | None) -> list[Config]:
    precisions = _as_set(wanted)
    found = [config for config in configs if config.precisions & precisions]
    if not found:
        raise PartitionError(
            "no config runs in the arithmetic that `config_precisions` asks for",
            stage="partition",
            expected=", ".join(sorted({p.name for c in configs for p in c.precisions})),
            found=", ".join(sorted(p.name for p in precisions)),
        )
    return found


def _module_name(module: str | type) -> str:
    return module if isinstance(module, str) else f"{module.__module__}.{module.__qualname__}"


def _within(node: Node, modules: Collection[str]) -> bool:
    """Whether one of the modules around a node, from the root inwards, is named."""
    stack = node.meta.get("nn_module_stack") or {}
    around = [(str(path), kind) for path, kind in stack.values()]
    for _, kind in node.meta.get("source_fn_stack") or ():
        around.append(("", kind))
    for path, kind in around:
        name = kind if isinstance(kind, str) else _module_name(kind)
        if path in modules or name in modules:
            return True
    return False


def _gather_constants(program: ExportedProgram, context: Context) -> set[Node]:
    """Move what makes constants into the partition that reads them; gives what several partitions read.

    Such a node has no inputs but constants, so that no cycle can come of it.
    """
    torn = set()
    for node in reversed(program.graph.nodes):
        if node.op != "call_function" or not context.is_constant(node) or node.meta.get(TAG_KEY) is None:
            continue
        tags = {user.meta.get(TAG_KEY) for user in node.users}
        if len(tags) == 1 and None not in tags:
            node.meta[TAG_KEY] = tags.pop()
        elif len(tags - {None}) > 1:
            torn.add(node)
    return torn


def _separate(program: ExportedProgram, context: Context) -> None:
    """Give each operator a tag of its own; what makes its constants and what takes it apart go with it."""
    numbers = count()
    for node in provenance.nodes_of(program.graph_module):
        if node.op != "call_function" or TAG_KEY not in node.meta or context.is_constant(node):
            continue
        producer = node.args[0] if node.args else None
        follows = is_getitem(node) and isinstance(producer, Node)
        node.meta[TAG_KEY] = producer.meta[TAG_KEY] if follows else f"{BACKEND_ID}_{next(numbers)}"  # type: ignore[union-attr]
    for node in _gather_constants(program, context):
        # A constant that is made for several operators: they stay together.
        tags = {user.meta.get(TAG_KEY) for user in node.users} - {None}
        for other in provenance.nodes_of(program.graph_module):
            if other.meta.get(TAG_KEY) in tags:
                other.meta[TAG_KEY] = min(tags, key=_natural)
    _gather_constants(program, context)


def _tag_constants(program: ExportedProgram) -> None:
    """Give stored constants to those who read them now."""
    for node in program.graph.nodes:
        if node.op == "placeholder":
            node.meta.pop(TAG_KEY, None)
    tag_constant_data(program)


def _natural(tag: object) -> tuple[int, str]:
    return len(str(tag)), str(tag)


def _leave_weights_outside(program: ExportedProgram) -> None:
    """Take the tags off the constants that only linear layers read: they are passed in."""
    linear = torch.ops.aten.linear.default
    for node in program.graph.nodes:
        if node.op == "placeholder" and TAG_KEY in node.meta:
            users = list(node.users)
            if all(user.target is linear and node in user.args[1:] for user in users):
                node.meta.pop(TAG_KEY)
