"""What must hold at each stage of lowering: one table per stage, one row per rule.

A rule looks at one node (or, for the signature, at the program) and describes what it finds wrong. `verify`
raises on the first violation, with the node, its source line, what was expected and found, and a hint;
`violations` lists all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.dim_order_ops import DIM_ORDER_OPS
from workbench.edge.operators import is_core, is_symbolic, needs_one_dtype
from workbench.edge.program import graph_modules, lifted_tensor
from workbench.errors import VerificationError

__all__ = ["STAGES", "Context", "Invariant", "verify", "violations"]


@dataclass
class Context:
    """What the rules of one check share.

    Attributes:
        program: The program.
        graph_module: The graph that is looked at: the program's, or a branch's.
        allowed: Operators that pass though they are not core ATen.
        dim_order: Whether dim-order operators have taken the place of `memory_format`.
        seen: The nodes before the current one.
    """

    program: ExportedProgram
    graph_module: GraphModule
    allowed: Collection[Any] = ()
    dim_order: bool = True
    seen: set[Node] = field(default_factory=set)

    @property
    def is_branch(self) -> bool:
        """Whether the graph is that of a control-flow branch."""
        return self.graph_module is not self.program.graph_module


@dataclass(frozen=True)
class Invariant:
    """One rule.

    Attributes:
        name: Short name of the rule, for tests and for documentation.
        expected: The rule in words.
        violation: What is wrong with a node, or None.
        hint: What to do about a violation.
    """

    name: str
    expected: str
    violation: Callable[[Node, Context], str | None]
    hint: str


def _undefined_input(node: Node, context: Context) -> str | None:
    for source in node.all_input_nodes:
        if source not in context.seen:
            return f"`{node.name}` reads `{source.name}`, which is not computed before it"
    return None


def _missing_value(node: Node, context: Context) -> str | None:
    if node.op == "call_function" and "val" not in node.meta and node.users:
        return "no value in the node's metadata"
    return None


def _foreign_operator(node: Node, context: Context) -> str | None:
    if node.op in ("call_module", "call_method"):
        return f"`{node.op}` of `{node.target}`"
    target = node.target
    if node.op != "call_function" or isinstance(target, (OpOverload, HigherOrderOperator)):
        return None
    return None if is_symbolic(target) else f"the function `{target}`"


def _signature(node: Node, context: Context) -> str | None:
    """Checked once, at the output node."""
    if node.op != "output" or context.is_branch:
        return None
    signature = context.program.graph_signature
    placeholders = [item.name for item in context.program.graph.nodes if item.op == "placeholder"]
    named = [spec.arg.name for spec in signature.input_specs]
    if placeholders != named:
        return f"placeholders {placeholders}, but the signature names {named}"
    results: Any = node.args[0]
    for spec, result in zip(signature.output_specs, results, strict=False):
        if (
            isinstance(result, Node)
            and not isinstance(spec.arg, ConstantArgument)
            and spec.arg.name != result.name
        ):
            return f"result `{result.name}`, but the signature names `{spec.arg.name}`"
    if len(signature.output_specs) != len(results):
        return f"{len(results)} results, but the signature has {len(signature.output_specs)}"
    return None


def _weights(node: Node, context: Context) -> str | None:
    """Checked once, at the output node: the tensors behind parameters, buffers and constants."""
    if node.op != "output" or context.is_branch:
        return None
    values = {
        item.name: item.meta.get("val") for item in context.program.graph.nodes if item.op == "placeholder"
    }
    kinds = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
    for spec in context.program.graph_signature.input_specs:
        if spec.kind not in kinds:
            continue
        tensor, fake = lifted_tensor(context.program, spec), values.get(spec.arg.name)
        if tensor is None:
            return f"`{spec.target}` has no tensor"
        if isinstance(fake, torch.Tensor) and (tensor.shape != fake.shape or tensor.dtype != fake.dtype):
            given, noted = (f"{item.dtype} {list(item.shape)}" for item in (tensor, fake))
            return f"`{spec.target}` is {given}, its node {noted}"
    return None


def _outside_core(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    if is_core(node.target) or node.target in context.allowed:
        return None
    return f"`{node.target}`"


def _view(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    return f"the view `{node.target}`" if node.target.is_view else None


def _mutation(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    return f"`{node.target}`, which writes to its argument" if node.target._schema.is_mutable else None


def _scalar_as_tensor(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return None
    for argument, given in zip(node.target._schema.arguments, node.args, strict=False):
        if isinstance(argument.type, torch.TensorType) and isinstance(given, (bool, int, float, complex)):
            return f"the number {given} as `{argument.name}`"
    return None


def _mixed_types(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or node.target in context.allowed:
        return None
    span = needs_one_dtype(node.target)
    if span is None:
        return None
    values = [item.meta.get("val") for item in node.args[span] if isinstance(item, Node)]
    types = {item.dtype for item in values if isinstance(item, torch.Tensor)}
    return f"operands of {', '.join(sorted(map(str, types)))}" if len(types) > 1 else None


def _memory_format(node: Node, context: Context) -> str | None:
    if not context.dim_order or node.op != "call_function":
        return None
    return f"`{node.target}`" if node.target in DIM_ORDER_OPS else None


def _unsupported_tensor(node: Node, context: Context) -> str | None:
    found = node.meta.get("val")
    for item in found if isinstance(found, (list, tuple)) else (found,):
        if not isinstance(item, torch.Tensor):
            continue
        if item.is_complex():
            return f"a complex tensor ({item.dtype})"
        if item.layout != torch.strided:
            return f"a tensor of layout {item.layout}"
    return None


def _branch_alias(node: Node, context: Context) -> str | None:
    if node.op != "output" or not context.is_branch:
        return None
    results: Any = node.args[0]
    seen: set[Node] = set()
    for result in results if isinstance(results, (list, tuple)) else [results]:
        if not isinstance(result, Node) or not isinstance(result.meta.get("val"), torch.Tensor):
            continue
        if result.op != "call_function":
            return f"the branch returns its {result.op} `{result.name}`"
        if result in seen:
            return f"the branch returns `{result.name}` twice"
        seen.add(result)
    return None


def _not_lowered(node: Node, context: Context) -> str | None:
    if node.op != "call_function" or str(node.target) != "executorch_call_delegate":
        return None
    callee: Any = node.args[0]
    name = getattr(callee, "target", None)
    module = getattr(context.graph_module, str(name), None)
    if getattr(callee, "op", None) != "get_attr" or not hasattr(module, "backend_id"):
        return f"a call of `{name}`, which is no lowered module"
    return None


_FORM = (
    Invariant(
        "order", "each node reads nodes before it", _undefined_input, "a pass broke the order of the graph"
    ),
    Invariant(
        "values",
        "each operator's node carries its fake value in meta['val']",
        _missing_value,
        "a pass made a node without computing its value; see workbench.edge.fake.compute",
    ),
    Invariant(
        "targets",
        "only operators, control flow and symbol arithmetic",
        _foreign_operator,
        "functions of Python and modules cannot be lowered; express them with operators",
    ),
    Invariant(
        "signature",
        "the signature names the graph's inputs and results in order",
        _signature,
        "a pass changed inputs or results without the signature; see workbench.edge.program",
    ),
    Invariant(
        "weights",
        "each parameter, buffer and constant has a tensor of its node's sizes and type",
        _weights,
        "a pass replaced a weight without its node, or the other way round",
    ),
)
_EDGE = (
    Invariant(
        "tensors",
        "dense, real tensors",
        _unsupported_tensor,
        "complex and sparse tensors have no kernels; split them into real, dense ones",
    ),
    Invariant(
        "views",
        "no view operators",
        _view,
        "run workbench.passes.views_to_copies on the graph that a pass has added views to",
    ),
    Invariant("mutation", "no operator writes to its arguments", _mutation, "use the functional operator"),
    Invariant(
        "core",
        "operators of core ATen, or custom operators",
        _outside_core,
        "give it a decomposition, or let it pass with EdgeCompileConfig(_core_aten_ops_exception_list=[...]) "
        "if the target has a kernel for it",
    ),
    Invariant(
        "scalars",
        "tensors where the schema says tensor",
        _scalar_as_tensor,
        "run workbench.passes.scalars_to_tensors",
    ),
    Invariant("types", "operands of one type", _mixed_types, "run workbench.passes.promote_types"),
    Invariant(
        "dim_order",
        "dim-order operators in place of memory formats",
        _memory_format,
        "run workbench.passes.dim_order, or set EdgeCompileConfig(_skip_dim_order=True)",
    ),
    Invariant(
        "branches",
        "results of a branch are distinct values computed in it",
        _branch_alias,
        "run workbench.passes.branch_outputs",
    ),
)
_LOWERED = (
    Invariant(
        "delegates",
        "each delegate call names a lowered module of the graph",
        _not_lowered,
        "use workbench.backends.to_backend to make delegate calls",
    ),
)

STAGES: dict[str, tuple[Invariant, ...]] = {
    "exported": _FORM,
    "edge": (*_FORM, *_EDGE),
    "lowered": (*_FORM, *_EDGE, *_LOWERED),
}
"""The rules of each stage up to the memory plan, whose own check stands in `workbench.memory`."""


def violations(
    program: ExportedProgram, stage: str, *, allowed: Collection[Any] = (), dim_order: bool = True
) -> Iterator[VerificationError]:
    """All violations of a stage's rules, in the order of the nodes.

    Args:
        program: The program.
        stage: A key of `STAGES`.
        allowed: Operators that pass though they are not core ATen.
        dim_order: Whether dim-order operators are expected.
    """
    rules = STAGES[stage]
    for graph_module in graph_modules(program.graph_module):
        context = Context(program, graph_module, allowed, dim_order)
        for node in graph_module.graph.nodes:
            for rule in rules:
                found = rule.violation(node, context)
                if found is not None:
                    yield VerificationError(
                        f"the {stage} graph breaks the rule `{rule.name}`",
                        stage=stage,
                        node=node.name,
                        source=provenance.source_line(node),
                        expected=rule.expected,
                        found=found,
                        hint=rule.hint,
                    )
            context.seen.add(node)


def verify(
    program: ExportedProgram, stage: str, *, allowed: Collection[Any] = (), dim_order: bool = True
) -> None:
    """Check a program against the rules of its stage.

    Raises:
        VerificationError: The first violation.
    """
    for error in violations(program, stage, allowed=allowed, dim_order=dim_order):
        raise error
