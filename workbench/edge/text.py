"""Programs as text: one line per node, the same for the same program, for golden tests and for reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import dim_order, is_contiguous
from workbench.edge.program import input_specs

__all__ = ["dump"]


def dump(program: ExportedProgram) -> str:
    """A program of any stage as text.

    Each line gives name, value (`float32[1, 3]`, with the dim order where it is not the default one),
    operator with arguments, and the source handles. Branches follow, indented.
    """
    specs = input_specs(program)
    kinds = {name: spec.kind.name.lower() for name, spec in specs.items()}
    targets = {name: spec.target for name, spec in specs.items()}
    lines = list(_graph(program.graph_module, kinds, targets, ""))
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            lines.append(f"{spec.kind.name.lower()}: {spec.target} <- {spec.arg.name}")
    bounds = {str(symbol): str(limits) for symbol, limits in program.range_constraints.items()}
    lines.extend(f"symbol: {symbol} in {bounds[symbol]}" for symbol in sorted(bounds))
    return "\n".join(lines) + "\n"


def _graph(
    graph_module: GraphModule, kinds: dict[str, str], targets: dict[str, Any], indent: str
) -> Iterator[str]:
    for node in graph_module.graph.nodes:
        known = provenance.handles(node)
        marks = f"  #{','.join(map(str, sorted(known)))}" if known else ""
        yield f"{indent}{_line(node, kinds, targets)}{marks}"
        inner = getattr(graph_module, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(inner, GraphModule):
            yield from _graph(inner, {}, {}, indent + "    ")


def _line(node: Node, kinds: dict[str, str], targets: dict[str, Any]) -> str:
    if node.op == "placeholder":
        target = f" {targets[node.name]}" if targets.get(node.name) else ""
        return f"{node.name}: {_value(node)} = {kinds.get(node.name, 'input')}{target}"
    if node.op == "output":
        return f"return {_argument(node.args[0])}"
    if node.op == "get_attr":
        return f"{node.name} = attribute {node.target}"
    given = [_argument(item) for item in node.args]
    given += [f"{key}={_argument(item)}" for key, item in node.kwargs.items()]
    return f"{node.name}: {_value(node)} = {_name(node.target)}({', '.join(given)})"


def _name(target: Any) -> str:
    return (
        str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))
    )


def _argument(item: Any) -> str:
    if isinstance(item, (list, tuple)):
        return f"[{', '.join(map(_argument, item))}]"
    return item.name if isinstance(item, Node) else str(item)


def _value(node: Node) -> str:
    return _described(node.meta.get("val"))


def _described(found: Any) -> str:
    if isinstance(found, torch.Tensor):
        order = "" if is_contiguous(found) else f" order {list(dim_order(found))}"
        sizes = ", ".join(map(str, found.shape))
        return f"{str(found.dtype).removeprefix('torch.')}[{sizes}]{order}"
    if isinstance(found, (list, tuple)):
        return f"({', '.join(map(_described, found))})"
    return str(found)
