"""The demo backends: what they take, what they write, and that the native half runs it."""

import struct

import pytest
import torch

from workbench import to_edge
from workbench.backends import CompileSpec, DelegationSpec, delegates_in, partition, to_backend, why_not
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.backends.demo.bytecode import max_rank_of
from workbench.errors import ExecutionError, PartitionError
from workbench.inspector.trace import Kind, Trace
from workbench.managers import EdgeProgramManager
from workbench.runtime import Runtime, TraceSession


class AddMul(torch.nn.Module):
    """Everything that the backend has: broadcasting, alpha, numbers, constants, mm."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))
        self.register_buffer("scale", torch.randn(3))

    def forward(self, x, y):
        a = torch.add(x, y, alpha=3) * 0.5
        b = torch.mm(a, self.weight) * self.scale
        return b + torch.mm(x, self.weight), a


def manager(model, inputs, **options):
    return to_edge(torch.export.export(model.eval(), inputs, **options))


def method(manager: EdgeProgramManager, **options):
    return Runtime.get().load_program(manager.to_executorch().buffer).load_method("forward", **options)


def run(manager, *inputs):
    return method(manager).execute(inputs)


def whole(model, inputs, specs=()):
    return to_backend("BackendWithCompilerDemo", manager(model, inputs).exported_program(), list(specs))


def test_partitioned_program_runs_natively_as_eager():
    torch.manual_seed(0)
    model, inputs = AddMul(), (torch.randn(2, 4), torch.randn(4))
    lowered = manager(model, inputs).to_backend(AddMulPartitionerDemo())
    program = lowered.exported_program()
    assert len(list(delegates_in(program.graph_module))) == 1 and why_not(program) == []
    torch.testing.assert_close(run(lowered, *inputs), list(model(*inputs)))


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 1, 3), (2, 3, 1, 2)])
def test_shapes_from_scalars_to_rank_four(shape):
    class Square(torch.nn.Module):
        def forward(self, x):
            return x * x + 1.0

    inputs = (torch.randn(shape),)
    lowered = manager(Square(), inputs).to_backend(AddMulPartitionerDemo())
    assert len(list(delegates_in(lowered.exported_program().graph_module))) == 1
    torch.testing.assert_close(run(lowered, *inputs), [Square()(*inputs)])


@pytest.mark.parametrize(
    ("left", "right"), [((2, 1), (1, 3)), ((3,), (2, 3)), ((2, 3, 4), (3, 1)), ((1, 1, 2), (4, 3, 2))]
)
def test_broadcasting_in_both_directions(left, right):
    class Both(torch.nn.Module):
        def forward(self, x, y):
            return (x + y) * x, y * x

    inputs = (torch.randn(left), torch.randn(right))
    torch.testing.assert_close(
        run(manager(Both(), inputs).to_backend(AddMulPartitionerDemo()), *inputs), list(Both()(*inputs))
    )


def test_whole_module_with_matrix_products_and_sine():
    class Compiled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 5))

        def forward(self, x):
            a = torch.sin(torch.mm(x, self.weight))
            return a, torch.add(a, a, alpha=-2), x, a

    model, inputs = Compiled(), (torch.randn(2, 3),)
    lowered = whole(model, inputs)
    program = Runtime.get().load_program(lowered.buffer())
    torch.testing.assert_close(program.load_method("forward").execute(inputs), list(model(*inputs)))


@pytest.mark.parametrize(
    ("inputs", "dynamic", "reason", "eligible"),
    [
        ((torch.ones(2, dtype=torch.int64),), None, "torch.int64", "torch.float32"),
        ((torch.ones(1, 1, 1, 1, 2),), None, "rank 5, above max_value 4", "rank <= 4"),
        ((torch.ones(4),), ({0: torch.export.Dim("n", min=2, max=9)},), "dynamic shape", "static"),
        (
            (torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),),
            None,
            "not contiguous",
            "dim order",
        ),
    ],
)
def test_what_is_left_behind_says_why_and_what_would_do(inputs, dynamic, reason, eligible):
    class Double(torch.nn.Module):
        def forward(self, x):
            return x + x

    edge = manager(Double(), inputs, dynamic_shapes=dynamic).exported_program()
    result = partition(edge, AddMulPartitionerDemo())
    (found,) = (r for r in result.reasons if r.target == "aten.add.Tensor")
    assert reason in found.reason and eligible in (found.eligible_if or "")


def test_unsupported_operator_in_a_whole_module_names_node_and_line():
    class Cosine(torch.nn.Module):
        def forward(self, x):
            return torch.cos(x)

    with pytest.raises(PartitionError) as caught:
        whole(Cosine(), (torch.ones(2),))
    assert caught.value.node == "cos" and __file__ in (caught.value.source or "")
    assert "aten.sin.default" in (caught.value.hint or "")


def test_state_in_a_whole_module_is_refused():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(x)
            return self.count + x

    with pytest.raises(PartitionError, match="keeps no state"):
        whole(Counter(), (torch.ones(2),))


def test_max_value_limits_the_rank_in_both_halves():
    class Sine(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x)

    inputs = (torch.ones(2, 2),)
    with pytest.raises(PartitionError, match="above max_value 1"):
        whole(Sine(), inputs, [CompileSpec("max_value", bytes([1]))])
    assert max_rank_of([]) == 4 and max_rank_of([CompileSpec("max_value", bytes([6, 0, 0, 0]))]) == 6
    with pytest.raises(PartitionError, match="max_value"):
        max_rank_of([CompileSpec("max_value", bytes([9]))])
    lowered = whole(Sine(), inputs, [CompileSpec("max_value", bytes([2]))])
    lowered.compile_specs[0] = CompileSpec("max_value", bytes([1]))
    with pytest.raises(ExecutionError, match="max_value"):
        Runtime.get().load_program(lowered.buffer()).load_method("forward")


def test_blob_that_its_backend_does_not_understand_is_refused_by_name():
    class Sine(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x)

    lowered = whole(Sine(), (torch.ones(2),))
    lowered._processed_bytes = struct.pack("<4sI", b"WBDM", 99) + lowered.processed_bytes[8:]
    with pytest.raises(ExecutionError, match="version 99"):
        Runtime.get().load_program(lowered.buffer()).load_method("forward")


def test_instructions_show_in_the_trace_and_lead_back_to_their_nodes():
    inputs = (torch.randn(2, 4), torch.randn(4))
    lowered = manager(AddMul(), inputs).to_backend(AddMulPartitionerDemo())
    (delegate,) = delegates_in(lowered.exported_program().graph_module)
    nodes = {
        node.meta["debug_handle"]: str(node.target)
        for node in delegate.lowered.original_module.graph.nodes
        if node.op == "call_function"
    }
    trace = Trace(TraceSession())
    method(lowered).execute(inputs, trace=trace.session)
    trace.collect()
    batch = trace.batch()
    inside = [event for event in batch.events if event["kind"] == Kind.DELEGATE]
    handles = delegate.lowered.meta["debug_handle_map"]
    assert [event["delegate_id"] for event in inside] == sorted(handles)
    for event in inside:
        (handle,) = handles[int(event["delegate_id"])]
        assert nodes[handle].split(".")[1] == batch.name(int(event["name"]))
        assert event["instruction"] == 0 and event["start_ns"] <= event["end_ns"]


def test_specification_names_the_backend():
    spec = AddMulPartitionerDemo().delegation_spec
    assert spec == DelegationSpec("AddMulBackendDemo", [CompileSpec("max_value", b"\x04")])
