import pytest
import torch

from workbench.backends import delegates_in, tag_constant_data, to_backend
from workbench.backends.base import TAG_KEY
from workbench.backends.constants import tag_mutated_buffer

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Shared(torch.nn.Module):
    """`weight` feeds sin's chain, cos's chain and the rest; `only` feeds sin's chain alone."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.only = torch.nn.Parameter(torch.randn(3))

    def forward(self, x):
        a = torch.sin(x * self.weight + self.only)
        b = torch.exp(a)
        return torch.cos(b) * self.weight


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count.mul_(2.0)
        self.count.add_(x)
        return torch.sin(self.count)


def test_constants_move_into_their_delegate_without_a_copy(edge, take):
    model = Shared()
    inputs = (torch.randn(3),)
    lowered = to_backend(edge(model, inputs), take([aten.mul.Tensor, aten.add.Tensor, aten.sin.default]))
    first, second = delegates_in(lowered.graph_module)
    assert list(lowered.state_dict) == []
    assert sorted(first.lowered.original_module.state_dict) == ["only", "weight"]
    assert sorted(second.lowered.original_module.state_dict) == ["weight"]
    inner = first.lowered.original_module.state_dict["weight"]
    assert inner.data_ptr() == model.weight.data_ptr()
    assert len(first.node.args) == 2  # the lowered module and x
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_constant_with_users_outside_stays_there_as_well(edge, take):
    model = Shared()
    inputs = (torch.randn(3),)
    lowered = to_backend(edge(model, inputs), take([aten.add.Tensor, aten.sin.default, aten.exp.default]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert list(lowered.state_dict) == ["weight"]
    assert list(delegate.lowered.original_module.state_dict) == ["only"]
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_untagged_constants_are_passed_in(edge, take):
    class Careless(take):
        def partition(self, exported_program):
            result = super().partition(exported_program)
            for node in exported_program.graph.nodes:
                if node.op == "placeholder":
                    node.meta.pop(TAG_KEY, None)
            return result

    model = Shared()
    inputs = (torch.randn(3),)
    lowered = to_backend(edge(model, inputs), Careless([aten.add.Tensor, aten.sin.default]))
    (delegate,) = delegates_in(lowered.graph_module)
    assert [node.name for node in delegate.node.args[1:]] == ["mul", "p_only"]
    assert delegate.lowered.original_module.state_dict == {}
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_constants_stand_before_inputs_in_the_signature(edge, take, recorder):
    inputs = (torch.randn(3),)
    to_backend(edge(Shared(), inputs), take([aten.mul.Tensor, aten.add.Tensor, aten.sin.default]))
    names = [n.name for n in recorder.programs[0].graph.nodes if n.op == "placeholder"]
    assert names == ["p_weight", "p_only", "x"]


def test_tagging_picks_the_same_tag_for_a_shared_constant_each_time(edge):
    program = edge(Shared(), (torch.randn(3),))
    by_name = {node.name: node for node in program.graph.nodes}
    by_name["mul"].meta[TAG_KEY], by_name["mul_1"].meta[TAG_KEY] = "z", "a"
    tag_constant_data(program)
    assert by_name["p_weight"].meta[TAG_KEY] == "a"
    assert TAG_KEY not in by_name["p_only"].meta


def run_twice(module, inputs):
    return [module(*inputs).clone() for _ in range(2)]


def test_state_of_a_delegate_with_all_its_uses_moves_inside(edge, take):
    inputs = (torch.tensor([1.0, 2.0]),)
    expected = run_twice(Counter(), inputs)
    partitioner = take([aten.mul.Tensor, aten.add.Tensor, aten.sin.default], own_state=True)
    lowered = to_backend(edge(Counter(), inputs), partitioner)
    (delegate,) = delegates_in(lowered.graph_module)
    assert lowered.graph_signature.buffers_to_mutate == {}
    assert list(delegate.lowered.original_module.graph_signature.buffers_to_mutate.values()) == ["count"]
    assert len(delegate.node.args) == 2 and len(delegate.node.meta["val"]) == 1
    torch.testing.assert_close(run_twice(lowered.module(), inputs), expected)


def test_state_stays_outside_unless_asked_and_goes_through(edge, take):
    inputs = (torch.tensor([1.0, 2.0]),)
    expected = run_twice(Counter(), inputs)
    lowered = to_backend(edge(Counter(), inputs), take([aten.mul.Tensor, aten.add.Tensor, aten.sin.default]))
    assert list(lowered.graph_signature.buffers_to_mutate.values()) == ["count"]
    torch.testing.assert_close(run_twice(lowered.module(), inputs), expected)


def test_state_with_a_use_outside_is_not_tagged(edge, take):
    inputs = (torch.tensor([1.0, 2.0]),)
    expected = run_twice(Counter(), inputs)
    partitioner = take([aten.add.Tensor, aten.sin.default], own_state=True)
    lowered = to_backend(edge(Counter(), inputs), partitioner)
    assert list(lowered.graph_signature.buffers_to_mutate.values()) == ["count"]
    torch.testing.assert_close(run_twice(lowered.module(), inputs), expected)


def test_new_state_that_is_also_a_result_leaves_the_delegate(edge, take):
    class Returned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(x)
            return self.count.clone() + 0.5, torch.exp(self.count)

    inputs = (torch.ones(2),)
    model = Returned()
    expected = [[t.clone() for t in model(*inputs)] for _ in range(2)]
    lowered = to_backend(edge(Returned(), inputs), take([aten.add.Tensor], own_state=True))
    module = lowered.module()
    for want in expected:
        torch.testing.assert_close(list(module(*inputs)), want)
    (delegate, *_) = delegates_in(lowered.graph_module)
    assert delegate.lowered.original_module.graph_signature.buffers_to_mutate


def test_tag_mutated_buffer_without_state_does_nothing(edge):
    program = edge(Shared(), (torch.randn(3),))
    tag_mutated_buffer(program)
    assert not [n for n in program.graph.nodes if TAG_KEY in n.meta]
