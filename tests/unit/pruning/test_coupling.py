from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pruning_models import MODELS, build
from workbench.export import export
from workbench.pruning import couple
from workbench.pruning.elements import Elements, Reason
from workbench.pruning.reshape import groups, refinement

# Name -> by family its layers and how many units it has.
FAMILIES = {
    "residual": {("stem", "a", "b"): 8},
    "concat": {("a",): 6, ("b",): 10},
    "separable": {("first", "depthwise", "grouped"): 4, ("up",): 6},
    "flat": {("conv",): 6, ("fc1",): 12},
    "gated": {("both",): 8},
    "heads": {("q", "k", "v"): 4},
    "encoder": {("layer.self_attn.in_proj_weight",): 4, ("layer.linear1",): 40},
    "shuffled": {},
}


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_that_depend_on_each_other_are_one_family(name: str) -> None:
    coupling = couple(export(*build(name)))
    assert {family.layers: len(family.units) for family in coupling.families} == FAMILIES[name]


def test_parts_of_a_layer_that_are_read_apart_are_families_of_their_own() -> None:
    families = couple(export(*build("sliced"))).families
    assert [(family.layers, len(family.units)) for family in families] == [(("both",), 8), (("both",), 6)]


@pytest.mark.parametrize(
    ("name", "layer", "words"),
    [
        ("residual", "head", "output of the program"),
        ("encoder", "layer.linear2", "normalized over"),
        ("shuffled", "a", "reshape"),
        ("heads", "o", "input of the program"),
    ],
)
def test_layer_that_stays_whole_says_why(name: str, layer: str, words: str) -> None:
    reasons = {item.layer: item for item in couple(export(*build(name))).why_not}
    assert words in reasons[layer].reason
    assert reasons[layer].handles


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.linear = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.lstm(x)[0])


def test_operator_without_a_rule_is_named() -> None:
    coupling = couple(export(Recurrent().eval(), (torch.randn(1, 5, 4),)))
    assert not coupling.families
    assert any("lstm" in item.reason for item in coupling.why_not if item.layer.startswith("lstm"))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.b(self.b(self.a(x)).relu()))


def test_layer_that_is_called_twice_ties_its_inputs_to_its_results() -> None:
    families = couple(export(Shared().eval(), (torch.randn(1, 4),))).families
    assert [(family.layers, len(family.units)) for family in families] == [(("a", "b"), 6)]


def test_every_unit_has_an_entry_in_every_slot() -> None:
    for name in MODELS:
        for family in couple(export(*build(name))).families:
            for units in family.slots.values():
                assert set(units[units >= 0]) == set(family.units)


def test_elements_tied_through_others_are_one_unit() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        elements = Elements()
        ids = elements.new([40])[0]
        pairs = rng.integers(0, 40, (25, 2))
        elements.tie(ids[pairs[:, 0]], ids[pairs[:, 1]])
        units, _ = elements.solve()
        expected = list(range(40))  # the plain way: paint until nothing changes
        while True:
            before = list(expected)
            for left, right in pairs:
                expected[left] = expected[right] = min(expected[left], expected[right])
            if before == expected:
                break
        assert list(units) == expected


def test_reason_that_is_no_choice_counts_before_one_that_is() -> None:
    elements = Elements()
    ids = elements.new([2])[0]
    elements.tie(ids[:1], ids[1:])
    elements.fix(ids[:1], Reason("a", "chosen", chosen=True))
    elements.fix(ids[1:], Reason("b", "needed"))
    _, why = elements.solve()
    assert elements.reasons[why[0]].text == "needed"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((2, 3, 4), (2, 12), [([0], [0]), ([1, 2], [1])]),
        ((2, 12), (2, 1, 3, 4), [([0], [0]), ([1], [2, 3])]),
        ((1, 6), (6, 1), [([1], [0])]),
        ((6, 4), (4, 6), [([0, 1], [0, 1])]),
        ((2, 3), (2, 3), [([0], [0]), ([1], [1])]),
    ],
)
def test_reshape_matches_dimensions_of_equal_products(
    before: tuple[int, ...], after: tuple[int, ...], expected: object
) -> None:
    assert groups(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([2, 24], [8, 6], [2, 4, 6]),
        ([6, 4], [4, 6], None),
        ([2, 6, 5], [4, 15], [2, 2, 3, 5]),
    ],
)
def test_several_dimensions_meet_in_the_shape_that_splits_both(
    before: list[int], after: list[int], expected: list[int] | None
) -> None:
    assert refinement(before, after) == expected
