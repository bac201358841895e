"""Reshapes are merged, moved behind elementwise calls to where they meet, and dropped where they do nothing.

A convolution over one dimension is one over two between reshapes; what is between two of them, an activation
or a residual sum, is done in the shape of the convolution, so that a chain has a reshape at each end only.
"""

from __future__ import annotations

from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.kinds import KINDS, Layout
from workbench.backends.xnnpack.quantization import PerRow

__all__ = ["run"]

_RESHAPE = "StaticReshape"


def run(graph: Graph) -> int:
    """Sink, merge, drop; gives how many reshapes went."""
    before = graph.count(_RESHAPE)
    _sink(graph)
    _merge(graph)
    _drop(graph)
    graph.remove_unread()
    return before - graph.count(_RESHAPE)


def _sink(graph: Graph) -> None:
    """Move reshapes (N, C, 1, L) to (N, C, L) behind the elementwise calls that read them."""
    readers = graph.readers()
    results = set(graph.outputs)
    calls: list[Call] = []
    for call in graph.calls:
        calls.append(call)
        if not _elementwise(call) or call.output.rank != 3 or call.output in results:
            continue
        given = [value for value in call.given if value.data is None]
        sources = [_source(value, readers, results) for value in given]
        shapes = {None if source is None else source.shape for source in sources}
        if len(shapes) != 1 or None in shapes or any(v.shape != call.output.shape for v in given):
            continue
        (shape,) = shapes
        assert shape is not None
        axis = 2
        inputs: list[Value | None] = []
        for value in call.given:
            if value.data is None:
                source = _source(value, readers, results)
                assert source is not None
                inputs.append(source)
            else:
                inputs.append(_with_axis(value, axis))
        first = next(value for value in inputs if value is not None and value.data is None)
        old = call.output
        call.inputs = inputs
        call.output = Value(shape, old.dtype, None, first.free, call, old.quantization)
        moved = Call(
            _RESHAPE,
            [call.output],
            old,
            {"num_dims": 3, "new_shape": [0 if i in old.free else n for i, n in enumerate(old.shape)]},
            None,
            call.origins,
        )
        calls.append(moved)
        readers[call.output] = [moved]
    graph.calls = calls


def _elementwise(call: Call) -> bool:
    kind = KINDS[call.kind]
    if isinstance(call.output.quantization, PerRow):
        return False  # What a row is depends on the shape.
    return kind.layout is Layout.ANY and not kind.axes and not kind.by_axis and call.kind != "Copy"


def _source(value: Value, readers: dict[Value, list[Call]], results: set[Value]) -> Value | None:
    """What a reshape (N, C, 1, L) to (N, C, L) reads, if nobody else reads the reshaped value."""
    producer = value.producer
    if producer is None or producer.kind != _RESHAPE or value in results or len(readers[value]) > 1:
        return None
    (source,) = producer.given
    short = (*source.shape[:2], *source.shape[3:])
    return source if source.rank == 4 and source.shape[2] == 1 and short == value.shape else None


def _with_axis(value: Value, axis: int) -> Value:
    """A constant that broadcasts to 3 dimensions, to do so to 4."""
    assert value.data is not None
    if value.rank <= 3 - axis:
        return value
    place = value.rank - (3 - axis)
    data = value.data.unsqueeze(place)
    return Value(data.shape, value.dtype, data, quantization=value.quantization)


def _merge(graph: Graph) -> None:
    """Let a reshape read what the reshape before it read."""
    for call in graph.calls:
        while call.kind == _RESHAPE and (before := call.given[0].producer) is not None:
            if before.kind != _RESHAPE:
                break
            call.inputs = list(before.inputs)
            call.absorb(before)


def _drop(graph: Graph) -> None:
    """Take out reshapes to the same sizes."""
    readers = graph.readers()
    gone = set()
    for call in graph.calls:
        (value,) = call.given if call.kind == _RESHAPE else (None,)
        if value is None or value.shape != call.output.shape:
            continue
        if call.output in graph.outputs:
            producer = value.producer
            if producer is None or value in graph.outputs or len(readers.get(value, ())) > 1:
                continue
            producer.output = call.output
            call.output.producer = producer
            producer.absorb(call)
        else:
            graph.replace(call.output, value, readers)
        gone.add(call)
    graph.calls = [call for call in graph.calls if call not in gone]
