"""What depends on constants alone is computed now.

Sources are parameters and buffers that are never written, constants, and operators that make tensors out of
numbers (`full`, `arange`, `scalar_tensor`). What only rearranges a trained weight (the transpose before
`addmm`) can be left for later: partitioners know layers by it. What computes on weights, like a weight norm,
is folded at once, so that they see a plain constant. `dequantize` is never folded, since that would undo the
compression of quantized weights.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.node import map_arg

from workbench import provenance
from workbench.edge.fake import fake_mode
from workbench.edge.program import add_constant, input_specs, lifted_tensor, mutated_targets
from workbench.passes.base import InPlacePass
from workbench.passes.dead_code import has_effect

__all__ = ["ConstantFolding"]

_MISSING: Any = object()
_RANDOM = torch.Tag.nondeterministic_seeded
_LAYOUTS = frozenset(
    {
        torch.ops.aten.permute_copy.default,
        torch.ops.aten.transpose_copy.int,
        torch.ops.aten.t_copy.default,
        torch.ops.aten.view_copy.default,
        torch.ops.aten.unsqueeze_copy.default,
        torch.ops.aten.squeeze_copy.default,
        torch.ops.aten.squeeze_copy.dim,
        torch.ops.aten.squeeze_copy.dims,
    }
)


class ConstantFolding(InPlacePass):
    """Replace operators on constants by their results.

    Args:
        layouts: Whether what only rearranges a parameter is folded too.
        limit: Bytes that one result may have beyond the constants that it is computed from.
        cache: Results by operation and data, shared between the methods of one program so that a weight that
            they share is folded once and stays shared.
    """

    name = "constant_folding"

    def __init__(
        self,
        *,
        layouts: bool = False,
        limit: int = 1 << 20,
        cache: MutableMapping[Any, torch.Tensor] | None = None,
    ) -> None:
        self._layouts = layouts
        self._limit = limit
        self._cache = {} if cache is None else cache

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Fold in place; only results that a node outside the folded part reads become constants."""
        values, parameters = self._sources(program)
        folded: dict[Node, Any] = {}
        for node in program.graph.nodes:
            if node.op == "call_function" and self._foldable(node, values, parameters):
                result = self._evaluate(node, values)
                if result is not _MISSING:
                    values[node] = folded[node] = result
        return {"folded": self._write(program, folded), "bytes": _size(folded.values())}

    def _foldable(self, node: Node, values: dict[Node, Any], parameters: set[Node]) -> bool:
        if not self._layouts and node.target in _LAYOUTS and node.args[0] in parameters:
            return False
        return _foldable(node, values)

    def _sources(self, program: ExportedProgram) -> tuple[dict[Node, Any], set[Node]]:
        """The values of all constant inputs, and which of them are trained parameters."""
        specs = input_specs(program)
        written = mutated_targets(program)
        values, parameters = {}, set()
        for node in program.graph.nodes:
            if node.op != "placeholder":
                break
            spec = specs[node.name]
            tensor = lifted_tensor(program, spec)
            if tensor is not None and spec.target not in written:
                values[node] = tensor.detach()
                if spec.kind == InputKind.PARAMETER:
                    parameters.add(node)
        return values, parameters

    def _evaluate(self, node: Node, values: dict[Node, Any]) -> Any:
        if not self._affordable(node, values):
            return _MISSING
        key = (node.target, *_key(node.args, values), *_key(node.kwargs, values))
        if key not in self._cache:
            args, kwargs = map_arg((node.args, node.kwargs), lambda source: values[source])
            with torch.no_grad():
                self._cache[key] = node.target(*args, **kwargs)  # type: ignore[operator]
        return self._cache[key]

    def _affordable(self, node: Node, values: dict[Node, Any]) -> bool:
        given = _size([values[source] for source in node.all_input_nodes])
        return _size([node.meta.get("val")]) <= given + self._limit

    def _write(self, program: ExportedProgram, folded: dict[Node, Any]) -> int:
        mode = fake_mode(program.graph_module)
        count = 0
        origins: dict[Node, frozenset[int]] = {}
        for node, result in folded.items():
            # A folded value comes from all that it was computed from, the weights included.
            inputs = (origins.get(source) or provenance.handles(source) for source in node.all_input_nodes)
            origins[node] = provenance.handles(node).union(*inputs)
            readers = [user for user in node.users if user not in folded]
            if not readers or not isinstance(result, torch.Tensor):
                continue
            constant = add_constant(program, result, mode, stem="_folded_constant")
            provenance.set_handles(constant, origins[node])
            node.replace_all_uses_with(constant, delete_user_cb=lambda user: user not in folded)
            count += 1
        for node in reversed(list(folded)):
            if not node.users:
                program.graph.erase_node(node)
        return count


def _foldable(node: Node, values: dict[Node, Any]) -> bool:
    if any(source not in values for source in node.all_input_nodes):
        return False
    if any(user.op == "output" for user in node.users):
        # A result of the program must be memory of its own, not a constant that the caller could write to.
        return False
    target = node.target
    if not isinstance(target, OpOverload):
        return getattr(target, "__name__", "") == "getitem"
    if target.namespace in ("quantized_decomposed", "torchao") or _RANDOM in target.tags or has_effect(node):
        return False
    return target._opname not in ("empty", "_empty_dim_order") and _is_static(node.meta.get("val"))


def _is_static(found: Any) -> bool:
    if isinstance(found, (tuple, list)):
        return all(_is_static(item) for item in found)
    return isinstance(found, torch.Tensor) and all(type(size) is int for size in found.shape)


def _size(found: Any) -> int:
    """Bytes of all tensors in a nest of values."""
    if isinstance(found, torch.Tensor):
        return int(found.numel()) * found.element_size()
    if isinstance(found, (str, bytes, int, float)) or found is None:
        return 0
    return sum(_size(item) for item in found)


def _key(argument: Any, values: dict[Node, Any]) -> tuple[Any, ...]:
    if isinstance(argument, Node):
        tensor = values[argument]
        if not isinstance(tensor, torch.Tensor):
            return (id(tensor),)
        return (tensor.data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
    if isinstance(argument, dict):
        return tuple((key, *_key(item, values)) for key, item in sorted(argument.items()))
    if isinstance(argument, (list, tuple)):
        return tuple(_key(item, values) for item in argument)
    return (type(argument), repr(argument))
