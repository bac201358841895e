"""From a quantizer's annotations to groups of tensors that share their scales.

The annotations are PT2E's: each node may say how its inputs (edges) and its result are quantized; a
`SharedQuantizationSpec` takes the scales of another edge or node. Edges whose spec equals that of the result
that they read join its group, as PT2E does, unless the annotation forbids it.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from workbench.errors import QuantizationError
from workbench.quantization import pt2e
from workbench.quantization.lifting import attribute
from workbench.quantization.plan import Group, Point, Spec

__all__ = ["annotation_of", "groups_of"]


def annotation_of(node: Node) -> Any:
    """The annotation of a node, or None."""
    return node.meta.get(pt2e.ANNOTATION_KEY)


def groups_of(module: GraphModule) -> tuple[Group, ...]:
    """The groups of an annotated module, in the order of its graph.

    Raises:
        QuantizationError: An annotation contradicts itself or another one.
    """
    specs = _annotated(module.graph)
    join = _Join(list(specs))
    for point, spec in specs.items():
        if isinstance(spec, pt2e.SharedQuantizationSpec):
            other = _point(spec.edge_or_node)
            if other not in specs:
                raise QuantizationError(
                    f"the annotation of {point} takes the scales of {other}, which is not annotated",
                    node=point.reader or point.value,
                    stage="prepare",
                    hint="the quantizer is at fault: annotate the other one first",
                )
            join.unite(point, other)
    for node in module.graph.nodes:
        _join_readers(node, specs, join)
    members: dict[Point, list[Point]] = {}
    for point in specs:
        members.setdefault(join.root(point), []).append(point)
    nodes = {node.name: node for node in module.graph.nodes}
    return tuple(_group(points, specs, nodes, module) for points in members.values())


def _annotated(graph: Graph) -> dict[Point, Any]:
    """All annotated places with their specs; those of tensors that are no floats are left out."""
    found: dict[Point, Any] = {}
    for node in graph.nodes:
        annotation = annotation_of(node)
        if annotation is None:
            continue
        for source, spec in annotation.input_qspec_map.items():
            if spec is not None and _is_float(source):
                found[Point(source.name, node.name)] = spec
        if annotation.output_qspec is not None and _is_float(node):
            found[Point(node.name)] = annotation.output_qspec
    return found


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return value is None or (isinstance(value, torch.Tensor) and value.dtype.is_floating_point)


def _point(edge_or_node: Any) -> Point:
    if isinstance(edge_or_node, tuple):
        source, reader = edge_or_node
        return Point(source.name, reader.name)
    return Point(edge_or_node.name)


def _join_readers(node: Node, specs: dict[Point, Any], join: _Join) -> None:
    """Edges read the numbers that their producer wrote, where both are quantized alike."""
    own = specs.get(Point(node.name))
    annotation = annotation_of(node)
    if annotation is not None and not annotation.allow_implicit_sharing:
        return
    edges = [Point(node.name, user.name) for user in node.users if Point(node.name, user.name) in specs]
    for number, edge in enumerate(edges):
        theirs = _resolved(edge, specs)
        if own is not None and _same(_resolved(Point(node.name), specs), theirs):
            join.unite(edge, Point(node.name))
            continue
        for other in edges[:number]:
            if _same(_resolved(other, specs), theirs):
                join.unite(edge, other)
                break


def _resolved(point: Point, specs: dict[Point, Any]) -> Any:
    spec = specs[point]
    seen = {point}
    while isinstance(spec, pt2e.SharedQuantizationSpec):
        point = _point(spec.edge_or_node)
        if point in seen or point not in specs:
            return spec
        seen.add(point)
        spec = specs[point]
    return spec


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    fields = ("dtype", "quant_min", "quant_max", "qscheme", "ch_axis", "is_dynamic", "scale", "zero_point")
    if type(one) is not type(other) or isinstance(one, pt2e.DerivedQuantizationSpec):
        return False
    same = all(getattr(one, name, None) == getattr(other, name, None) for name in fields)
    return same and _granularity(one) == _granularity(other)


def _granularity(spec: Any) -> Any:
    """What the observer's arguments say about how many scales there are."""
    made = getattr(getattr(spec, "observer_or_fake_quant_ctr", None), "p", None)
    given = getattr(made, "keywords", {})
    return given.get("group_size"), given.get("dynamic")


class _Join:
    """Union-find of points; the earlier one stands for both."""

    def __init__(self, points: list[Point]) -> None:
        self._parent = {point: point for point in points}
        self._order = {point: number for number, point in enumerate(points)}

    def root(self, point: Point) -> Point:
        while self._parent[point] != point:
            self._parent[point] = self._parent[self._parent[point]]
            point = self._parent[point]
        return point

    def unite(self, one: Point, other: Point) -> None:
        first, second = sorted((self.root(one), self.root(other)), key=self._order.__getitem__)
        self._parent[second] = first


