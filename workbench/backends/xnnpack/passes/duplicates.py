"""Two calls that compute the same are one: of transposes above all, where several readers asked for one."""

from __future__ import annotations

from typing import Any

from workbench.backends.xnnpack.graph import Graph, Value

__all__ = ["run"]


def run(graph: Graph) -> int:
    """Merge in one walk; gives how many calls went."""
    first: dict[Any, Value] = {}
    now: dict[Value, Value] = {}
    kept = []
    results = set(graph.outputs)
    for call in graph.calls:
        call.inputs = [None if value is None else now.get(value, value) for value in call.inputs]
        fields = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(call.fields.items()))
        result = call.output
        key = (
            call.kind,
            tuple(map(id, call.inputs)),
            fields,
            call.bounds,
            result.shape,
            result.dtype,
            result.quantization,
        )
        # What the delegate gives out keeps a call of its own.
        if key in first and call.output not in results:
            known = first[key].producer
            assert known is not None
            known.absorb(call)
            now[call.output] = first[key]
        else:
            first.setdefault(key, call.output)
            kept.append(call)
    merged = len(graph.calls) - len(kept)
    graph.calls = kept
    return merged
