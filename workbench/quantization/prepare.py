"""From an exported program and a quantizer to a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from workbench import provenance
from workbench.backends.programs import copy_program
from workbench.edge.program import constant_tensor, graph_modules, remove_inputs
from workbench.errors import QuantizationError
from workbench.passes.constant_folding import ConstantFolding
from workbench.quantization import pt2e
from workbench.quantization.edits import LayerEdit, with_edits
from workbench.quantization.equalize import equalize
from workbench.quantization.fold_batch_norm import fold_batch_norms
from workbench.quantization.functional import make_functional
from workbench.quantization.groups import annotation_of, groups_of
from workbench.quantization.lifting import lift, unlift
from workbench.quantization.patterns import LAYERS
from workbench.quantization.patterns.base import is_operator
from workbench.quantization.plan import Decision, Group, Plan
from workbench.quantization.programs import PreparedProgram

__all__ = ["prepare"]


def prepare(
    program: ExportedProgram,
    quantizer: Any,
    *,
    edits: Iterable[LayerEdit] = (),
    equalized: bool = False,
) -> PreparedProgram:
    """Decide what of a program is quantized.

    Args:
        program: As `torch.export` made it, in evaluation mode. Not changed.
        quantizer: A quantizer of PT2E: ours, ExecuTorch's, or anybody's.
        edits: Decisions by hand about single layers, over those of the quantizer.
        equalized: Even out the ranges of channels between layers before (`equalize`).

    Raises:
        QuantizationError: The quantizer's annotations contradict themselves, or an edit can't be honoured.
    """
    if not isinstance(quantizer, pt2e.Quantizer):
        raise QuantizationError(
            "that is no quantizer",
            stage="prepare",
            expected="an object of a subclass of torchao.quantization.pt2e.quantizer.Quantizer",
            found=f"{type(quantizer).__module__}.{type(quantizer).__qualname__}",
        )
    own = copy_program(program)
    sources = provenance.assign(own)
    make_functional(own)
    norms = fold_batch_norms(own)
    own = _with_constant_weights(own)
    if equalized:
        equalize(own)
    module = unlift(own)
    chosen = with_edits(quantizer, module, edits)
    module = _called(chosen, "transform_for_annotation", module)
    _called(chosen, "annotate", module)
    _called(chosen, "validate", module)
    plan = _plan(module, chosen)
    for node in module.graph.nodes:
        node.meta.pop(pt2e.ANNOTATION_KEY, None)
    made = lift(module, own)
    provenance.attach(made, sources)
    return PreparedProgram(made, plan, tuple(norms), program)


def _called(quantizer: Any, name: str, module: GraphModule) -> GraphModule:
    try:
        found = getattr(quantizer, name)(module)
    except QuantizationError as error:
        error.stage = error.stage or "prepare"
        raise
    except Exception as error:
        raise QuantizationError(
            f"{type(quantizer).__name__}.{name} failed: {type(error).__name__}: {error}", stage="prepare"
        ) from error
    return found if isinstance(found, GraphModule) else module


def _with_constant_weights(program: ExportedProgram) -> ExportedProgram:
    """Compute weights that depend on parameters alone, such as those with a weight norm."""
    computed = any(
        node.target in LAYERS and len(node.args) > 1 and node.args[1].op == "call_function"
        for node in program.graph.nodes
        if node.op == "call_function"
    )
    if computed:
        ConstantFolding(layouts=True, limit=1 << 30).run(program)
        unused = [node for node in program.graph.nodes if node.op == "placeholder" and not node.users]
        remove_inputs(program, [node for node in unused if constant_tensor(program, node) is not None])
    return program


def _plan(module: GraphModule, quantizer: Any) -> Plan:
    groups = groups_of(module)
    _check_groups(groups, module)
    decisions: dict[str, Decision] = {}
    theirs = getattr(quantizer, "decisions", {})
    name = type(quantizer).__name__
    for node in filter(is_operator, module.graph.nodes):
        known = theirs.get(node.name)
        if known is None:
            known = _decision(node, name)
        decisions[node.name] = known
    for inner in list(graph_modules(module))[1:]:
        for node in filter(is_operator, inner.graph.nodes):
            why = "it stands in a branch of control flow, which is computed in floats"
            decisions.setdefault(node.name, Decision(node.name, why=why))
    return Plan(groups, decisions, name)


def _decision(node: Any, quantizer: str) -> Decision:
    annotation = annotation_of(node)
    given = [spec for spec in annotation.input_qspec_map.values() if spec] if annotation else []
    if annotation is None or not (given or annotation.output_qspec):
        return Decision(node.name, why=f"{quantizer} left it without an annotation")
    parts = [f"{len(given)} inputs"] if given else []
    if annotation.output_qspec is not None:
        parts.append("result")
    return Decision(node.name, node.name, True, f"{' and '.join(parts)}, by {quantizer}")


def _check_groups(groups: tuple[Group, ...], module: GraphModule) -> None:
    nodes = {node.name: node for node in module.graph.nodes}
    for group in groups:
        for point in group.points:
            value = nodes[point.value].meta.get("val")
            axis = group.spec.axis
            if isinstance(value, torch.Tensor) and axis is not None and axis >= value.dim():
                raise QuantizationError(
                    f"{point} shall be quantized along an axis that it does not have",
                    stage="prepare",
                    node=point.value,
                    expected=f"an axis below {value.dim()}",
                    found=str(axis),
                )
