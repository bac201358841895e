"""Lower MTCNN, run it on a photograph in the native runtime, compare with eager PyTorch, and profile it.

`make demo`, or from the folder `notebooks`: `python -m mtcnn.demo --out ../out`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import Dim

import workbench as wb
from mtcnn.cascade import Array, Cascade, Faces
from mtcnn.networks import load

__all__ = ["Checked", "draw", "eager", "lower_all", "main", "photograph"]

NAMES = ("pnet", "rnet", "onet")
LARGEST_IMAGE, LARGEST_BATCH = 640, 256


@dataclass
class Checked:
    """A network in the native runtime, each of whose answers is compared with eager PyTorch.

    Attributes:
        name: The network's name.
        lowering: The lowered network.
        model: The same in eager PyTorch.
        trace: Where the native runtime's events go.
        calls: How often it was called.
        worst: Largest absolute difference of an output so far.
        seconds: Time spent in the native runtime.
    """

    name: str
    lowering: Any
    model: torch.nn.Module
    trace: Any
    calls: int = 0
    worst: float = 0.0
    seconds: float = 0.0

    def start_over(self) -> None:
        """Forget what was counted and recorded so far."""
        self.trace = self.lowering.new_trace()
        self.calls, self.seconds = 0, 0.0

    def __call__(self, batch: Array) -> tuple[Array, ...]:
        """Run on `(N, 3, H, W)` float32; `AssertionError` where an output differs from eager PyTorch."""
        inputs = torch.from_numpy(batch)
        start = time.perf_counter()
        outputs = self.lowering.execute(inputs, trace=self.trace)
        self.seconds += time.perf_counter() - start
        with torch.inference_mode():
            expected = self.model(inputs)
        for found, wanted in zip(outputs, expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
            self.worst = max(self.worst, (found - wanted).abs().max().item())
        self.calls += 1
        # The runtime may write its outputs to the same memory at the next call.
        return tuple(np.array(output) for output in outputs)


def photograph() -> NDArray[np.uint8]:
    """The astronaut, `(512, 512, 3)` uint8; the photograph comes with scikit-image."""
    from skimage.data import astronaut

    return np.asarray(astronaut())


def eager(model: torch.nn.Module) -> Callable[[Array], tuple[Array, ...]]:
    """A network of eager PyTorch for the cascade."""

    def call(batch: Array) -> tuple[Array, ...]:
        with torch.inference_mode():
            return tuple(output.numpy() for output in model(torch.from_numpy(batch)))

    return call


def lower_all(models: tuple[torch.nn.Module, ...], recipe: Any = None) -> dict[str, Any]:
    """Lower the three networks: P-Net for any image up to 640 x 640, R- and O-Net for any batch up to 256."""
    batch = Dim("batch", min=1, max=LARGEST_BATCH)
    height, width = (Dim(name, min=14, max=LARGEST_IMAGE) for name in ("height", "width"))
    examples = {
        "pnet": (torch.zeros(1, 3, 96, 128), ({2: height, 3: width},)),
        "rnet": (torch.zeros(4, 3, 24, 24), ({0: batch},)),
        "onet": (torch.zeros(4, 3, 48, 48), ({0: batch},)),
    }
    return {
        name: wb.lower(model, (example,), recipe=recipe, dynamic_shapes=shapes)
        for model, (name, (example, shapes)) in zip(models, examples.items(), strict=True)
    }


def draw(image: NDArray[np.uint8], faces: Faces) -> Any:
    """The photograph as a PIL image, with a box and five points for each face."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    for box, score, points in zip(faces.boxes, faces.scores, faces.landmarks, strict=True):
        left, top, right, bottom = (float(edge) for edge in box)
        pen.rectangle((left, top, right, bottom), outline=(80, 255, 120), width=3)
        pen.text((left + 4, top - 14), f"{score:.3f}", fill=(80, 255, 120))
        for x, y in points:
            pen.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(255, 210, 60), outline=(0, 0, 0))
    return picture


def main(arguments: list[str] | None = None) -> int:
    """Entry point; 1 where no face was found or the cascades disagree."""
    parser = argparse.ArgumentParser(prog="mtcnn.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("../out"), help="folder for what is written")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)

    print("Lowering P-Net, R-Net and O-Net")
    models = load()
    lowerings = lower_all(models)
    for name, lowering in lowerings.items():
        path = out / f"{name}.pte"
        lowering.save(path)
        took = sum(lowering.seconds.values())
        print(f"  {path}  {path.stat().st_size:>9,} bytes, {took:.2f} s")

    print("\nDetecting faces in the native runtime, each output compared with eager PyTorch")
    image = photograph()
    networks = [
        Checked(name, lowering, model, lowering.new_trace())
        for model, (name, lowering) in zip(models, lowerings.items(), strict=True)
    ]
    Cascade(*networks)(image)  # the first pass touches all memory for the first time
    for network in networks:
        network.start_over()
    faces = Cascade(*networks)(image)
    for network in networks:
        print(
            f"  {network.name}: {network.calls} calls, {1e3 * network.seconds:.1f} ms,"
            f" largest difference {network.worst:.1e}"
        )
    for box, score in zip(faces.boxes, faces.scores, strict=True):
        print(f"  face at {', '.join(f'{edge:.0f}' for edge in box)} with probability {score:.4f}")

    reference = Cascade(*map(eager, models))(image)
    agree = len(faces) == len(reference) and np.allclose(faces.boxes, reference.boxes, atol=0.01)
    print(f"  eager PyTorch finds {'the same' if agree else 'something else: ' + str(reference)}")
    draw(image, faces).save(out / "astronaut.png")

    print("\nWhere the time goes")
    for network in networks:
        run = network.lowering.profile(network.trace)
        print(f"\n{network.name}, {network.calls} executions")
        print(run.summary().to_string(index=False))
        run.save(out / f"{network.name}.etdp")
        run.save(out / f"{network.name}.trace.json")
    print(f"\nWritten to {out.resolve()}: the picture, three .pte, their traces as ETDump and for Perfetto")
    return 0 if agree and len(faces) else 1


if __name__ == "__main__":
    sys.exit(main())
