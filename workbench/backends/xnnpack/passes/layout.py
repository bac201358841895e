"""Which values are NHWC in memory: chosen for the whole graph at once, with the fewest transposes.

Convolutions, poolings and resizes read and write NHWC. Matrix products, reshapes, inputs and outputs have
PyTorch's order. Everything else works in either, and the choice is a cut: each call that may choose is a
vertex, calls that may not are the source (PyTorch's order) or the sink (NHWC), and a value that some call
needs in the other order than it was computed in costs one transpose, however many calls need it. The cheapest
cut has the fewest transposes, and of those with as few the one that moves the fewest bytes.

A transpose of the model between the two orders costs nothing where both its sides agree with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.kinds import KINDS, Layout
from workbench.backends.xnnpack.mincut import Network
from workbench.backends.xnnpack.passes.transposes import is_trivial
from workbench.backends.xnnpack.quantization import PerRow

__all__ = ["TO_NCHW", "TO_NHWC", "run"]

TO_NHWC = [0, 2, 3, 1]
TO_NCHW = [0, 3, 1, 2]
_TRANSPOSE = "StaticTranspose"
_IMAGE = 3  # dimensions of an image


def run(graph: Graph) -> int:
    """Choose, and rewrite the graph in the order of memory; gives how many transposes there are then."""
    if any(KINDS[call.kind].layout is Layout.CHANNELS_LAST for call in graph.calls):
        _Rewriter(graph, _choose(graph)).run()
    return graph.count(_TRANSPOSE)


def _order(call: Call) -> list[int]:
    order: list[int] = call.fields["perm"] if call.kind == _TRANSPOSE else []
    return order


def _may_choose(call: Call) -> bool:
    if KINDS[call.kind].layout is not Layout.ANY or call.output.rank != 4:
        return False
    rows = call.output.quantization
    if isinstance(rows, PerRow) and rows.dims < _IMAGE:
        return False  # The last dimension has to stay the last one.
    return all(value.rank == 4 or value.data is not None or value.numel == 1 for value in call.given)


def _choose(graph: Graph) -> set[Call]:
    """The calls whose result is NHWC; of a model's transpose to NHWC, that it reads NHWC."""
    network = Network()
    vertices: dict[Call, int] = {}
    # Where each call stands as a reader, and as the writer of its result.
    reads: dict[Call, int] = {}
    writes: dict[Call, int] = {}
    unit = 1 + sum(_bytes(call.output) for call in graph.calls) + sum(map(_bytes, graph.inputs))
    for call in graph.calls:
        reads[call] = writes[call] = network.SOURCE
        if KINDS[call.kind].layout is Layout.CHANNELS_LAST:
            reads[call] = writes[call] = network.SINK
        elif isinstance(call.output.quantization, PerRow) and call.output.quantization.dims == _IMAGE:
            # What a convolution reads; the library does not transpose such integers.
            reads[call] = writes[call] = vertices[call] = network.SINK
        elif _may_choose(call):
            reads[call] = writes[call] = vertices[call] = network.vertex()
        elif _order(call) == TO_NCHW:
            writes[call] = vertices[call] = network.vertex()
            network.arc(vertices[call], network.SINK, _cost(call.output, unit))
        elif _order(call) == TO_NHWC:
            reads[call] = vertices[call] = network.vertex()
            network.arc(vertices[call], network.SINK, _cost(call.given[0], unit))
    readers = graph.readers()
    outputs = set(graph.outputs)
    for value in (*graph.inputs, *(call.output for call in graph.calls)):
        if value.rank != 4:
            continue
        writer = network.SOURCE if value.producer is None else writes[value.producer]
        asking = {reads[call] for call in readers.get(value, ())}
        if value in outputs:
            asking.add(network.SOURCE)
        _connect(network, writer, asking - {writer}, _cost(value, unit))
    nhwc = network.sink_side()
    return {call for call, vertex in vertices.items() if vertex in nhwc}


