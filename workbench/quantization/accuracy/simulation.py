"""A quantized program, run with any of its layers in floats, and run again only where that changes something.

The numbers are those of the program that `convert` writes: its own quantize and dequantize nodes are
evaluated, switched on and off layer by layer. A run with other layers switched starts from the values of an
earlier run: what does not depend on the change, or comes out the same, is not computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from workbench.edge.program import input_specs, lifted_tensor
from workbench.quantization.convert import convert
from workbench.quantization.data import flat_sample
from workbench.quantization.plan import Plan, Point
from workbench.quantization.programs import CalibratedProgram

__all__ = ["Quantizing", "Read", "Simulation", "Step", "Values"]

_QUANTIZE, _DEQUANTIZE = "quantize_per", "dequantize_per"


class Quantizing:
    """One quantization and dequantization, as it stands in the converted graph.

    Attributes:
        key: Equal for those that write the same integers.
        limits: Smallest and largest float that is not clipped; None where scales are chosen at run time, or
            there are several.
    """

    def __init__(self, nodes: list[Node], source: Node | None, constants: Mapping[str, Any]) -> None:
        self._nodes, self._source, self._constants = nodes, source, constants
        self.key = nodes[-2].name if source is not None else nodes[-1].name
        self.limits = _limits(nodes[-2]) if source is not None else None
        self._fixed: Any = None

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The value after rounding; for a weight, the weight that the integers stand for."""
        if self._source is None:
            if self._fixed is None:
                self._fixed = self._evaluated({})
            return self._fixed  # type: ignore[no-any-return]
        return self._evaluated({self._source: value})  # type: ignore[no-any-return]

    def _evaluated(self, known: dict[Node, Any]) -> Any:
        def value(node: Node) -> Any:
            return known[node] if node in known else self._constants[node.name]

        for node in self._nodes:
            args, kwargs = map_arg((node.args, node.kwargs), value)
            known[node] = node.target(*args, **kwargs)  # type: ignore[operator]
        return known[self._nodes[-1]]


@dataclass(frozen=True)
class Read:
    """How a node reads a value.

    Attributes:
        value: Name of the value's node.
        producer: What the value's own layer does to it, for all readers.
        reader: What the reader's layer does to it.
        shared: Both are the same.
    """

    value: str
    producer: Quantizing | None = None
    reader: Quantizing | None = None
    shared: bool = False


@dataclass(frozen=True)
class Step:
    """One node of the program.

    Attributes:
        node: The node of the float program.
        reads: By node of an argument, how it is read.
        layer: The quantized layer that it belongs to, or empty.
    """

    node: Node
    reads: Mapping[Node, Read]
    layer: str

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass
class Values:
    """The values of one run.

    Attributes:
        layers: The layers that were quantized; None where nothing at all was.
        raw: By node its result, before it is rounded for its readers.
        rounded: By value and quantization the result of that.
        base: The run that this one started from.
        steps: How many nodes were computed.
    """

    layers: frozenset[str] | None
    raw: dict[str, Any] = field(default_factory=dict)
    rounded: dict[tuple[str, ...], Any] = field(default_factory=dict)
    base: Values | None = None
    steps: int = 0

    def __getitem__(self, name: str) -> Any:
        """The result of a node."""
        return self.raw[name] if name in self.raw or self.base is None else self.base[name]


