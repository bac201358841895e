"""Bias correction: the mean error of each layer's result is taken out of its bias.

Rounded weights shift the mean of what a layer computes. The float and the quantized program are run side by
side over the calibration data; layer by layer, so that each correction is measured with those before it in
place. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019,
section 4.2 (here with data).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node

from workbench.backends.programs import copy_program
from workbench.quantization.data import flat_sample, samples_of
from workbench.quantization.layers import Weights, output_axis
from workbench.quantization.lifting import unlift

__all__ = ["correct_bias"]

aten = torch.ops.aten


def correct_bias(
    reference: ExportedProgram,
    quantized: ExportedProgram,
    data: Any,
    *,
    method: str = "forward",
    samples: int = 16,
) -> ExportedProgram:
    """A quantized program with corrected biases.

    Args:
        reference: The program in floats; its layers have the names that they have in the quantized one.
        quantized: What `convert` made. Not changed.
        data: Calibration data.
        method: The method, for data by method name.
        samples: How many samples are used at most: all of them are kept in memory at the same time.

    Raises:
        CalibrationError: A sample does not fit.
    """
    made = copy_program(quantized)
    given: Iterable[Any] = islice(samples_of(data, method), samples)
    inputs = [flat_sample(reference, sample, number) for number, sample in enumerate(given, 1)]
    if not inputs:
        return made
    with torch.no_grad():
        shifts = _SideBySide(unlift(reference), unlift(quantized), inputs).run()
    weights = Weights(made)
    layers = {node.name: node for node in made.graph.nodes}
    for name, shift in shifts.items():
        bias = weights.of(layers[name], 2)
        weights.set(layers[name], 2, shift if bias is None else bias + shift)
    return made


class _SideBySide:
    """Runs two programs of the same layers, node by node, over all samples at once."""

    def __init__(self, reference: GraphModule, quantized: GraphModule, inputs: list[list[Any]]) -> None:
        self._floats = [_Stepper(reference, sample) for sample in inputs]
        self._integers = [_Stepper(quantized, sample) for sample in inputs]
        self._reference = {node.name: node for node in reference.graph.nodes}
        self._quantized = quantized

    def run(self) -> dict[str, torch.Tensor]:
        """By layer name, what has to be added to the bias, (c,)."""
        shifts = {}
        done: set[str] = set()
        order = list(self._reference.values())
        position = 0
        for node in self._quantized.graph.nodes:
            for stepper in self._integers:
                stepper.step(node)
            if not _layer(node) or node.name not in self._reference:
                continue
            while node.name not in done:
                for stepper in self._floats:
                    stepper.step(order[position])
                done.add(order[position].name)
                position += 1
            pairs = [
                (one.env[self._reference[node.name]], other.env[node])
                for one, other in zip(self._floats, self._integers, strict=True)
            ]
            axis = -1 if node.target is aten.linear.default else 1
            shift = torch.stack([_mean(wanted - found, axis) for wanted, found in pairs]).mean(0)
            shifts[node.name] = shift
            for stepper in self._integers:
                value = stepper.env[node]
                stepper.env[node] = value + (
                    shift if axis == -1 else shift.reshape(-1, *[1] * (value.dim() - 2))
                )
        return shifts


def _layer(node: Node) -> bool:
    """Whether a node is a layer with quantized weights."""
    if output_axis(node) is None:
        return False
    weight = node.args[1]
    return isinstance(weight, Node) and "dequantize" in str(weight.target)


def _mean(error: torch.Tensor, axis: int) -> torch.Tensor:
    return error.movedim(axis, 0).reshape(error.shape[axis], -1).mean(1)


class _Stepper(Interpreter):
    """An interpreter that is driven from outside."""

    def __init__(self, module: GraphModule, inputs: list[Any]) -> None:
        super().__init__(module)
        self.args_iter = iter(inputs)

    def step(self, node: Node) -> None:
        """Run one node and let go of what nobody reads after it."""
        if node.op == "output":
            return
        self.env[node] = self.run_node(node)
        for used in self.user_to_last_uses.get(node, []):
            # A layer's result is compared after it was made; its inputs are not needed any more.
            del self.env[used]
