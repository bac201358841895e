"""The networks that the tests and the benchmarks use.

`build(name)` gives one of the benchmark networks (batch 1, random weights, `torch.manual_seed(0)`),
`mtcnn(name)` a network with published weights, and `small(name)` a small model on which some lowering stack
fails or once failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

__all__ = ["MTCNN", "NETWORKS", "SMALL", "Network", "build", "mtcnn", "small"]


@dataclass(frozen=True)
class Network:
    """A model with what is needed to export and to check it.

    Attributes:
        name: How tests and tables call it.
        model: In evaluation mode.
        inputs: Example inputs, positional.
        dynamic_shapes: As `torch.export.export` takes them, or None.
        note: Where the model comes from, for the small ones.
    """

    name: str
    model: nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None
    note: str = ""

    def eager(self) -> Any:
        """What eager PyTorch answers to the example inputs."""
        with torch.no_grad():
            return self.model(*self.inputs)


# ---- the benchmark networks --------------------------------------------------------------------------------


def _mlp() -> tuple[nn.Module, tuple[Any, ...]]:
    layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    return nn.Sequential(*layers), (torch.randn(1, 784),)


def _dscnn() -> tuple[nn.Module, tuple[Any, ...]]:
    layers: list[nn.Module] = [nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU()]
        layers += [nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12)]
    return nn.Sequential(*layers), (torch.randn(1, 1, 49, 10),)


class Logits(nn.Module):
    """A classifier of `transformers`, reduced to its logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        return self.model(pixels).logits


def _mobilenet_v2() -> tuple[nn.Module, tuple[Any, ...]]:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(num_labels=1000, tf_padding=False)
    return Logits(MobileNetV2ForImageClassification(config)), (torch.randn(1, 3, 224, 224),)


def _resnet(**options: Any) -> tuple[nn.Module, tuple[Any, ...]]:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(num_labels=1000, **options)
    return Logits(ResNetForImageClassification(config)), (torch.randn(1, 3, 224, 224),)


def _resnet18() -> tuple[nn.Module, tuple[Any, ...]]:
    sizes = {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
    return _resnet(**sizes, layer_type="basic")


def _vit_tiny() -> tuple[nn.Module, tuple[Any, ...]]:
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768}
    config = ViTConfig(**sizes, num_labels=1000, attn_implementation="sdpa")
    return Logits(ViTForImageClassification(config)), (torch.randn(1, 3, 224, 224),)


class MiniLM(nn.Module):
    """A sentence encoder of MiniLM's size."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30522, 384)
        self.position = nn.Parameter(torch.randn(1, 128, 384) * 0.02)
        self.norm = nn.LayerNorm(384)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(384, 12, 1536, activation="gelu", batch_first=True) for _ in range(6)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.norm(self.embedding(tokens) + self.position)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden.mean(1)


def _minilm() -> tuple[nn.Module, tuple[Any, ...]]:
    return MiniLM(), (torch.randint(0, 30522, (1, 128)),)


class Lstm(nn.Module):
    """A sequence classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 128, 2, batch_first=True)
        self.linear = nn.Linear(128, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.lstm(x)[0][:, -1])


def _lstm() -> tuple[nn.Module, tuple[Any, ...]]:
    return Lstm(), (torch.randn(1, 50, 40),)


_BUILDERS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "mlp": _mlp,
    "dscnn": _dscnn,
    "mobilenet_v2": _mobilenet_v2,
    "resnet18": _resnet18,
    "vit_tiny": _vit_tiny,
    "minilm": _minilm,
    "lstm": _lstm,
    "resnet50": _resnet,
}
NETWORKS = tuple(name for name in _BUILDERS if name != "resnet50")  # those that are measured everywhere
MTCNN = ("pnet", "rnet", "onet")


def build(name: str) -> Network:
    """One of the benchmark networks, `NETWORKS` or `"resnet50"`."""
    torch.manual_seed(0)
    model, inputs = _BUILDERS[name]()
    return Network(name, model.eval(), inputs)


def mtcnn(name: str) -> Network:
    """One of MTCNN's networks with its published weights; P-Net takes any image, R- and O-Net any batch."""
    folder = str(Path(__file__).resolve().parent.parent / "notebooks")
    if folder not in sys.path:
        sys.path.append(folder)
    from mtcnn.networks import load

    torch.manual_seed(0)
    model = load()[MTCNN.index(name)]
    if name == "pnet":
        inputs = (torch.rand(1, 3, 61, 83) * 2 - 1,)
        return Network(name, model, inputs, ({2: Dim("H", min=14, max=640), 3: Dim("W", min=14, max=640)},))
    size = 24 if name == "rnet" else 48
    return Network(name, model, (torch.rand(7, 3, size, size) * 2 - 1,), ({0: Dim("N", min=1, max=256)},))


