from __future__ import annotations

import pytest
import torch

from workbench.passes.promote_types import PromoteTypes

aten = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        torch.add,
        torch.sub,
        torch.mul,
        torch.div,
        torch.maximum,
        torch.eq,
        torch.lt,
        torch.remainder,
        torch.atan2,
    ],
)
def test_operands_get_one_type(lab, function):
    program = lab.decomposed(function, torch.randn(3), torch.tensor([1, 2, 3]))
    result = lab.run(program, PromoteTypes())
    assert result.counts["conversions"] == 1
    node = next(
        node
        for node in program.graph.nodes
        if node.target not in (aten._to_copy.default,) and node.op == "call_function"
    )
    assert {item.meta["val"].dtype for item in node.all_input_nodes} == {torch.float32}


def test_integer_division_converts_both_operands(lab):
    program = lab.decomposed(torch.div, torch.tensor([3, 4]), torch.tensor([2, 3]))
    assert lab.run(program, PromoteTypes()).counts["conversions"] == 2


def test_equal_types_are_left_alone(lab):
    program = lab.decomposed(torch.add, torch.randn(3), torch.randn(3))
    assert not lab.run(program, PromoteTypes()).modified


def test_value_is_converted_once_for_all_users(lab):
    def twice(x, i):
        return x + i, x * i

    program = lab.decomposed(twice, torch.randn(3), torch.tensor([1, 2, 3]))
    assert lab.run(program, PromoteTypes()).counts["conversions"] == 1


def test_operands_of_cat_and_where_get_one_type(lab):
    def joined(x, i):
        return torch.cat([x, i]), torch.where(x > 0, x, i)

    program = lab.decomposed(joined, torch.randn(3), torch.tensor([1, 2, 3]))
    lab.run(program, PromoteTypes())


def test_comparison_of_small_and_large_integers_keeps_their_values(lab):
    small, large = torch.tensor([1, 127], dtype=torch.int8), torch.tensor([257, 127])
    program = lab.decomposed(torch.eq, small, large)
    lab.run(program, PromoteTypes())
