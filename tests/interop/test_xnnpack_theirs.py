"""Programs that ExecuTorch delegates to XNNPACK, in our runtime: against eager and its own runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import workbench as wb
from agreement import assert_agrees
from networks import NETWORKS, Lstm, Network, build
from workbench.emit import ir
from workbench.errors import ExecutionError
from workbench.serialize import read_program
from workbench.serialize._generated import xnnpack_generated as fb
from xnnpack_cases import CASES, Case, Function

pytestmark = pytest.mark.peer

SOURCE = (Path(__file__).parents[1] / "xnnpack_cases.py").read_text()
# Making the program takes more than ten seconds.
SLOW = {"resnet18", "mobilenet_v2", "minilm", "vit_tiny", "lstm", "resnet50"}
# What the partitioner takes of quantized graphs only, and what it takes under another name.
QUANTIZED = {
    "QuantizedPerTensorConfig",
    "DeQuantizedPerTensorConfig",
    "QuantizeAffineConfig",
    "DeQuantizeAffineConfig",
    "ChooseQParamsAffineConfig",
}
SAME = {"CloneConfig": "CloneDimOrderConfig"}
HALF = {"rtol": 4e-3, "atol": 4e-3}  # ExecuTorch rounds the result of each node to float16

Run = Callable[..., list[Any]]
Make = Callable[..., Path]


def load(path: Path) -> Any:
    return wb.runtime.Runtime.get().load_program(path).load_method("forward")


def calls(path: Path) -> list[str]:
    """What the program's instructions are: "delegate", or the kernel's name."""
    [method] = read_program(path.read_bytes()).methods
    return [
        "delegate" if isinstance(i, ir.DelegateCall) else method.operator_name(i.operator)
        for i in method.instructions
        if isinstance(i, (ir.DelegateCall, ir.KernelCall))
    ]


def test_every_config_of_the_partitioner_has_a_case() -> None:
    from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS

    theirs = {config.__name__ for config in ALL_PARTITIONER_CONFIGS} - QUANTIZED
    ours = {config for case in CASES.values() for config in case.covers}
    assert {SAME.get(name, name) for name in theirs} == ours


def _instances() -> list[Any]:
    return [
        pytest.param(case, dtype, id=f"{case.name}-{str(dtype).removeprefix('torch.')}")
        for case in CASES.values()
        for dtype in (torch.float32, torch.float16)
        if case.half or dtype == torch.float32
    ]


@pytest.mark.parametrize(("case", "dtype"), _instances())
def test_operator_agrees(
    case: Case, dtype: torch.dtype, delegated_by_executorch: Make, run_in_executorch: Run
) -> None:
    torch.manual_seed(0)
    model, inputs = case.make().eval().to(dtype), tuple(value.to(dtype) for value in case.inputs())
    path = delegated_by_executorch(f"case-{case.name}", model, inputs, SOURCE)
    assert calls(path) == ["delegate"]
    with torch.no_grad():
        expected = model(*inputs)
    tolerance = HALF if dtype == torch.float16 else {}
    method = load(path)
    found = method.execute(list(inputs))
    assert_agrees(found, expected, **tolerance)
    assert_agrees(found, run_in_executorch(path, inputs), **tolerance)
    # Nothing of the first execution is left in the second one.
    others = tuple(value.flip(0) * 0.5 for value in inputs)
    with torch.no_grad():
        assert_agrees(method.execute(list(others)), model(*others), **tolerance)


# ---- sizes that change -------------------------------------------------------------------------------------

_N, _H, _W = Dim("n", min=1, max=9), Dim("h", min=12, max=40), Dim("w", min=12, max=40)


def _images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.Hardswish(),
        nn.MaxPool2d(2, 1),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Sigmoid(),
    )


def _classifier() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.AdaptiveAvgPool2d(1), nn.Hardtanh())


DYNAMIC: dict[str, tuple[Callable[[], nn.Module], Any, list[tuple[tuple[int, ...], ...]]]] = {
    "images": (_images, ({0: _N, 2: _H, 3: _W},), [((2, 3, 12, 13),), ((9, 3, 40, 40),), ((1, 3, 12, 33),)]),
    "classifier": (_classifier, ({0: _N, 2: _H},), [((2, 3, 13, 7),), ((7, 3, 40, 7),), ((1, 3, 12, 7),)]),
    "rows": (
        lambda: nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 5), nn.Softmax(-1)),
        ({0: _N, 1: _H},),
        [((3, 13, 6),), ((9, 40, 6),), ((1, 12, 6),)],
    ),
    "inferred": (
        lambda: nn.Sequential(nn.Tanh(), Function(lambda x: x.reshape(-1, 4)), nn.Linear(4, 3)),
        ({0: _N},),
        [((3, 8),), ((9, 8),), ((1, 8),)],
    ),
    "matrices": (
        lambda: Function(torch.bmm),
        ({0: _N, 1: _H}, {0: _N, 2: _W}),
        [((2, 14, 5), (2, 5, 13)), ((9, 40, 5), (9, 5, 40)), ((1, 12, 5), (1, 5, 12))],
    ),
    "broadcast": (
        lambda: Function(lambda x, y: torch.maximum(x * y, x) - y),
        ({0: _N, 1: _H}, {0: _H}),
        [((2, 13, 4), (13, 4)), ((9, 40, 4), (40, 4)), ((1, 12, 4), (12, 4))],
    ),
    "joined": (
        lambda: Function(lambda x, y: torch.cat([x.exp(), y, x], 1).permute(1, 0)),
        ({0: _N, 1: _H}, {0: _N}),
        [((2, 13), (2, 3)), ((9, 40), (9, 3)), ((1, 12), (1, 3))],
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_smaller_sizes_agree(name: str, delegated_by_executorch: Make, run_in_executorch: Run) -> None:
    torch.manual_seed(0)
    make, shapes, sizes = DYNAMIC[name]
    model = make().eval()
    inputs = tuple(torch.randn(size) for size in sizes[0])
    source = f"{Path(__file__).read_text()}{name}"
    dynamic = (shapes,) if name in {"matrices", "broadcast", "joined"} else shapes
    path = delegated_by_executorch(f"dynamic-{name}", model, inputs, source, dynamic)
    assert "delegate" in calls(path)
    method = load(path)
    # From small to large and back: what was prepared for one size must not serve for another.
    for size in (*sizes, sizes[-1], sizes[1], sizes[0]):
        values = tuple(torch.randn(part) for part in size)
        with torch.no_grad():
            expected = model(*values)
        found = method.execute(list(values))
        assert_agrees(found, expected)
        assert_agrees(found, run_in_executorch(path, values))
    larger = [torch.randn([9 + 1, *size[1:]]) for size in sizes[1]]
    with pytest.raises(ExecutionError) as caught:
        method.execute(larger)
    assert caught.value.code in {"InvalidArgument", "NotSupported"}
    assert_agrees(method.execute(list(values)), expected)


# ---- whole networks ----------------------------------------------------------------------------------------


def _networks() -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in (*NETWORKS, "resnet50")
    ]


def _check_network(network: Network, make: Make, run: Run) -> None:
    path = make(network.name, network.model, network.inputs)
    method = load(path)
    found = method.execute(list(network.inputs))
    # Fifty layers of Winograd's transforms round more than their sums do.
    limits = {"rtol": 1e-3, "atol": 1e-4} if network.name == "resnet50" else {}
    assert_agrees(found, network.eager(), **limits)
    assert_agrees(found, run(path, network.inputs), **limits)
    torch.manual_seed(1)
    others = tuple(
        torch.rand_like(value) if value.is_floating_point() else (value + 1) % 1000
        for value in network.inputs
    )
    with torch.no_grad():
        assert_agrees(method.execute(list(others)), network.model(*others), **limits)


@pytest.mark.parametrize("name", _networks())
def test_network_agrees(name: str, delegated_by_executorch: Make, run_in_executorch: Run) -> None:
    _check_network(build(name), delegated_by_executorch, run_in_executorch)


def test_short_lstm_agrees(delegated_by_executorch: Make, run_in_executorch: Run) -> None:
    torch.manual_seed(0)
    network = Network("lstm_short", Lstm().eval(), (torch.randn(1, 3, 40),))
    _check_network(network, delegated_by_executorch, run_in_executorch)


def test_network_agrees_in_float16(delegated_by_executorch: Make, run_in_executorch: Run) -> None:
    network = build("dscnn")
    model, inputs = network.model.half(), tuple(value.half() for value in network.inputs)
    path = delegated_by_executorch("dscnn-half", model, inputs)
    found = load(path).execute(list(inputs))
    with torch.no_grad():
        expected = model.float()(*(value.float() for value in inputs))
    assert_agrees([value.float() for value in found], expected, rtol=2e-2, atol=5e-3)
    theirs = [value.float() for value in run_in_executorch(path, inputs)]
    assert_agrees([value.float() for value in found], theirs, rtol=2e-2, atol=5e-3)


# ---- what is refused, what is traced -----------------------------------------------------------------------


def test_events_of_the_delegate_carry_the_handles_of_its_blob(delegated_by_executorch: Make) -> None:
    torch.manual_seed(0)
    case = CASES["conv_relu6"]
    model, inputs = case.make().eval(), case.inputs()
    path = delegated_by_executorch("case-conv_relu6", model, inputs, SOURCE)
    [blob] = read_program(path.read_bytes()).delegate_data
    graph = fb.GraphT.InitFromPackedBuf(bytearray(blob), int.from_bytes(blob[10:14], "little"))
    handles = {node.debugHandle for node in graph.xnodes} - {65535}  # that one stands for "no node"
    run = wb.open(path).run(*inputs, profile=True, repeat=2)
    inside = run.table[run.table["is_delegated_op"].eq(True)]
    identifiers = [str(name).split("+") for name in inside["event_name"]]
    assert {int(part) for parts in identifiers for part in parts if part.isdecimal()} == handles
    assert all(len(raw) == 2 and min(raw) >= 0 for raw in inside["raw"])
