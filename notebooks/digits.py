"""A small network for the handwritten digits of scikit-learn: 8 x 8 pixels, ten classes, trained in seconds.

    model, data = trained(), load()
    accuracy(model(data.test_images), data.test_labels)

Everything is seeded: the same machine gives the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

__all__ = ["Digits", "DigitsNet", "accuracy", "calibration", "evaluation", "load", "train", "trained"]


@dataclass(frozen=True)
class Digits:
    """Images (n, 1, 8, 8) between 0 and 1, labels (n,); a fixed fifth is kept for testing."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


class Residual(nn.Module):
    """A depthwise and a pointwise convolution with a way around both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, c, h, w)."""
        hidden = torch.relu(self.norm1(self.depthwise(x)))
        return torch.relu(x + self.norm2(self.pointwise(hidden)))


class DigitsNet(nn.Module):
    """Two convolutions, a residual block, two linear layers."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width // 2, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width // 2)
        self.conv2 = nn.Conv2d(width // 2, width, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.block = Residual(width)
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(width * 4, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 1, 8, 8) -> logits (n, 10)."""
        x = torch.relu(self.norm1(self.conv1(images)))
        x = torch.relu(self.norm2(self.conv2(x)))
        x = self.pool(self.block(x))
        return self.out(torch.relu(self.hidden(x.flatten(1))))


@cache
def load() -> Digits:
    """The data, which scikit-learn brings along."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    test, rest = order[: len(labels) // 5], order[len(labels) // 5 :]
    return Digits(images[rest], labels[rest], images[test], labels[test])


def train(model: nn.Module, *, epochs: int = 12, rate: float = 0.01, seed: int = 0) -> nn.Module:
    """Train in place with Adam and a falling rate; the model is handed back as it is."""
    data = load()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    batches = len(data.train_labels) // 64
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * batches)
    for _ in range(epochs):
        order = torch.randperm(len(data.train_labels), generator=generator)
        for batch in order[: batches * 64].split(64):
            loss = nn.functional.cross_entropy(model(data.train_images[batch]), data.train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model


@cache
def trained() -> DigitsNet:
    """The trained network in evaluation mode; the same object each time."""
    torch.manual_seed(0)
    model = DigitsNet().train()
    train(model)
    return model.eval()


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of the images whose largest logit is that of their label."""
    return float((logits.argmax(-1) == labels).double().mean())


def calibration(count: int = 100) -> Iterator[tuple[Tensor]]:
    """Training images one by one, as inputs."""
    for image in load().train_images[:count]:
        yield (image[None],)


def evaluation(count: int | None = None) -> list[tuple[Tensor, Tensor]]:
    """Test images one by one, each with its label."""
    data = load()
    images, labels = data.test_images[:count], data.test_labels[:count]
    return [(image[None], label[None]) for image, label in zip(images, labels, strict=True)]
