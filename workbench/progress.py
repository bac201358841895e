"""Whether bars are shown: what the caller said, or whether there is somebody who sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress_wanted", "showing", "shows"]

_wanted: ContextVar[bool | None] = ContextVar("progress", default=None)


def shows(progress: bool | None) -> bool:
    """What the caller said; where that is nothing, whether this is a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else progress


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
