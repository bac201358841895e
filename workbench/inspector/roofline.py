"""Arithmetic and memory traffic of each node, counted from shapes, and what they allow at most.

The roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model",
CACM 52(4), 2009. A multiplication and an addition are two operations; an elementary function of one element
is one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch.fx import Node as FxNode

from workbench.inspector.names import OVERHEAD_EVENT

if TYPE_CHECKING:
    from workbench.inspector.inspector import Inspector
    from workbench.inspector.symbols import Node

__all__ = ["Read", "Work", "group_work", "reads_of", "roofline_table", "shapes_of", "users_of", "work_of"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What a node does at least.

    Attributes:
        flops: Arithmetic operations.
        bytes_read: Bytes of all inputs, weights included, each read once.
        bytes_written: Bytes of all results.
    """

    flops: int
    bytes_read: int
    bytes_written: int

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 where nothing is moved."""
        return self.flops / self.bytes_moved if self.bytes_moved else 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


# ---- shapes ------------------------------------------------------------------------------------------------


def _size(value: Any) -> int:
    """A dimension as a number: of a symbol the example's size, or its upper bound."""
    if isinstance(value, int):
        return value
    node = getattr(value, "node", None)
    hint = getattr(node, "hint", None)
    if hint is not None:
        return int(hint)
    bounds = (
        node.shape_env.bound_sympy(node.expr) if node is not None and node.shape_env is not None else None
    )
    upper = getattr(bounds, "upper", None)
    return int(upper) if upper is not None and upper.is_finite else 1


def _shape(tensor: torch.Tensor) -> Shape:
    return tuple(_size(size) for size in tensor.shape)


def _numel(tensor: torch.Tensor) -> int:
    return math.prod(_shape(tensor))


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, FxNode):
        return _tensors(value.meta.get("val"))
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _nbytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(_numel(tensor) * tensor.dtype.itemsize for tensor in tensors)


def shapes_of(node: FxNode) -> str:
    """Dtypes and shapes of a node's results, for example `f32[1, 64, 25, 5]`."""
    return ", ".join(
        f"{_short(tensor.dtype)}[{', '.join(str(size) for size in tensor.shape)}]"
        for tensor in _tensors(node.meta.get("val"))
    )


def _short(dtype: torch.dtype) -> str:
    if dtype is torch.bfloat16:
        return "bf16"
    if dtype is torch.bool:
        return "bool"
    kind = "f" if dtype.is_floating_point else "c" if dtype.is_complex else "i" if dtype.is_signed else "u"
    return f"{kind}{dtype.itemsize * 8}"


# ---- counting ----------------------------------------------------------------------------------------------

_Counter = Callable[[FxNode, list[torch.Tensor], list[torch.Tensor]], int]


def _per_output(operations: int) -> _Counter:
    return lambda node, inputs, outputs: operations * sum(_numel(tensor) for tensor in outputs)


def _per_input(operations: int) -> _Counter:
    return lambda node, inputs, outputs: operations * (_numel(inputs[0]) if inputs else 0)


