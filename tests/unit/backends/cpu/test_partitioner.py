"""What `CpuPartitioner` takes whole, what it leaves, and what it says about that."""

import pytest
import torch
from torch import nn
from torch.export import Dim

import workbench as wb
from workbench.backends import delegates_in, partition, why_not
from workbench.component import Component


def lowered(model, inputs, partitioner=None, **options):
    program = torch.export.export(model.eval(), inputs, **options)
    manager = wb.to_edge_transform_and_lower(program, partitioner=partitioner or wb.CpuPartitioner())
    return manager.exported_program()


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def inner_targets(program):
    return [
        str(node.target)
        for delegate in delegates_in(program.graph_module)
        for node in delegate.lowered.original_module.graph.nodes
        if node.op == "call_function"
    ]


@pytest.mark.parametrize(
    ("model", "inputs", "kept"),
    [
        (nn.Linear(4, 3), (torch.randn(2, 4),), "aten.linear.default"),
        (nn.LayerNorm(4), (torch.randn(2, 4),), "aten.layer_norm.default"),
        (nn.GroupNorm(2, 4), (torch.randn(2, 4, 3),), "aten.group_norm.default"),
        (nn.RMSNorm(4), (torch.randn(2, 4),), "aten.rms_norm.default"),
        (nn.Hardswish(), (torch.randn(2, 4),), "aten.hardswish.default"),
        (nn.SiLU(), (torch.randn(2, 4),), "aten.silu.default"),
        (
            nn.Upsample(scale_factor=2, mode="bilinear"),
            (torch.randn(1, 2, 3, 3),),
            "aten.upsample_bilinear2d.vec",
        ),
        (
            Function(lambda q: nn.functional.scaled_dot_product_attention(q, q, q)),
            (torch.randn(1, 2, 5, 8),),
            "aten.scaled_dot_product_attention.default",
        ),
        (Function(torch.matmul), (torch.randn(2, 3, 4), torch.randn(4, 5)), "aten.matmul.default"),
    ],
)
def test_operator_is_kept_whole(model, inputs, kept):
    program = lowered(model, inputs)
    assert kept in inner_targets(program) and why_not(program) == []


def test_operator_that_is_refused_is_decomposed_and_the_rest_taken():
    """In float64 nothing is kept whole, so that the runtime's kernels can run the parts."""
    program = lowered(nn.Linear(4, 3).double(), (torch.randn(2, 4).double(),))
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.linear.default" not in targets and list(delegates_in(program.graph_module)) == []
    assert any("float64" in reason.reason for reason in why_not(program))


def _conv(x, w):
    return nn.functional.conv2d(x, w)


def _conv3d(x):
    return nn.functional.conv3d(x, torch.ones(1, 1, 2, 2, 2))


def _windows(x):
    return nn.functional.adaptive_avg_pool2d(x, 3)


def _floor(x, y):
    return torch.div(x, y, rounding_mode="floor")


_PLACES = (torch.randn(3, 3), torch.tensor([0]), torch.tensor([1]))
_IMAGE = torch.randn(1, 2, 5, 5)


@pytest.mark.parametrize(
    ("function", "inputs", "reason", "eligible"),
    [
        (lambda x: torch.cumsum(x, 0), (torch.randn(4),), "no such operator", ""),
        (lambda x: x.double() + 1, (torch.randn(4),), "float64", "float32"),
        (_conv, (_IMAGE, torch.randn(3, 2, 3, 3)), "computed while the program runs", "constant"),
        (_conv3d, (torch.randn(1, 1, 3, 3, 3),), "3 spatial", ""),
        (_windows, (torch.randn(1, 1, 7, 7),), "differ in size", "multiple"),
        (_floor, (torch.randn(3), torch.ones(3)), "rounds down", "constant"),
        (lambda x, i, j: x[i, j], _PLACES, "2 dimensions at once", "one"),
        (lambda x: x.reshape([1] * 9), (torch.randn(1),), "9 dimensions", "at most 8"),
        (lambda x: x.sum(0, dtype=torch.float64), (torch.randn(3),), "float64", ""),
    ],
)
def test_what_is_left_says_why_and_what_would_do(function, inputs, reason, eligible):
    found = why_not(lowered(Function(function), inputs))
    texts = [f"{item.reason}|{item.eligible_if or ''}" for item in found]
    assert any(reason in text and eligible in text for text in texts), texts
    assert all(item.by == "CpuBackend" and item.source for item in found)


def test_reason_names_what_is_unbounded():
    class Exp(nn.Module):
        def forward(self, x):
            return torch.exp(x)

    program = torch.export.export(Exp(), (torch.randn(3, 4),), dynamic_shapes=({0: Dim.DYNAMIC},))
    (reason,) = partition(wb.to_edge(program).exported_program(), wb.CpuPartitioner()).reasons
    assert "upper bound" in reason.reason and "bounded" in (reason.eligible_if or "")


def test_dynamic_sizes_that_follow_from_the_operand_are_taken():
    class Heads(nn.Module):
        def forward(self, x):
            count, length, _ = x.shape
            heads = x.view(count, length, 2, 4).transpose(1, 2)
            return heads.reshape(count, 2 * length, 4).flatten(1)

    shapes = ({0: Dim("n", max=4), 1: Dim("l", max=9)},)
    model = Heads().eval()
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    lowering = wb.lower(model, (torch.randn(2, 5, 8),), recipe=recipe, dynamic_shapes=shapes, progress=False)
    # Only the arithmetic on sizes stays, which no delegate could return.
    left = why_not(lowering.lowered.exported_program())
    assert all("it computes a number" in reason.reason for reason in left)
    for sizes in ((2, 5), (4, 9), (1, 2), (3, 7)):
        x = torch.randn(*sizes, 8)
        (found,) = lowering.execute(x)
        assert torch.equal(found, model(x))


def test_min_nodes_and_options_are_kept_in_recipes():
    made = wb.CpuPartitioner(fuse=False, trial=True, min_nodes=3)
    again = Component.of(made).make()
    assert [(spec.key, spec.value) for spec in again.delegation_spec.compile_specs] == [
        ("fuse", b"\0"),
        ("trial", b"\1"),
    ]
    program = lowered(Function(lambda x: torch.cumsum(x + 1, 0)), (torch.randn(4),), again)
    assert list(delegates_in(program.graph_module)) == []
    assert any("min_nodes 3" in reason.reason for reason in why_not(program))


def test_branches_of_control_flow_are_taken_inside():
    class Choice(nn.Module):
        def forward(self, p, x):
            return torch.cond(p, lambda x: x.exp() + 1, lambda x: x.sin() * 2, (x,))

    model, x = Choice().eval(), torch.randn(5)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    lowering = wb.lower(model, (torch.tensor(True), x), recipe=recipe, progress=False)
    for flag in (True, False):
        (found,) = lowering.execute(torch.tensor(flag), x)
        torch.testing.assert_close(found, model(torch.tensor(flag), x))


def test_state_stays_outside_and_its_update_is_computed_inside():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x)
            return self.total * 2

    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    lowering = wb.lower(Counter().eval(), (torch.ones(3),), recipe=recipe, progress=False)
    assert len(list(delegates_in(lowering.lowered.exported_program().graph_module))) == 1
    for turn in (1, 2, 3):
        (found,) = lowering.execute(torch.ones(3))
        assert torch.equal(found, torch.full((3,), 2.0 * turn))