class Simulation:
    """The runs of one calibrated program.

    Args:
        calibrated: What `calibrate` returned.

    Attributes:
        steps: The nodes in order.
        results: By node, what its own layer does to its result.
        layers: By layer its nodes, as of `Plan.layers`.
    """

    def __init__(self, calibrated: CalibratedProgram) -> None:
        self.program: ExportedProgram = calibrated.program
        self.plan: Plan = calibrated.plan
        self.layers = dict(calibrated.plan.layers)
        self._layer_of = {node: layer for layer, nodes in self.layers.items() for node in nodes}
        converted = convert(calibrated)
        self._constants = _constants(converted)
        self._weights = _constants(self.program)
        self._points = dict(self.plan.points())
        self._made: dict[str, Quantizing] = {}
        self._calls = Interpreter(self.program.graph_module, garbage_collect_values=False)
        self.steps = self._steps(converted.graph_module)
        self.results = {
            read.value: read.producer
            for step in self.steps
            for read in step.reads.values()
            if read.producer is not None
        }

    # ---- reading the converted graph -----------------------------------------------------------------------

    def _steps(self, converted: GraphModule) -> list[Step]:
        theirs = {node.name: node for node in converted.graph.nodes}
        current: dict[Node, Node] = {}  # what was overwritten -> the node that did it
        steps = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                continue
            twin = theirs[node.name]
            reads = {}
            for own, other in zip(_nodes_in(node), _nodes_in(twin), strict=True):
                read = self._read(own, node, other)
                if read.producer is None and read.reader is None:
                    read = Read(current.get(own, own).name)
                reads[own] = read
            steps.append(Step(node, reads, self._layer_of.get(node.name, "")))
            for written in _written(node):
                current[written] = node
        return steps

    def _read(self, value: Node, reader: Node, found: Node) -> Read:
        chain: list[Quantizing] = []
        at: Node | None = found
        while at is not None and _kind(at) == _DEQUANTIZE:
            made, at = self._quantizing(at)
            chain.insert(0, made)
        if not chain:
            return Read(value.name)
        own = self._points.get(Point(value.name))
        asked = self._points.get(Point(value.name, reader.name))
        if len(chain) > 1:
            return Read(value.name, chain[0], chain[-1])
        if own is None:
            return Read(value.name, None, chain[0])
        return Read(value.name, chain[0], None, asked is own)

    def _quantizing(self, end: Node) -> tuple[Quantizing, Node | None]:
        """The quantization that ends at a dequantize node, and the node that it reads; None for a weight."""
        integers: Any = end.args[0]
        source: Any = None
        nodes = [end]
        if _kind(integers) == _QUANTIZE:
            source = integers.args[0]
            nodes = [*_chosen(integers, source), integers, end]
        key = (integers if source is not None else end).name
        if key not in self._made:
            self._made[key] = Quantizing(nodes, source, self._constants)
        return self._made[key], source

    # ---- running -------------------------------------------------------------------------------------------

    def run(self, sample: Any, layers: Collection[str] | None, number: int = 1) -> Values:
        """Run one sample.

        Args:
            sample: As of `calibrate`.
            layers: The layers that are quantized; None for floats everywhere.
            number: The sample's number, for messages.
        """
        values = Values(None if layers is None else frozenset(layers))
        given = iter(flat_sample(self.program, sample, number))
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                values.raw[node.name] = (
                    self._weights[node.name] if node.name in self._weights else next(given)
                )
        with torch.no_grad():
            for step in self.steps:
                values.raw[step.name] = self._computed(step, values)
                values.steps += 1
        return values

    def rerun(
        self, base: Values, layers: Collection[str] | None, *, within: Collection[str] | None = None
    ) -> Values:
        """Run the sample of another run with other layers quantized.

        Args:
            base: The run to start from.
            layers: The layers that are quantized; None for floats everywhere.
            within: Names of the only nodes that are computed; the others keep the values of `base`.
        """
        values = Values(None if layers is None else frozenset(layers), base=base)
        with torch.no_grad():
            for step in self.steps:
                if within is not None and step.name not in within:
                    continue
                if not any(self._differs(read, step, values, base) for read in step.reads.values()):
                    continue
                result = self._computed(step, values)
                values.steps += 1
                if not _equal(result, base[step.name]):
                    values.raw[step.name] = result
        return values

    def seen(self, values: Values, name: str) -> Any:
        """The result of a node as its readers get it: rounded, if its layer does that."""
        quantizing = self.results.get(name)
        if quantizing is None or not self._active(name, values):
            return values[name]
        return self._rounded(name, (quantizing,), values)

    def outputs(self, values: Values) -> list[torch.Tensor]:
        """The floating-point results of the program for the user."""
        step = self.steps[-1]
        names = {
            spec.arg.name
            for spec in self.program.graph_signature.output_specs
            if spec.kind.name == "USER_OUTPUT"
        }
        found = [self._value(read, step, values) for read in step.reads.values() if read.value in names]
        return [item for item in found if isinstance(item, torch.Tensor) and item.is_floating_point()]

    def weight_bytes(self, nodes: Iterable[str]) -> int:
        """Bytes of the parameters and constants, in floats, that some nodes read."""
        wanted = set(nodes)
        names = {
            read.value
            for step in self.steps
            if step.name in wanted
            for read in step.reads.values()
            if read.value in self._weights
        }
        return sum(self._weights[name].numel() * self._weights[name].element_size() for name in names)

    def _computed(self, step: Step, values: Values) -> Any:
        node = step.node
        if node.op == "get_attr":
            return self._calls.fetch_attr(str(node.target))

        def value(source: Node) -> Any:
            found = self._value(step.reads[source], step, values)
            return found.clone() if source in written and isinstance(found, torch.Tensor) else found

        written = set(_written(node))
        args, kwargs = map_arg((node.args, node.kwargs), value)
        if node.op == "output":
            return None
        return getattr(self._calls, node.op)(node.target, args, kwargs)

    def _value(self, read: Read, step: Step, values: Values) -> Any:
        applied = self._applied(read, step, values)
        return self._rounded(read.value, applied, values) if applied else values[read.value]

    def _applied(self, read: Read, step: Step, values: Values) -> tuple[Quantizing, ...]:
        """What is done to a value on the way to a reader, given which layers are quantized."""
        own = read.producer is not None and self._active(read.value, values)
        asked = (read.reader is not None or read.shared) and self._active(step.name, values)
        found = [read.producer] if own else []
        if asked and not (own and read.shared):
            found.append(read.producer if read.shared else read.reader)
        return tuple(item for item in found if item is not None)

    def _active(self, node: str, values: Values) -> bool:
        if values.layers is None:
            return False
        layer = self._layer_of.get(node)
        return layer is None or layer in values.layers

    def _rounded(self, name: str, applied: tuple[Quantizing, ...], values: Values) -> Any:
        key = (name, *(item.key for item in applied))
        holder = values
        while name not in holder.raw and holder.base is not None:
            holder = holder.base  # the value is that of the run before, and so is what becomes of it
        if key not in holder.rounded:
            value = holder[name]
            for item in applied:
                value = item(value)
            holder.rounded[key] = value
        return holder.rounded[key]

    def _differs(self, read: Read, step: Step, values: Values, base: Values) -> bool:
        return read.value in values.raw or self._applied(read, step, values) != self._applied(
            read, step, base
        )


