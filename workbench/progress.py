"""Whether the running call shows bars, for steps that take long inside of one step of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress_wanted", "showing"]

_wanted: ContextVar[bool | None] = ContextVar("progress", default=None)


def progress_wanted() -> bool | None:
    """What the caller said; None leaves it to whether there is a terminal or a notebook."""
    return _wanted.get()


@contextmanager
def showing(progress: bool | None) -> Iterator[None]:
    """Let all that runs within know what the caller said."""
    token = _wanted.set(progress)
    try:
        yield
    finally:
        _wanted.reset(token)
