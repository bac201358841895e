from __future__ import annotations

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators

from workbench import provenance
from workbench.passes.cse import Cse
from workbench.passes.split_dequantize import SplitDequantize

quantized = torch.ops.quantized_decomposed


def _shared(x):
    made = quantized.quantize_per_tensor.default(x, 0.1, 3, -128, 127, torch.int8)
    numbers = quantized.dequantize_per_tensor.default(made, 0.1, 3, -128, 127, torch.int8)
    return numbers.sin() + numbers.cos() * numbers


def test_each_reader_gets_a_node_with_the_handles_of_the_first(lab, count):
    program = lab.decomposed(_shared, torch.randn(3))
    assert lab.run(program, SplitDequantize()).counts["copies"] == 2
    assert count(program)["quantized_decomposed.dequantize_per_tensor.default"] == 3
    nodes = [n for n in program.graph.nodes if "dequantize" in str(n.target)]
    assert all(len(node.users) == 1 for node in nodes)
    assert len({provenance.handles(node) for node in nodes}) == 1


def test_what_is_split_is_merged_again_for_the_runtime(lab, count):
    program = lab.decomposed(_shared, torch.randn(3))
    lab.run(program, SplitDequantize(), Cse())
    assert count(program)["quantized_decomposed.dequantize_per_tensor.default"] == 1


def test_results_of_the_program_keep_their_node(lab):
    def function(x):
        made = quantized.quantize_per_tensor.default(x, 0.1, 3, -128, 127, torch.int8)
        numbers = quantized.dequantize_per_tensor.default(made, 0.1, 3, -128, 127, torch.int8)
        return numbers, numbers.sin()

    program = lab.decomposed(function, torch.randn(3))
    lab.run(program, SplitDequantize())


def test_other_operators_are_not_copied(lab):
    program = lab.decomposed(lambda x: x.sin().cos() + x.sin().exp(), torch.randn(3))
    assert not lab.run(program, Cse(), SplitDequantize()).counts["copies"]
