"""The three networks of MTCNN, with the weights that the package `facenet-pytorch` ships.

Source: K. Zhang, Z. Zhang, Z. Li, Y. Qiao, "Joint Face Detection and Alignment using Multi-task Cascaded
Convolutional Networks", IEEE Signal Processing Letters 23(10), 2016, figure 2.

Only the package's weight files are read: importing the package itself would need torchvision.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor, nn

__all__ = ["ONet", "PNet", "RNet", "load", "weights_folder"]


class PNet(nn.Module):
    """Proposal network: fully convolutional, so that one pass scores every 12 x 12 window at stride 2."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
        self.conv4_1 = nn.Conv2d(32, 2, 1)
        self.conv4_2 = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Image `(N, 3, H, W)` float32 in [-1, 1] -> offsets `(N, 4, h, w)`, probabilities `(N, 2, h, w)`.

        h = ceil((H - 2) / 2) - 4, and w likewise.
        """
        # The published network pools with ceil_mode; padding by -inf is the same for a 2 x 2 window, and lets
        # one exported graph serve odd and even sizes.
        x = nn.functional.pad(self.prelu1(self.conv1(x)), (0, 1, 0, 1), value=-torch.inf)
        x = nn.functional.max_pool2d(x, 2, 2)
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), self.conv4_1(x).softmax(1)


class RNet(nn.Module):
    """Refinement network: one 24 x 24 candidate each."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 28, 3), nn.PReLU(28)
        self.conv2, self.prelu2 = nn.Conv2d(28, 48, 3), nn.PReLU(48)
        self.conv3, self.prelu3 = nn.Conv2d(48, 64, 2), nn.PReLU(64)
        self.dense4, self.prelu4 = nn.Linear(576, 128), nn.PReLU(128)
        self.dense5_1 = nn.Linear(128, 2)
        self.dense5_2 = nn.Linear(128, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Crops `(N, 3, 24, 24)` float32 in [-1, 1] -> box offsets `(N, 4)`, probabilities `(N, 2)`."""
        x = nn.functional.max_pool2d(self.prelu1(self.conv1(x)), 3, 2, ceil_mode=True)
        x = nn.functional.max_pool2d(self.prelu2(self.conv2(x)), 3, 2, ceil_mode=True)
        x = self.prelu3(self.conv3(x))
        x = self.prelu4(self.dense4(_flatten_column_major(x)))
        return self.dense5_2(x), self.dense5_1(x).softmax(1)


class ONet(nn.Module):
    """Output network: one 48 x 48 candidate each, with the five landmarks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 32, 3), nn.PReLU(32)
        self.conv2, self.prelu2 = nn.Conv2d(32, 64, 3), nn.PReLU(64)
        self.conv3, self.prelu3 = nn.Conv2d(64, 64, 3), nn.PReLU(64)
        self.conv4, self.prelu4 = nn.Conv2d(64, 128, 2), nn.PReLU(128)
        self.dense5, self.prelu5 = nn.Linear(1152, 256), nn.PReLU(256)
        self.dense6_1 = nn.Linear(256, 2)
        self.dense6_2 = nn.Linear(256, 4)
        self.dense6_3 = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Crops `(N, 3, 48, 48)` -> offsets `(N, 4)`, landmarks (x, then y) `(N, 10)`, scores `(N, 2)`."""
        x = nn.functional.max_pool2d(self.prelu1(self.conv1(x)), 3, 2, ceil_mode=True)
        x = nn.functional.max_pool2d(self.prelu2(self.conv2(x)), 3, 2, ceil_mode=True)
        x = nn.functional.max_pool2d(self.prelu3(self.conv3(x)), 2, 2, ceil_mode=True)
        x = self.prelu4(self.conv4(x))
        x = self.prelu5(self.dense5(_flatten_column_major(x)))
        return self.dense6_2(x), self.dense6_3(x), self.dense6_1(x).softmax(1)


def _flatten_column_major(x: Tensor) -> Tensor:
    # The published weights were trained where the width runs slowest.
    return x.permute(0, 3, 2, 1).flatten(1)


def weights_folder() -> Path:
    """The folder of the weight files; `ModuleNotFoundError` where `facenet-pytorch` is not installed."""
    spec = importlib.util.find_spec("facenet_pytorch")
    if spec is None or not spec.submodule_search_locations:
        message = "the weights come with facenet-pytorch: pip install --no-deps facenet-pytorch==2.6.0"
        raise ModuleNotFoundError(message, name="facenet_pytorch")
    return Path(spec.submodule_search_locations[0]) / "data"


def load() -> tuple[PNet, RNet, ONet]:
    """The three networks with their published weights, in evaluation mode."""
    networks = PNet(), RNet(), ONet()
    for network, name in zip(networks, ("pnet", "rnet", "onet"), strict=True):
        network.load_state_dict(torch.load(weights_folder() / f"{name}.pt", weights_only=True))
        network.eval()
    return networks
