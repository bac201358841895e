"""What became of each node, and what each observer saw, as tables."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.quantization.observers.base import ObserverReport
from workbench.quantization.plan import Plan

__all__ = ["node_report", "observer_report", "report_of", "with_backend"]

_NODE_COLUMNS = ("node", "target", "module", "source", "state", "how", "why", "layer", "scale", "zero_point")


def node_report(
    program: ExportedProgram, plan: Plan, observers: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """A row for each operator.

    Columns: node, target, module, source, state (`"quantized"` or `"float"`), how, why, layer, scale and
    zero_point of the result (where there is one for all), handles.
    """
    results = {point.value: group for point, group in plan.points() if not point.reader}
    rows = []
    for node in provenance.nodes_of(program.graph_module):
        if node.op != "call_function":
            continue
        decision = plan.decisions.get(node.name)
        if decision is None:
            continue
        scale, zero = _single(results.get(node.name), observers)
        state = "quantized" if decision.quantized else "float"
        path = provenance.module_path(node)[0]
        where = provenance.source_line(node)
        row = (node.name, str(node.target), path, where, state, decision.how, decision.why, decision.layer)
        rows.append((*row, scale, zero, tuple(sorted(provenance.handles(node)))))
    return pd.DataFrame(rows, columns=[*_NODE_COLUMNS, "handles"])


def _single(group: Any, observers: Mapping[str, Any] | None) -> tuple[float | None, int | None]:
    if group is None:
        return None, None
    if group.spec.scale is not None:
        return group.spec.scale, group.spec.zero_point
    observer = (observers or {}).get(group.name)
    if observer is None or group.spec.dynamic:
        return None, None
    scale, zero = observer.calculate_qparams()
    return (float(scale), int(zero)) if scale.numel() == 1 else (None, None)


def observer_report(program: ExportedProgram, plan: Plan, observers: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each group of tensors that share their scales; see `ObserverReport` for the columns.

    Beside them: spec, values (names of the tensors), readers, constant, handles.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    rows = []
    for group in plan.groups:
        found = report_of(group, observers.get(group.name))
        if found is None:
            continue
        row = {name: getattr(found, name) for name in found.__dataclass_fields__}
        known = [nodes[value] for value in group.values if value in nodes]
        marks = frozenset[int]().union(*(provenance.handles(node) for node in known))
        row.update(
            spec=str(group.spec),
            values=group.values,
            readers=tuple(point.reader for point in group.points if point.reader),
            constant=group.constant,
            handles=tuple(sorted(marks)),
        )
        rows.append(row)
    columns = [*ObserverReport.__dataclass_fields__, "spec", "values", "readers", "constant", "handles"]
    return pd.DataFrame(rows, columns=columns)


def report_of(group: Any, observer: Any) -> ObserverReport | None:
    """The report of one group; None where nothing is observed (fixed or dynamic scales)."""
    if observer is None or group.spec.dynamic:
        return None
    if hasattr(observer, "report"):
        found: ObserverReport = observer.report()
        return found
    scale, zero = (item.detach().reshape(-1).numpy() for item in observer.calculate_qparams())
    spec = group.spec
    low, high = (_extreme(observer, name, pick) for name, pick in (("min_val", "min"), ("max_val", "max")))
    histogram = getattr(observer, "histogram", None)
    counts = edges = None
    if isinstance(histogram, torch.Tensor) and histogram.numel():
        counts = histogram.detach().numpy()
        edges = np.linspace(low, high, len(counts) + 1)
    return ObserverReport(
        group.name,
        type(observer).__name__,
        0,
        0,
        low,
        high,
        float((scale * (spec.quant_min - zero)).min()),
        float((scale * (spec.quant_max - zero)).max()),
        scale,
        zero,
        float("nan"),
        counts,
        edges,
        axis=spec.axis,
    )


def _extreme(observer: Any, name: str, pick: str) -> float:
    found = getattr(observer, name, None)
    if not isinstance(found, torch.Tensor) or not found.numel():
        return float("nan")
    return float(getattr(found, pick)())


def with_backend(report: pd.DataFrame, program: ExportedProgram, reasons: Iterable[Any] = ()) -> pd.DataFrame:
    """The node report with what the backends made of each quantized node.

    Args:
        report: What `node_report` gave.
        program: The partitioned program: nodes that a backend takes have a delegation tag.
        reasons: What the partitioners say about the nodes that they left (`Partitioned.reasons`), and
            backends about nodes that they compute on floats (`workbench.backends.unfused`).

    Returns:
        The report with the columns fused (True, False, or None for float nodes) and backend_why. Nodes that
        are quantized, but that no backend computes on integers, have the state `"quantized, not fused"`.
    """
    by_handle: dict[int, list[Node]] = {}
    for node in provenance.nodes_of(program.graph_module):
        if node.op == "call_function" and not _rounds(node) and node.target is not operator.getitem:
            for handle in provenance.handles(node):
                by_handle.setdefault(handle, []).append(node)
    said: dict[str, str] = {}
    for reason in reasons:
        more = f"; eligible if {reason.eligible_if}" if reason.eligible_if else ""
        said[reason.node] = f"{reason.reason}{more}" + (f" ({reason.by})" if reason.by else "")
    asked = bool(said) or any("delegation_tag" in n.meta for nodes in by_handle.values() for n in nodes)
    fused: list[bool | None] = []
    why: list[str] = []
    for state, handles in zip(report["state"], report["handles"], strict=True):
        nodes = list(dict.fromkeys(node for handle in handles for node in by_handle.get(handle, ())))
        text = "" if state == "float" else _not_fused(nodes, said, asked)
        fused.append(None if state == "float" else not text)
        why.append(text)
    made = report.assign(fused=pd.Series(fused, dtype=object, index=report.index), backend_why=why)
    lost = [state == "quantized" and not ok for state, ok in zip(made["state"], fused, strict=True)]
    made.loc[lost, "state"] = "quantized, not fused"
    return made


def _not_fused(nodes: list[Node], said: Mapping[str, str], asked: bool) -> str:
    """Why no backend computes these nodes on integers; empty where one does."""
    if not asked:
        return "no partitioner was asked"
    for node in nodes:
        tag = node.meta.get("delegation_tag")
        if tag is None:
            around = [near for near in (*node.all_input_nodes, *node.users) if near.name in said]
            found = said.get(node.name) or next((said[near.name] for near in around), "")
            return found or f"`{node.name}` stands in no partition"
        if node.name in said:
            return said[node.name]
        for source in node.all_input_nodes:
            if _rounds(source) and source.meta.get("delegation_tag") != tag:
                return f"the backend takes `{node.name}` in floats: `{source.name}` stands outside"
    return ""


def _rounds(node: Node) -> bool:
    return str(node.target).startswith("quantized_decomposed.")
