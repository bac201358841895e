from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import workbench as wb
from workbench.inspector.roofline import group_work, roofline_table, shapes_of, work_of
from workbench.inspector.symbols import Node, _describe


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


def test_convolution_before_decomposition_has_its_groups_where_others_say_transposed():
    program = torch.export.export(nn.Conv2d(3, 8, 3, stride=2, bias=False), (torch.zeros(1, 3, 9, 9),))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    assert node.target._schema.name == "aten::conv2d"
    assert work_of(node).flops == 8 * 16 * 2 * 27


def test_linear_without_bias_adds_nothing():
    program = torch.export.export(nn.Linear(5, 7, bias=False), (torch.zeros(3, 5),))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    assert work_of(node).flops == 3 * 7 * 2 * 5


def test_attention_counts_both_products():
    class Attention(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v)

    q, k = torch.zeros(1, 2, 6, 8), torch.zeros(1, 2, 10, 8)
    program = torch.export.export(Attention(), (q, k, k))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    products = 2 * (2 * 6 * 10 * 8) * 2
    assert work_of(node).flops == products + 5 * 2 * 6 * 10  # and the softmax


def test_lookups_read_what_comes_out_and_not_the_whole_table():
    work = work_of(nodes(nn.Embedding(1000, 8), torch.zeros(3, dtype=torch.long))["aten::embedding"])
    assert (work.flops, work.bytes_read, work.bytes_written) == (0, 4 * 24 + 8 * 3, 4 * 24)


def described(module, *inputs):
    program = torch.export.export(module.eval(), inputs).run_decompositions()
    return [_describe(node, 0) for node in program.graph.nodes if node.op == "call_function"]


class Chain(nn.Module):
    def forward(self, a, b):
        first = torch.mm(a, b)
        second = first + a
        return second * first


def test_work_of_a_group_counts_what_crosses_its_border():
    a, b = torch.zeros(4, 4), torch.zeros(4, 4)
    found = described(Chain(), a, b)
    alone = group_work(found[:1])
    assert (alone.flops, alone.bytes_read, alone.bytes_written) == (128, 128, 64)
    # `first` stays inside, but is read outside, too.
    pair = group_work(found[:2])
    assert (pair.flops, pair.bytes_read, pair.bytes_written) == (128 + 16, 128, 128)
    whole = group_work(found)
    assert (whole.flops, whole.bytes_read, whole.bytes_written) == (128 + 32, 128, 64)


def test_tensor_that_is_read_twice_counts_once():
    class Square(nn.Module):
        def forward(self, a):
            return a * a

    assert work_of(nodes(Square(), torch.zeros(8))["aten::mul"]).bytes_read == 32


def test_group_without_known_work_is_unknown():
    assert group_work([]) is None
    assert group_work([Node("a", "x", 1), Node("b", "x", 2)]) is None


def test_table_says_which_limit_binds():
    class Both(nn.Module):
        def forward(self, a):
            return torch.mm(a, a) + a

    lowering = wb.lower(Both().eval(), (torch.randn(96, 96),))
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=3)
    table = roofline_table(run.inspector, peak_gflops=100.0, peak_gbytes=20.0).set_index("instruction")
    product, addition = table.iloc[0], table.iloc[1]
    assert product["flops"] == 2 * 96**3
    assert product["intensity"] > 5 > addition["intensity"]
    assert (product["bound"], addition["bound"]) == ("compute", "memory")
    assert product["attainable_gflops"] == 100.0
    assert addition["attainable_gflops"] == pytest.approx(addition["intensity"] * 20.0)
    assert addition["of_limit"] == pytest.approx(addition["gbytes"] / 20.0)
