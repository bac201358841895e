from __future__ import annotations

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from workbench.inspector.roofline import shapes_of, work_of


def nodes(module, *inputs):
    program = torch.export.export(module.eval(), inputs).run_decompositions()
    return {node.target._schema.name: node for node in program.graph.nodes if node.op == "call_function"}


def test_convolution_counts_two_operations_per_weight_and_place():
    node = nodes(nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1), torch.zeros(2, 3, 16, 16))[
        "aten::convolution"
    ]
    work = work_of(node)
    places = 2 * 8 * 8 * 8
    assert work.flops == places * (2 * 3 * 3 * 3) + places  # and the bias
    assert work.bytes_read == 4 * (2 * 3 * 16 * 16 + 8 * 3 * 3 * 3 + 8)
    assert work.bytes_written == 4 * places


def test_depthwise_convolution_counts_its_own_channel_only():
    layer = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
    assert work_of(nodes(layer, torch.zeros(1, 8, 10, 10))["aten::convolution"]).flops == 8 * 100 * 2 * 9


def test_transposed_convolution_counts_by_its_input():
    layer = nn.ConvTranspose2d(4, 6, 2, stride=2, bias=False)
    assert work_of(nodes(layer, torch.zeros(1, 4, 5, 5))["aten::convolution"]).flops == 4 * 25 * 2 * 6 * 4


def test_matrix_products_count_two_operations_per_inner_element():
    class Product(nn.Module):
        def forward(self, a, b):
            return torch.bmm(a, b)

    assert work_of(nodes(nn.Linear(5, 7), torch.zeros(3, 5))["aten::addmm"]).flops == 3 * 7 * (2 * 5 + 1)
    found = nodes(Product(), torch.zeros(2, 3, 4), torch.zeros(2, 4, 5))["aten::bmm"]
    assert work_of(found).flops == 2 * 3 * 5 * 2 * 4


def test_moves_cost_no_arithmetic_but_traffic():
    class Cat(nn.Module):
        def forward(self, a, b):
            return torch.cat([a, b])

    work = work_of(nodes(Cat(), torch.zeros(10), torch.zeros(6))["aten::cat"])
    assert (work.flops, work.bytes_read, work.bytes_written, work.intensity) == (0, 64, 64, 0.0)


def test_symbolic_sizes_count_with_the_example():
    program = torch.export.export(
        nn.ReLU(), (torch.zeros(4, 3),), dynamic_shapes=({0: torch.export.Dim("n", max=64)},)
    )
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    assert work_of(node).flops == 12
    assert shapes_of(node).startswith("f32[s")


def test_agrees_with_the_counter_of_torch():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False), nn.Flatten(), nn.Linear(4 * 36, 5, bias=False)
    ).eval()
    example = torch.zeros(2, 3, 8, 8)
    with FlopCounterMode(display=False) as mode:
        model(example)
    program = torch.export.export(model, (example,)).run_decompositions()
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert sum(work_of(node).flops for node in calls) == mode.get_total_flops()
