"""Blobs of the CPU backend: what is written, shared and refused; and that both halves bear damaged ones."""

import random

import pytest
import torch
from torch import nn

import workbench as wb
from cpu_harness import program_of
from workbench.backends import CompileSpec, delegates_in, to_backend
from workbench.backends.blob import open_blob
from workbench.backends.cpu import CpuBackend
from workbench.backends.cpu.blob import read, write
from workbench.backends.cpu.graph import (
    Graph,
    Node,
    Op,
    SizeRule,
    Step,
    Value,
    ValueKind,
    WeightOrder,
    Window,
)
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.errors import ExecutionError, PartitionError, SerializationError
from workbench.runtime import Runtime


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(torch.relu(self.conv(x)).mean((2, 3)))


def delegate(model=None, inputs=None):
    model = model or Small()
    inputs = inputs or (torch.randn(1, 2, 6, 6),)
    manager = wb.to_edge_transform_and_lower(
        torch.export.export(model.eval(), inputs), partitioner=wb.CpuPartitioner()
    )
    (found,) = delegates_in(manager.exported_program().graph_module)
    return found.lowered


def test_graph_survives_writing_and_reading():
    graph = Graph(
        [
            Value(ValueKind.INPUT, torch.float16, (1, 9, 7, 3), dynamic=0b110),
            Value(ValueKind.CONSTANT, torch.float32, (4,), data=bytes(range(16))),
            Value(ValueKind.CONSTANT, torch.int64, (1000,), key="ab" * 32),
            Value(ValueKind.OUTPUT, torch.bool, (), external=3),
        ],
        [
            Node(
                Op.Convolution,
                (0, 1, 0xFFFFFFFF),
                (3,),
                {
                    "window": Window((3, 2), (2, 1), (1, 4), -1, 2, 3, 4, 5, True, True),
                    "weight_order": WeightOrder(27, 9, 3, 1),
                    "groups": 2,
                    "eps": 1e-5,
                    "sizes": (SizeRule(-1), SizeRule(2, 3)),
                    "permutation": (2, 0, 1),
                    "before": (-3, 2**40),
                },
                source=17,
            ),
            Node(Op.Pointwise, (0, 1), (3,), {}, (Step(3, (128, 0, 0), 0.5, -1.0),)),
        ],
        inputs=2,
        outputs=4,
    )
    assert read(write(graph)) == graph


def test_weights_of_methods_are_stored_once():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 64)

        def forward(self, x):
            return self.linear(x)

        def twice(self, x):
            return self.linear(self.linear(x) * 2)

    model = Two().eval()
    first = torch.export.export(model, (torch.randn(1, 64),))
    model.forward = model.twice
    second = torch.export.export(model, (torch.randn(1, 64),))
    manager = wb.to_edge_transform_and_lower(
        {"forward": first, "twice": second}, partitioner=wb.CpuPartitioner()
    )
    buffer = manager.to_executorch().buffer
    assert len(buffer) < 1.5 * 64 * 64 * 4
    program, x = Runtime.get().load_program(buffer), torch.randn(1, 64)
    (found,) = program.load_method("twice").execute([x])
    with torch.no_grad():
        torch.testing.assert_close(found, model.twice(x))


def test_whole_module_may_return_its_inputs_and_one_value_twice():
    class Odd(nn.Module):
        def forward(self, x):
            y = x + 1
            return y, x, y

    program = wb.to_edge(torch.export.export(Odd(), (torch.randn(2, 3),))).exported_program()
    lowered = to_backend("CpuBackend", program, [])
    x = torch.randn(2, 3)
    found = Runtime.get().load_program(lowered.buffer()).load_method("forward").execute([x])
    for value, wanted in zip(found, (x + 1, x, x + 1), strict=True):
        assert torch.equal(value, wanted)


def test_state_in_a_whole_module_is_refused():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(x)
            return self.count + x

    program = wb.to_edge(torch.export.export(Counter(), (torch.ones(2),))).exported_program()
    with pytest.raises(PartitionError, match="keeps no state"):
        to_backend("CpuBackend", program, [])


