"""Every network of the benchmarks: our runtime, ExecuTorch's, and the programs of both in each other's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import workbench as wb
from agreement import assert_agrees
from networks import MTCNN, NETWORKS, Network, build, mtcnn

SLOW = {"lstm", "vit_tiny", "resnet18", "mobilenet_v2", "minilm"}


def _parameters(names: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names]


@cache
def _network(name: str) -> Network:
    return mtcnn(name) if name in MTCNN else build(name)


@cache
def _lowered(name: str) -> wb.Lowering:
    network = _network(name)
    return wb.lower(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes)


@pytest.mark.parametrize("name", _parameters((*NETWORKS, *MTCNN)))
def test_our_runtime_agrees_with_eager_undelegated(name: str) -> None:
    network = _network(name)
    lowering = _lowered(name)
    assert_agrees(lowering.execute(*network.inputs), network.eager())
    # A second execution must not depend on what the first one left in memory.
    torch.manual_seed(1)
    others = tuple(
        torch.rand_like(value) if value.is_floating_point() else (value + 1) % 1000
        for value in network.inputs
    )
    with torch.no_grad():
        assert_agrees(lowering.execute(*others), network.model(*others))


@pytest.mark.parametrize("name", _parameters((*NETWORKS, *MTCNN)))
@pytest.mark.peer
def test_our_program_runs_in_executorch(
    name: str, tmp_path: Path, run_in_executorch: Callable[..., list[Any]]
) -> None:
    network = _network(name)
    path = tmp_path / f"{name}.pte"
    _lowered(name).save(path)
    found = run_in_executorch(path, network.inputs)
    assert_agrees(found, network.eager())
    assert_agrees(_lowered(name).execute(*network.inputs), found)


@pytest.mark.parametrize("name", _parameters((*NETWORKS, *MTCNN)))
@pytest.mark.peer
def test_program_of_executorch_runs_in_our_runtime(
    name: str, made_by_executorch: Callable[[Network], Path]
) -> None:
    network = _network(name)
    path = made_by_executorch(network)
    method = wb.runtime.Runtime.get().load_program(path).load_method("forward")
    assert_agrees(method.execute(list(network.inputs)), network.eager())


@pytest.mark.parametrize("name", MTCNN)
def test_dynamic_sizes_agree_with_eager(name: str) -> None:
    network = _network(name)
    sizes = [(1, 3, 14, 14), (1, 3, 15, 640), (1, 3, 333, 217)]
    if name != "pnet":
        size = network.inputs[0].shape[-1]
        sizes = [(1, 3, size, size), (2, 3, size, size), (256, 3, size, size)]
    for shape in sizes:
        inputs = torch.rand(shape) * 2 - 1
        with torch.no_grad():
            assert_agrees(_lowered(name).execute(inputs), network.model(inputs))
