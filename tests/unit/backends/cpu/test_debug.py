"""The inside of a delegate in profiles and comparisons: fused groups, their members, tapped values."""

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.inspector.symbols import MethodSymbols


class Network(nn.Module):
    """Convolution, norms, pointwise chains, a reduction, a product, a recurrent layer and views."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 6)
        self.norm = nn.LayerNorm(6)
        self.lstm = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x):
        image = torch.relu(self.bn(self.conv(x)))
        pooled = (image * 2 + 1).mean((2, 3))
        rows = self.norm(nn.functional.gelu(self.linear(pooled)))
        states, (hidden, _) = self.lstm(rows[:, None, :].expand(-1, 4, -1))
        return torch.softmax(states, -1), image + 1, hidden


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    torch.manual_seed(0)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    return wb.lower(Network().eval(), (torch.randn(2, 3, 8, 8),), recipe=recipe, progress=False)


def test_joined_identifiers_unite_the_handles_of_their_members():
    inside = {"name": "A", "delegate_map": {"1": (11,), "12": (22, 23), "3": (11, 33)}}
    numbers = {"name": "B", "delegate_map": {1: (11,), 12: (22,)}}
    symbols = MethodSymbols({}, {0: inside, 1: numbers})
    assert symbols.handles(0, "12+1") == (22, 23, 11)
    assert symbols.handles(0, "1+3") == (11, 33)
    assert symbols.handles(0, "12") == (22, 23)
    assert symbols.handles(1, "1+12") == (11, 22)
    assert symbols.handles(1, "12") == (22,) and symbols.handles(1, 12) == (22,)
    # What was never announced stands for nothing, rather than for the part that is known.
    assert MethodSymbols({}, {0: {"delegate_map": {"1": (11,)}}}).handles(0, "7+8") == ()


def test_every_event_inside_leads_back_to_its_nodes(lowering):
    inspector = lowering.run(*lowering.example_inputs(), profile=True).inspector
    inside = [event for _, event in inspector.events() if event.is_delegated_op]
    known = [event for event in inside if event.nodes]
    operators = {op for event in known for op in event.op_types}
    assert {"aten.convolution.default", "aten.lstm.input", "aten.gelu.default"} <= operators
    for event in known:
        assert len(event.nodes) >= len(str(event.delegate_debug_identifier).split("+"))
        assert all(node.source and __file__ in node.source for node in event.nodes)
    # What has no identifier is the engine's own: a transpose at the border, at most.
    assert {event.name for event in inside if not event.nodes} <= {"transpose", "copy", "reshape", "convert"}


def test_fused_group_can_be_opened(lowering):
    inspector = lowering.run(*lowering.example_inputs(), profile=True).inspector
    members = inspector.members()
    groups = members[members["event_name"].str.contains(r"\d\+\d", regex=True)]
    (name,) = groups[groups["op"] == "aten.gelu.default"]["event_name"].unique()
    opened = inspector.members(name)
    assert opened["op"].tolist() == ["aten.linear.default", "aten.gelu.default"]
    assert opened["flops"].tolist() == [(2 * 8 + 1) * 12, 12]
    assert opened["bytes"].tolist() == [4 * (16 + 48 + 6 + 12), 4 * 24]
    assert opened["share"].sum() == pytest.approx(1)
    table = inspector.table()
    assert table[table["event_name"] == name]["members"].tolist() == [["linear", "gelu"]]


def test_numeric_gap_knows_every_node_inside(lowering):
    inputs = lowering.example_inputs()
    run = lowering.run(*inputs, values=True)
    gaps = run.inspector.calculate_numeric_gap("SQNR", inputs)
    assert len(gaps.attrs["unmatched"]) == 0
    compared = {name for names in gaps["aot_ops"] for name in names}
    edge = lowering.edge.exported_program()
    assert compared == {
        node.name
        for node in edge.graph.nodes
        if node.op == "call_function" and getattr(node.target, "__name__", "") != "getitem"
    }
    assert gaps["gap"].min() > 90 and bool(gaps["inside"].all())


def test_taps_leave_the_results_as_they_are(lowering):
    inputs = lowering.example_inputs()
    plain = lowering.execute(*inputs)
    tapped = lowering.run(*inputs, values=True).outputs
    for one, other in zip(plain, tapped, strict=True):
        assert torch.equal(one, other)
