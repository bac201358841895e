"""From a partition to the graph of calls that computes it.

Each operator of the partition is handed to its config (`configs/`), which adds calls. What depends on
constants alone is computed here, when a call needs it: the transpose that `addmm` has before its weight, a
normalized weight, a mask. Rearrangements stay views of the stored tensor until it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.stateless import check_stateless
from workbench.backends.xnnpack.configs import Config, Context, config_of
from workbench.backends.xnnpack.configs.base import dim_order_of, sizes_of
from workbench.backends.xnnpack.configs.constants import quantized_constant
from workbench.backends.xnnpack.configs.quantize import given_quantization
from workbench.backends.xnnpack.graph import Graph, Value
from workbench.backends.xnnpack.quantization import PerTensor, Quantization, permuted
from workbench.errors import PartitionError

__all__ = ["BACKEND_ID", "Builder", "build_graph"]

BACKEND_ID = "XnnpackBackend"


def build_graph(program: ExportedProgram, configs: Mapping[Any, Config]) -> Graph:
    """The calls that compute a partition.

    Args:
        program: The partition, with constants among its inputs.
        configs: By operator.

    Raises:
        PartitionError: An operator has no config, or its config refuses it.
    """
    return Builder(program, configs).run()


class Builder:
    """Collects the calls of one partition.

    Attributes:
        graph: What was made so far.
        context: The partition, as configs are asked about it.
    """

    def __init__(self, program: ExportedProgram, configs: Mapping[Any, Config]) -> None:
        self.graph = Graph()
        # Which weights may be passed in, the partitioner has decided.
        self.context = Context(program, dynamic_weights=True, configs=configs)
        self._program = program
        self._configs = configs
        self._values: dict[Node, Value] = {}
        self._integers: dict[Node, Value] = {}
        # By identity; tensors are kept, so that no other gets their identity.
        self._constants: dict[tuple[int, int], tuple[Value, torch.Tensor, Quantization | None]] = {}
        self._current: Node | None = None

    def run(self) -> Graph:
        """Build all calls."""
        check_stateless(BACKEND_ID, self._program)
        for node in self._program.graph.nodes:
            if node.op == "placeholder" and not self.context.is_constant(node):
                self._input(node)
            elif node.op == "call_function" and not self.context.is_constant(node):
                self._operator(node)
        results: Any = self._program.graph.output_node().args[0]
        for node in results:
            self._output(node)
        self.graph.remove_unread()
        return self.graph

    # ---- what configs use ---------------------------------------------------------------------------------

    def value(self, node: Any) -> Value:
        """The value of an operand: of a node, or a constant made of a number."""
        if isinstance(node, Node):
            if node in self._values:
                return self._values[node]
            value = self.constant(self.tensor(node))
            self._values[node] = value
            return value
        assert self._current is not None
        return self.constant(torch.tensor(node, dtype=self.result_dtype))

    def operand(self, node: Any, *, weight: bool = False) -> Value:
        """The value of an operand; of a constant that is dequantized, its integers.

        Args:
            node: The operand.
            weight: There may be scales by channel and group, too.
        """
        if not isinstance(node, Node) or not self.context.is_constant(node):
            return self.value(node)
        if node not in self._integers:
            found = quantized_constant(node, self.context)
            self._integers[node] = self.value(node) if found is None else self.constant(*found)
        value = self._integers[node]
        return value if weight or isinstance(value.quantization, PerTensor | None) else self.value(node)

    def tensor(self, node: Node) -> torch.Tensor:
        """The tensor of a node that is constant."""
        found: torch.Tensor = self.context.tensor(node)
        return found

    def constant(self, tensor: torch.Tensor, quantization: Quantization | None = None) -> Value:
        """A constant; the same tensor gives the same value."""
        key = id(tensor), id(quantization)
        if key not in self._constants:
            value = Value(tensor.shape, tensor.dtype, tensor.detach(), quantization=quantization)
            self._constants[key] = value, tensor, quantization
        return self._constants[key][0]

    @property
    def result_dtype(self) -> torch.dtype:
        """Element type of the result of the operator that is being built."""
        assert self._current is not None
        found = self._current.meta["val"]
        first = found[0] if isinstance(found, (tuple, list)) else found
        dtype: torch.dtype = first.dtype
        return dtype

    def call(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        shape: Sequence[int],
        free: Any = (),
        *,
        dtype: torch.dtype | None = None,
        quantization: Quantization | None = None,
        **fields: Any,
    ) -> Value:
        """Add a call for the current operator; the result has the first input's element type or `dtype`."""
        assert self._current is not None
        operands = [value for value in inputs if value is not None]
        given = next((value for value in operands if value.data is None), operands[0])
        if dtype is None:
            quantization = given.quantization
        result = Value(shape, dtype or given.dtype, free=free, quantization=quantization)
        return self.graph.add(kind, inputs, result, (self._current,), **fields)

    def like(self, kind: str, inputs: Sequence[Value | None], node: Node, **fields: Any) -> Value:
        """Add a call whose result has the sizes of a node's."""
        sizes, free = sizes_of(node.meta["val"])
        return self.call(kind, inputs, sizes, free, **fields)

    def reshape(self, value: Value, shape: Sequence[int], free: Any = ()) -> Value:
        """The elements of a value with other sizes, of which at most one is free."""
        if value.data is not None:
            return self.constant(value.data.reshape(tuple(shape)), value.quantization)
        if tuple(shape) == value.shape:
            return value
        sizes = [0 if i in free else n for i, n in enumerate(shape)]
        return self.call("StaticReshape", [value], shape, free, num_dims=len(sizes), new_shape=sizes)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        if value.data is not None:
            return self.constant(value.data.permute(*order), permuted(value.quantization, order))
        if list(order) == sorted(order):
            return value
        made = value.permuted(order)
        return self.call(
            "StaticTranspose", [value], made.shape, made.free, num_dims=len(order), perm=list(order)
        )

    def define(self, node: Node, value: Value) -> None:
        """Say what a node's value is."""
        self._values[node] = value

    # ---- the walk -----------------------------------------------------------------------------------------

    def _operator(self, node: Node) -> None:
        if node in self._values:
            return  # An element of a result, defined with it.
        config = config_of(self._configs, node)
        answer: WhyNot | None = (
            WhyNot(node, "XNNPACK has no such operator")
            if config is None
            else config.refusal(node, self.context)
        )
        if config is None or answer is not None:
            assert answer is not None
            raise PartitionError(
                f"the backend '{BACKEND_ID}' can't run '{node.name}': {answer.reason}",
                stage="lower",
                node=node.name,
                source=answer.source,
                hint=answer.eligible_if and f"eligible if {answer.eligible_if}",
            )
        self._current = node
        config.build(node, self)

    def _input(self, node: Node) -> None:
        self._current = node
        found = node.meta["val"]
        sizes, free = sizes_of(found)
        order = dim_order_of(found)
        logical = Value(sizes, found.dtype, free=free, quantization=given_quantization(node))
        given = logical.permuted(order)
        self.graph.inputs.append(given)
        back = sorted(range(len(order)), key=order.__getitem__)
        self._values[node] = self.transpose(given, back)

    def _output(self, node: Any) -> None:
        if not isinstance(node, Node):
            raise PartitionError(
                f"the backend '{BACKEND_ID}' can't return the constant {node!r}", stage="lower"
            )
        self._current = node
        value = self.transpose(self.value(node), dim_order_of(node.meta["val"]))
        if value.data is not None or value in self.graph.inputs or value in self.graph.outputs:
            # Each output is memory of its own that a call writes.
            value = self.call("Copy", [value], value.shape, value.free)
        self.graph.outputs.append(value)