def _product(first: int, second: int, extra: int = 0) -> _Counter:
    """A matrix product of the inputs at these places; `extra` operations for each element of the result."""

    def count(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
        inner = _shape(inputs[first])[-1]
        return (2 * inner + extra) * _numel(outputs[0])

    return count


def _linear(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    return (2 * _shape(inputs[0])[-1] + (len(inputs) > 2)) * _numel(outputs[0])


def _convolution(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    weight = _shape(inputs[1])
    # `conv2d` has the number of groups at the place where `convolution` says whether it is transposed.
    transposed = len(node.args) > 6 and node.args[6] is True
    # Each weight of an output channel meets each element of it (of the input, if transposed) once.
    places = _numel(inputs[0]) if transposed else _numel(outputs[0])
    operations = 2 * places * math.prod(weight[1:])
    bias = node.args[2] if len(node.args) > 2 else None
    return operations + (_numel(outputs[0]) if bias is not None else 0)


def _pooling(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    kernel = node.args[1] if len(node.args) > 1 else 1
    sizes: Sequence[Any] = kernel if isinstance(kernel, list | tuple) else [kernel, kernel]
    area = math.prod(_size(size) for size in sizes) if len(sizes) > 1 else _size(sizes[0]) ** 2
    return area * _numel(outputs[0])


def _attention(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    query, key, value = (_shape(tensor) for tensor in inputs[:3])
    scores = math.prod(query[:-1]) * key[-2]
    return scores * (2 * query[-1] + 2 * value[-1] + 5)


def _recurrent(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    """Two products a step for each weight matrix, and what the gates do to each of their elements."""
    sequence = _shape(inputs[0])
    steps = math.prod(sequence[:-1]) if len(sequence) > 1 else 1
    matrices = [tensor for tensor in inputs[1:] if tensor.dim() == 2]
    return steps * sum(2 * _numel(tensor) + 6 * _shape(tensor)[0] for tensor in matrices)


def _nothing(node: FxNode, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    return 0


_MOVES = (
    "_reshape_copy _to_copy _to_dim_order_copy _clone_dim_order _empty_dim_order alias_copy arange "
    "as_strided_copy cat clone constant_pad_nd copy detach_copy diagonal_copy embedding empty "
    "expand_copy fill flip full full_like gather index index_put index_select lift_fresh_copy "
    "masked_fill ones permute_copy pixel_shuffle repeat roll scalar_tensor scatter select_copy "
    "select_scatter slice_copy slice_scatter split_copy split_with_sizes_copy squeeze_copy stack "
    "t_copy topk transpose_copy unbind_copy unsqueeze_copy view_copy where zeros zeros_like"
)
_REDUCTIONS = "amax amin any all argmax argmin cumsum max mean min prod sum"

_COUNTERS: dict[str, _Counter] = {
    # `view_copy` and the like also under the name that they have before functionalization.
    **{name.removesuffix("_copy"): _nothing for name in _MOVES.split()},
    **dict.fromkeys(_REDUCTIONS.split(), _per_input(1)),
    "convolution": _convolution,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "mm": _product(0, 1),
    "bmm": _product(0, 1),
    "matmul": _product(0, 1),
    "linear": _linear,
    "addmm": _product(1, 2, extra=1),
    "baddbmm": _product(1, 2, extra=1),
    "scaled_dot_product_attention": _attention,
    "lstm": _recurrent,
    "gru": _recurrent,
    "layer_norm": _per_input(8),
    "rms_norm": _per_input(4),
    "group_norm": _per_input(8),
    "_softmax": _per_output(5),
    "_log_softmax": _per_output(5),
    "native_layer_norm": _per_input(8),
    "native_group_norm": _per_input(8),
    "_native_batch_norm_legit_no_training": _per_input(4),
    "avg_pool2d": _pooling,
    "max_pool2d_with_indices": _pooling,
    "_adaptive_avg_pool2d": _per_input(1),
    "var": _per_input(4),
    "upsample_bilinear2d": _per_output(11),
    "quantize_per_tensor": _per_output(4),
    "quantize_per_channel": _per_output(4),
    "dequantize_per_tensor": _per_output(2),
    "dequantize_per_channel": _per_output(2),
}


def work_of(node: FxNode) -> Work | None:
    """The work of a node; None where it can't be told from shapes (control flow, delegates, symbols).

    Args:
        node: A call with `meta["val"]`, as have its inputs.
    """
    schema = getattr(node.target, "_schema", None)
    outputs = _tensors(node.meta.get("val"))
    if schema is None or not outputs:
        return None
    inputs = [tensor for argument in (*node.args, *node.kwargs.values()) for tensor in _tensors(argument)]
    counter = _COUNTERS.get(_operator(node), _per_output(1))
    try:
        flops = counter(node, inputs, outputs)
    except (IndexError, TypeError):
        return None
    return Work(flops, sum(read.bytes for read in reads_of(node)), _nbytes(outputs))


@dataclass(frozen=True, slots=True)
class Read:
    """A tensor that a node reads.

    Attributes:
        producer: Name of the node that makes it.
        tensor: Name of the tensor: of the producer, or of the node that picks one of its results.
        bytes: How many of its bytes are read at least.
    """

    producer: str
    tensor: str
    bytes: int


# Of the first input (of `gather` and the like also only) as much is read as comes out.
_PARTIAL = frozenset(
    (
        *("diagonal", "embedding", "gather", "index", "index_select", "narrow", "select", "slice", "split"),
        *("split_with_sizes", "unbind"),
    )
)


def reads_of(node: FxNode) -> list[Read]:
    """The tensors that a node reads, each once."""
    found: dict[str, Read] = {}
    partial = _operator(node) in _PARTIAL
    written = _nbytes(_tensors(node.meta.get("val")))
    for place, source in enumerate(node.all_input_nodes):
        nbytes = _nbytes(_tensors(source.meta.get("val")))
        if not nbytes:
            continue
        if partial and place == 0:
            nbytes = min(nbytes, written)
        found[source.name] = Read(_producer(source).name, source.name, nbytes)
    return list(found.values())


def users_of(node: FxNode) -> list[str]:
    """Names of the nodes that read a node's results, looking through the picks of single results."""
    names: dict[str, None] = {}
    for user in node.users:
        for name in users_of(user) if user.target is operator.getitem else [user.name]:
            names[name] = None
    return list(names)


def _producer(node: FxNode) -> FxNode:
    while node.target is operator.getitem and isinstance(node.args[0], FxNode):
        node = node.args[0]
    return node


def _operator(node: FxNode) -> str:
    schema = getattr(node.target, "_schema", None)
    return "" if schema is None else str(schema.name).split("::")[-1].removesuffix("_copy")


def group_work(nodes: Sequence[Node]) -> Work | None:
    """What nodes do at least that run as one (a delegate, a fused kernel).

    Arithmetic adds up; of the bytes only those count that enter the group or leave it, each tensor once.

    Args:
        nodes: Nodes of one graph.

    Returns:
        The work; None where that of no node is known.
    """
    works = [node.work for node in nodes if node.work is not None]
    if len(nodes) == 1 or not works:
        return works[0] if works else None
    inside = {node.name for node in nodes}
    read = {item.tensor: item.bytes for node in nodes for item in node.reads if item.producer not in inside}
    written = sum(
        node.work.bytes_written
        for node in nodes
        if node.work is not None and not (node.users and inside.issuperset(node.users))
    )
    return Work(sum(work.flops for work in works), sum(read.values()), written)


def roofline_table(inspector: Inspector, peak_gflops: float, peak_gbytes: float) -> pd.DataFrame:
    """How far each event is from what the machine allows.

    Args:
        inspector: A profile joined with its program.
        peak_gflops: The machine's arithmetic limit, in 1e9 operations a second.
        peak_gbytes: Its memory's, in 1e9 bytes a second.

    Returns:
        A row for each event with known work: operations, bytes, operations per byte, reached and attainable
        rate, their ratio, and which limit binds.
    """
    rows = []
    for block in inspector.event_blocks:
        for event in block.events:
            work = group_work(event.nodes)
            if work is None or event.perf_data is None or event.name == OVERHEAD_EVENT:
                continue
            seconds = inspector.seconds(event.perf_data.p50)
            attainable = min(peak_gflops, work.intensity * peak_gbytes)
            reached = work.flops / seconds / 1e9 if seconds > 0 else math.nan
            bytes_rate = work.bytes_moved / seconds / 1e9 if seconds > 0 else math.nan
            compute = work.intensity * peak_gbytes >= peak_gflops
            rows.append(
                {
                    "event_block_name": block.name,
                    "event_name": event.name,
                    "instruction": event.instruction,
                    "op_types": event.op_types,
                    "members": [node.name for node in event.nodes],
                    "flops": work.flops,
                    "bytes": work.bytes_moved,
                    "intensity": work.intensity,
                    "gflops": reached,
                    "gbytes": bytes_rate,
                    "attainable_gflops": attainable,
                    "of_limit": reached / attainable if compute else bytes_rate / peak_gbytes,
                    "bound": "compute" if compute else "memory",
                }
            )
    return pd.DataFrame(rows)
