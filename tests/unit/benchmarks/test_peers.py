"""The peers run the networks, and agree with eager: a benchmark of a wrong answer is worth nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measure import in_worker


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["workbench", "executorch", "eager"])
def test_peer_is_timed_and_agrees_with_eager(peer: str, tmp_path: Path) -> None:
    found = in_worker("execution", "mlp", str(tmp_path), "0.05", peer)
    assert "error" not in found, found
    assert found["seconds"] > 0
    assert found["difference"] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("what", ["lowering", "load", "arena", "trace"])
def test_measurement_gives_figures(what: str, tmp_path: Path) -> None:
    peer = ["workbench"] if what in ("load", "lowering") else []
    found = in_worker(what, "mlp", str(tmp_path), "0.05", *peer)
    assert "error" not in found, found
    if what == "arena":
        assert found["lower_bound"] <= found["workbench"] <= found["executorch"]
    elif what == "trace":
        assert 0.5 < found["ratio"] < 2
