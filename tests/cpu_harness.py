"""Single operators as delegates of the CPU backend, without an export round them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from engine_reference import run_graph
from workbench.backends import CompileSpec, WhyNot
from workbench.backends.cpu import CpuBackend
from workbench.backends.cpu.blob import read
from workbench.backends.cpu.entry import Context, refusal
from workbench.backends.cpu.nodes import entries
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.programs import FlatProgram, flat_call_graph
from workbench.edge.fake import dim_order

__all__ = ["Single", "named_bytes", "program_of", "single"]


@dataclass
class Single:
    """One operator, lowered.

    Attributes:
        lowered: The delegate.
        inputs: Its arguments.
        expected: What eager PyTorch returns, as a list.
    """

    lowered: LoweredBackendModule
    inputs: list[Tensor]
    expected: list[Tensor]

    def reference(self) -> list[Tensor]:
        """What the emitted graph means."""
        given = [item.permute(dim_order(item)) for item in self.inputs]
        found = run_graph(read(self.lowered.processed_bytes), named_bytes(self.lowered), given)
        results: Any = self.lowered.original_module.graph.output_node().args[0]
        back = []
        for value, node in zip(found, results, strict=True):
            order = dim_order(node.meta["val"])
            back.append(value.permute([order.index(d) for d in range(len(order))]))
        return back

    def native(self) -> list[Tensor]:
        """What the runtime computes."""
        from workbench.runtime import Runtime

        program = Runtime.get().load_program(self.lowered.buffer())
        return list(program.load_method("forward").execute(self.inputs))


def named_bytes(lowered: LoweredBackendModule) -> Mapping[str, bytes]:
    """The named data of a delegate, by key."""
    store = lowered.named_data_store_output
    if store is None:
        return {}
    return {key: bytes(store.buffers[entry.buffer_index]) for key, entry in store.pte_data.items()}


def program_of(
    target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], constants: bool
) -> tuple[FlatProgram, list[Tensor]]:
    """A program of one operator.

    Args:
        target: The operator.
        args: Its arguments; tensors anywhere in them.
        kwargs: The same.
        constants: All tensors but the first are constants of the program.

    Returns:
        The program, and the tensors that are its inputs.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    graph = Graph()
    leaves, spec = pytree.tree_flatten((list(args), dict(kwargs)))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    nodes: list[Node] = []
    specs: list[InputSpec] = []
    held: dict[str, Tensor] = {}
    for index, tensor in enumerate(tensors):
        node = graph.placeholder(f"t{index}")
        node.meta["val"] = mode.from_tensor(tensor, static_shapes=True)
        nodes.append(node)
        argument = TensorArgument(name=node.name)
        if constants and index > 0:
            held[f"c{index}"] = tensor
            specs.append(InputSpec(InputKind.CONSTANT_TENSOR, argument, f"c{index}"))
        else:
            specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
    given = iter(nodes)
    symbolic = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    new_args, new_kwargs = pytree.tree_unflatten(symbolic, spec)
    call = graph.call_function(target, tuple(new_args), new_kwargs)
    fakes = [n.meta["val"] for n in nodes]
    fake_iter = iter(fakes)
    fake_args, fake_kwargs = pytree.tree_unflatten(
        [next(fake_iter) if isinstance(leaf, Tensor) else leaf for leaf in leaves], spec
    )
    with mode, torch.no_grad():
        call.meta["val"] = target(*fake_args, **fake_kwargs)
    results = _results(graph, call)
    graph.output(tuple(results))
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=n.name), None) for n in results]
    program = FlatProgram(
        torch.nn.Module(),
        graph,
        ExportGraphSignature(specs, outputs),
        {},
        {},
        flat_call_graph(specs, outputs),
        None,
        held,
        verifiers=[],
    )
    ensure_debug_handles(program)
    inputs = [t for t, s in zip(tensors, specs, strict=True) if s.kind == InputKind.USER_INPUT]
    return program, inputs


def _results(graph: Graph, call: Node) -> list[Node]:
    value = call.meta["val"]
    if isinstance(value, FakeTensor):
        return [call]
    limit = entries()[call.target].results  # type: ignore[index]
    elements = []
    for index, item in enumerate(value):
        if limit is None or index in limit:
            element = graph.call_function(operator.getitem, (call, index))
            element.meta["val"] = item
            elements.append(element)
    return elements


def single(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Single | WhyNot:
    """Lower one operator; where it needs constants, all tensors but the first are.

    Returns:
        The delegate, or why the backend doesn't take it.
    """
    answer = None
    for constants in (False, True):
        program, inputs = program_of(target, args, kwargs, constants)
        call = next(n for n in program.graph.nodes if n.op == "call_function")
        answer = refusal(entries()[target], call, Context(program))
        if answer is None:
            break
    if answer is not None:
        return answer
    specs = [CompileSpec("fuse", b"\1"), CompileSpec("trial", b"\0")]
    result = CpuBackend.preprocess(program, specs)
    lowered = LoweredBackendModule(
        program, "CpuBackend", result.processed_bytes, specs, result.data_store_output
    )
    with torch.no_grad():
        expected = target(*args, **kwargs)
    limit = entries()[target].results
    if isinstance(expected, Tensor):
        listed = [expected]
    else:
        listed = [item for i, item in enumerate(expected) if limit is None or i in limit]
    return Single(lowered, inputs, listed)
