"""The operator that stands in a graph for a delegated part, and the search for its uses.

`executorch_call_delegate(lowered_module, *inputs)` is a higher-order operator: its first argument is the
`LoweredBackendModule`, in a graph the `get_attr` of an attribute `lowered_module_<n>`; the inputs are flat,
the result is a tuple. It is the operator that torch itself registers under this name: torch's verifier,
serializer and dynamo know it, and ExecuTorch's tools look for it. A second operator of the same name would
shadow it for every other library in the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.fx import GraphModule, Node
from torch.nn import Module

from workbench.backends.lowered_module import LoweredBackendModule

__all__ = [
    "Delegate",
    "delegates_in",
    "executorch_call_delegate",
    "free_names",
    "is_call_delegate",
    "lowered_module_of",
]


class Delegate(NamedTuple):
    """One delegate call in a graph.

    Attributes:
        name: Attribute of the graph module that holds the lowered module.
        lowered: The lowered module.
        node: The call.
    """

    name: str
    lowered: LoweredBackendModule
    node: Node


def is_call_delegate(node: Node) -> bool:
    """True for a call of a delegate."""
    return node.op == "call_function" and node.target is executorch_call_delegate


def lowered_module_of(node: Node) -> LoweredBackendModule:
    """The lowered module that a call of a delegate runs."""
    holder = node.args[0]
    owner = node.graph.owning_module
    assert isinstance(holder, Node) and owner is not None
    lowered = owner.get_submodule(str(holder.target))
    assert isinstance(lowered, LoweredBackendModule)
    return lowered


def delegates_in(graph_module: GraphModule) -> Iterator[Delegate]:
    """The delegate calls of one graph, in order; control-flow branches are not entered."""
    for node in graph_module.graph.nodes:
        if is_call_delegate(node):
            holder = node.args[0]
            assert isinstance(holder, Node)
            yield Delegate(str(holder.target), lowered_module_of(node), node)


def free_names(root: Module) -> Iterator[str]:
    """Names `lowered_module_<n>` that no attribute of a graph module has, counting up."""
    taken = [name.rpartition("_") for name, _ in root.named_children()]
    numbers = [int(end) for start, _, end in taken if start == "lowered_module" and end.isdecimal()]
    return (f"lowered_module_{number}" for number in count(max(numbers, default=-1) + 1))
