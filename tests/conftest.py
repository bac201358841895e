"""What all tests share."""

from __future__ import annotations

import warnings

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread_and_a_fixed_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _quiet_export() -> None:
    # torch.export warns about its own deprecations and about flat weights; neither concerns what is tested.
    warnings.filterwarnings("ignore", message=".*isinstance\\(treespec, LeafSpec\\).*")
    warnings.filterwarnings("ignore", message=".*were assigned during export.*")
