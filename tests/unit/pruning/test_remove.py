from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim

import networks
import workbench as wb
from agreement import assert_agrees
from pruning_models import MODELS, build
from workbench import provenance
from workbench.backends.programs import copy_program
from workbench.export import export
from workbench.pruning import couple, mask, remove
from workbench.stages import Exported


def _some_units(coupling, seed: int) -> np.ndarray:  # type: ignore[no-untyped-def, type-arg]
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(family.units, rng.integers(1, len(family.units)), replace=False)
        for family in coupling.families
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *chosen])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [name for name in MODELS if name != "shuffled"])
def test_smaller_program_computes_what_the_masked_one_does(name: str, seed: int) -> None:
    model, inputs = build(name)
    program = export(model, inputs)
    coupling = couple(program)
    removed = _some_units(coupling, seed)
    smaller, masked = remove(program, coupling, removed), mask(program, coupling, removed)
    with torch.no_grad():
        expected = masked.module()(*inputs)
        assert_agrees([smaller.module()(*inputs)], expected)
        assert not torch.allclose(expected, model(*inputs)), "nothing was masked"
    sizes = [sum(value.numel() for value in each.state_dict.values()) for each in (smaller, program)]
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("name", ["dscnn", "encoder", "separable"])
def test_network_computes_what_the_masked_one_does_in_the_runtime(name: str) -> None:
    network = networks.build(name) if name == "dscnn" else networks.Network(name, *build(name))
    program = export(network.model, network.inputs)
    coupling = couple(program)
    removed = _some_units(coupling, 0)
    with torch.no_grad():
        expected = mask(program, coupling, removed).module()(*network.inputs)
    lowering = wb.lower(
        remove(program, coupling, removed), recipe=wb.Recipe(partitioner=wb.XnnpackPartitioner())
    )
    assert_agrees(lowering.run(*network.inputs).outputs, expected)


def test_program_that_is_pruned_stays_as_it_is() -> None:
    program = export(*build("separable"))
    stage = Exported({"forward": program}, copy=copy_program)
    before = stage.fingerprint
    coupling = couple(program)
    removed = _some_units(coupling, 0)
    remove(program, coupling, removed)
    mask(program, coupling, removed)
    assert stage._measure({}) == before


def test_shapes_of_all_nodes_are_those_of_the_values() -> None:
    model, inputs = build("encoder")
    program = export(model, inputs)
    coupling = couple(program)
    smaller = remove(program, coupling, _some_units(coupling, 1))

    class Shapes(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> object:
            value = super().run_node(n)
            if isinstance(value, torch.Tensor) and "val" in n.meta:
                assert value.shape == n.meta["val"].shape, n.name
            return value

    values = [smaller.state_dict.get(str(s.target), inputs[0]) for s in smaller.graph_signature.input_specs]
    Shapes(smaller.graph_module).run(*values)


def test_source_handles_stay() -> None:
    program = export(*build("residual"))
    coupling = couple(program)
    smaller = remove(program, coupling, _some_units(coupling, 0))
    for old, new in zip(program.graph.nodes, smaller.graph.nodes, strict=True):
        assert provenance.handles(old) == provenance.handles(new)
    assert len(provenance.source_map(smaller)) == len(provenance.source_map(program))


def test_program_of_any_batch_stays_one() -> None:
    model, _ = build("flat")
    inputs = (torch.randn(2, 1, 8, 8),)
    program = export(model, inputs, dynamic_shapes=({0: Dim("n", min=1, max=16)},))
    coupling = couple(program)
    assert [family.layers for family in coupling.families] == [("conv",), ("fc1",)]
    removed = _some_units(coupling, 0)
    smaller, masked = remove(program, coupling, removed), mask(program, coupling, removed)
    for count in (1, 5):
        x = torch.randn(count, 1, 8, 8)
        with torch.no_grad():
            assert_agrees([smaller.module()(x)], masked.module()(x))
