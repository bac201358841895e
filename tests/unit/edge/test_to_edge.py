"""Programs in the edge dialect compute what the model computes, and have the operators of the dialect."""

from __future__ import annotations

import copy
import time

import pytest
import torch
from torch import nn
from torch.export import Dim

from networks import NETWORKS, SMALL, build, small
from workbench import provenance
from workbench.backends.programs import copy_program
from workbench.edge.config import EdgeCompileConfig
from workbench.edge.invariants import verify
from workbench.edge.text import dump
from workbench.errors import VerificationError
from workbench.export import export
from workbench.passes.to_edge import decompose, edge_passes, to_edge_program
from workbench.passes.to_runtime import prepare_for_runtime

aten = torch.ops.aten
_QUICK = ("mlp", "dscnn", "resnet18", "lstm")


def _agree(program, inputs, expected):
    found = torch.utils._pytree.tree_leaves(copy_program(program).module()(*inputs))
    expected = torch.utils._pytree.tree_leaves(expected)
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5, equal_nan=True)


def _check(network):
    inputs = network.inputs
    expected = network.eager()
    with torch.no_grad():
        exported = export(network.model, inputs, dynamic_shapes=network.dynamic_shapes)
        edge, _ = to_edge_program(exported)
        verify(edge, "edge")
        _agree(edge, inputs, expected)
        prepared = copy_program(edge)
        prepare_for_runtime(prepared)
        verify(prepared, "edge")
        prepared.graph_module.recompile()
        _agree(prepared, inputs, expected)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name in _QUICK])
def test_network_agrees_with_eager(name):
    _check(build(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in _QUICK])
def test_large_network_agrees_with_eager(name):
    _check(build(name))


@pytest.mark.parametrize("name", list(SMALL))
def test_small_model_agrees_with_eager(name):
    _check(small(name))


def test_exported_program_keeps_buffers_that_are_not_saved():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.arange(4.0))
            self.register_buffer("computed", torch.arange(4.0) * 2, persistent=False)

        def forward(self, x):
            return x * self.kept + (self.computed - 1)  # folded

    x = torch.randn(4)
    exported = export(Table(), (x,))
    constants = dict(exported.constants)
    edge, _ = to_edge_program(exported)
    assert list(exported.constants) == ["computed"] == list(constants)
    assert list(edge.constants) != ["computed"]
    _agree(exported, (x,), Table()(x))
    _agree(edge, (x,), Table()(x))


def test_exported_program_is_not_changed():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    exported = export(model, (torch.randn(1, 3, 8, 8),))
    before, weights = str(exported.graph), {name: item.clone() for name, item in exported.state_dict.items()}
    edge, _ = to_edge_program(exported)
    prepare_for_runtime(copy_program(edge))
    assert str(exported.graph) == before
    for name, item in exported.state_dict.items():
        assert torch.equal(item, weights[name])


def test_weights_are_shared_not_copied():
    model = nn.Linear(8, 8)
    edge, _ = to_edge_program(export(model, (torch.randn(2, 8),)))
    assert edge.state_dict["weight"].data_ptr() == model.weight.data_ptr()


def test_every_node_knows_the_exported_nodes_it_comes_from():
    network = build("dscnn")
    exported = export(network.model, network.inputs)
    edge, _ = to_edge_program(exported)
    sources = provenance.source_map(edge)
    for node in edge.graph.nodes:
        found = sources.resolve(provenance.handles(node))
        assert found, node
    convolution = next(node for node in edge.graph.nodes if node.target is aten.convolution.default)
    found = sources.resolve(provenance.handles(convolution))
    assert [source.module_path for source in found] == ["0", "1"]
    assert found[0].module_type == "torch.nn.modules.conv.Conv2d"
    assert found[1].module_type == "torch.nn.modules.batchnorm.BatchNorm2d"


def test_preserved_operator_stays_whole_everywhere_or_at_given_nodes():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    exported = export(model, (torch.randn(2, 4),))
    linear = aten.linear.default
    everywhere = decompose(exported, preserve={linear})
    assert sum(node.target is linear for node in everywhere.graph.nodes) == 2
    first = next(node for node in exported.graph.nodes if node.target is linear)
    somewhere = decompose(exported, preserve_at={linear: provenance.handles(first)})
    assert sum(node.target is linear for node in somewhere.graph.nodes) == 1
    assert sum(node.target is aten.addmm.default for node in somewhere.graph.nodes) == 1
    nowhere = decompose(exported, preserve_at={linear: frozenset()})
    assert not any(node.target is linear for node in nowhere.graph.nodes)


def test_preserved_operator_is_decomposed_again_in_the_next_program():
    exported = export(nn.Linear(4, 4), (torch.randn(2, 4),))
    decompose(exported, preserve={aten.linear.default})
    assert not any(node.target is aten.linear.default for node in decompose(exported).graph.nodes)


def test_dynamic_sizes_keep_their_bounds():
    batch = Dim("batch", min=1, max=64)
    edge, _ = to_edge_program(export(nn.Linear(8, 4), (torch.randn(3, 8),), dynamic_shapes=({0: batch},)))
    (limits,) = edge.range_constraints.values()
    assert (limits.lower, limits.upper) == (1, 64)
    for rows in (1, 7, 64):
        assert edge.module()(torch.randn(rows, 8)).shape == (rows, 4)


