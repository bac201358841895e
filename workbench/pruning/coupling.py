"""What of a program can be removed: its families of units, and why the rest stays.

A *family* is all units that have entries in the same dimensions of the same parameters, such as the channels
of a convolution with its batch norm, of the residual branches added to it, and of the layers that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.edge.program import input_specs, lifted_tensor, mutated_targets
from workbench.pruning.elements import Axes, Elements, Ids, Reason
from workbench.pruning.graph import Graph, Role
from workbench.pruning.rules import rule_of

__all__ = ["Coupling", "Family", "Slot", "WhyNot", "couple"]

Slot = tuple[str, int]
"""A parameter (its name in the program) and a dimension."""


@dataclass(frozen=True)
class Family:
    """Units that lie in the same dimensions of the same parameters.

    Attributes:
        layers: The layers whose results shrink, in the order of the graph.
        units: The numbers of the units.
        slots: By dimension of a parameter, the unit of each index (-1 where the index belongs to none).
        out: The slots along which results lie.
        into: The slots over which layers sum.
        scales: The slots of batch norms' factors.
        handles: Source handles of the layers' operators.
    """

    layers: tuple[str, ...]
    units: Ids
    slots: Mapping[Slot, Ids]
    out: tuple[Slot, ...]
    into: tuple[Slot, ...]
    scales: tuple[Slot, ...]
    handles: frozenset[int]

    @property
    def name(self) -> str:
        """The first layer, by which the family is called."""
        return self.layers[0]


@dataclass(frozen=True)
class WhyNot:
    """A layer whose results keep all their channels.

    Attributes:
        layer: The layer.
        node: The node that needs them all.
        reason: Why.
        handles: Source handles of the layer's operator.
    """

    layer: str
    node: str
    reason: str
    handles: frozenset[int]


@dataclass(frozen=True)
class Coupling:
    """The outcome of `couple`.

    Attributes:
        families: What can be removed, in the order of the graph.
        why_not: Layers whose results stay whole.
        units: By element the number of its unit.
        axes: By node the elements of its result.
    """

    families: tuple[Family, ...]
    why_not: tuple[WhyNot, ...]
    units: Ids
    axes: Mapping[Node, Any]

    @cached_property
    def by_layer(self) -> dict[str, Family]:
        """The families by the names of their layers."""
        return {layer: family for family in self.families for layer in family.layers}

    def kept(self, axes: Axes, dim: int, removed: Ids) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which indices of a dimension are left when units are removed."""
        return ~np.isin(self.units[axes[dim]], removed)


def couple(program: ExportedProgram) -> Coupling:
    """Find what can be removed from a program.

    Args:
        program: An exported program. It is only read, and so are its weights' sizes, not their values.
    """
    choices: dict[tuple[str, int], int] = {}
    while True:
        graph = _read(program, choices)
        units, why = graph.elements.solve()
        again = {
            key: choices.get(key, 0) + 1
            for key, candidates in graph.asked.items()
            if choices.get(key, 0) + 1 < len(candidates)
            and _all_needed(candidates[choices.get(key, 0)], units, why, graph.elements)
        }
        if not again:
            break
        choices.update(again)
    return _families(program, graph, units, why)


def _all_needed(ids: Ids, units: Ids, why: Ids, elements: Elements) -> bool:
    """Whether all units stay for reasons that no other choice of a reshape would take away."""
    found = why[units[ids]]
    return bool(len(ids)) and all(
        index >= 0 and not elements.reasons[index].chosen for index in np.unique(found)
    )


def _read(program: ExportedProgram, choices: Mapping[tuple[str, int], int]) -> Graph:
    graph = Graph(Elements(), choices=dict(choices))
    specs, written = input_specs(program), mutated_targets(program)
    for node in program.graph.nodes:
        graph.axes[node] = _axes(graph.elements, node.meta.get("val"))
        if node.op == "placeholder":
            spec = specs.get(node.name)
            if spec is None or lifted_tensor(program, spec) is None:
                graph.fix(node, "it is an input of the program", graph.of(node))
            elif spec.target in written:
                graph.fix(node, "the program writes this buffer", graph.of(node))
            else:
                graph.parameters.add(node)
        elif node.op == "output":
            for value in node.all_input_nodes:
                graph.fix(value, "it is an output of the program", graph.of(value))
        elif node.op == "call_function" and (rule := rule_of(node)) is not None:
            rule(graph, node)
        else:
            _fix_all(graph, node)
    return graph