def _group(
    points: list[Point], specs: dict[Point, Any], nodes: dict[str, Node], module: GraphModule
) -> Group:
    own = [specs[point] for point in points if not isinstance(specs[point], pt2e.SharedQuantizationSpec)]
    if not own:
        raise QuantizationError(
            f"the scales of {points[0]} are shared in a circle",
            node=points[0].value,
            stage="prepare",
            hint="the quantizer is at fault: one of the nodes needs a spec of its own",
        )
    # Fixed scales win: whoever shares them has no choice.
    chosen = next((spec for spec in own if isinstance(spec, pt2e.FixedQParamsQuantizationSpec)), own[0])
    constant = all(_is_constant(nodes[point.value], module) for point in points)
    return Group(str(points[0]), _spec(chosen, points[0]), tuple(points), constant)


def _is_constant(node: Node, module: GraphModule) -> bool:
    return node.op == "get_attr" and isinstance(attribute(module, str(node.target)), torch.Tensor)


def _spec(given: Any, point: Point) -> Spec:
    low, high = _range(given, point)
    symmetric = given.qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)
    axis = given.ch_axis if hasattr(given, "ch_axis") and _per_channel(given.qscheme) else None
    common: dict[str, Any] = {"dtype": _integer(given.dtype), "quant_min": low, "quant_max": high}
    common.update(symmetric=symmetric, axis=axis)
    if isinstance(given, pt2e.FixedQParamsQuantizationSpec):
        return Spec(**common, scale=float(given.scale), zero_point=int(given.zero_point))
    if isinstance(given, pt2e.DerivedQuantizationSpec):
        sources = tuple(_point(item) for item in given.derived_from)
        return Spec(**common, derived_from=sources, derive=given.derive_qparams_fn)
    if not isinstance(given, pt2e.QuantizationSpec):
        raise QuantizationError(
            f"the annotation of {point} is of a kind that is not known",
            expected="QuantizationSpec, Shared-, Derived- or FixedQParamsQuantizationSpec",
            found=type(given).__name__,
            stage="prepare",
            node=point.value,
        )
    probe = _observer(given, common)()
    dynamic = getattr(probe, "dynamic", "tensor") if given.is_dynamic else ""
    return Spec(
        **common,
        group_size=getattr(probe, "group_size", None),
        dynamic=dynamic or "",
        observe=_observer(given, common),
    )


def _observer(given: Any, common: dict[str, Any]) -> Any:
    """A function that makes the observer with what the spec says, as far as it takes that."""
    options = {
        "dtype": given.dtype,
        "quant_min": common["quant_min"],
        "quant_max": common["quant_max"],
        "qscheme": given.qscheme,
        "ch_axis": given.ch_axis,
        "is_dynamic": given.is_dynamic,
    }
    constructor = given.observer_or_fake_quant_ctr
    wanted = {name: value for name, value in options.items() if value is not None}
    target = getattr(getattr(constructor, "p", constructor), "func", constructor)
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    takes_all = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
    if not takes_all and "ch_axis" not in parameters:
        wanted.pop("ch_axis", None)
    if takes_all and given.ch_axis is None:
        wanted.pop("ch_axis", None)
    if not takes_all and "is_dynamic" not in parameters:
        wanted.pop("is_dynamic", None)
    return lambda: constructor(**wanted)


def _per_channel(qscheme: Any) -> bool:
    return qscheme in (
        torch.per_channel_symmetric,
        torch.per_channel_affine,
        torch.per_channel_affine_float_qparams,
    )


def _integer(dtype: torch.dtype) -> torch.dtype:
    names = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
    return names.get(dtype, dtype)


def _range(given: Any, point: Point) -> tuple[int, int]:
    dtype = _integer(given.dtype)
    try:
        limits = torch.iinfo(dtype)
    except TypeError as error:
        raise QuantizationError(
            f"{point} shall be quantized to {dtype}",
            expected="an integer type",
            stage="prepare",
            node=point.value,
        ) from error
    low = limits.min if given.quant_min is None else int(given.quant_min)
    high = limits.max if given.quant_max is None else int(given.quant_max)
    if not limits.min <= low < high <= limits.max:
        raise QuantizationError(
            f"the range of {point} does not fit its type",
            expected=f"{limits.min} <= quant_min < quant_max <= {limits.max} ({dtype})",
            found=f"[{low}, {high}]",
            stage="prepare",
            node=point.value,
        )
    return low, high
