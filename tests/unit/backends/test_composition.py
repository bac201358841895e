"""A lowered module as a part of other modules and of other delegates."""

import copy

import pytest
import torch

from workbench import provenance
from workbench.backends import (
    BackendDetails,
    LoweredBackendModule,
    PreprocessResult,
    delegates_in,
    executorch_call_delegate,
    to_backend,
)
from workbench.backends.standalone import standalone_program
from workbench.errors import PartitionError
from workbench.passes.to_edge import to_edge_program

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.sin(self.linear(x))


class Nested(torch.nn.Module):
    def forward(self, pair, *, scale):
        return {"sum": pair[0] + pair[1], "scaled": (pair[0] * scale, pair[1])}


class Parent(torch.nn.Module):
    def __init__(self, lowered):
        super().__init__()
        self.lowered = lowered
        self.register_buffer("bias", torch.full((3,), 0.5))

    def forward(self, x):
        a = self.lowered(x)
        b = self.lowered(a)
        return a, b, a + b + self.bias


@pytest.fixture
def lowered(edge):
    torch.manual_seed(0)
    model = Inner()
    return model, to_backend("Recorder", edge(model, (torch.randn(2, 3),)), [])


def test_lowered_module_runs_as_the_original(lowered):
    model, module = lowered
    x = torch.randn(2, 3)
    torch.testing.assert_close(module(x), model(x))
    assert module.backend_id == "Recorder" and module.compile_specs == []
    assert "aten.sin.default" in module.processed_bytes.decode()


@pytest.mark.parametrize("strict", [False, True])
def test_parent_is_captured_with_one_call_for_each_use(lowered, strict):
    model, module = lowered
    x = torch.randn(2, 3)
    exported = torch.export.export(Parent(module), (x,), strict=strict)
    provenance.assign(exported)
    program = to_edge_program(exported)[0]
    found = list(delegates_in(program.graph_module))
    assert len(found) == 2
    assert all(d.lowered.processed_bytes is module.processed_bytes for d in found)
    expected = Parent(model)(x)
    torch.testing.assert_close(program.module()(x), expected)


def test_weights_of_a_lowered_module_are_no_parameters_of_the_parent(lowered):
    _, module = lowered
    exported = torch.export.export(Parent(module), (torch.randn(2, 3),))
    assert list(exported.state_dict) == ["bias"]


def test_gradients_do_not_get_in_the_way(lowered):
    _, module = lowered
    x = torch.randn(2, 3, requires_grad=True)
    assert module(x).shape == (2, 3)


def test_structured_inputs_and_outputs_come_back_in_their_structure(edge):
    pair, scale = (torch.randn(2), torch.randn(2)), torch.randn(2)
    exported = torch.export.export(Nested(), (pair,), {"scale": scale})
    module = to_backend("Recorder", exported, [])
    torch.testing.assert_close(module(pair, scale=scale), Nested()(pair, scale=scale))
    with pytest.raises(PartitionError, match="structure"):
        module(pair[0], scale=scale)


def test_deepcopy_shares_the_blob_and_the_module(lowered):
    _, module = lowered
    assert copy.deepcopy(Parent(module)).lowered is module


def test_standalone_program_is_one_call_with_flat_results(edge):
    pair, scale = (torch.randn(2), torch.randn(2)), torch.randn(2)
    module = to_backend("Recorder", torch.export.export(Nested(), (pair,), {"scale": scale}), [])
    program = standalone_program(module)
    assert next(n.target for n in program.graph.nodes if n.op == "call_function") is executorch_call_delegate
    results = program.module()(*pair, scale)
    want = Nested()(pair, scale=scale)
    torch.testing.assert_close(list(results), [want["sum"], want["scaled"][0], want["scaled"][1]])


def test_whole_module_that_returns_a_number_is_refused(edge):
    class Number(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x), 7

    with pytest.raises(PartitionError, match="must return tensors"):
        to_backend("Recorder", torch.export.export(Number(), (torch.ones(2),)), [])


def test_whole_module_that_writes_its_input_is_refused(edge):
    class Writes(torch.nn.Module):
        def forward(self, x):
            x.add_(1.0)
            return x * 2

    exported = torch.export.export(Writes(), (torch.ones(2),)).run_decompositions({})
    with pytest.raises(PartitionError, match="leave its inputs alone"):
        to_backend("Recorder", exported, [])


def test_program_of_a_delegate_may_hold_delegates_of_another_backend(edge, take):
    class Outer(BackendDetails):
        """Lowers sin to the inner backend, and keeps the rest itself."""

        @staticmethod
        def preprocess(edge_program, compile_specs):
            inner = to_backend(edge_program, take([aten.sin.default]))
            blobs = [d.lowered.processed_bytes for d in delegates_in(inner.graph_module)]
            return PreprocessResult(b"outer(" + b",".join(blobs) + b")", delegate_info=inner)

    model = torch.nn.Sequential(Inner(), Inner())
    inputs = (torch.randn(2, 3),)
    lowered = to_backend(
        edge(model, inputs), take([aten.sin.default, aten.addmm.default, aten.permute_copy.default], "Outer")
    )
    (delegate,) = delegates_in(lowered.graph_module)
    assert delegate.lowered.processed_bytes == b"outer(aten.sin.default,aten.sin.default)"
    inner = delegate.lowered.meta["delegate_info"]
    assert [d.lowered.backend_id for d in delegates_in(inner.graph_module)] == ["Recorder", "Recorder"]
    # What the outer backend did to its copy doesn't show in the program that was lowered.
    assert list(delegates_in(delegate.lowered.original_module.graph_module)) == []
    torch.testing.assert_close(inner.module()(*inputs), (model(*inputs),))
    torch.testing.assert_close(lowered.module()(*inputs), model(*inputs))


def test_call_of_a_delegate_can_be_taken_into_another_delegate(edge, take):
    class Whole(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            (inner,) = delegates_in(edge_program.graph_module)
            return PreprocessResult(b"whole:" + inner.lowered.processed_bytes)

    model, inputs = Inner(), (torch.randn(2, 3),)
    module = to_backend(edge(model, inputs), take([aten.sin.default]))
    outer = to_backend("Whole", module, [])
    assert outer.processed_bytes == b"whole:aten.sin.default"
    torch.testing.assert_close(outer(*inputs), model(*inputs))


def test_lowered_module_is_recognised_by_torchs_verifier(lowered):
    _, module = lowered
    assert type(module).__name__ == LoweredBackendModule.__name__ == "LoweredBackendModule"
    standalone_program(module).validate()
