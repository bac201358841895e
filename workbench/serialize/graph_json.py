"""The JSON in which torch.export writes graphs, in the revision that ETRecords hold.

ETRecords keep revision 5.4 with operators named as in the edge dialect of ExecuTorch; torch 2.13 writes 8.20.
The differences are few: fields that were added since, some numbers of scalar types, how symbols of shapes are
spelled, and where a debug handle stands.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._export.serde import serialize as serde
from torch._export.serde.schema import SCHEMA_VERSION
from torch.export import ExportedProgram
from torch.fx import GraphModule

from workbench.backends.programs import copy_program
from workbench.errors import SerializationError

__all__ = ["NodeInfo", "from_wire", "nodes_of", "to_wire"]

_WIRE_VERSION = {"major": 5, "minor": 4}
_EDGE_PREFIX = "executorch.exir.dialects.edge.ops."
_TORCH_PREFIX = "torch.ops."
# Namespaces with another name in the edge dialect.
_NAMESPACES = {"dim_order_ops": "workbench"}

# Fields that revision 5.4 does not have, by the field of which each kind of object is told.
_ADDED = {
    "program": ("guards_code", "torch_version"),
    "module": ("metadata", "treespec_namedtuple_fields"),
    "graph": ("sym_float_values",),
    "node": ("is_hop_single_tensor_return",),
    "argument": ("kind",),
    "signature": ("forward_arg_names",),
}
# A symbol of a shape: torch writes its assumptions too, revision 5.4 only the name.
_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)")
# Numbers of scalar types (of this JSON, not of .pte files) that differ between the revisions: new -> old.
_SCALAR_TYPES = {28: 14}


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a stored graph says about one call.

    Attributes:
        name: The node's name.
        op: The operator as `namespace.name.overload`.
        debug_handle: Its debug handle, or None.
        stack_trace: The user's lines that made it, or None.
        module_stack: From a key per module to `(path, class)`, outermost first.
    """

    name: str
    op: str
    debug_handle: int | None
    stack_trace: str | None
    module_stack: dict[str, tuple[str, str]]


# ---- writing -----------------------------------------------------------------------------------------------


def to_wire(program: ExportedProgram, *, edge: bool) -> tuple[dict[str, Any], bytes, bytes, bytes]:
    """Serialize a program.

    Args:
        program: The program.
        edge: Name its operators as the edge dialect does, and write debug handles.

    Returns:
        The graph as JSON, and the bytes of state dict, constants and example inputs.
    """
    artifact = serde.serialize(_with_literals(program))
    document: dict[str, Any] = json.loads(artifact.exported_program)
    for expression in _walk(document, lambda item: "expr_str" in item):
        expression["expr_str"] = _SYMBOL.sub(r"\1", expression["expr_str"])
    _drop(document, "program")
    document["schema_version"] = dict(_WIRE_VERSION)
    document["verifiers"] = ["EDGE" if edge else "TRAINING"]
    document["dialect"] = ""
    module = document["graph_module"]
    _drop(module, "module")
    for call in module.get("module_call_graph", ()):
        if call.get("signature"):
            _drop(call["signature"], "signature")
    _graph_to_wire(module["graph"], program.graph_module, edge)
    return document, artifact.state_dict, artifact.constants, artifact.example_inputs


def _with_literals(program: ExportedProgram) -> ExportedProgram:
    """The program without attributes that are tensors, which torch does not serialize.

    Such attributes are scalars that became tensors inside branches: they stand as literals in the copy.
    """
    if not any(_tensor_attributes(module) for module in _modules(program.graph_module)):
        return program
    copy = copy_program(program)
    for module in _modules(copy.graph_module):
        for node, value in _tensor_attributes(module):
            if value.numel() != 1:
                raise SerializationError(
                    "a graph holds a constant tensor as attribute, which its serialized form can't",
                    node=node.name,
                    found=f"shape {tuple(value.shape)}",
                )
            replace = functools.partial(_replaced, node, value.item())
            for user in list(node.users):
                user.args = fx.map_arg(user.args, replace)
                user.kwargs = fx.map_arg(user.kwargs, replace)
            module.graph.erase_node(node)
    return copy


def _replaced(old: fx.Node, literal: Any, argument: fx.Node) -> Any:
    return literal if argument is old else argument


