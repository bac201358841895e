"""What a search keeps in its folder: the model, the data, and a line for each candidate that was tried."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from workbench.errors import SearchError
from workbench.export import load, save

__all__ = ["DIED", "Outcome", "Store", "read_model", "samples"]

DIED = "WorkerDied"  # the kind of an outcome that no worker gave


@dataclass
class Outcome:
    """What a candidate came to.

    Attributes:
        key: Identifies model, data, metric and recipe.
        metric: Mean over the data, the more the better.
        bytes: Size of the `.pte` file.
        digest: Of the file's content.
        seconds: How long lowering and measuring took.
        milliseconds: Fastest execution; None where it was not timed.
        median: Median execution.
        kind: The class of the error; empty where all went well.
        error: What it says.
    """

    key: str
    metric: float = float("nan")
    bytes: int = 0
    digest: str = ""
    seconds: float = 0.0
    milliseconds: float | None = None
    median: float | None = None
    kind: str = ""
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether the candidate came to nothing."""
        return bool(self.kind)


def samples(path: str) -> list[Any]:
    """The samples in a file of the folder; recipes name it as their calibration data.

    Raises:
        SearchError: The file is not there, or is damaged.
    """
    try:
        found = torch.load(path, weights_only=True)
    except Exception as error:
        raise SearchError(
            f"the samples in {path} can't be read",
            found=f"{type(error).__name__}: {error}".splitlines()[0],
            hint="workers and replays need the search's folder: give folder= where all of them can read it",
        ) from error
    return list(found)


class Store:
    """The folder of one search.

    Args:
        folder: Made where it is missing. Searches of other models and data may share it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).resolve()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SearchError(f"the folder {folder} can't be made", found=str(error)) from error
        self._journal = self.folder / "journal.jsonl"

    def keep_model(self, program: ExportedProgram, digest: str) -> Path:
        """Write the model, once."""
        path = self.folder / f"model-{digest[:16]}.pt2"
        if not path.exists():
            _at_once(path, lambda partial: save(program, partial))
        return path

    def keep_samples(self, name: str, items: Iterable[Any]) -> tuple[Path, str]:
        """Write samples; their file is named by their content.

        Raises:
            SearchError: They hold other things than tensors, numbers, texts and containers of them.
        """
        items = list(items)
        digest = _digest(items)
        path = self.folder / f"{name}-{digest[:16]}.pt"
        if not path.exists():
            _at_once(path, lambda partial: torch.save(items, partial))
            try:
                torch.load(path, weights_only=True)
            except Exception as error:
                path.unlink()
                raise SearchError(
                    f"the {name} can't be handed to other processes",
                    expected="tensors, numbers and texts, in lists, tuples or dictionaries",
                    found=str(error).splitlines()[0],
                ) from error
        return path, digest

    def program_path(self, key: str) -> Path:
        """Where the file of a candidate stands until it is timed."""
        return self.folder / f"{key}.pte"

    def outcomes(self) -> dict[str, Outcome]:
        """What was written down; a line that was cut short is left out."""
        found: dict[str, Outcome] = {}
        if not self._journal.exists():
            return found
        known = {item.name for item in fields(Outcome)}
        for line in self._journal.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                data = json.loads(line)
                outcome = Outcome(**{name: value for name, value in data.items() if name in known})
            except (ValueError, TypeError, AttributeError):
                continue
            found[outcome.key] = outcome
        return found

    def write(self, outcome: Outcome, recipe: Any) -> None:
        """Write down an outcome; the last line about a candidate counts."""
        line = json.dumps({**asdict(outcome), "recipe": recipe}, sort_keys=True)
        with self._journal.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a search was killed while it wrote
                    file.write(b"\n")
            file.write(line.encode() + b"\n")


def read_model(path: str) -> ExportedProgram:
    """The model in a file of the folder.

    Raises:
        SearchError: The file is not there, or is damaged.
    """
    try:
        found = load(path)
    except Exception as error:
        raise SearchError(
            f"the model in {path} can't be read",
            found=str(error).splitlines()[0],
            hint="workers need the search's folder: give folder= where all of them can read it",
        ) from error
    assert isinstance(found, ExportedProgram)
    return found


def _at_once(path: Path, write: Any) -> None:
    """Write a file under another name first: nobody ever sees a part of it."""
    partial = path.with_name(f"partial-{os.getpid()}-{path.name}")
    write(partial)
    os.replace(partial, path)


def _digest(value: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)

    def add(item: Any) -> None:
        if isinstance(item, torch.Tensor):
            digest.update(repr((item.dtype, tuple(item.shape))).encode())
            if item.numel():
                digest.update(item.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        elif isinstance(item, list | tuple):
            digest.update(f"{type(item).__name__}{len(item)}".encode())
            for inner in item:
                add(inner)
        elif isinstance(item, dict):
            for key, inner in item.items():
                digest.update(repr(key).encode())
                add(inner)
        else:
            digest.update(repr(item).encode())

    add(value)
    return digest.hexdigest()
