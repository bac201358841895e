"""Whole networks on the engine: one subgraph each, and the answers of eager PyTorch."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
import torch

import workbench as wb
from agreement import assert_agrees
from networks import MTCNN, NETWORKS, SMALL, Network, build, mtcnn, small
from workbench.backends import delegates_in, why_not

_SLOW = {"vit_tiny", "resnet18", "resnet50", "mobilenet_v2", "minilm"}
# How many subgraphs the small models have; all others have one and leave nothing.
_COUNTS = {"topk_channels_last": 0, "right_shift": 0, "while_counter": 0}
_LEFT = {
    "cond_aliases": {"cond", "getitem"},
    "cond_aliases_true": {"cond", "getitem"},
    "topk_channels_last": {"aten.topk.default", "getitem"},
    "bucketize": {"aten.sum.dim_IntList"},
    "right_shift": {"aten.bitwise_right_shift.Tensor_Scalar"},
    "while_counter": {"aten.add.Tensor", "while_loop", "getitem"},
    # A size, which no delegate can return.
    "rnet": {"aten.sym_size.int"},
    "onet": {"aten.sym_size.int"},
}


def _parameters(names: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in _SLOW else name for name in names]


@cache
def _network(name: str) -> Network:
    if name in MTCNN:
        return mtcnn(name)
    return small(name) if name in SMALL else build(name)


@cache
def _lowered(name: str) -> wb.Lowering:
    network = _network(name)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    return wb.lower(network.model, network.inputs, recipe=recipe, dynamic_shapes=network.dynamic_shapes)


@pytest.mark.parametrize("name", _parameters((*NETWORKS, "resnet50", *MTCNN, *SMALL)))
def test_network_is_one_subgraph_and_agrees_with_eager(name: str) -> None:
    network, lowering = _network(name), _lowered(name)
    program = lowering.lowered.exported_program()
    assert len(list(delegates_in(program.graph_module))) == _COUNTS.get(name, 1)
    assert {reason.target for reason in why_not(program)} == _LEFT.get(name, set())
    # Fifty layers of Winograd's transforms round more than their sums do.
    limits = {"rtol": 1e-3, "atol": 5e-5} if name == "resnet50" else {}
    assert_agrees(lowering.execute(*network.inputs), network.eager(), **limits)
    # A second execution must not depend on what the first one left in memory.
    torch.manual_seed(1)
    others = tuple(_other(value) for value in network.inputs)
    with torch.no_grad():
        assert_agrees(lowering.execute(*others), network.model(*others), **limits)


def _other(value: torch.Tensor) -> torch.Tensor:
    if value.is_floating_point():
        return torch.rand_like(value)
    return ~value if value.dtype == torch.bool else (value + 1) % 1000


@pytest.mark.parametrize("name", [*MTCNN, "conv_wide_dynamic"])
def test_dynamic_sizes_agree_with_eager(name: str) -> None:
    network = _network(name)
    if name in ("rnet", "onet"):
        size = network.inputs[0].shape[-1]
        sizes = [(1, 3, size, size), (256, 3, size, size), (2, 3, size, size)]
    else:
        sizes = [(1, 3, 14, 14), (1, 3, 15, 640), (1, 3, 133, 217), (1, 3, 14, 15)]
    for shape in sizes:
        inputs = torch.rand(shape) * 2 - 1
        with torch.no_grad():
            assert_agrees(_lowered(name).execute(inputs), network.model(inputs))


@pytest.mark.parametrize("name", ["mlp", "dscnn", "lstm", "onet"])
def test_halves_agree_with_eager(name: str) -> None:
    network = _network(name)
    inputs = tuple(value.half() for value in network.inputs)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    model = copy.deepcopy(network.model).half()
    lowering = wb.lower(model, inputs, recipe=recipe)
    assert len(list(delegates_in(lowering.lowered.exported_program().graph_module))) == 1
    with torch.no_grad():
        wanted = network.model(*(value.float() for value in inputs))
    found = [value.float() if value.is_floating_point() else value for value in lowering.execute(*inputs)]
    assert_agrees(found, wanted, rtol=2e-2, atol=1e-2)