def _modules(module: GraphModule) -> Iterator[GraphModule]:
    yield module
    for node in module.graph.nodes:
        inner = getattr(module, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(inner, GraphModule):
            yield from _modules(inner)


def _tensor_attributes(module: GraphModule) -> list[tuple[fx.Node, torch.Tensor]]:
    found = []
    for node in module.graph.nodes:
        value = getattr(module, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            found.append((node, value))
    return found


def _drop(item: dict[str, Any], kind: str) -> None:
    for key in _ADDED[kind]:
        item.pop(key, None)


def _graph_to_wire(graph: dict[str, Any], module: GraphModule, edge: bool) -> None:
    _drop(graph, "graph")
    for tensor in graph["tensor_values"].values():
        tensor["dtype"] = _SCALAR_TYPES.get(tensor["dtype"], tensor["dtype"])
    meta = {node.name: node.meta for node in module.graph.nodes}
    for node in graph["nodes"]:
        _drop(node, "node")
        for argument in node["inputs"]:
            _drop(argument, "argument")
        for name, inner in _inner_graphs(node):
            submodule = getattr(module, name, None)
            if isinstance(submodule, GraphModule):
                _graph_to_wire(inner, submodule, edge)
        if edge:
            node["target"] = _edge_name(node["target"])
            handle = meta.get(_name_of(node), {}).get("debug_handle")
            if handle is not None:
                node["metadata"]["debug_handle"] = str(handle)


def _edge_name(target: str) -> str:
    if not target.startswith(_TORCH_PREFIX):
        return target
    namespace, _, rest = target[len(_TORCH_PREFIX) :].partition(".")
    if namespace == "higher_order" or (namespace == "aten" and rest.startswith("sym_")):
        return target
    for wire, ours in _NAMESPACES.items():
        namespace = wire if namespace == ours else namespace
    return f"{_EDGE_PREFIX}{namespace}.{rest}"


# ---- reading -----------------------------------------------------------------------------------------------


def from_wire(
    document: dict[str, Any], state_dict: bytes, constants: bytes, example_inputs: bytes
) -> ExportedProgram:
    """Rebuild a program from a record; debug handles are put into `node.meta["debug_handle"]`.

    Raises:
        SerializationError: torch can't rebuild it.
    """
    # Operators that edge programs name are registered by the module that owns them.
    from workbench.edge import dim_order_ops  # noqa: F401

    document = json.loads(json.dumps(document))  # the record keeps its own
    document["schema_version"] = {"major": SCHEMA_VERSION[0], "minor": SCHEMA_VERSION[1]}
    document["verifiers"] = ["TRAINING"]  # takes graphs of all stages
    document.pop("dialect", None)
    handles: dict[str, int] = {}
    for graph in _graphs(document["graph_module"]["graph"]):
        for tensor in graph["tensor_values"].values():
            old = tensor["dtype"]
            tensor["dtype"] = next((new for new, was in _SCALAR_TYPES.items() if was == old), old)
        for node in graph["nodes"]:
            node["target"] = _plain_name(node["target"])
            if (handle := node["metadata"].get("debug_handle")) is not None:
                handles[_name_of(node)] = int(handle)
    artifact = serde.SerializedArtifact(
        json.dumps(document).encode(), state_dict, constants, example_inputs or _no_inputs()
    )
    try:
        program = serde.deserialize(artifact)
    except Exception as error:  # torch's deserializer raises whatever its parts raise
        raise SerializationError(
            "a program of the ETRecord can't be rebuilt",
            found=f"{type(error).__name__}: {error}",
            hint="operators outside of aten must be registered before",
        ) from error
    _put_handles(program.graph_module, handles)
    return program


def _put_handles(module: GraphModule, handles: dict[str, int]) -> None:
    for node in module.graph.nodes:
        handle = handles.get(node.name)
        if handle is None:
            # A call with several results has no name of its own in the JSON: its first result has.
            picks = (u.name for u in node.users if u.target is operator.getitem)
            handle = next((handles[name] for name in picks if name in handles), None)
        if handle is not None and node.op == "call_function":
            node.meta["debug_handle"] = handle


def _no_inputs() -> bytes:
    return bytes(serde.serialize_torch_artifact(((), {})))


def _plain_name(target: str) -> str:
    if not target.startswith(_EDGE_PREFIX):
        return target
    namespace, _, rest = target[len(_EDGE_PREFIX) :].partition(".")
    return f"{_TORCH_PREFIX}{_NAMESPACES.get(namespace, namespace)}.{rest}"


def nodes_of(document: dict[str, Any]) -> list[NodeInfo]:
    """The calls of a stored graph, branches included; needs none of the operators to be registered."""
    return [_info(node) for graph in _graphs(document["graph_module"]["graph"]) for node in graph["nodes"]]


def _info(node: dict[str, Any]) -> NodeInfo:
    metadata = node.get("metadata") or {}
    handle = metadata.get("debug_handle")
    target = node["target"]
    for prefix in (_EDGE_PREFIX, _TORCH_PREFIX):
        target = target.removeprefix(prefix)
    return NodeInfo(
        name=_name_of(node),
        op=target,
        debug_handle=None if handle is None else int(handle),
        stack_trace=metadata.get("stack_trace"),
        module_stack=_module_stack(metadata.get("nn_module_stack", "")),
    )


def _module_stack(text: str) -> dict[str, tuple[str, str]]:
    """Entries are `key,path,class`, separated by semicolons; a path may hold commas inside brackets."""
    stack: dict[str, tuple[str, str]] = {}
    for entry in filter(None, text.split(";")):
        key, _, rest = entry.partition(",")
        path, _, kind = rest.rpartition(",")
        stack[key] = (path, kind)
    return stack


def _name_of(node: dict[str, Any]) -> str:
    if node.get("name"):
        return str(node["name"])
    for output in node.get("outputs", ()):
        for value in _walk(output, lambda item: "name" in item):
            return str(value["name"])
    return ""


def _graphs(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield graph
    for node in graph["nodes"]:
        for _, inner in _inner_graphs(node):
            yield from _graphs(inner)


def _inner_graphs(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in _walk(node.get("inputs", ()), lambda found: "as_graph" in found):
        yield item["as_graph"]["name"], item["as_graph"]["graph"]


def _walk(item: Any, wanted: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """All objects inside of a JSON value that are wanted; not those inside of a wanted one."""
    if isinstance(item, dict):
        if wanted(item):
            yield item
            return
        values: Iterable[Any] = item.values()
    elif isinstance(item, list | tuple):
        values = item
    else:
        return
    for value in values:
        yield from _walk(value, wanted)
