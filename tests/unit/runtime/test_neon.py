"""The runtime on 64-bit ARM, emulated: the engine's operators and whole programs give what they give here.

`wb_replay` is built by Debian's cross compiler and run by qemu-user, once per instruction set. The operators
are those that the conformance tests of the engine ran on this machine, where they were held to eager PyTorch.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import engine_harness
import replay_records
from workbench import CpuPartitioner, XnnpackPartitioner, to_edge_transform_and_lower
from workbench.backends import delegates_in

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "neon"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
LIBRARIES = "/usr/aarch64-linux-gnu"
ISAS = ("neon", "baseline")

pytestmark = [
    pytest.mark.skipif(
        shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None,
        reason="needs Debian's packages g++-aarch64-linux-gnu and qemu-user",
    ),
    pytest.mark.slow,
    pytest.mark.xdist_group("neon"),  # one build
]


@pytest.fixture(scope="module")
def replay() -> Callable[..., tuple[int, str]]:
    """Runs `wb_replay` with an instruction set on files of records: status and output."""
    configure = [
        *("cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, f"-DWB_ISAS={';'.join(ISAS)}"),
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/native_runtime/replay/aarch64.cmake",
        *(
            "-DWB_PYTHON_MODULES=OFF",
            "-DWB_ISA_OPTIMIZATION_baseline=-O1",
            "-DWB_TRACE_TESTS=OFF",
            f"-DPython_EXECUTABLE={sys.executable}",
        ),
    ]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:  # another process of the same run may want it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (configure, ["cmake", "--build", BUILD, "--target", "wb_replay"]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    def run(isa: str, *files: Path) -> tuple[int, str]:
        options = {"LOWERING_WORKBENCH_ISA": isa, "LOWERING_WORKBENCH_THREADS": "2"}
        program = BUILD / "native_runtime" / "replay" / "wb_replay"
        command = [EMULATOR, "-L", LIBRARIES, program, *files]
        done = subprocess.run(
            command, env={**os.environ, **options}, capture_output=True, text=True, check=False, timeout=600
        )
        return done.returncode, done.stdout[-4000:] + done.stderr[-1000:]

    return run


@pytest.fixture(scope="module")
def recorded_operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert engine_harness.library() is not None, "the target wb_engine_harness is not built"
    path = tmp_path_factory.mktemp("neon") / "operators.records"
    conformance = sorted((ROOT / "tests" / "conformance").glob("test_engine_*.py"))
    tests = [test for test in conformance if "import engine_harness" in test.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))
    }
    environment["LOWERING_WORKBENCH_RECORD"] = str(path)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    # What fails there fails under its own name.
    assert done.returncode in (0, 1) and path.exists(), done.stdout[-4000:]
    return path


@pytest.mark.parametrize("isa", ISAS)
def test_operators_give_what_they_give_here(
    isa: str, replay: Callable[..., tuple[int, str]], recorded_operators: Path
) -> None:
    status, output = replay(isa, recorded_operators)
    counts = re.search(r"^(\w+): (\d+) operators, 0 programs, 0 bad$", output, re.MULTILINE)
    assert status == 0 and counts is not None, output
    assert counts[1] == isa
    assert int(counts[2]) > 500


class Images(nn.Module):
    """Convolutions of all kinds, pools, a residual, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 17, 3, 2, 1), nn.BatchNorm2d(17), nn.ReLU6())
        self.depthwise = nn.Sequential(nn.Conv2d(17, 17, 5, padding=2, groups=17), nn.Hardswish())
        self.block = nn.Sequential(nn.Conv2d(17, 17, 3, padding=1), nn.BatchNorm2d(17), nn.ReLU())
        self.head = nn.Linear(17, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(self.depthwise(self.stem(x)), 3, 2, 1)
        x = x + self.block(x)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)).softmax(-1)


class Sentences(nn.Module):
    """An embedding and a layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.layer(self.embed(ids)).mean(1)


class Sequences(nn.Module):
    """Both recurrent layers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(9, 20, 2, batch_first=True)
        self.gru = nn.GRU(20, 13, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, _ = self.gru(self.lstm(x)[0])
        return y, y[:, -1]


class Numbers(nn.Module):
    """Elementary functions, reductions, comparisons."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        waves = torch.tanh(x) + torch.sin(y) * torch.sigmoid(x - y)
        picked = torch.where(x > y, x.exp(), torch.erf(y))
        return waves, picked.sum(1), waves.amax(0), picked.argmax(1), torch.log1p(waves.abs())


class Halves(nn.Module):
    """float16; delegates compute with float32 inside, so that they differ from eager by its rounding."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = x.half() * y.half() + 0.5
        return z, z.float()


X, Y = torch.linspace(-3, 3, 55).reshape(5, 11), torch.linspace(7, -4, 55).cos().reshape(5, 11)
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...], float]] = {
    "images": (Images, (torch.linspace(-1, 1, 2 * 3 * 33 * 35).sin().reshape(2, 3, 33, 35),), 1e-5),
    "sentences": (Sentences, (torch.arange(26).reshape(2, 13) % 50,), 1e-5),
    "sequences": (Sequences, (torch.linspace(-9, 9, 2 * 7 * 9).cos().reshape(2, 7, 9),), 1e-5),
    "numbers": (Numbers, (X, Y), 1e-5),
    "halves": (Halves, (X, Y), 1e-3),
}
PARTITIONERS: dict[str, Callable[[], list[Any]]] = {
    "undelegated": list,
    "cpu": lambda: [CpuPartitioner()],
    "xnnpack": lambda: [XnnpackPartitioner()],
}


@pytest.fixture(scope="module")
def recorded_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neon_programs")
    records = replay_records.Records(folder / "programs.records")
    delegated = dict.fromkeys(PARTITIONERS, 0)
    for name, (make, inputs, tolerance) in MODELS.items():
        torch.manual_seed(0)
        model = make().eval()
        with torch.no_grad():
            outputs = torch.utils._pytree.tree_leaves(model(*inputs))
        for kind, partitioners in PARTITIONERS.items():
            exported = torch.export.export(model, inputs)
            edge = to_edge_transform_and_lower(exported, partitioner=partitioners())
            delegated[kind] += sum(1 for _ in delegates_in(edge.exported_program()))
            path = folder / f"{name}_{kind}.pte"
            path.write_bytes(edge.to_executorch().buffer)
            records.program(f"{name}, {kind}", path, inputs, outputs, tolerance)
    assert delegated["undelegated"] == 0
    assert delegated["cpu"] >= len(MODELS)
    assert delegated["xnnpack"] > 0
    return records.path


@pytest.mark.parametrize("isa", ISAS)
def test_programs_agree_with_eager(
    isa: str, replay: Callable[..., tuple[int, str]], recorded_programs: Path
) -> None:
    status, output = replay(isa, recorded_programs)
    assert status == 0, output
    assert f"{isa}: 0 operators, {len(MODELS) * len(PARTITIONERS)} programs, 0 bad" in output


def test_a_record_that_differs_is_told(replay: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """The comparison can fail."""
    records = replay_records.Records(tmp_path / "wrong.records")
    x = torch.linspace(-1, 1, 20)
    copy = engine_harness.enumerators("Op")["Copy"]
    wrong = replay_records.plain(x + (x == 1) * 1e-3)
    records.operator("Copy", copy, [], [], [], [replay_records.plain(x)], [wrong], [], [])
    status, output = replay("neon", records.path)
    assert status == 1
    assert "element 19 of 20: expected 1.00" in output
    assert "neon: 1 operators, 0 programs, 1 bad" in output