def _fix_all(graph: Graph, node: Node) -> None:
    name = getattr(node.target, "__name__", str(node.target))
    if not graph.parameters.isdisjoint(node.all_input_nodes):
        graph.unknown.append(node)
    text = f"nothing is known about {name}"
    made = graph.axes.get(node)
    for axes in [*(graph.axes.get(value) for value in node.all_input_nodes), made]:
        for item in axes if isinstance(axes, list) else [axes]:
            if isinstance(item, Axes):
                graph.fix(node, text, item)


def _axes(elements: Elements, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return elements.new([size if isinstance(size, int) else None for size in value.shape])
    if isinstance(value, list | tuple):
        return [_axes(elements, item) for item in value]
    return None


def _families(program: ExportedProgram, graph: Graph, units: Ids, why: Ids) -> Coupling:
    specs = input_specs(program)
    slots: dict[Slot, Ids] = {}
    members: dict[int, list[Slot]] = {}
    for node in program.graph.nodes:  # in their order: a set has another one each time
        if node not in graph.parameters:
            continue
        axes = graph.of(node)
        for dim in range(len(axes or ())):
            own = units[axes[dim]]  # type: ignore[index]
            free = np.where(why[own] < 0, own, -1)
            slot = (str(specs[node.name].target), dim)
            slots[slot] = free
            for unit in np.unique(free[free >= 0]):
                members.setdefault(int(unit), []).append(slot)
    roles: dict[str, dict[Slot, Role]] = {"out": {}, "in": {}, "scale": {}}
    for role in graph.roles:
        slot = (str(specs[role.parameter.name].target), role.dim)
        roles[role.kind].setdefault(slot, role)
    grouped: dict[tuple[Slot, ...], list[int]] = {}
    for unit, found in members.items():
        grouped.setdefault(tuple(found), []).append(unit)
    order = {node: number for number, node in enumerate(program.graph.nodes)}
    made = [
        family
        for key, own in grouped.items()
        if (family := _family(key, own, slots, roles, order)) is not None
    ]
    made.sort(key=lambda item: (min(order[roles["out"][slot].node] for slot in item.out), int(item.units[0])))
    return Coupling(tuple(made), tuple(_why_not(made, graph, roles, specs, units, why)), units, graph.axes)


def _family(
    key: tuple[Slot, ...],
    own: list[int],
    slots: Mapping[Slot, Ids],
    roles: Mapping[str, Mapping[Slot, Role]],
    order: Mapping[Node, int],
) -> Family | None:
    out = tuple(sorted((s for s in key if s in roles["out"]), key=lambda s: order[roles["out"][s].node]))
    into = tuple(slot for slot in key if slot in roles["in"])
    if not out or not into or len(own) < 2:
        return None
    units = np.array(sorted(own), dtype=np.int64)
    layers = dict.fromkeys(layer_of(slot[0]) for slot in out)
    handles = (provenance.handles(roles["out"][slot].node) for slot in out)
    return Family(
        tuple(layers),
        units,
        {slot: np.where(np.isin(slots[slot], units), slots[slot], -1) for slot in key},
        out,
        into,
        tuple(slot for slot in key if slot in roles["scale"]),
        frozenset().union(*handles),
    )


def layer_of(parameter: str) -> str:
    """The layer that a parameter belongs to, by the parameter's name."""
    path, _, last = parameter.rpartition(".")
    return path if path and last in ("weight", "bias") else parameter


def _why_not(
    families: list[Family], graph: Graph, roles: Any, specs: Any, units: Ids, why: Ids
) -> list[WhyNot]:
    prunable = {slot for family in families for slot in family.out}
    found = []
    for slot, role in roles["out"].items():
        if slot in prunable:
            continue
        axes = graph.of(role.parameter)
        assert axes is not None
        reasons = why[units[axes[role.dim]]]
        known = reasons[reasons >= 0]
        reason = (
            graph.elements.reasons[int(known[0])] if len(known) else Reason(role.node.name, "nobody reads it")
        )
        found.append(WhyNot(layer_of(slot[0]), reason.node, reason.text, provenance.handles(role.node)))
    for node in graph.unknown:
        read = [value for value in node.all_input_nodes if value in graph.parameters]
        name = getattr(node.target, "__name__", str(node.target))
        layer = layer_of(str(specs[read[0].name].target))
        text = f"nothing is known about {name}"
        found.append(WhyNot(layer, node.name, text, provenance.handles(node)))
    return found
