"""What became of each operator, and what observers saw, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from torch.export import ExportedProgram

from workbench import provenance
from workbench.errors import RecipeError, WorkbenchError
from workbench.stages import Stage
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.quantization.choices import FLOAT, choice_of, configs, describe, edits_of
from workbench_widgets.quantization.contract import (
    QuantizationChoice,
    QuantizationDocument,
    QuantizationObservers,
    QuantizationStep,
)
from workbench_widgets.quantization.history import History
from workbench_widgets.quantization.pooled import channels_of, histogram_of
from workbench_widgets.replay import as_python

__all__ = ["operators_of", "part_of", "quantization_document"]

_NAN = float("nan")


def part_of(context: Context, method: str) -> Any:
    """The quantization of a method: a calibrated program, or one that is only prepared.

    Raises:
        WorkbenchError: There is no such method, or nothing quantized.
    """
    parts: Mapping[str, Any] = context.stage("quantized").parts  # type: ignore[attr-defined]
    if method not in parts:
        raise WorkbenchError("there is no such method", expected=", ".join(parts), found=method)
    return parts[method]


# By stage and method what does not change: the report of the operators, and the observers.
_known: WeakKeyDictionary[Stage, dict[str, tuple[Any, QuantizationObservers]]] = WeakKeyDictionary()


def _facts(context: Context, method: str) -> tuple[Any, QuantizationObservers]:
    known = _known.setdefault(context.stage("quantized"), {})
    if method not in known:
        part = part_of(context, method)
        nodes = {node.name: node for node in part.program.graph.nodes}
        known[method] = part.report, _observers(part, nodes)
    return known[method]


def operators_of(context: Context, method: str) -> list[str]:
    """Names of the operators, in the rows of the document; errors as of `part_of`."""
    part_of(context, method)
    return list(_facts(context, method)[0]["node"])


def quantization_document(context: Context, key: str) -> QuantizationDocument:
    """The quantization of a method.

    Args:
        context: A lowering whose recipe has a quantizer, or one of its stages of quantization.
        key: The method's name; the first one's where it is empty.

    Raises:
        WorkbenchError: There is no such method, or nothing quantized.
    """
    method = key or context.methods[0]
    part = part_of(context, method)
    lowering = context.lowering
    known_report, observers = _facts(context, method)
    report = _with_backend(context, method, known_report)
    nodes = {node.name: node for node in part.program.graph.nodes}
    names = list(report["node"])
    layers = [layer or node for node, layer in zip(names, report["layer"], strict=True)]
    known, editable = _configs(context, method, part.program)
    choices, choice = _choices(known, layers, list(report["state"]))
    uses = _uses(part.plan, nodes, names, report["state"])
    starts, flat = csr([row for row, _ in own] for own in uses)
    handle_starts, handles = csr(report["handles"])
    history = context.state(History)
    edits = [] if lowering is None else edits_of(lowering.recipe, method)
    return QuantizationDocument(
        method=method,
        by=part.plan.by,
        stage="calibrated" if hasattr(part, "observers") else "prepared",
        samples=getattr(part, "samples", 0),
        backend=_backend(context),
        editable=lowering is not None,
        why_not=""
        if lowering is not None
        else "This stage outlived its lowering; show the lowering to edit it.",
        configurable=editable,
        node=Strings(names),
        op=Strings(report["target"]),
        module=Strings(report["module"]),
        source=Strings(source or "" for source in report["source"]),
        layer=Strings(layers),
        state=Strings(report["state"]),
        how=Strings(report["how"]),
        why=Strings(report["why"]),
        backend_why=Strings(report.get("backend_why", [""] * len(names))),
        edited=np.array([_edited(edits, layer, nodes) for layer in layers], np.uint8),
        choice=np.array(choice, np.int32),
        choices=choices,
        observer=np.array([_main(own) for own in uses], np.int32),
        use_start=starts,
        use=flat,
        role=Strings(role for own in uses for _, role in own),
        handle_start=handle_starts,
        handles=handles,
        observers=observers,
        observer_names=_observer_names(),
        history=[_step(edit, place) for place, edit in enumerate(edits)],
        undo=history.undo_title(method),
        redo=history.redo_title(method),
        python=_python(context),
    )


def _observer_names() -> list[str]:
    from workbench.quantization import OBSERVERS

    return [name for name in OBSERVERS if name not in ("weights", "dynamic")]


def _python(context: Context) -> str:
    if context.lowering is None:
        return ""
    edits = context.lowering.recipe.edits
    comments = [describe(edit) if edit.step == "prepare" else edit.step for edit in edits]
    return as_python(edits, comments)


def _step(edit: Any, place: int) -> QuantizationStep:
    return QuantizationStep(
        describe(edit), str(edit.data.get("node") or ""), str(edit.data.get("module") or ""), place
    )


def _edited(edits: Iterable[Any], layer: str, nodes: Mapping[str, Any]) -> bool:
    node = nodes.get(layer)
    for edit in edits:
        module = edit.data.get("module")
        wanted = set(edit.data.get("handles", ()))
        path = "" if node is None else provenance.module_path(node)[0]
        if edit.data.get("node") == layer or (module and (path == module or path.startswith(f"{module}."))):
            return True
        if wanted and node is not None and provenance.handles(node) & wanted:
            return True
    return False


# ---- what the backend made of it ---------------------------------------------------------------------------


def _backend(context: Context) -> str:
    if context.lowering is None:
        return ""
    return ", ".join(part.target.rpartition(":")[2] for part in context.lowering.recipe.partitioner)


def _with_backend(context: Context, method: str, report: Any) -> Any:
    """The report with what partitioners said; as it is where none was asked."""
    if context.lowering is None or not context.lowering.recipe.partitioner:
        return report
    from workbench.quantization import with_backend

    partitioned = context.lowering.partitioned
    return with_backend(report, partitioned._programs[method], partitioned.reasons[method])


# ---- choices -----------------------------------------------------------------------------------------------


def _configs(context: Context, method: str, program: ExportedProgram) -> tuple[dict[str, Any], bool]:
    """By operator its config as it is now, and whether the quantizer can be told others."""
    if context.lowering is None:
        return {}, False
    recipe = context.lowering.recipe
    try:
        found = configs(recipe, program, edits_of(recipe, method))
    except RecipeError:  # foreign edits that hold for nodes which preparing took away
        return {}, False
    return found, bool(found)


def _choices(
    known: Mapping[str, Any], layers: Sequence[str], states: Sequence[str]
) -> tuple[list[QuantizationChoice], list[int]]:
    places: dict[QuantizationChoice, int] = {}
    found = []
    for layer, state in zip(layers, states, strict=True):
        if layer not in known:
            found.append(places.setdefault(FLOAT, len(places)) if state == "float" else -1)
            continue
        found.append(places.setdefault(choice_of(known[layer]), len(places)))
    return list(places), found


# ---- observers ---------------------------------------------------------------------------------------------


def _uses(
    plan: Any, nodes: Mapping[str, Any], names: Sequence[str], states: Iterable[str]
) -> list[list[tuple[int, str]]]:
    """By operator the rows of its observers, each with what it sees: result, weights, inputs."""
    results: dict[str, int] = {}
    reads: dict[str, list[tuple[str, int]]] = {}
    constants = set()
    for row, group in enumerate(plan.groups):
        if group.constant:
            constants.add(row)
        for point in group.points:
            if point.reader:
                reads.setdefault(point.reader, []).append((point.value, row))
            else:
                results[point.value] = row
    found = []
    for name, state in zip(names, states, strict=True):
        own = [(results[name], "result")] if name in results else []
        read = list(reads.get(name, ()))
        seen = {value for value, _ in read}
        node = nodes.get(name)
        # In floats it reads what was rounded for others: nothing of that is its own.
        for source in () if node is None or state == "float" else node.all_input_nodes:
            if source.name in results and source.name not in seen:
                read.append((source.name, results[source.name]))
        read.sort(key=lambda item: item[1] not in constants)
        own += [(row, f"{'weight' if row in constants else 'input'} {value}") for value, row in read]
        found.append(own)
    return found


def _main(own: Sequence[tuple[int, str]]) -> int:
    order = ("result", "weight", "input")
    ranked = sorted(own, key=lambda item: order.index(item[1].partition(" ")[0]))
    return ranked[0][0] if ranked else -1


def _observers(part: Any, nodes: Mapping[str, Any]) -> QuantizationObservers:
    from workbench.quantization.report import report_of

    groups = part.plan.groups
    seen: Mapping[str, Any] = getattr(part, "observers", {})
    reports = [report_of(group, seen.get(group.name)) for group in groups]
    bins = [histogram_of(report) for report in reports]
    channels = [channels_of(report) for report in reports]
    scales = [list(_scales(group, report)) for group, report in zip(groups, reports, strict=True)]
    bin_starts = np.cumsum([0, *(len(item.counts) for item in bins)], dtype=np.int32)
    channel_starts = np.cumsum([0, *(len(item.low) for item in channels)], dtype=np.int32)
    marks = [_handles(group, nodes) for group in groups]
    handle_starts, handles = csr(marks)

    def numbers(name: str) -> Any:
        return np.array([_NAN if item is None else getattr(item, name) for item in reports], np.float64)

    def joined(arrays: Iterable[Any], kind: Any) -> Any:
        return np.concatenate([np.zeros(0), *arrays]).astype(kind)

    return QuantizationObservers(
        name=Strings(group.name for group in groups),
        kind=Strings(_kind(group, seen.get(group.name)) for group in groups),
        spec=Strings(str(group.spec) for group in groups),
        values=Strings(", ".join(group.values) for group in groups),
        readers=Strings(", ".join(_readers(group)) for group in groups),
        constant=np.array([group.constant for group in groups], np.uint8),
        tensors=numbers("tensors"),
        elements=numbers("elements"),
        min=numbers("min"),
        max=numbers("max"),
        low=numbers("low"),
        high=numbers("high"),
        scale=np.array([max(own, default=_NAN) for own in scales], np.float64),
        scale_min=np.array([min(own, default=_NAN) for own in scales], np.float64),
        scales=np.array([len(own) for own in scales], np.int32),
        zero_point=np.array(
            [_zero(group, item) for group, item in zip(groups, reports, strict=True)], np.int32
        ),
        quant_min=np.array([group.spec.quant_min for group in groups], np.int32),
        quant_max=np.array([group.spec.quant_max for group in groups], np.int32),
        clipped=numbers("clipped"),
        bins_start=bin_starts,
        counts=joined((item.counts for item in bins), np.float64),
        bins_low=np.array([item.low for item in bins], np.float64),
        bins_high=np.array([item.high for item in bins], np.float64),
        channel_start=channel_starts,
        channel_min=joined((item.low for item in channels), np.float32),
        channel_max=joined((item.high for item in channels), np.float32),
        channel_scale=joined((item.scale for item in channels), np.float32),
        channels=np.array([item.count for item in channels], np.int32),
        worst=np.array([item.worst for item in channels], np.int32),
        worst_why=Strings(item.why for item in channels),
        per_channel=np.array([item.own for item in channels], np.uint8),
        handle_start=handle_starts,
        handles=handles,
    )


def _kind(group: Any, observer: Any) -> str:
    if group.spec.scale is not None:
        return "fixed"
    if group.spec.dynamic:
        return "dynamic"
    if observer is None:
        return "derived" if group.spec.derived_from else "not calibrated"
    return str(getattr(observer, "kind", "") or type(observer).__name__)


def _scales(group: Any, report: Any) -> Iterator[float]:
    if report is not None:
        yield from np.asarray(report.scale, np.float64).reshape(-1).tolist()
    elif group.spec.scale is not None:
        yield group.spec.scale


def _zero(group: Any, report: Any) -> int:
    if report is not None:
        return int(np.asarray(report.zero_point).reshape(-1)[0])
    return int(group.spec.zero_point or 0)


def _readers(group: Any) -> list[str]:
    readers = [point.reader for point in group.points]
    return [] if "" in readers else list(dict.fromkeys(readers))


def _handles(group: Any, nodes: Mapping[str, Any]) -> list[int]:
    known = [nodes[value] for value in group.values if value in nodes]
    return sorted(frozenset[int]().union(*(provenance.handles(node) for node in known)))


def csr(rows: Iterable[Iterable[int]]) -> tuple[Any, Any]:
    """Lists of numbers as two columns: where each begins, and the numbers."""
    starts: list[int] = [0]
    values: list[int] = []
    for row in rows:
        values.extend(row)
        starts.append(len(values))
    return np.array(starts, np.int32), np.array(values, np.int32)
