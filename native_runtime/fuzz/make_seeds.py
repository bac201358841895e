"""Write the valid programs that the fuzzer starts from: every kind of value and instruction together.

They are made by the `executorch` package, so that another writer than our own feeds the runtime; only what
is delegated to the engine's own backend is made here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, export


class Elementwise(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(x * 2 + y).clamp(0.1, 0.9).to(torch.float64) - x.sum(0, keepdim=True)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 4), nn.Softmax(-1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1, stride=2)
        self.second = nn.Conv2d(4, 4, 3, groups=4)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.second(self.first(x))))
        x = nn.functional.max_pool2d(x, 2) + nn.functional.avg_pool2d(x, 2)
        return nn.functional.pad(x, (1, 0, 2, 1)).mean((2, 3))


class Lists(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a, b = x.split(2, dim=1)
        values, indices = torch.topk(torch.cat([b, a, b], dim=1), 3)
        return values, indices, x[:, torch.tensor([1, 0])], torch.stack([a, b])


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.table(x).gather(1, torch.zeros(1, 2, 4, dtype=torch.int64)).argmax(-1)


class Branch(nn.Module):
    def forward(self, p: Tensor, x: Tensor) -> Tensor:
        return torch.cond(p, lambda v: (v + 1) * 2, lambda v: v - 3, (x,))


class Loop(nn.Module):
    def forward(self, xs: Tensor, y: Tensor) -> Tensor:
        from torch._higher_order_ops.map import map as map_op

        return map_op(lambda x, z: x * z + 1, xs, y)


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.arange(4.0))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x)
        return self.total * 2


class Dynamic(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0] * 3).unsqueeze(0).expand(2, -1).transpose(0, 1) + x.shape[0]


def seeds() -> dict[str, Callable[[], torch.export.ExportedProgram]]:
    """Name to what exports it."""
    batch = {0: Dim("n", min=1, max=6)}
    return {
        "elementwise": lambda: export(Elementwise(), (torch.randn(3, 4), torch.randn(4))),
        "mlp": lambda: export(Mlp().eval(), (torch.randn(2, 8),)),
        "image": lambda: export(Image().eval(), (torch.randn(1, 3, 16, 16),)),
        "lists": lambda: export(Lists(), (torch.randn(3, 4),)),
        "words": lambda: export(Words(), (torch.randint(0, 11, (1, 5)),)),
        "branch": lambda: export(Branch(), (torch.tensor(True), torch.randn(4))),
        "loop": lambda: export(Loop(), (torch.randn(3, 4), torch.randn(4))),
        "state": lambda: export(State(), (torch.randn(4),)),
        "dynamic": lambda: export(Dynamic(), (torch.randn(4, 3),), dynamic_shapes=(batch,)),
    }


class Layers(nn.Module):
    """Most kinds of nodes that a delegate's graph has for images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)
        self.grouped = nn.Conv2d(8, 4, 1, groups=2)
        self.transposed = nn.ConvTranspose2d(4, 4, 2, stride=2, output_padding=1)
        self.prelu = nn.PReLU(8)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.conv(x))
        x = self.prelu(self.depthwise(x)) + nn.functional.max_pool2d(x, 3, 1)
        y = self.transposed(nn.functional.avg_pool2d(self.grouped(x), 2).clamp(-1, 1))
        y = nn.functional.pad(torch.cat([y, y[:, 1:3]], 1), (1, 0, 2, 1))
        x = self.linear(x.mean((2, 3), True).view(1, 8))
        return torch.softmax(nn.functional.leaky_relu(x), -1), nn.functional.interpolate(
            y, (4, 5), mode="bilinear"
        )


class Rows(nn.Module):
    """Most kinds of nodes that a delegate's graph has for rows, with a size that changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 4, bias=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = torch.maximum(nn.functional.gelu(self.first(x)), y).permute(0, 2, 1)
        x = torch.bmm(x.permute(0, 2, 1), x) / (x.abs().sqrt().exp().permute(0, 2, 1) + y)
        return torch.sigmoid(self.second(x)).unsqueeze(-1)


class Encoder(nn.Module):
    """What the engine's own backend takes beyond those: attention, norms, ids, a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.lstm = nn.LSTM(8, 4, 1, batch_first=True, bidirectional=True)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layer(self.table(ids))
        y = self.norm(self.lstm(x)[0].transpose(1, 2)).sum(-1)
        return torch.where(x > 0, x * x, x - 1).mean(1), y.argmax(-1)


def delegated() -> dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...], object]]:
    """Name to a model that is delegated as a whole, its inputs and its dynamic shapes."""
    batch = {0: Dim("n", min=1, max=6)}
    return {
        "layers": (Layers, (torch.randn(1, 3, 9, 8),), None),
        "rows": (Rows, (torch.randn(4, 8, 6), torch.rand(4, 8, 8)), (batch, batch)),
        "mlp": (Mlp, (torch.randn(2, 8),), None),
        "encoder": (Encoder, (torch.randint(0, 11, (1, 5)),), None),
    }


def write_delegated(folder: Path) -> list[Path]:
    """Write the programs with delegates: XNNPACK's by the package, the engine's by this project."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    import workbench

    paths = []
    for name, (make, inputs, shapes) in delegated().items():
        torch.manual_seed(0)
        model = make().eval()
        with torch.no_grad():
            if name != "encoder":
                edge = to_edge_transform_and_lower(
                    export(model, inputs, dynamic_shapes=shapes), partitioner=[XnnpackPartitioner()]
                )
                paths.append(folder / f"xnnpack_{name}.pte")
                edge.to_executorch().save(str(paths[-1]))
            recipe = workbench.Recipe(partitioner="workbench.backends.cpu:CpuPartitioner")
            lowering = workbench.lower(model, inputs, recipe=recipe, dynamic_shapes=shapes, progress=False)
        paths.append(folder / f"cpu_{name}.pte")
        lowering.save(paths[-1])
    return paths


def write(folder: Path) -> list[Path]:
    """Write all seeds into a folder and give their paths."""
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    # Mutable buffers keep their names and start with their values.
    config = ExecutorchBackendConfig(
        emit_mutable_buffer_names=True, passes=[InitializedMutableBufferPass(["total"])]
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, make in seeds().items():
        torch.manual_seed(0)
        path = folder / f"{name}.pte"
        to_edge(make()).to_executorch(config).save(str(path))
        paths.append(path)
    external = to_edge(export(Mlp().eval(), (torch.randn(2, 8),))).to_executorch(
        ExecutorchBackendConfig(external_constants=True)
    )
    external.save(str(folder / "external.pte"))
    external.write_tensor_data_to_file(str(folder))
    paths += write_delegated(folder)
    return [*paths, folder / "external.pte", *sorted(folder.glob("*.ptd"))]


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        sys.stdout.write(f"{written}\n")
