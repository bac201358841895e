"""Buffers that are written, results that alias, views, pins: what a plan must not break."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from workbench.emit import ExecutorchBackendConfig, MemoryPlanning, emit
from workbench.errors import MemoryPlanError, MissingKernelError
from workbench.managers import to_edge


class Swap(nn.Module):
    """The new value of each buffer is the old one of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.arange(4.0))
        self.register_buffer("b", torch.arange(4.0) + 10)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        old = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(old)
        return self.a + x, old


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 6, 4))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        self.rows.index_copy_(1, self.count, x)
        self.count.add_(1)
        return self.rows.sum(1)


class Alias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.arange(6.0))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = x + 1
        return y, y.view(3, 2), y, x, self.w, self.w.view(2, 3), x.view(6)


class Dynamic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        return self.linear(x).reshape(-1), x.unsqueeze(0), x.shape[0] * 2, torch.cat([x, x]).view(-1, 2, 8)


CASES: dict[str, tuple[Callable[[], nn.Module], list[tuple[Any, ...]], Any]] = {
    "swap": (Swap, [(torch.ones(4),)] * 3, None),
    "cache": (Cache, [(torch.randn(1, 1, 4),) for _ in range(3)], None),
    "alias": (Alias, [(torch.randn(2, 3),)] * 2, None),
    "dynamic": (Dynamic, [(torch.randn(n, 8),) for n in (6, 3, 9)], ({0: Dim("n", min=2, max=10)},)),
}


@pytest.mark.parametrize("name", CASES)
def test_methods_agree_with_eager_call_after_call(name: str, interpreter: type) -> None:
    make, calls, shapes = CASES[name]
    model = make().eval()
    edge = to_edge(export(copy.deepcopy(model), calls[0], dynamic_shapes=shapes))
    for planning in [{}, {"plan_inputs": False}, {"plan_outputs": False}, {"planner": "naive"}]:
        reference = copy.deepcopy(model)
        config = ExecutorchBackendConfig(memory_planning=MemoryPlanning(**planning))
        running = interpreter(edge.to_executorch(config).executorch_program)
        for inputs in calls:
            with torch.no_grad():
                expected = reference(*inputs)
            expected = [expected] if isinstance(expected, Tensor) else list(expected)
            for ours, theirs in zip(running.run(*inputs), expected, strict=True):
                if isinstance(theirs, Tensor):
                    torch.testing.assert_close(ours, theirs)
                else:
                    assert ours == theirs


def test_static_views_have_no_instruction_and_share_the_place() -> None:
    class Views(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x + 1).view(6).unsqueeze(0).reshape(3, 2) * 2

    manager = to_edge(export(Views(), (torch.randn(2, 3),))).to_executorch()
    method = manager.executorch_program.methods[0]
    assert [method.operator_name(item.operator) for item in method.instructions] == [
        "aten::add.out",
        "aten::mul.out",
    ]
    add, mul = method.instructions
    assert method.values[add.args[-1]].allocation == method.values[mul.args[0]].allocation
    assert method.values[mul.args[0]].sizes == (3, 2)


def test_a_dynamic_view_is_a_primitive() -> None:
    class Views(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x + 1).view(-1) * 2

    shapes = ({0: Dim("n", min=2, max=8)},)
    program = to_edge(export(Views(), (torch.randn(4, 3),), dynamic_shapes=shapes)).to_executorch()
    assert "executorch_prim::et_view.default" in program.executorch_program.format()


def test_a_size_without_bound_is_refused_with_the_node() -> None:
    class Add(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    edge = to_edge(export(Add(), (torch.randn(4, 3),), dynamic_shapes=({0: Dim("n", min=2)},)))
    with pytest.raises(MemoryPlanError, match="no upper bound") as caught:
        edge.to_executorch()
    assert caught.value.node == "x"
    assert "max" in str(caught.value.hint)


def test_pins_and_arenas_are_seen_in_values_and_report() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x + 1) * 2

    planning = MemoryPlanning(pins={"add": (2, 64)}, arenas={"mul": 3})
    config = ExecutorchBackendConfig(memory_planning=planning)
    manager = to_edge(export(Net(), (torch.randn(4),))).to_executorch(config)
    method = manager.executorch_program.methods[0]
    add, mul = method.instructions
    assert method.values[add.args[-1]].allocation == (2, 64)
    assert method.values[mul.args[-1]].allocation == (3, 0)
    assert method.arena_sizes == [0, 16, 80, 16]
    placed = {item.name: item for item in manager.memory_report["forward"].tensors}
    assert placed["add"].pinned
    assert placed["mul"].handles
    planning.pins = {"nothing": (1, 0)}
    with pytest.raises(MemoryPlanError, match="nothing"):
        to_edge(export(Net(), (torch.randn(4),))).to_executorch(config)


LIBRARY = torch.library.Library("emit_test", "DEF")
for name, schema in {
    "twice": "(Tensor x) -> Tensor",
    "twice.out": "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    "thrice": "(Tensor x) -> Tensor",
}.items():
    LIBRARY.define(name + schema)
LIBRARY.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
LIBRARY.impl("twice.out", lambda x, out: out.copy_(x * 2), "CompositeExplicitAutograd")
LIBRARY.impl("thrice", lambda x: x * 3, "CompositeExplicitAutograd")


class Custom(nn.Module):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x + 1)


def test_an_operator_without_kernel_names_node_and_line() -> None:
    edge = to_edge(export(Custom(torch.ops.emit_test.twice), (torch.randn(2, 3),)))
    with pytest.raises(MissingKernelError, match=r"emit_test::twice\.out") as caught:
        edge.to_executorch()
    assert caught.value.node == "twice"
    assert "test_memory_of_methods.py" in str(caught.value.source)
    program = edge.to_executorch(ExecutorchBackendConfig(check_kernels=False)).executorch_program
    assert ("emit_test::twice", "out") in program.methods[0].operators


def test_an_operator_without_out_variant_names_node_and_line() -> None:
    edge = to_edge(export(Custom(torch.ops.emit_test.thrice), (torch.randn(2, 3),)))
    with pytest.raises(MissingKernelError, match="no variant that writes") as caught:
        edge.to_executorch(ExecutorchBackendConfig(check_kernels=False))
    assert caught.value.node == "thrice"


def test_constants_are_shared_between_methods_and_equal_ones_stored_once() -> None:
    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.arange(300.0))
            self.b = nn.Parameter(torch.arange(300.0))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.a + self.b * x

    program = export(Twins(), (torch.randn(300),))
    edge = to_edge({"one": program, "two": program})
    emitted = edge.to_executorch().executorch_program
    assert [len(data) for data in emitted.constants] == [0, 1200]


def test_constant_methods_return_their_values(interpreter: type) -> None:
    values = {"number": 3, "mixed": (torch.ones(2), "text", [1.5, True]), "table": {"a": None}}
    program = emit({}, constant_methods=values).program
    assert interpreter(program, "number").run() == [3]
    tensor, text, double, flag = interpreter(program, "mixed").run()
    assert tensor.tolist() == [1.0, 1.0]
    assert (text, double, flag) == ("text", 1.5, True)
    assert '"a"' in program.method("table").output_tree.replace("\\", "")


def test_debug_handles_are_those_of_the_edge_nodes() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x + 1).relu()

    manager = to_edge(export(Net(), (torch.randn(4),))).to_executorch()
    handles = manager.debug_handle_map["forward"]
    nodes = {node.meta.get("debug_handle"): node.name for node in manager.exported_program().graph.nodes}
    assert [nodes[handles[index][0]] for index in (0, 1)] == ["add", "relu"]
