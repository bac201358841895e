"""What the engine leaves resident of a program's file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import workbench as wb
from workbench.runtime import Runtime

SMAPS = Path("/proc/self/smaps")


def resident_bytes(path: Path) -> int:
    """Of all mappings of a file in this process."""
    total, inside = 0, False
    for line in SMAPS.read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells which pages are resident")
def test_weights_of_the_file_are_not_resident_once_they_are_packed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    image = torch.nn.Sequential(torch.nn.Conv2d(64, 256, 3), torch.nn.ReLU(), torch.nn.Conv2d(256, 64, 1))
    model = torch.nn.Sequential(image, torch.nn.Flatten(), torch.nn.Linear(64 * 36, 512), torch.nn.ReLU())
    inputs = (torch.randn(1, 64, 8, 8),)
    path = tmp_path / "model.pte"
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    wb.lower(model.eval(), inputs, recipe=recipe).save(path)
    size = path.stat().st_size
    assert size > 4 << 20
    method = Runtime.get().load_program(path).load_method("forward")
    assert resident_bytes(path) < size // 10
    found = method.execute(list(inputs))[0]
    assert resident_bytes(path) < size // 10
    with torch.no_grad():
        torch.testing.assert_close(found, model(*inputs), rtol=1e-4, atol=1e-4)
