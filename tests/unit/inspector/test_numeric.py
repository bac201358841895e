from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from workbench.backends.debug import ensure_debug_handles
from workbench.errors import TraceError
from workbench.inspector.events import Event
from workbench.inspector.numeric import DISTANCES, compare


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 6)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        y = torch.relu(self.lin(x))
        values, places = torch.max(y, 1)
        return y.t().reshape(-1), values + self.count, places


@pytest.fixture
def program():
    torch.manual_seed(0)
    program = torch.export.export(Net().eval(), (torch.randn(3, 4),)).run_decompositions()
    ensure_debug_handles(program)
    return program


def handle(program, name):
    return next(node.meta["debug_handle"] for node in program.graph.nodes if node.name.startswith(name))


def eager(program, x):
    weight, bias = program.state_dict["lin.weight"], program.state_dict["lin.bias"]
    linear = (x @ weight.T + bias).detach()
    return linear, linear.relu()


def test_values_are_joined_by_handle_and_measured(program):
    x = torch.randn(3, 4)
    linear, relu = eager(program, x)
    events = [
        Event("mm", debug_handles=(handle(program, "addmm"),), instruction=3, debug_data=[linear]),
        Event("relu", debug_handles=(handle(program, "relu"),), instruction=4, debug_data=[relu + 0.25]),
    ]
    result = compare(events, program, (x,), "MAX_ERROR")
    assert result.table["runtime_ops"].tolist() == [["mm"], ["relu"]]
    assert result.table["gap"].iloc[0] < 1e-6
    assert result.table["gap"].iloc[1] == pytest.approx(0.25)
    assert result.table["module"].tolist() == ["lin", ""]
    assert all("test_numeric.py" in source for source in result.table["source"])


def test_nodes_without_a_value_are_named_with_the_reason(program):
    x = torch.randn(3, 4)
    relu = eager(program, x)[1]
    handles = (handle(program, "addmm"), handle(program, "relu"))
    events = [
        Event("delegate", debug_handles=handles, instruction=0, debug_data=[relu]),
        Event("max", debug_handles=(handle(program, "max_1"),), instruction=1, debug_data=[torch.ones(5)]),
    ]
    result = compare(events, program, (x,), "SQNR")
    assert result.table["aot_ops"].tolist() == [["relu"]]
    reasons = dict(zip(result.unmatched["node"], result.unmatched["reason"], strict=True))
    assert "inside of delegate" in reasons["addmm"]
    assert "other shapes: (5,)" in reasons["max_1"]
    assert "no instruction" in reasons["permute"]
    assert "relu" not in reasons


def test_results_of_one_node_are_matched_in_their_places(program):
    x = torch.randn(3, 4)
    values, places = eager(program, x)[1].max(1)
    event = Event(
        "max", debug_handles=(handle(program, "max_1"),), instruction=1, debug_data=[values, places]
    )
    table = compare([event], program, (x,), "MSE").table
    assert table["output_index"].tolist() == [0, 1]
    assert table["dtype"].tolist() == ["float32", "int64"]
    assert (table["gap"] < 1e-12).all()


def test_delegate_call_is_left_out_where_its_inside_is_known(program):
    x = torch.randn(3, 4)
    linear, relu = eager(program, x)
    handles = (handle(program, "addmm"), handle(program, "relu"))
    events = [
        Event("call", debug_handles=handles, instruction=0, debug_data=[relu]),
        Event("1", debug_handles=handles[:1], instruction=0, debug_data=[linear], is_delegated_op=True),
        Event("2", debug_handles=handles[1:], instruction=0, debug_data=[relu], is_delegated_op=True),
    ]
    assert compare(events, program, (x,), "MSE").table["runtime_ops"].tolist() == [["1"], ["2"]]


def test_reference_does_not_change_the_programs_buffers(program):
    x = torch.randn(3, 4)
    for _ in range(2):
        relu = eager(program, x)[1]
        added = relu.max(1).values + 1
        event = Event("add", debug_handles=(handle(program, "add_1"),), instruction=0, debug_data=[added])
        assert compare([event], program, (x,), "MAX_ERROR").table["gap"].tolist() == pytest.approx(
            [0], abs=1e-6
        )
    assert float(program.state_dict["count"]) == 0


def test_nan_on_one_side_is_not_hidden(program):
    x = torch.randn(3, 4)
    linear = eager(program, x)[0]
    broken = linear.clone()
    broken[0, 0] = math.nan
    event = Event("mm", debug_handles=(handle(program, "addmm"),), instruction=0, debug_data=[broken])
    assert math.isnan(compare([event], program, (x,), "SQNR").table["gap"].iloc[0])


def test_distances_of_known_vectors():
    reference, value = torch.tensor([3.0, 4.0]).double(), torch.tensor([3.0, 3.5]).double()
    assert DISTANCES["SQNR"](reference, value) == pytest.approx(10 * math.log10(25 / 0.25))
    assert DISTANCES["MSE"](reference, value) == 0.125
    assert DISTANCES["MAX_ERROR"](reference, value) == 0.5
    assert DISTANCES["L1"](reference, value) == 0.5
    assert DISTANCES["COSINE"](reference, reference * 2) == pytest.approx(1)
    assert DISTANCES["SQNR"](reference, reference) == math.inf


def test_own_distance_is_used(program):
    x = torch.randn(3, 4)
    event = Event("mm", debug_handles=(handle(program, "addmm"),), debug_data=[eager(program, x)[0]])
    assert compare([event], program, (x,), lambda a, b: 42.0).table["gap"].tolist() == [42.0]


def test_unknown_distance_and_missing_inputs_are_refused(program):
    with pytest.raises(TraceError, match="unknown distance"):
        compare([], program, (torch.zeros(3, 4),), "PSNR")
    with pytest.raises(TraceError, match="too few inputs"):
        compare([], program, (), "MSE")
