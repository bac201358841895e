"""The large graphs on which the views are measured: a real one of equal blocks, and random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = ["random_graph", "transformer"]

_ATEN = torch.ops.aten
_UNARY = ("relu", "sigmoid", "tanh", "neg", "exp", "abs", "sqrt", "rsqrt", "sin", "cos", "gelu", "silu")
_BINARY = ("add", "mul", "sub", "div", "maximum", "minimum")


class RMSNorm(nn.Module):
    """Scaling by the root of the mean square, spelled out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, width) -> the same."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Attention(nn.Module):
    """Grouped-query attention with rotary positions, spelled out."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.query_norm, self.key_norm = RMSNorm(self.size), RMSNorm(self.size)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(x.shape[0], x.shape[1], heads, self.size).transpose(1, 2)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width), positions and mask (time, time) -> (batch, time, width)."""
        query = self.query_norm(self._split(self.query(x), self.heads))
        key = self.key_norm(self._split(self.key(x), self.groups))
        value = self._split(self.value(x), self.groups)
        query, key = _rotated(query, cos, sin), _rotated(key, cos, sin)
        times = self.heads // self.groups
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
        scores = query @ key.transpose(2, 3) / self.size**0.5 + mask
        mixed = torch.softmax(scores.float(), -1).to(value.dtype) @ value
        return self.output(mixed.transpose(1, 2).reshape(x.shape))


class GatedMLP(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, width) -> the same."""
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """One block of a decoder."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = RMSNorm(width), RMSNorm(width)
        self.post_attention_norm, self.post_mlp_norm = RMSNorm(width), RMSNorm(width)
        self.attention, self.mlp = Attention(width, heads, groups), GatedMLP(width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width) -> the same."""
        x = x + self.post_attention_norm(self.attention(self.attention_norm(x), cos, sin, mask))
        return x + self.post_mlp_norm(self.mlp(self.mlp_norm(x)))


class Transformer(nn.Module):
    """Decoder blocks one after the other, small in width: what counts is the number of nodes."""

    def __init__(self, blocks: int, width: int = 32) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, 4, 2) for _ in range(blocks))
        self.norm = RMSNorm(width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, width) -> the same."""
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        return self.norm(x)


def transformer(blocks: int = 105, cache: Path | None = None) -> ExportedProgram:
    """The exported graph of so many equal blocks, about 100 nodes each.

    Args:
        blocks: How many.
        cache: Where the export, which takes a minute, is kept.
    """
    path = None if cache is None else cache / f"transformer-{blocks}-{torch.__version__}.pt2"
    if path is not None and path.exists():
        return torch.export.load(path)
    torch.manual_seed(0)
    inputs = torch.randn(1, 4, 32), torch.randn(4, 8), torch.randn(4, 8), torch.zeros(4, 4)
    program = torch.export.export(Transformer(blocks).eval(), inputs)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, path)
    return program


def random_graph(nodes: int, seed: int = 0) -> ExportedProgram:
    """A graph of element-wise operators with random edges: no modules, and no two regions alike.

    It is written node by node, as tracing a module of this size would take minutes. Each node reads one or
    two of the last 40 values, and one in fifty reads any value before it.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    chance = random.Random(seed)
    graph = torch.fx.Graph()
    with FakeTensorMode():
        value = torch.empty(4, 4)
    made = [graph.placeholder(name) for name in ("x", "y")]
    sources = _sources(chance)
    for _ in range(nodes - len(made) - 1):
        far = chance.random() < 0.02
        recent = made if far else made[-40:]
        if chance.random() < 0.45:
            operator = getattr(_ATEN, chance.choice(_UNARY)).default
            node = graph.call_function(operator, (chance.choice(recent),))
        else:
            packet = getattr(_ATEN, chance.choice(_BINARY))
            operator = packet.Tensor if "Tensor" in packet.overloads() else packet.default
            node = graph.call_function(operator, (made[-1], chance.choice(recent)))
        node.meta["stack_trace"] = next(sources)
        node.meta["from_node"] = []
        made.append(node)
    last = made[-1]
    for node in made:
        node.meta["val"] = value
    graph.output((last,))
    root = torch.nn.Module()
    inputs = [InputSpec(InputKind.USER_INPUT, TensorArgument(name=name), None) for name in ("x", "y")]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=last.name), None)]
    return _program(root, graph, ExportGraphSignature(inputs, outputs))


def _sources(chance: random.Random) -> Iterator[str]:
    while True:
        yield f'  File "/model/generated.py", line {chance.randrange(1, 4000)}, in forward\n    x = f(x, y)\n'


def _program(root: nn.Module, graph: torch.fx.Graph, signature: ExportGraphSignature) -> ExportedProgram:
    from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
    from torch.utils import _pytree as pytree

    def spec_of(value: Any) -> Any:
        return pytree.tree_structure(value)

    call = ModuleCallSignature(
        inputs=[TensorArgument(name="x"), TensorArgument(name="y")],
        outputs=[TensorArgument(name=signature.output_specs[0].arg.name)],  # type: ignore[union-attr]
        in_spec=spec_of(((0, 0), {})),
        out_spec=spec_of((0,)),
    )
    return ExportedProgram(
        root=root,
        graph=graph,
        graph_signature=signature,
        state_dict={},
        range_constraints={},
        module_call_graph=[ModuleCallEntry(fqn="", signature=call)],
        example_inputs=((torch.zeros(4, 4), torch.zeros(4, 4)), {}),
        constants={},
    )
