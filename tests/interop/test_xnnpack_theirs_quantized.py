"""Quantized programs that ExecuTorch delegates to XNNPACK, in our runtime: at most one step from its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import workbench as wb
from networks import build
from quantized_fixtures import delegated, quantize
from workbench.emit import ir
from workbench.serialize import read_program
from xnnpack_quantized_cases import CASES, Case

pytestmark = pytest.mark.peer

SOURCE = (Path(__file__).parents[1] / "xnnpack_quantized_cases.py").read_text().splitlines()
STATIC = ("mlp", "dscnn", "mobilenet_v2", "resnet18", "vit_tiny")
SLOW = {"mobilenet_v2", "resnet18", "vit_tiny", "minilm"}
# Rounding once otherwise in an early layer moves what follows.
# vit_tiny has twelve blocks whose norms and softmax are floats between integers: a rounding otherwise in the
# first is several steps in the last. Its answers are far closer to each other than to those of floats (8 dB).
STEPS = {"mlp": 1, "dscnn": 1, "mobilenet_v2": 4, "resnet18": 2, "vit_tiny": 16}

Run = Callable[..., list[Any]]


def load(path: Path) -> Any:
    return wb.runtime.Runtime.get().load_program(path).load_method("forward")


def kernels(path: Path) -> list[str]:
    """Names of the kernels that are called outside of delegates."""
    [method] = read_program(path.read_bytes()).methods
    return [method.operator_name(i.operator) for i in method.instructions if isinstance(i, ir.KernelCall)]


def make_case(case: Case) -> tuple[Path, float, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    model, inputs = case.make().eval(), case.inputs()
    text = [line for line in SOURCE if f'"{case.name}"' in line]

    def make() -> nn.Module:
        if case.manual:
            return model
        return quantize(
            model, [inputs], dynamic=case.dynamic, per_channel=case.per_channel, weights=case.weights
        )

    return *delegated(case.name, make, inputs, [*text, *model.state_dict().values(), *inputs]), inputs


def assert_steps(found: Tensor, theirs: Tensor, step: float, most: int = 1) -> None:
    """At most `most` steps apart, and mostly none; results that are no integers as close as float32 is."""
    assert found.shape == theirs.shape
    if step == 0:
        torch.testing.assert_close(found, theirs, rtol=1e-4, atol=1e-4)
        return
    steps = ((found - theirs) / step).round().abs()
    assert int(steps.max()) <= most
    assert float((steps == 0).float().mean()) > 0.8


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_operator_is_at_most_a_step_from_theirs(case: Case, run_in_executorch: Run) -> None:
    path, step, inputs = make_case(case)
    method = load(path)
    for values in (inputs, tuple(value.flip(0) * 0.7 for value in inputs)):
        [found] = method.execute(list(values))
        [theirs] = run_in_executorch(path, values)
        assert_steps(found, theirs, step)


# ---- whole networks ----------------------------------------------------------------------------------------


def make_network(name: str) -> tuple[Path, float, list[tuple[Tensor, ...]]]:
    network = build(name)
    torch.manual_seed(1)
    others = tuple(
        torch.rand_like(value) if value.is_floating_point() else (value + 1) % 1000
        for value in network.inputs
    )
    examples = [tuple(network.inputs), others]

    def make() -> nn.Module:
        return quantize(network.model, examples, dynamic=name == "minilm")

    parts = [name, *network.model.state_dict().values(), *others]
    return *delegated(name, make, network.inputs, parts), examples


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in (*STATIC, "minilm")]
)
def test_network_is_near_theirs(name: str, run_in_executorch: Run) -> None:
    path, step, examples = make_network(name)
    method = load(path)
    for values in examples:
        for found, theirs in zip(method.execute(list(values)), run_in_executorch(path, values), strict=True):
            if name == "minilm":
                # One rounding of a row otherwise is seen in all that follows.
                cosine = torch.nn.functional.cosine_similarity(found.flatten(), theirs.flatten(), dim=0)
                assert float(cosine) > 0.9999
                continue
            steps = ((found - theirs) / step).round().abs() if step else (found - theirs).abs() * 100
            assert int(steps.max()) <= STEPS[name]
            if name == "vit_tiny":
                noise = (found - theirs).square().sum()
                assert 10 * float(torch.log10(theirs.square().sum() / noise)) > 20