def _cost(value: Value, unit: int) -> int:
    """One transpose; next to nothing where it only moves sizes of 1."""
    return 1 if is_trivial(value, TO_NHWC) else unit + _bytes(value)


def _bytes(value: Value) -> int:
    return value.numel * value.dtype.itemsize


def _connect(network: Network, writer: int, asking: Iterable[int], cost: int) -> None:
    """A value costs a transpose once if any reader stands on the other side than its writer."""
    asking = list(asking)
    if len(asking) == 1:
        network.arc(writer, asking[0], cost)
        network.arc(asking[0], writer, cost)
    elif asking:
        some_nhwc, some_nchw = network.vertex(), network.vertex()
        network.arc(writer, some_nhwc, cost)
        network.arc(some_nchw, writer, cost)
        for reader in asking:
            network.arc(some_nhwc, reader, network.UNLIMITED)
            network.arc(reader, some_nchw, network.UNLIMITED)


class _Rewriter:
    """Writes the graph again, with each value in the orders that its readers need."""

    def __init__(self, graph: Graph, nhwc: set[Call]) -> None:
        self._graph = graph
        self._nhwc = nhwc
        self._calls: list[Call] = []
        # For each value what holds it in PyTorch's order, and in NHWC.
        self._held: dict[tuple[Value, bool], Value] = {(value, False): value for value in graph.inputs}

    def run(self) -> None:
        for call in self._graph.calls:
            order = _order(call)
            if call in self._nhwc and order == TO_NCHW:
                self._held[call.output, True] = self._get(call.given[0], False, call)
            elif call in self._nhwc and order == TO_NHWC:
                self._held[call.output, False] = self._get(call.given[0], True, call)
            else:
                self._rewrite(call)
        self._graph.outputs = [self._get(value, False, value.producer) for value in self._graph.outputs]
        self._graph.calls = self._calls

    def _rewrite(self, call: Call) -> None:
        kind = KINDS[call.kind]
        nhwc = kind.layout is Layout.CHANNELS_LAST or call in self._nhwc
        if kind.layout is Layout.CHANNELS_LAST:
            # Filters and biases are in the library's order already.
            call.inputs = [self._get(call.given[0], True, call), *call.inputs[1:]]
        else:
            call.inputs = [None if v is None else self._get(v, nhwc, call) for v in call.inputs]
        if nhwc:
            logical = call.output
            call.output = logical.permuted(TO_NHWC)
            call.output.producer = call
            self._held[logical, True] = call.output
            for name in kind.axes:
                call.fields[name] = TO_NHWC.index(call.fields[name])
            for name in kind.by_axis:
                call.fields[name] = [call.fields[name][axis] for axis in TO_NHWC]
        else:
            self._held[call.output, False] = call.output
        self._calls.append(call)

    def _get(self, value: Value, nhwc: bool, reader: Call | None) -> Value:
        """The value in one of the orders; adds a transpose where it is not there yet."""
        if value.data is not None or value.rank != 4:
            return self._constant(value) if nhwc else value
        if (value, nhwc) not in self._held:
            source = self._held[value, not nhwc]
            order = TO_NHWC if nhwc else TO_NCHW
            made = source.permuted(order)
            origins = (
                value.producer.origins if value.producer is not None else reader.origins if reader else ()
            )
            fields = {"num_dims": 4, "perm": list(order)}
            self._calls.append(Call(_TRANSPOSE, [source], made, fields, None, origins))
            self._held[value, nhwc] = made
        return self._held[value, nhwc]

    def _constant(self, value: Value) -> Value:
        """A constant operand, or one of a single element, as it broadcasts in NHWC."""
        if value.data is None or value.numel == 1:
            return value
        if (value, True) not in self._held:
            spread = value.data.reshape([1] * (4 - value.rank) + list(value.shape)).permute(*TO_NHWC)
            made = Value(spread.shape, value.dtype, spread, quantization=value.quantization)
            self._held[value, True] = made
        return self._held[value, True]
