"""Damaged graphs of delegates give errors, never a crash. `make fuzz` does the same at length, sanitized."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import workbench as wb
from workbench.serialize import read_program

# Runs in a process of its own, which a crash would end. Arguments: the program, where the graph stands in it,
# its size, how many runs. Prints how many were refused and how many ran.
WORKER = """
import random, sys
import torch
from workbench.errors import ExecutionError
from workbench.runtime import Runtime

start, size, runs = map(int, sys.argv[2:])
refused = ran = 0
original = open(sys.argv[1], "rb").read()
NUMBERS = (0, 1, 2, 3, 7, 8, 64, 255, 65535, 2**24, 2**28, 2**31 - 1, 2**31, 2**32 - 1)
for seed in range(runs):
    random.seed(seed)
    data = bytearray(original)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = start + 4 * random.randrange(size // 4)
        way = random.randrange(4)
        if way == 0:
            data[start + random.randrange(size)] ^= 1 << random.randrange(8)
        elif way == 1:
            data[at : at + 4] = random.choice(NUMBERS).to_bytes(4, "little")
        elif way == 2:
            other = start + 4 * random.randrange(size // 4)
            data[at : at + 4] = data[other : other + 4]
        else:
            number = int.from_bytes(data[at : at + 4], "little") + random.choice((-2, -1, 1, 2))
            data[at : at + 4] = (number % 2**32).to_bytes(4, "little")
    sys.stderr.write(f"{seed}\\n")
    try:
        method = Runtime.get().load_program(bytes(data)).load_method(memory_limit=1 << 26)
        meta = method.metadata
        sizes = [meta.input_tensor_meta(i).sizes() for i in range(meta.num_inputs())]
        method.execute([torch.zeros(shape) for shape in sizes], max_instructions=500)
        ran += 1
    except ExecutionError:
        refused += 1
print(refused, ran)
"""


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)
        self.transposed = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.conv(x))
        x = (
            F.pad(self.depthwise(x), (1, 1, 0, 2)).clamp(-1, 1)
            * F.max_pool2d(x, (1, 2), (1, 1), (0, 1))[:, :, :, :8]
        )
        y = self.transposed(F.avg_pool2d(x, 2))
        y = torch.cat([y, y.sigmoid()], 1)[:, 2:6]
        return torch.softmax(self.linear(y.mean((2, 3), True).view(1, 4)), -1), y


@pytest.mark.parametrize("name", ["xnnpack:XnnpackPartitioner", "cpu:CpuPartitioner"])
def test_broken_graphs_end_in_errors_not_in_a_crash(name: str, tmp_path: Path) -> None:
    recipe = wb.Recipe(partitioner=f"workbench.backends.{name}")
    lowering = wb.lower(Images().eval(), (torch.randn(1, 3, 8, 8),), recipe=recipe, progress=False)
    path = tmp_path / "program.pte"
    lowering.save(path)
    whole = path.read_bytes()
    blobs = [bytes(blob) for blob in read_program(whole).delegate_data]
    largest = max(blobs, key=len)
    runs = 2000
    place = str(whole.index(largest)), str(len(largest)), str(runs)
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(path), *place], capture_output=True, text=True, timeout=300
    )
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"ended with {done.returncode} in the run of seed {last}"
    refused, ran = map(int, done.stdout.split())
    assert refused + ran == runs
    assert refused > runs // 10  # the changes do reach what is checked
    assert ran > runs // 50  # and what is executed
