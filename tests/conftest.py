"""What all tests share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from interop_fixtures import delegated_by_executorch as delegated_by_executorch
from interop_fixtures import made_by_executorch as made_by_executorch
from interop_fixtures import run_in_executorch as run_in_executorch

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with `tests/golden/<name>`, or write that file with `--update-golden`."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} does not exist; run pytest with --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8"), "run pytest with --update-golden if this is meant"

    return compare


@pytest.fixture(autouse=True)
def _one_thread_and_a_fixed_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _quiet_export() -> None:
    # torch.export warns about its own deprecations and about flat weights; neither concerns what is tested.
    warnings.filterwarnings("ignore", message=".*isinstance\\(treespec, LeafSpec\\).*")
    warnings.filterwarnings("ignore", message=".*were assigned during export.*")