def test_unsupported_operator_in_a_whole_module_names_node_and_line():
    class Sum(nn.Module):
        def forward(self, x):
            return torch.cumsum(x, 0)

    program = wb.to_edge(torch.export.export(Sum(), (torch.ones(2),))).exported_program()
    with pytest.raises(PartitionError, match=r"no aten\.cumsum\.default") as caught:
        to_backend("CpuBackend", program, [])
    assert caught.value.node == "cumsum"


def test_delegate_returns_channels_last_as_its_graph_says():
    class Image(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 5, 3)

        def forward(self, x):
            return torch.relu(self.conv(x))

    model, x = Image().eval(), torch.randn(1, 3, 6, 7).to(memory_format=torch.channels_last)
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    lowering = wb.lower(model, (x,), recipe=recipe, progress=False)
    (found,) = lowering.execute(x)
    with torch.no_grad():
        torch.testing.assert_close(found, model(x))
    assert found.is_contiguous(memory_format=torch.channels_last)
    # The engine's graph holds no transpose that moves data: both borders are NHWC already.
    (inside,) = delegates_in(lowering.lowered.exported_program().graph_module)
    orders = [
        n.attributes.permutation for n in read(inside.lowered.processed_bytes).nodes if n.op == Op.Transpose
    ]
    assert sorted(orders) == [(0, 2, 3, 1)] * 2 + [(0, 3, 1, 2)] * 2


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ([CompileSpec("fuze", b"\1")], "expected fuse or trial"),
        ([CompileSpec("fuse", b"\2")], "one byte, 0 or 1"),
        ([CompileSpec("trial", b"")], "one byte, 0 or 1"),
    ],
)
def test_unknown_settings_are_refused_at_load(specs, text):
    lowered = delegate()
    lowered._compile_specs = specs
    with pytest.raises(ExecutionError, match=text):
        Runtime.get().load_program(lowered.buffer()).load_method("forward")


def test_blob_of_another_format_or_version_is_refused_by_name():
    lowered = delegate()
    data = bytearray(lowered.processed_bytes)
    data[4:8] = b"XX01"
    lowered._processed_bytes = bytes(data)
    with pytest.raises(ExecutionError, match="no graph of this backend"):
        Runtime.get().load_program(lowered.buffer()).load_method("forward")
    with pytest.raises(PartitionError, match="no graph of CpuBackend"):
        read(bytes(data))


def test_damaged_blobs_are_typed_errors_in_both_halves():
    """Bytes and words of a blob are changed at random; it then loads, or says what is wrong."""
    lowered, x = delegate(), torch.randn(1, 2, 6, 6)
    whole, generator = lowered.processed_bytes, random.Random(0)
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(generator.choice((1, 1, 2, 8))):
            place = generator.randrange(8, len(data))
            data[place] = generator.choice((0, 1, 0x7F, 0xFF, generator.randrange(256)))
        if generator.random() < 0.1:
            data = data[: generator.randrange(8, len(data))]
        lowered._processed_bytes = bytes(data)
        try:
            method = Runtime.get().load_program(lowered.buffer()).load_method("forward")
            method.execute([x])
        except ExecutionError as error:
            refused += 1
            assert str(error)
        found = open_blob(memoryview(bytes(data)))
        assert found is not None
    assert refused > 30


def test_blob_is_described_for_the_program_view():
    lowered = delegate()
    blob = CpuBackend.read_blob(memoryview(lowered.processed_bytes))
    assert blob is not None and blob.format == "CPU engine graph"
    names = [step.name for step in blob.steps]
    assert names == ["Transpose", "Convolution", "Transpose", "Clamp", "Reduce", "MatMul"]
    assert {step.identifier for step in blob.steps} == set(range(4))
    assert [value.role for value in blob.values].count("output") == 1
    assert any(value.data for value in blob.values)
    assert CpuBackend.read_blob(memoryview(b"\0" * 64)) is None
    with pytest.raises(SerializationError, match="damaged"):
        CpuBackend.read_blob(memoryview(lowered.processed_bytes[:40]))


def test_missing_weights_are_named():
    program, _ = program_of(
        torch.ops.aten.linear.default, (torch.randn(2, 40), torch.randn(30, 40)), {}, constants=True
    )
    result = CpuBackend.preprocess(program, [])
    lowered = LoweredBackendModule(program, "CpuBackend", result.processed_bytes, [], None)
    with pytest.raises(ExecutionError, match="the program has no data named"):
        Runtime.get().load_program(lowered.buffer()).load_method("forward")
