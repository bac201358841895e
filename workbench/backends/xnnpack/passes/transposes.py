"""Transposes are merged and dropped; into a batch product the one of its second operand goes as a flag.

A transpose that only moves sizes of 1 changes nothing in memory, and is a reshape.
"""

from __future__ import annotations

from workbench.backends.xnnpack.configs.linear import TRANSPOSE_B
from workbench.backends.xnnpack.graph import Call, Graph, Value

__all__ = ["is_trivial", "run"]

_TRANSPOSE = "StaticTranspose"


def run(graph: Graph) -> int:
    """Simplify in one walk; gives how many transposes went."""
    before = graph.count(_TRANSPOSE)
    readers = graph.readers()
    gone = set()
    for call in graph.calls:
        if call.kind == "BatchMatrixMultiply":
            _into_product(call)
        if call.kind != _TRANSPOSE:
            continue
        above = call.given[0].producer
        if above is not None and above.kind == _TRANSPOSE:
            first = above.fields["perm"]
            call.fields["perm"] = [first[axis] for axis in call.fields["perm"]]
            call.inputs = list(above.inputs)
            call.absorb(above)
        value = call.given[0]
        order = call.fields["perm"]
        if order == sorted(order) and _stand_in(graph, call, value, readers):
            gone.add(call)
        elif is_trivial(value, order):
            sizes = [0 if i in call.output.free else n for i, n in enumerate(call.output.shape)]
            call.kind, call.fields = "StaticReshape", {"num_dims": len(sizes), "new_shape": sizes}
    graph.calls = [call for call in graph.calls if call not in gone]
    graph.remove_unread()
    return before - graph.count(_TRANSPOSE)


def is_trivial(value: Value, order: list[int]) -> bool:
    """Whether a transpose leaves the elements where they are, and a reshape can say so."""
    if len(value.free) > 1:
        return False
    moved = [axis for axis in order if value.shape[axis] != 1 or axis in value.free]
    return moved == sorted(moved)


def _stand_in(graph: Graph, call: Call, value: Value, readers: dict[Value, list[Call]]) -> bool:
    """Let a value stand for the result of a call that does nothing; false where an output needs the call."""
    if call.output not in graph.outputs:
        graph.replace(call.output, value, readers)
        return True
    producer = value.producer
    if producer is None or value in graph.outputs:
        return False
    # The output keeps its value: its producer writes it, and all that read the old value read it.
    producer.output = call.output
    call.output.producer = producer
    producer.absorb(call)
    for reader in graph.calls:
        reader.inputs = [call.output if item is value else item for item in reader.inputs]
    return True


def _into_product(call: Call) -> None:
    second = call.given[1]
    above = second.producer
    if above is None or above.kind != _TRANSPOSE:
        return
    rank = second.rank
    if above.fields["perm"] != [*range(rank - 2), rank - 1, rank - 2]:
        return
    call.fields["flags"] = call.fields.get("flags", 0) ^ TRANSPOSE_B
    call.inputs = [call.inputs[0], *above.inputs]
    call.absorb(above)