# ---- small models that fail, or once failed, somewhere -----------------------------------------------------


class _Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


class CondAliases(nn.Module):
    """Two conditionals whose results must not share memory."""

    def forward(self, p: Tensor, v: Tensor) -> Tensor:
        first = torch.cond(p, lambda v: v + 1, lambda v: v * 2, (v,))
        second = torch.cond(p, lambda v: v + 100, lambda v: v - 100, (v,))
        return first + second


class WhileCounter(nn.Module):
    """A loop that counts."""

    def forward(self, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        from torch._higher_order_ops.while_loop import while_loop

        start = torch.zeros((), dtype=torch.int64)
        count, total = while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 2 + 1), (start, x))
        return count, total


class ArangeIndex(nn.Module):
    """Columns taken by a computed index."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)[:, torch.arange(4) + 0]


def _channels_last(*shape: int) -> Tensor:
    return torch.randn(*shape).to(memory_format=torch.channels_last)


def _prelu_from_a_file() -> nn.Module:
    import io

    buffer = io.BytesIO()
    torch.save(nn.PReLU(1).state_dict(), buffer)
    buffer.seek(0)
    model = nn.PReLU(1)
    model.load_state_dict(torch.load(buffer, weights_only=True))
    return model


def _small_models() -> dict[str, Callable[[], Network]]:
    image = Dim("H", min=8, max=2048), Dim("W", min=8, max=2048)
    weight_norm = torch.nn.utils.parametrizations.weight_norm
    nhwc = _channels_last

    def network(
        model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], note: str, shapes: Any = None
    ) -> Network:
        module = model if isinstance(model, nn.Module) else _Lambda(model)
        return Network("", module.eval(), inputs, shapes, note)

    five_six = torch.tensor([5.0, 6.0])
    return {
        "cond_aliases": lambda: network(CondAliases(), (torch.tensor(False), five_six), "#21490"),
        "cond_aliases_true": lambda: network(CondAliases(), (torch.tensor(True), five_six), "#21490"),
        "cat_channels_last": lambda: network(
            lambda _, x, y: torch.cat([x, y], 1), (nhwc(1, 3, 4, 5), nhwc(1, 2, 4, 5)), "PR #21865"
        ),
        "topk_channels_last": lambda: network(
            lambda _, x: tuple(torch.topk(x, 2, 1)), (nhwc(1, 5, 4, 3),), "PR #21865"
        ),
        "pad_channels_last": lambda: network(
            lambda _, x: nn.functional.pad(x, (1, 2, 0, 1)), (nhwc(2, 3, 4, 5),), "PR #21865"
        ),
        "weight_norm_conv1d": lambda: network(
            weight_norm(nn.Conv1d(8, 8, 3)), (torch.randn(1, 8, 20),), "#22078"
        ),
        "arange_index": lambda: network(ArangeIndex(), (torch.randn(3, 8),), "#22062"),
        "bucketize": lambda: network(
            lambda _, x: torch.bucketize(x, torch.tensor([0.0, 0.5, 1.0])), (torch.randn(4, 5),), "#20270"
        ),
        "right_shift": lambda: network(
            lambda _, x: x >> 1, (torch.tensor([-5, -1, 0, 7, 1 << 20]),), "#15673"
        ),
        "while_counter": lambda: network(WhileCounter(), (torch.tensor(5), torch.randn(3)), "#8769"),
        "conv_wide_dynamic": lambda: network(
            nn.Conv2d(3, 8, 3), (torch.randn(1, 3, 33, 21),), "#8766", ({2: image[0], 3: image[1]},)
        ),
        "add_alpha": lambda: network(
            lambda _, x, y: torch.add(x, y, alpha=10), (torch.randn(3, 4), torch.randn(4)), "#11683"
        ),
        "linear_channels_last": lambda: network(nn.Linear(5, 7), (nhwc(2, 3, 4, 5),), "#11086"),
        "spatial_mean_channels_last": lambda: network(
            lambda _, x: x.mean((2, 3)), (nhwc(2, 3, 4, 5),), "#16507"
        ),
        "conv_sigmoid_mean_channels_last": lambda: network(
            _Lambda(lambda self, x: self.conv(x).sigmoid().mean((2, 3)), conv=nn.Conv2d(5, 11, 3)),
            (nhwc(1, 5, 9, 8),),
            "#19139",
        ),
        "prelu_from_a_file": lambda: network(_prelu_from_a_file(), (torch.randn(2, 3, 4),), "#17559"),
    }


_SMALL = _small_models()
SMALL = tuple(_SMALL)


def small(name: str) -> Network:
    """One of the small models, by its name in `SMALL`."""
    torch.manual_seed(0)
    made = _SMALL[name]()
    return Network(name, made.model, made.inputs, made.dynamic_shapes, made.note)
