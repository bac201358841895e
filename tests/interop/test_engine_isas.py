"""Networks on each instruction set that the engine is compiled for, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

import workbench as wb
from agreement import assert_agrees
from networks import build
from workbench.runtime import Runtime
from workbench.runtime._load import native

_QUICK = ("mlp", "dscnn", "lstm")
_SLOW = ("mobilenet_v2", "resnet18", "resnet50", "vit_tiny", "minilm")

# program, inputs, outputs; program, inputs, outputs; ...
_RUN = """
import sys
import torch
from workbench.runtime import Runtime

for program, inputs, outputs in zip(*[iter(sys.argv[1:])] * 3):
    method = Runtime.get().load_program(program).load_method("forward")
    given = torch.load(inputs, weights_only=True)
    torch.save([method.execute(given), method.execute(given)], outputs)
print(Runtime.get().active_isa)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isas")


@cache
def _program(name: str, folder: Path) -> tuple[Path, Path]:
    network = build(name)
    program, inputs = folder / f"{name}.pte", folder / f"{name}.inputs.pt"
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    wb.lower(network.model, network.inputs, recipe=recipe).save(program)
    torch.save(list(network.inputs), inputs)
    return program, inputs


def _run(isa: str, threads: int, names: tuple[str, ...], folder: Path) -> dict[str, list[list[torch.Tensor]]]:
    arguments: list[Path] = []
    outputs = {name: folder / f"{name}.{isa}.{threads}.pt" for name in names}
    for name in names:
        arguments += [*_program(name, folder), outputs[name]]
    environment = dict(os.environ, LOWERING_WORKBENCH_ISA=isa, LOWERING_WORKBENCH_THREADS=str(threads))
    command = [sys.executable, "-c", _RUN, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [isa]
    return {name: torch.load(path, weights_only=True) for name, path in outputs.items()}


def _check(isa: str, threads: int, names: tuple[str, ...], folder: Path) -> None:
    if not native.isa_supported(isa):
        pytest.skip(f"this processor has no {isa}")
    for name, runs in _run(isa, threads, names, folder).items():
        limits = {"rtol": 1e-3, "atol": 1e-4} if name == "resnet50" else {}
        for found in runs:
            assert_agrees(found, build(name).eager(), **limits)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", Runtime.get().compiled_isas)
def test_small_networks_agree_with_eager_on_each_instruction_set(
    isa: str, threads: int, folder: Path
) -> None:
    _check(isa, threads, _QUICK, folder)


# The best one runs them in test_engine_networks.py.
@pytest.mark.slow
@pytest.mark.parametrize("isa", Runtime.get().compiled_isas[1:])
def test_large_networks_agree_with_eager_on_each_instruction_set(isa: str, folder: Path) -> None:
    _check(isa, 1, _SLOW, folder)