def test_mutated_buffers_stay_in_the_signature():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.tensor([5.0]))

        def forward(self, x):
            self.n.add_(1)
            return x + self.n

    edge, _ = to_edge_program(export(Counter(), (torch.zeros(1),)))
    assert list(edge.graph_signature.buffers_to_mutate.values()) == ["n"]
    run = copy.deepcopy(edge.module())
    assert [run(torch.zeros(1)).item() for _ in range(3)] == [6.0, 7.0, 8.0]
    assert edge.state_dict["n"].item() == 5.0


def test_memory_formats_are_kept_where_dim_orders_are_switched_off():
    config = EdgeCompileConfig(_skip_dim_order=True)
    edge, _ = to_edge_program(export(nn.Identity(), (torch.randn(3),)), config)
    model = type("Cast", (nn.Module,), {"forward": lambda self, x: x.double()})()
    edge, _ = to_edge_program(export(model, (torch.randn(3),)), config)
    assert any(node.target is aten._to_copy.default for node in edge.graph.nodes)


def test_bucketize_counts_boundaries_and_puts_nan_last():
    class Buckets(nn.Module):
        def forward(self, x, b):
            return torch.bucketize(x, b), torch.bucketize(x, b, right=True, out_int32=True)

    x, b = torch.tensor([0.0, 1, 1.5, 3, 9, float("nan"), float("-inf")]), torch.tensor([1.0, 2, 3])
    edge, _ = to_edge_program(export(Buckets(), (x, b)))
    verify(edge, "edge")
    _agree(edge, (x, b), Buckets()(x, b))


def test_operator_outside_core_is_refused_with_a_hint():
    class Median(nn.Module):
        def forward(self, x):
            return x.median()

    edge, _ = to_edge_program(export(Median(), (torch.randn(3),)))
    with pytest.raises(VerificationError, match="core") as caught:
        verify(edge, "edge")
    assert "_core_aten_ops_exception_list" in caught.value.hint


def _golden_models():
    class Branches(nn.Module):
        def forward(self, p, x):
            return torch.cond(p, lambda x: x.sin() + 1, lambda x: x.view(6).view(2, 3) * 2, (x,))

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(3))

        def forward(self, x):
            self.n.add_(1)
            return x * self.n

    image = torch.zeros(1, 3, 6, 6)
    batch = Dim("batch", min=2, max=16)
    return {
        "conv_bn_relu": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (image,), None),
        "linear_dynamic": (nn.Sequential(nn.Linear(4, 3), nn.Sigmoid()), (torch.zeros(3, 4),), ({0: batch},)),
        "cond": (Branches(), (torch.tensor(True), torch.zeros(2, 3)), None),
        "counter": (Counter(), (torch.zeros(3),), None),
        "pad_channels_last": (nn.ZeroPad2d(1), (image.to(memory_format=torch.channels_last),), None),
    }


@pytest.mark.parametrize("name", list(_golden_models()))
def test_stages_read_as_in_the_golden_files(name, golden):
    model, inputs, shapes = _golden_models()[name]
    exported = export(model.eval(), inputs, dynamic_shapes=shapes)
    edge, _ = to_edge_program(exported)
    prepared = copy_program(edge)
    prepare_for_runtime(prepared)
    stages = {"exported": exported, "edge": edge, "prepared": prepared}
    golden(f"edge/{name}.txt", "\n".join(f"== {stage}\n{dump(item)}" for stage, item in stages.items()))


def test_passes_take_a_small_part_of_the_time_of_the_decomposition():
    network = build("dscnn")
    exported = export(network.model, network.inputs)
    start = time.process_time()
    decomposed = decompose(exported)
    middle = time.process_time()
    for step in edge_passes(EdgeCompileConfig()):
        step(decomposed)
    verify(decomposed, "edge")
    end = time.process_time()
    # A hundredth, in fact; ten times as much would still be far from what the user notices.
    assert end - middle < 0.2 * (middle - start)


def test_quantized_operators_stay_as_they_are():
    from torch.ao.quantization.fx import _decomposed  # noqa: F401

    quantized = torch.ops.quantized_decomposed

    class Quantized(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randint(-127, 127, (3, 4), dtype=torch.int8))

        def forward(self, x):
            q = quantized.quantize_per_tensor.default(x, 0.02, 1, -128, 127, torch.int8)
            x = quantized.dequantize_per_tensor.default(q, 0.02, 1, -128, 127, torch.int8)
            weight = quantized.dequantize_per_tensor.default(self.weight, 0.1, 0, -127, 127, torch.int8)
            return nn.functional.linear(x, weight)

    model, x = Quantized(), torch.randn(2, 4)
    edge, _ = to_edge_program(export(model, (x,)))
    verify(edge, "edge")
    prepared = copy_program(edge)
    prepare_for_runtime(prepared)
    for program in (edge, prepared):
        names = [
            str(node.target) for node in program.graph.nodes if "quantized_decomposed" in str(node.target)
        ]
        assert len(names) == 3
        _agree(program, (x,), model(x))
    assert edge.state_dict["weight"].dtype == torch.int8
