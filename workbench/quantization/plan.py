"""What of a program is quantized, and how: the outcome of preparing, as data that goes by node names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.errors import QuantizationError

__all__ = ["Decision", "Group", "Plan", "Point", "Spec"]


@dataclass(frozen=True)
class Point:
    """One place at which a tensor is quantized.

    Attributes:
        value: Name of the node whose result it is.
        reader: Name of the node that reads it; empty where the result is quantized for all readers.
    """

    value: str
    reader: str = ""

    def __str__(self) -> str:
        return f"{self.value} -> {self.reader}" if self.reader else self.value


@dataclass(frozen=True)
class Spec:
    """How the tensors of a group are quantized.

    Attributes:
        dtype: Integer type that holds the numbers.
        quant_min: Smallest number.
        quant_max: Largest number.
        symmetric: Zero stands for zero.
        axis: Axis of the channels that have scales of their own, or None.
        group_size: Elements along a row that share a scale, or None.
        dynamic: Scales are chosen when the program runs: `"tensor"`, `"token"`, or empty.
        scale: Fixed scale, or None.
        zero_point: Fixed zero point, or None.
        observe: Makes the observer; None where nothing is observed.
        derived_from: Points whose scales this one's follow from.
        derive: Their observers -> scale and zero point.
    """

    dtype: torch.dtype
    quant_min: int
    quant_max: int
    symmetric: bool = False
    axis: int | None = None
    group_size: int | None = None
    dynamic: str = ""
    scale: float | None = None
    zero_point: int | None = None
    observe: Callable[[], Any] | None = None
    derived_from: tuple[Point, ...] = ()
    derive: Callable[[list[Any]], tuple[torch.Tensor, torch.Tensor]] | None = None

    @property
    def granularity(self) -> str:
        """How many scales there are: per tensor, channel, group or token."""
        if self.group_size is not None:
            return f"per group of {self.group_size}"
        if self.axis is not None:
            return f"per channel (axis {self.axis})"
        return "per token" if self.dynamic == "token" else "per tensor"

    @property
    def bits(self) -> int:
        """How many bits the numbers need."""
        return max(1, (self.quant_max - self.quant_min).bit_length())

    def __str__(self) -> str:
        kind = "dynamic " if self.dynamic else "fixed " if self.scale is not None else ""
        sort = "symmetric" if self.symmetric else "affine"
        return f"{kind}int{self.bits} {self.granularity}, {sort} [{self.quant_min}, {self.quant_max}]"


@dataclass(frozen=True)
class Group:
    """Tensors that share their scales.

    Attributes:
        name: The name of the first point; the key of the group's observer.
        spec: How it is quantized.
        points: The places.
        constant: All of its tensors are weights or constants.
    """

    name: str
    spec: Spec
    points: tuple[Point, ...]
    constant: bool

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the nodes whose results it holds, each once."""
        return tuple(dict.fromkeys(point.value for point in self.points))

    @property
    def observed(self) -> bool:
        """Whether values of calibration runs are needed."""
        return not self.constant and self.spec.observe is not None and not self.spec.dynamic


@dataclass(frozen=True)
class Decision:
    """What was decided for one node, and why.

    Attributes:
        node: The node's name.
        layer: Name of the main node of the pattern that it belongs to; empty where it belongs to none.
        quantized: Whether it computes on quantized values.
        how: How it is quantized, or empty.
        why: Why it stays in floats, or empty.
    """

    node: str
    layer: str = ""
    quantized: bool = False
    how: str = ""
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """All decisions about one method.

    Attributes:
        groups: Which tensors are quantized.
        decisions: By node name, what was decided, for each operator of the program.
        by: Who decided.
    """

    groups: tuple[Group, ...] = ()
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    by: str = ""

    @property
    def layers(self) -> dict[str, tuple[str, ...]]:
        """By the name of its main node, the nodes of each quantized layer."""
        found: dict[str, list[str]] = {}
        for decision in self.decisions.values():
            if decision.quantized:
                found.setdefault(decision.layer or decision.node, []).append(decision.node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def points(self) -> Iterator[tuple[Point, Group]]:
        """All places with their groups."""
        for group in self.groups:
            for point in group.points:
                yield point, group

    def without(self, layers: Iterable[str]) -> Plan:
        """The plan in which these layers stay in floats; nothing else changes.

        Raises:
            QuantizationError: There is no such quantized layer.
        """
        known = self.layers
        left = set(layers)
        if unknown := sorted(left - set(known)):
            raise QuantizationError(
                f"there is no quantized layer '{unknown[0]}'", expected=", ".join(known), stage="convert"
            )
        nodes = {node for layer in left for node in known[layer]}
        groups = []
        for group in self.groups:
            points = tuple(point for point in group.points if (point.reader or point.value) not in nodes)
            if points:
                groups.append(dataclasses.replace(group, points=points))
        decisions = {
            name: dataclasses.replace(item, quantized=False, how="", why="kept in floats by request")
            if name in nodes
            else item
            for name, item in self.decisions.items()
        }
        return Plan(tuple(groups), decisions, self.by)

    def only(self, layers: Iterable[str]) -> Plan:
        """The plan in which nothing but these layers is quantized; raises as `without`."""
        wanted = set(layers)
        if unknown := sorted(wanted - set(self.layers)):
            raise QuantizationError(
                f"there is no quantized layer '{unknown[0]}'",
                expected=", ".join(self.layers),
                stage="convert",
            )
        return self.without(set(self.layers) - wanted)

    def renamed(self, names: Mapping[str, str]) -> Plan:
        """The plan for a program in which some values have other names."""

        def point(old: Point) -> Point:
            return Point(names.get(old.value, old.value), old.reader)

        groups = []
        for group in self.groups:
            spec = dataclasses.replace(group.spec, derived_from=tuple(map(point, group.spec.derived_from)))
            points = tuple(map(point, group.points))
            groups.append(Group(str(points[0]), spec, points, group.constant))
        return Plan(tuple(groups), self.decisions, self.by)