def _nodes_in(node: Node) -> list[Node]:
    found = pytree.tree_leaves((node.args, dict(node.kwargs)))
    return [item for item in found if isinstance(item, Node)]


def _kind(node: Any) -> str:
    target = getattr(node, "target", None)
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "quantized_decomposed":
        return ""
    name = str(target.overloadpacket).partition(".")[2]
    return next((kind for kind in (_DEQUANTIZE, _QUANTIZE) if name.startswith(kind)), "")


def _chosen(integers: Node, source: Any) -> list[Node]:
    """The nodes that choose the scales of a quantize node at run time, in order."""
    found: list[Node] = []

    def collect(node: Any) -> None:
        if not isinstance(node, Node) or node is source or node in found or node.op != "call_function":
            return
        for item in node.args:
            collect(item)
        found.append(node)

    for item in integers.args[1:]:
        collect(item)
    return found


def _limits(node: Node) -> tuple[float, float] | None:
    if str(node.target) != "quantized_decomposed.quantize_per_tensor.default":
        return None
    scale, zero, low, high = (node.args[index] for index in range(1, 5))
    assert isinstance(scale, float) and isinstance(zero, int)
    assert isinstance(low, int) and isinstance(high, int)
    return (low - zero - 0.5) * scale, (high - zero + 0.5) * scale


def _written(node: Node) -> Iterable[Node]:
    """The nodes whose values an operator overwrites."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return ()
    arguments = node.target._schema.arguments
    return [
        value
        for known, value in zip(arguments, node.args, strict=False)
        if known.alias_info is not None and known.alias_info.is_write and isinstance(value, Node)
    ]


def _constants(program: ExportedProgram) -> dict[str, Any]:
    """The values of a program's parameters, buffers and constants, by placeholder."""
    specs = input_specs(program)
    found = {}
    for name, spec in specs.items():
        tensor = lifted_tensor(program, spec)
        if tensor is not None:
            found[name] = tensor.detach()
    return found


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool(torch.equal(one, other))
    if isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other):
        return all(_equal(left, right) for left, right in zip(one, other, strict=True))
    return bool(one is other)
