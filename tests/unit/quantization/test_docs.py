"""The examples of docs/quantization.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

TEXT = Path(__file__).resolve().parents[3] / "docs" / "quantization.md"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", TEXT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    delegated, other, trained = (names[name] for name in ("delegated", "other", "trained"))
    report = delegated.quantization_report  # type: ignore[attr-defined]
    assert (report["state"] != "float").all()
    states = other.quantized.report.set_index("node")["state"]  # type: ignore[attr-defined]
    assert states["conv2d"] == "quantized" and states["linear"] == "float"
    assert len(trained.execute(torch.randn(1, 3, 16, 16))[0]) == 1  # type: ignore[attr-defined]
