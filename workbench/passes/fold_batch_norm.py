"""A batch norm behind a convolution becomes part of the convolution's weight and bias.

`bn(conv(x, w) + b) = conv(x, w * s) + (b - mean) * s + beta` with `s = gamma / sqrt(var + eps)` per output
channel (Jacob et al. 2018, section 3.2). The factors are computed in double precision and rounded once before
they scale the weight, so that the result differs from that of the two operators by rounding only.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.edge.fake import fake_mode
from workbench.edge.program import add_constant, input_specs, lifted_tensor, mutated_targets
from workbench.passes.base import InPlacePass

__all__ = ["FoldBatchNorm"]

aten = torch.ops.aten
_BATCH_NORM = aten._native_batch_norm_legit_no_training.default
_CONVOLUTION = aten.convolution.default


class FoldBatchNorm(InPlacePass):
    """Fold inference batch norms whose only input is a convolution that nobody else reads.

    Args:
        cache: Folded weights by the data they come from, shared between methods.
    """

    name = "fold_batch_norm"

    def __init__(self, *, cache: MutableMapping[Any, Any] | None = None) -> None:
        self._cache = {} if cache is None else cache

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Fold in place; the old weights leave with the next `dead_code`."""
        constants = _Constants(program)
        mode = None
        count = 0
        for node in list(program.graph.nodes):
            if node.target is not _BATCH_NORM or not _only_first_result(node):
                continue
            convolution: Any = node.args[0]
            if convolution.target is not _CONVOLUTION or len(convolution.users) > 1:
                continue
            given = [constants.of(item) for item in (*convolution.args[1:3], *node.args[1:5])]
            if given[0] is None or given[4] is None or given[5] is None or not _same_kind(given):
                continue
            if any(
                item is not None and value is None
                for item, value in zip(node.args[1:3], given[2:4], strict=True)
            ):
                continue
            if convolution.args[2] is not None and given[1] is None:
                continue
            mode = mode or fake_mode(program.graph_module)
            self._fold(program, convolution, node, given, mode)
            count += 1
        return {"folded": count}

    def _fold(
        self, program: ExportedProgram, convolution: Node, norm: Node, given: list[Any], mode: Any
    ) -> None:
        transposed: Any = convolution.args[6]
        groups: Any = convolution.args[8]
        epsilon: Any = norm.args[6]
        key = (
            tuple(None if item is None else item.data_ptr() for item in given),
            epsilon,
            transposed,
            groups,
        )
        if key not in self._cache:
            # The sources are kept with the result: an address stands for its tensor only while that lives.
            self._cache[key] = (_folded(given, epsilon, transposed, groups), given)
        (weight, bias), _ = self._cache[key]
        new_weight = add_constant(program, weight, mode, stem="_folded_weight")
        new_bias = add_constant(program, bias, mode, stem="_folded_bias")
        for position, (old, new) in enumerate(
            ((convolution.args[1], new_weight), (convolution.args[2], new_bias)), 1
        ):
            provenance.transfer([item for item in (old,) if isinstance(item, Node)], new)
            convolution.update_arg(position, new)
        for user in list(norm.users):
            provenance.transfer((user,), convolution)
            user.replace_all_uses_with(convolution)
            program.graph.erase_node(user)
        provenance.transfer((norm,), convolution)
        program.graph.erase_node(norm)


class _Constants:
    """Tensors of placeholders that the program never writes."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._specs = input_specs(program)
        self._written = mutated_targets(program)

    def of(self, argument: Any) -> torch.Tensor | None:
        if not isinstance(argument, Node) or argument.op != "placeholder":
            return None
        spec = self._specs.get(argument.name)
        if spec is None or spec.target in self._written:
            return None
        return lifted_tensor(self._program, spec)


def _only_first_result(norm: Node) -> bool:
    return all(user.target is operator.getitem and user.args[1] == 0 for user in norm.users)


def _same_kind(given: list[torch.Tensor | None]) -> bool:
    return len({item.dtype for item in given if item is not None}) == 1


def _folded(
    given: list[torch.Tensor | None], epsilon: float, transposed: bool, groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    weight, bias, gamma, beta, mean, variance = (None if item is None else item.detach() for item in given)
    assert weight is not None and mean is not None and variance is not None
    scale = (variance.double() + epsilon).rsqrt()
    if gamma is not None:
        scale = scale * gamma.double()
    shift = -mean.double() if bias is None else bias.double() - mean.double()
    new_bias = shift * scale
    if beta is not None:
        new_bias = new_bias + beta.double()
    if transposed:
        # Weight is (in, out / groups, ...): output channel g * (out / groups) + j stands in row block g,
        # column j.
        per_group = scale.reshape(groups, 1, -1)
        rows = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)
        new_weight = (rows * per_group.unsqueeze(-1).to(weight.dtype)).reshape(weight.shape)
    else:
        new_weight = weight * scale.reshape(-1, *[1] * (weight.dim() - 1)).to(weight.dtype)
    return new_weight, new_bias.to(weight.dtype)
