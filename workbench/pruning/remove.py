"""Taking units out of a program: smaller weights, rewritten sizes, propagated shapes; and what it equals.

`remove` makes the smaller program. `mask` makes a program of the same sizes in which the layers that read the
units multiply them with zero. Both compute the same: that is what the removal is tested against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends.programs import copy_program
from workbench.edge.fake import compute, fake_mode, fake_of
from workbench.edge.program import input_specs, lifted_tensor
from workbench.errors import LoweringError
from workbench.pruning.coupling import Coupling
from workbench.pruning.elements import Axes, Ids
from workbench.pruning.graph import argument

__all__ = ["mask", "put_tensor", "remove"]

Kept = Callable[[Axes, int], np.ndarray[Any, Any]]


def remove(program: ExportedProgram, coupling: Coupling, removed: Ids) -> ExportedProgram:
    """A program without these units; the given one stays as it is.

    Args:
        program: The program that was coupled.
        coupling: What `couple` found in it.
        removed: Numbers of units, all of them in families.

    Raises:
        LoweringError: An operator does not take the smaller sizes, or answers with others than expected.
    """
    if not len(removed):
        return copy_program(program)
    made = copy_program(program)
    # The copy has its nodes in the order of the original.
    axes = dict(zip(made.graph.nodes, (coupling.axes[node] for node in program.graph.nodes), strict=True))

    def kept(one: Axes, dim: int) -> Any:
        return coupling.kept(one, dim, removed)

    mode = fake_mode(made.graph_module)
    specs = input_specs(made)
    changed = {
        node
        for node in made.graph.nodes
        if node.op == "placeholder" and _shrink(made, node, specs[node.name], axes.get(node), kept, mode)
    }
    for node in made.graph.nodes:
        if node.op != "call_function" or changed.isdisjoint(node.all_input_nodes):
            continue
        _rewrite(node, axes, kept)
        before = node.meta.get("val")
        try:
            compute(node, mode)
        except Exception as error:
            raise LoweringError(
                f"{node.target} does not take the sizes that are left after pruning",
                stage="prune",
                node=node.name,
                source=provenance.source_line(node),
                found=str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__,
                hint="leave the layers out that lead to it: layers={name: 0.0}",
            ) from error
        _check(node, axes.get(node), kept)
        if _shape(node.meta.get("val")) != _shape(before):
            changed.add(node)
    made.graph_module.recompile()
    return made


def mask(program: ExportedProgram, coupling: Coupling, removed: Ids) -> ExportedProgram:
    """The same program with zeros for the weights that read these units; the given one stays as it is."""
    made = copy_program(program)
    tables: dict[str, torch.Tensor] = {}
    for family in coupling.families:
        for slot in family.into:
            gone = np.isin(family.slots[slot], removed)
            if not gone.any():
                continue
            name, dim = slot
            if name not in tables:
                tables[name] = _table(made, name)[name].detach().clone()
            tables[name].index_fill_(dim, torch.from_numpy(np.flatnonzero(gone)), 0)
    for name, tensor in tables.items():
        put_tensor(made, name, tensor)
    return made


def put_tensor(program: ExportedProgram, name: str, tensor: torch.Tensor) -> None:
    """Let a parameter, buffer or constant of a private copy have another value."""
    table = _table(program, name)
    old = table[name]
    is_parameter = isinstance(old, torch.nn.Parameter)
    table[name] = torch.nn.Parameter(tensor, old.requires_grad) if is_parameter else tensor


def _table(program: ExportedProgram, name: str) -> Any:
    return program.state_dict if name in program.state_dict else program.constants


def _shrink(program: ExportedProgram, node: Node, spec: Any, axes: Any, kept: Kept, mode: Any) -> bool:
    tensor = lifted_tensor(program, spec)
    if tensor is None or not isinstance(axes, Axes):
        return False
    smaller = tensor.detach()
    for dim in range(len(axes)):
        left = kept(axes, dim)
        if len(left) and not left.all():
            smaller = smaller.index_select(dim, torch.from_numpy(np.flatnonzero(left)))
    if smaller.shape == tensor.shape:
        return False
    if spec.target is not None:
        put_tensor(program, spec.target, smaller.contiguous())
    node.meta["val"] = fake_of(smaller.contiguous(), mode)
    node.meta.pop("tensor_meta", None)
    return True


def _check(node: Node, axes: Any, kept: Kept) -> None:
    values = node.meta.get("val")
    pairs = zip(values or (), axes, strict=False) if isinstance(axes, list) else [(values, axes)]
    for value, one in pairs:
        if not isinstance(one, Axes) or not isinstance(value, torch.Tensor):
            continue
        expected = [None if one.size(dim) is None else int(kept(one, dim).sum()) for dim in range(len(one))]
        fits = len(expected) == value.dim() and all(
            size is None or not isinstance(found, int) or size == found
            for size, found in zip(expected, value.shape, strict=True)
        )
        if not fits:
            raise LoweringError(
                "pruning propagates sizes that an operator does not give",
                stage="prune",
                node=node.name,
                expected=str(expected),
                found=str(tuple(value.shape)),
                hint="this is a fault of pruning, not of the model",
            )


def _shape(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(map(str, value.shape))
    return [_shape(item) for item in value] if isinstance(value, list | tuple) else None


# ---- arguments that hold sizes -----------------------------------------------------------------------------


def _rewrite(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
    packet = getattr(node.target, "overloadpacket", None)
    name = str(packet).removeprefix("aten.").removesuffix("_copy")
    writer = _WRITERS.get(name)
    if writer is not None:
        writer(node, axes, kept)


def _set(node: Node, name: str, value: Any) -> None:
    for position, known in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if known.name == name:
            if position < len(node.args):
                node.update_arg(position, value)
            else:
                node.update_kwarg(name, value)
            return


def _sizes(name: str) -> Callable[[Node, Mapping[Node, Any], Kept], None]:
    """Sizes of the result stand in an argument; the sizes that a symbol gives stay."""

    def write(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
        given = list(argument(node, name))
        own = axes[node]
        for dim, size in enumerate(given):
            if isinstance(size, int) and own.size(dim) is not None:
                given[dim] = int(kept(own, dim).sum())
        _set(node, name, given)

    return write


def _unflatten(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
    given = list(argument(node, "sizes"))
    own = axes[node]
    source: Any = node.args[0]
    first = argument(node, "dim") % len(axes[source])
    for place, size in enumerate(given):
        if isinstance(size, int) and own.size(first + place) is not None:
            given[place] = int(kept(own, first + place).sum())
    _set(node, "sizes", given)


def _groups(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
    groups = int(argument(node, "groups"))
    if groups > 1:
        weight: Any = argument(node, "weight")
        rows = kept(axes[weight], 0)
        _set(node, "groups", int(rows.sum()) * groups // len(rows))


def _parts(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
    source: Any = node.args[0]
    dim = argument(node, "dim") % len(axes[source])
    sizes = [int(kept(one, dim).sum()) for one in axes[node]]
    node.target = torch.ops.aten.split_with_sizes.default
    node.args, node.kwargs = (source, sizes, dim), {}


def _range(node: Node, axes: Mapping[Node, Any], kept: Kept) -> None:
    source: Any = node.args[0]
    own = axes[source]
    dim = argument(node, "dim") % len(own)
    left = kept(own, dim)
    if not len(left) or left.all():
        return
    start = argument(node, "start") or 0
    start = max(0, start + len(left) if start < 0 else start)
    before = int(left[:start].sum())
    length = int(kept(axes[node], dim).sum())
    node.args, node.kwargs = (source, dim, before, before + length), {}


_WRITERS: dict[str, Callable[[Node, Mapping[Node, Any], Kept], None]] = {
    "view": _sizes("size"),
    "_unsafe_view": _sizes("size"),
    "expand": _sizes("size"),
    "reshape": _sizes("shape"),
    "unflatten": _unflatten,
    "split": _parts,
    "split_with_sizes": _parts,
    "chunk": _parts,
    "slice": _range,
}
for _name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
    _WRITERS[_name] = _groups
