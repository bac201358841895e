"""The choice of layouts is the best there is: against all choices, on small random graphs."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch

from workbench.backends.xnnpack.graph import Graph, Value
from workbench.backends.xnnpack.kinds import KINDS, Layout
from workbench.backends.xnnpack.mincut import Network
from workbench.backends.xnnpack.passes import layout, run_passes

SHAPE = (1, 4, 6, 8)
RESIZE = {"new_height": SHAPE[2], "new_width": SHAPE[3]}


def add(graph: Graph, kind: str, *inputs: Value, **fields: Any) -> Value:
    return graph.add(kind, list(inputs), Value(SHAPE, torch.float32), (), **fields)


def transposed(graph: Graph, value: Value, order: list[int]) -> Value:
    return graph.add("StaticTranspose", [value], value.permuted(order), (), num_dims=4, perm=order)


def random_graph(seed: int) -> Graph:
    """Calls that are NHWC, that are PyTorch's (a softmax), and that may choose, on one shape."""
    rng = random.Random(seed)
    graph = Graph()
    graph.inputs = [Value(SHAPE, torch.float32) for _ in range(rng.randint(1, 2))]
    values = list(graph.inputs)
    for _ in range(rng.randint(3, 8)):
        kind = rng.choice(["StaticResizeBilinear2D", "Softmax", "Sigmoid", "Add", "Add", "Tanh"])
        count = 2 if kind == "Add" else 1
        fields = RESIZE if kind == "StaticResizeBilinear2D" else {}
        values.append(add(graph, kind, *(rng.choice(values) for _ in range(count)), **fields))
    read = {value for call in graph.calls for value in call.given}
    graph.outputs = [value for value in values if value not in read and value.producer is not None]
    graph.remove_unread()
    return graph


def fewest(graph: Graph) -> int:
    """Transposes of the best of all choices, counted by what the readers of each value need."""
    free = [c for c in graph.calls if KINDS[c.kind].layout is Layout.ANY]
    readers = graph.readers()
    best = 1 << 30
    for choice in itertools.product((False, True), repeat=len(free)):
        nhwc = dict(zip(free, choice, strict=True))
        for call in graph.calls:
            nhwc.setdefault(call, KINDS[call.kind].layout is Layout.CHANNELS_LAST)
        count = 0
        for value in (*graph.inputs, *(call.output for call in graph.calls)):
            own = value.producer is not None and nhwc[value.producer]
            needed = {nhwc[call] for call in readers.get(value, ())}
            if value in graph.outputs:
                needed.add(False)
            count += bool(needed - {own})
        best = min(best, count)
    return best


@pytest.mark.parametrize("seed", range(150))
def test_no_choice_has_fewer_transposes(seed: int) -> None:
    graph = random_graph(seed)
    expected = fewest(graph)
    layout.run(graph)
    assert graph.count("StaticTranspose") == expected


def test_region_between_convolutions_stays_nhwc() -> None:
    graph = Graph()
    graph.inputs = [Value(SHAPE, torch.float32)]
    first = add(graph, "StaticResizeBilinear2D", graph.inputs[0], **RESIZE)
    gate = add(graph, "Sigmoid", add(graph, "Multiply", first, Value((), torch.float32, torch.tensor(2.0))))
    second = add(graph, "StaticResizeBilinear2D", add(graph, "Add", first, gate), **RESIZE)
    graph.outputs = [second]
    layout.run(graph)
    assert [call.kind for call in graph.calls].count("StaticTranspose") == 2
    assert graph.calls[0].kind == graph.calls[-1].kind == "StaticTranspose"


def test_value_wanted_in_the_other_order_by_many_is_transposed_once() -> None:
    graph = Graph()
    graph.inputs = [Value(SHAPE, torch.float32)]
    outputs = [add(graph, "StaticResizeBilinear2D", graph.inputs[0], **RESIZE) for _ in range(4)]
    total = outputs[0]
    for other in outputs[1:]:
        total = add(graph, "Add", total, other)
    graph.outputs = [total]
    layout.run(graph)
    assert graph.count("StaticTranspose") == 2


def test_transposes_of_the_model_cancel_those_of_the_layout() -> None:
    graph = Graph()
    image = Value((1, 6, 8, 4), torch.float32)
    graph.inputs = [image]
    inner = transposed(graph, image, [0, 3, 1, 2])
    resized = add(graph, "StaticResizeBilinear2D", inner, **RESIZE)
    graph.outputs = [transposed(graph, resized, [0, 2, 3, 1])]
    run_passes(graph)
    assert [call.kind for call in graph.calls] == ["StaticResizeBilinear2D"]
    assert graph.calls[0].inputs == [image]


def test_one_channel_is_reshaped_not_transposed() -> None:
    graph = Graph()
    graph.inputs = [Value((1, 1, 6, 8), torch.float32)]
    graph.outputs = [
        graph.add("StaticResizeBilinear2D", graph.inputs, Value((1, 1, 6, 8), torch.float32), (), **RESIZE)
    ]
    run_passes(graph)
    assert graph.count("StaticTranspose") == 0
    assert graph.count("StaticReshape") == 2


def test_axes_and_paddings_follow_into_nhwc() -> None:
    graph = Graph()
    graph.inputs = [Value(SHAPE, torch.float32)]
    image = add(graph, "StaticResizeBilinear2D", graph.inputs[0], **RESIZE)
    padded = graph.add(
        "StaticConstantPad",
        [image],
        Value((1, 4, 7, 10), torch.float32),
        (),
        pre_paddings=[0, 0, 1, 2],
        post_paddings=[0, 0, 0, 0],
        padding_value=0.0,
    )
    joined = graph.add("Concatenate2", [padded, padded], Value((1, 8, 7, 10), torch.float32), (), axis=1)
    graph.outputs = [
        graph.add("StaticResizeBilinear2D", [joined], Value((1, 8, 6, 8), torch.float32), (), **RESIZE)
    ]
    layout.run(graph)
    pad = next(call for call in graph.calls if call.kind == "StaticConstantPad")
    concatenation = next(call for call in graph.calls if call.kind == "Concatenate2")
    assert pad.fields["pre_paddings"] == [0, 1, 2, 0]
    assert pad.output.shape == (1, 7, 10, 4)
    assert concatenation.fields["axis"] == 3
    assert concatenation.output.shape == (1, 7, 10, 8)


@pytest.mark.parametrize("seed", range(40))
def test_cut_is_the_cheapest(seed: int) -> None:
    rng = random.Random(seed)
    network = Network()
    vertices = [network.vertex() for _ in range(rng.randint(1, 6))]
    ends = [Network.SOURCE, Network.SINK, *vertices]
    arcs = [(rng.choice(ends), rng.choice(ends), rng.randint(0, 9)) for _ in range(rng.randint(1, 18))]
    for start, end, room in arcs:
        network.arc(start, end, room)

    def cost(sink_side: set[int]) -> int:
        return sum(room for start, end, room in arcs if start not in sink_side and end in sink_side)

    choices = itertools.product((False, True), repeat=len(vertices))
    best = min(cost({Network.SINK, *itertools.compress(vertices, choice)}) for choice in choices)
    found = network.sink_side()
    assert Network.SOURCE not in found
    assert cost(found) == best
