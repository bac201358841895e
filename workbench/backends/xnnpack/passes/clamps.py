"""A clamp (relu, relu6, hardtanh) behind a call that can clamp its result becomes part of that call."""

from __future__ import annotations

from workbench.backends.xnnpack.graph import Graph
from workbench.backends.xnnpack.kinds import KINDS

__all__ = ["run"]


def run(graph: Graph) -> int:
    """Fuse in one walk; gives how many clamps went."""
    readers = graph.readers()
    results = set(graph.outputs)
    fused = set()
    for call in graph.calls:
        if call.kind != "Clamp":
            continue
        (value,) = call.given
        producer = value.producer
        if producer is None or not KINDS[producer.kind].clamps:
            continue
        if value.quantization != call.output.quantization:
            continue  # It converts between integers, too.
        if len(readers[value]) > 1 or value in results or call.bounds is None:
            continue
        producer.clamp(call.bounds)
        producer.absorb(call)
        producer.output = call.output
        call.output.producer = producer
        fused.add(call)
    graph.calls = [call for call in graph.calls if call not in fused]
    return len(fused)
