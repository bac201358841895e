"""ExecuTorch's quantizer runs in our steps, and its partitioner and runtime take our graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.export import export
from workbench.quantization import calibrate, convert, prepare

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def _images() -> tuple[nn.Module, list[tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    with torch.no_grad():
        for _ in range(3):
            model.train()(torch.randn(8, 3, 12, 12))
    return model.eval(), [(torch.randn(1, 3, 12, 12),) for _ in range(4)]


def _rows() -> tuple[nn.Module, list[tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 32)).eval()
    return model, [(torch.randn(3, 64),) for _ in range(4)]


def test_their_quantizer_gives_what_torchao_makes_of_it() -> None:
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    model, data = _images()

    def quantizer() -> Any:
        return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))

    theirs = prepare_pt2e(torch.export.export(model, data[0]).module(), quantizer())
    with torch.no_grad():
        for sample in data:
            theirs(*sample)
        wanted = convert_pt2e(theirs)
        ours = convert(calibrate(prepare(export(model, data[0]), quantizer()), data))
        for sample in data:
            torch.testing.assert_close(ours.module()(*sample), wanted(*sample), atol=2e-3, rtol=0)
    for name in ("quantize_per_tensor", "dequantize_per_tensor", "dequantize_per_channel"):
        found, expected = (
            sum(f".{name}." in str(node.target) for node in graph.nodes)
            for graph in (ours.graph, wanted.graph)
        )
        assert found == expected, name


def _maps() -> tuple[nn.Module, list[tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, groups=8), nn.ReLU6(), nn.Conv2d(8, 4, 1)).eval()
    return model, [(torch.randn(1, 8, 10, 10),) for _ in range(4)]


CONFIGS: dict[str, tuple[Any, dict[str, Any], float]] = {
    "static": (_maps, {}, 0.02),
    "dynamic per token": (_rows, {"is_dynamic": True}, 1e-4),
    "dynamic per tensor": (_rows, {"is_dynamic": True, "per_token": False}, 0.02),
    "4 bits in groups": (_rows, {"is_dynamic": True, "weight_bits": 4, "group_size": 32}, 5e-3),
    "4 bits per channel": (_rows, {"is_dynamic": True, "weight_bits": 4}, 1e-4),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_our_graph_is_delegated_and_runs_there(name: str) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.runtime import Runtime

    make, options, tolerance = CONFIGS[name]
    model, data = make()
    config = wb.get_symmetric_quantization_config(is_per_channel=True, **options)
    quantizer = wb.XNNPACKQuantizer().set_global(config)
    program = convert(calibrate(prepare(export(model, data[0]), quantizer), data))
    with torch.no_grad():
        wanted = program.module()(*data[1])
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    left = [str(node.target) for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    assert sum("executorch_call_delegate" in target for target in left) >= 1
    assert not any("conv" in target or "linear" in target or "addmm" in target for target in left)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    found = method.execute(list(data[1]))[0]
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0)
