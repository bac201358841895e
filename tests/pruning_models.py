"""Models in which channels depend on each other in every way that pruning must see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """A stem that two branches are added to."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.a, self.norm = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.b = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = torch.sigmoid(x + self.norm(self.a(x)))  # sigmoid(0) is not 0: masks of producers would not do
        x = x + self.b(x)
        return self.head(x.mean((2, 3)))


class Concat(nn.Module):
    """Branches of different widths side by side, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 1), nn.Conv2d(3, 10, 1)
        self.norm = nn.BatchNorm2d(22)
        self.out = nn.Conv2d(22, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.a(x), self.b(x)
        return self.out(torch.relu(self.norm(torch.cat([a, b, torch.tanh(a)], 1))))


class Separable(nn.Module):
    """Depthwise with a multiplier, grouped and transposed convolutions, PReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.depthwise = nn.Conv2d(8, 16, 3, padding=1, groups=8)
        self.slope = nn.PReLU(16)
        self.grouped = nn.Conv2d(16, 12, 3, groups=4)
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.out = nn.Conv2d(6, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.slope(self.depthwise(self.first(x)))
        return self.out(nn.functional.silu(self.up(self.grouped(x))))


class Flat(nn.Module):
    """Channels before a flattened image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool = nn.Conv2d(1, 6, 3), nn.MaxPool2d(2)
        self.fc1, self.fc2 = nn.Linear(6 * 9, 12), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.conv(x)))
        return self.fc2(torch.nn.functional.gelu(self.fc1(x.flatten(1))))


class Gated(nn.Module):
    """A layer whose result is split in halves that are multiplied, one of them sliced."""

    def __init__(self) -> None:
        super().__init__()
        self.both, self.down = nn.Linear(5, 16), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.both(x).chunk(2, -1)
        return self.down(torch.sigmoid(gate) * value)


class Sliced(nn.Module):
    """A layer whose result is taken in two slices of different length."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Linear(5, 14)
        self.one, self.two = nn.Linear(8, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.both(x)
        return self.one(torch.relu(x[:, :8])) + self.two(torch.tanh(x[:, 8:]))


class Heads(nn.Module):
    """Attention with separate projections."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(24, 24) for _ in range(3))
        self.o = nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        n, s, _ = x.shape
        q, k, v = (layer(x).view(n, s, 4, 6).transpose(1, 2) for layer in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o(mixed.transpose(1, 2).reshape(n, s, 24)) + x


class Shuffled(nn.Module):
    """Channels that are shuffled between groups: nothing can be said about them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 8, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(x)
        n, c, h, w = x.shape
        return self.b(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))


class Encoder(nn.Module):
    """The layer of a transformer, with one matrix for queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(24, 4, 40, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


# Name -> the model's class, and its input's shape.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "residual": (Residual, (2, 3, 6, 6)),
    "concat": (Concat, (1, 3, 5, 5)),
    "separable": (Separable, (1, 3, 9, 9)),
    "flat": (Flat, (2, 1, 8, 8)),
    "gated": (Gated, (3, 5)),
    "sliced": (Sliced, (3, 5)),
    "heads": (Heads, (2, 7, 24)),
    "encoder": (Encoder, (2, 7, 24)),
    "shuffled": (Shuffled, (1, 2, 4, 4)),
}


def build(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    """A model in evaluation mode with random weights and statistics, and an input."""
    torch.manual_seed(0)
    kind, shape = MODELS[name]
    model = kind().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model, (torch.randn(shape),)
