"""Control flow as jumps, run by an interpreter of the emitted program that knows nothing of the emitter."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export

from workbench.emit import ExecutorchBackendConfig, MemoryPlanning
from workbench.managers import to_edge


class CondAlias(nn.Module):
    """pytorch/executorch #21490."""

    def forward(self, p: Tensor, v: Tensor) -> Tensor:
        r1 = torch.cond(p, lambda v: v + 1, lambda v: v * 2, (v,))
        r2 = torch.cond(p, lambda v: v + 100, lambda v: v - 100, (v,))
        return r1 + r2


class CondPass(nn.Module):
    def forward(self, p: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        a, b = torch.cond(p, lambda x: (x.clone(), x + 1), lambda x: (x + 2, x.clone()), (x,))
        return a, b, a + b


class Nested(nn.Module):
    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        w = x * 3

        def inner(y: Tensor) -> Tensor:
            return torch.cond(y.sum() > 0, lambda y: y + w, lambda y: y - w, (y,))

        return torch.cond(p, lambda x: inner(x) * 2, lambda x: x.view(4).view(2, 2) * 1, (x,)) + w


class While(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Any:
        def condition(i: Tensor, a: Tensor, b: Tensor) -> Tensor:
            return (i < n).all()

        def body(i: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
            return i + 1, b.clone(), a + b

        return while_loop(condition, body, (torch.zeros(1, dtype=torch.long), x, x + 1))


class WhileNumber(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * 2), (0, x))


class Map(nn.Module):
    def forward(self, xs: Tensor, y: Tensor) -> Tensor:
        return map_over(lambda x, y: (x * y).relu() + 1, xs, y)


class ScanSwap(nn.Module):
    def forward(self, xs: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        (a, b), ys = scan(lambda c, x: ([c[1].clone(), c[0] + x], x * c[0]), [a, b], xs)
        return a, b, ys


def pred(value: bool) -> Tensor:
    return torch.tensor(value)


CASES: dict[str, tuple[Callable[[], nn.Module], list[tuple[Any, ...]], Any]] = {
    "cond_alias": (CondAlias, [(pred(p), torch.tensor([5.0, 6.0])) for p in (True, False)], None),
    "cond_pass": (CondPass, [(pred(p), torch.randn(3)) for p in (True, False)], None),
    "nested": (
        Nested,
        [(torch.randn(2, 2), pred(True)), (torch.randn(2, 2), pred(False)), (-torch.ones(2, 2), pred(True))],
        None,
    ),
    "while": (While, [(torch.randn(3), torch.tensor([5])), (torch.randn(3), torch.tensor([0]))], None),
    "while_number": (WhileNumber, [(torch.rand(4, 3),), (torch.rand(4, 3),)], None),
    "map": (Map, [(torch.randn(5, 3), torch.randn(3)) for _ in range(2)], None),
    "map_dynamic": (
        Map,
        [(torch.randn(n, 3), torch.randn(3)) for n in (5, 2, 9)],
        ({0: Dim("n", min=2, max=10)}, None),
    ),
    "scan_swap": (ScanSwap, [(torch.randn(5, 3), torch.randn(3), torch.randn(3)) for _ in range(2)], None),
}


@pytest.mark.parametrize("name", CASES)
def test_control_flow_agrees_with_eager_call_after_call(name: str, interpreter: type) -> None:
    make, calls, shapes = CASES[name]
    model = make().eval()
    edge = to_edge(export(model, calls[0], dynamic_shapes=shapes))
    for inputs_planned, outputs_planned in [(True, True), (False, True), (True, False), (False, False)]:
        planning = MemoryPlanning(plan_inputs=inputs_planned, plan_outputs=outputs_planned)
        manager = edge.to_executorch(ExecutorchBackendConfig(memory_planning=planning))
        running = interpreter(manager.executorch_program)
        for inputs in calls:
            expected = model(*inputs)
            expected = [expected] if isinstance(expected, Tensor) else list(expected)
            found = running.run(*inputs)
            assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                if isinstance(theirs, Tensor):
                    torch.testing.assert_close(ours, theirs)
                else:
                    assert ours == theirs


def test_branches_of_a_cond_share_their_result_and_move_nothing() -> None:
    edge = to_edge(export(CondAlias(), (pred(True), torch.ones(2))))
    text = edge.to_executorch().executorch_program.format()
    assert "move" not in text
    assert "clone" not in text
