"""The machine's limits."""

from __future__ import annotations

import torch

from workbench.inspector import peaks
from workbench.inspector.peaks import known_peaks, measure_peaks


def test_peaks_are_plausible_and_measured_once():
    threads = torch.get_num_threads()
    first = measure_peaks()
    assert 1 < first.gflops < 1000
    assert 0.5 < first.gbytes < 500
    assert first.ridge == first.gflops / first.gbytes
    assert first.array_bytes >= min(first.cache_bytes, peaks._LARGEST_ARRAY)
    assert first.seconds < 2
    assert measure_peaks() is first
    assert known_peaks() is first
    assert torch.get_num_threads() == threads


def test_peaks_are_measured_again_on_demand():
    first = measure_peaks()
    assert measure_peaks(again=True) is not first


def test_a_cache_that_the_system_does_not_tell_is_assumed(monkeypatch, tmp_path):
    monkeypatch.setattr(peaks, "_CACHES", tmp_path / "nothing")
    monkeypatch.setattr(peaks.os, "sysconf_names", {})
    assert peaks._last_level_cache() == peaks._USUAL_CACHE


def test_the_largest_cache_counts(monkeypatch, tmp_path):
    for index, size in enumerate(("32K", "1024K", "33M")):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "size").write_text(size + "\n")
    monkeypatch.setattr(peaks, "_CACHES", tmp_path)
    assert peaks._last_level_cache() == 33 << 20
