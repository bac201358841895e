from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from workbench.passes.cse import Cse
from workbench.passes.dead_code import DeadCode
from workbench.passes.safe_softmax import SafeSoftmax


def _attention(mask=None):
    def attend(q, k, v):
        return scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return attend


def test_guard_looks_at_the_maximum_of_each_row(lab, count):
    heads = [torch.randn(1, 2, 5, 8) for _ in range(3)]
    program = lab.edge(_attention(), *heads)
    assert lab.run(program, SafeSoftmax(), DeadCode(), Cse()).counts is not None
    found = count(program)
    assert found["amax.default"] == 1
    assert not found["any.dim"]
    assert not found["logical_not.default"]


@pytest.mark.parametrize("value", [float("-inf"), float("nan"), float("inf"), 3.0])
def test_rewritten_guard_gives_the_same_bits(lab, value):
    mask = torch.zeros(5, 5)
    mask[1] = value
    mask[2, :3] = float("-inf")
    heads = [torch.randn(1, 2, 5, 8) for _ in range(3)]
    program = lab.edge(_attention(mask), *heads)
    before = program.module()(*heads)
    counts = SafeSoftmax()(program).counts
    program.graph_module.recompile()
    after = program.module()(*heads)
    assert counts["guards"] == 1
    assert torch.equal(before.nan_to_num(7.0), after.nan_to_num(7.0))


def test_softmax_without_a_guard_stays(lab):
    program = lab.edge(lambda x: x.softmax(-1), torch.randn(3, 5))
    assert not lab.run(program, SafeSoftmax()).modified
