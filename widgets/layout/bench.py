"""Times of the layout engine, native and as WebAssembly; `make widgets` first.

The median of a few calls in ms, and the size of the picture in px. `blocks` is a chain of residual blocks
with two branches each, `random` has edges from any box to any later one, `local` to one at most 50 further.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent), str(FOLDER.parents[1])]

from workbench_widgets.layout import Layout, layout  # noqa: E402

Edges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def blocks(boxes: int) -> Edges:
    """Residual blocks of seven boxes, one after another."""
    first = np.arange(0, boxes - 7, 7)
    pairs = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (0, 6), (6, 7)]
    return tuple(np.concatenate([first + pair[side] for pair in pairs]) for side in (0, 1))  # type: ignore[return-value]


def random_edges(boxes: int, span: int) -> Edges:
    """Three edges for every two boxes."""
    random = np.random.default_rng(0)
    src = random.integers(0, boxes - 1, boxes * 3 // 2)
    return src, np.minimum(boxes - 1, src + 1 + random.integers(0, span, len(src)))


def main() -> None:
    """Prints the table."""
    command = ["node", str(FOLDER / "bench.mjs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        print(f"{'graph':8} {'boxes':>6} {'edges':>6} {'native':>9} {'wasm':>9}   size")
        for boxes in (300, 3_000, 10_000, 50_000):
            shapes = {
                "blocks": blocks(boxes),
                "random": random_edges(boxes, boxes),
                "local": random_edges(boxes, 50),
            }
            for name, (src, dst) in shapes.items():
                random = np.random.default_rng(1)
                width = random.integers(40, 160, boxes).astype(np.float32)
                height = np.full(boxes, 26, np.float32)
                repeats = 5 if boxes <= 10_000 else 3
                result, native = _native(width, height, src, dst, repeats)
                columns = {"width": width, "height": height, "src": src, "dst": dst}
                request = {key: column.tolist() for key, column in columns.items()}
                node.stdin.write(json.dumps({**request, "repeats": repeats}) + "\n")
                node.stdin.flush()
                wasm = statistics.median(json.loads(node.stdout.readline()))
                size = f"{result.width:.0f} x {result.height:.0f}"
                print(f"{name:8} {boxes:6} {len(src):6} {native:6.1f} ms {wasm:6.1f} ms   {size}", flush=True)
        node.stdin.close()


def _native(
    width: npt.ArrayLike, height: npt.ArrayLike, src: npt.ArrayLike, dst: npt.ArrayLike, repeats: int
) -> tuple[Layout, float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = layout(width, height, src, dst)
        times.append(1e3 * (time.perf_counter() - start))
    return result, statistics.median(times)


if __name__ == "__main__":
    main()
