"""A blob of the CPU backend, for people to look at."""

from __future__ import annotations

from typing import Any

from workbench.backends.blob import Blob, BlobStep, BlobValue, Section
from workbench.backends.cpu.blob import VERSION, read
from workbench.backends.cpu.graph import (
    INPUT,
    NO_VALUE,
    Fn,
    Graph,
    Node,
    Op,
    Quantization,
    QuantizationKind,
    Value,
    ValueKind,
)
from workbench.errors import PartitionError, SerializationError

__all__ = ["read_blob"]

_ROLES = {
    ValueKind.INPUT: "input",
    ValueKind.OUTPUT: "output",
    ValueKind.CONSTANT: "constant",
    ValueKind.TEMPORARY: "temporary",
}


def read_blob(data: memoryview) -> Blob | None:
    """What is in a blob; None for a blob of another backend.

    Raises:
        SerializationError: It is damaged.
    """
    if bytes(data[4:8]) != b"WC01":
        return None
    try:
        graph = read(data)
        return Blob(
            "CPU engine graph",
            {
                "identifier": "WC01",
                "version": f"{VERSION} at most",
                "arguments": f"{graph.inputs} in, {graph.outputs} out",
                "values": str(len(graph.values)),
                "nodes": str(len(graph.nodes)),
            },
            (Section("flatbuffer", 0, len(data)),),
            tuple(_step(node, graph) for node in graph.nodes),
            tuple(_value(index, value) for index, value in enumerate(graph.values)),
        )
    except PartitionError as error:
        raise SerializationError(str(error)) from error
    except (IndexError, KeyError, ValueError) as error:
        raise SerializationError(
            "a blob of CpuBackend is damaged", found=f"{type(error).__name__}: {error}"
        ) from error


def _step(node: Node, graph: Graph) -> BlobStep:
    for index in (*node.inputs, *node.outputs):
        if index != NO_VALUE and index >= len(graph.values):
            raise SerializationError(
                "a node of a CpuBackend blob names a value that is not there",
                expected=f"below {len(graph.values)}",
                found=str(index),
            )
    name = "+".join(Fn(step.fn).name for step in node.steps) if node.steps else Op(node.op).name
    details = [f"{key}={_text(value)}" for key, value in node.given.items()]
    details += [_formula(position, step) for position, step in enumerate(node.steps, 1)]
    return BlobStep(name, _names(node.inputs), _names(node.outputs), ", ".join(details), node.source)


def _names(indices: tuple[int, ...]) -> tuple[str, ...]:
    return tuple("none" if index == NO_VALUE else f"v{index}" for index in indices)


def _formula(position: int, step: Any) -> str:
    arity = 3 if step.fn == Fn.Where else 2 if step.fn >= Fn.Add else 1
    operands = [f"in{i - INPUT}" if i >= INPUT else f"r{i}" for i in step.operands[:arity]]
    numbers = [f"{number:g}" for number in (step.a, step.b)] if step.a or step.b else []
    return f"r{position} = {Fn(step.fn).name}({', '.join([*operands, *numbers])})"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _scales(q: Quantization | None) -> str:
    if q is None:
        return ""
    zero = f", zero point {q.zero_point}" if q.zero_point else ""
    bits = f", {q.bits} bits" if q.bits != 8 else ""
    kinds = {
        QuantizationKind.PER_TENSOR: f"scale {q.scale:g}",
        QuantizationKind.PER_CHANNEL: f"scales along dimension {q.axis}",
        QuantizationKind.PER_GROUP: f"scales by {q.group}",
        QuantizationKind.PER_ROW: "scales by row",
    }
    return f" {kinds.get(QuantizationKind(q.kind), '')}{zero}{bits}"


def _value(index: int, value: Value) -> BlobValue:
    sizes = ", ".join(
        f"<={size}" if value.dynamic >> d & 1 else str(size) for d, size in enumerate(value.sizes)
    )
    text = f"{str(value.dtype).removeprefix('torch.')} [{sizes}]{_scales(value.quantization)}"
    return BlobValue(f"v{index}", _ROLES[ValueKind(value.kind)], text, value.key or "")
