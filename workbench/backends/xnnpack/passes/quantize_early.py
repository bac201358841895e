"""A quantization behind what only moves elements goes before it, so that it meets the operator above.

Where an operator's result is reshaped before it is quantized, the operator itself can compute on integers.
"""

from __future__ import annotations

import torch

from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.passes.dequantize_late import is_quantization

__all__ = ["run"]

_MOVES = ("StaticReshape", "StaticTranspose")


def run(graph: Graph) -> int:
    """Move in one walk; gives how many conversions moved."""
    readers = graph.readers()
    count = 0
    for call in graph.calls:
        while is_quantization(call):
            moves = call.given[0].producer
            if (
                moves is None
                or moves.kind not in _MOVES
                or graph.only_reader(moves.output, readers) is not call
            ):
                break
            _exchange(moves, call)
            readers[moves.output] = [call]
            count += 1
            call = moves
    return count


def _exchange(moves: Call, converts: Call) -> None:
    """Let the first of two calls in a row convert, and the second move; the order of calls stays."""
    (numbers,) = moves.given
    result = converts.output
    integers = Value(
        numbers.shape, torch.int8, None, numbers.free, quantization=result.quantization, producer=moves
    )
    moves.kind, converts.kind = converts.kind, moves.kind
    moves.fields, converts.fields = converts.fields, moves.fields
    moves.origins, converts.origins = converts.origins, moves.origins
    moves.output = integers
    converts.inputs = [integers]
