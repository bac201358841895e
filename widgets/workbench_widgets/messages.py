"""Messages of a page that must not be lost: each is answered once, however often it comes.

A page sends a request again that nobody acknowledged (`common/live.ts`). JupyterLab sends what widgets say to
a thread of the kernel ("subshell") that another page or notebook may end; the kernel drops what comes for one
that is gone, and who waits for the answer hears nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Answers", "keep_reachable"]

Reply: TypeAlias = tuple[dict[str, Any], list[bytes]]
_KEPT = 64
_LARGEST = 1 << 20


class Answers:
    """Which requests were taken, and the answers to the last ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, Reply | None] = OrderedDict()
        # The same request may come by two threads of the kernel at once.
        self._lock = threading.Lock()

    def take(self, number: int) -> bool:
        """Whether a request is a new one."""
        with self._lock:
            if number in self._known:
                return False
            self._known[number] = None
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            return True

    def given(self, number: int, reply: Reply) -> None:
        """Remember an answer, unless it is a large one, which would be kept for nothing in most cases."""
        with self._lock:
            if number in self._known and sum(map(len, reply[1])) <= _LARGEST:
                self._known[number] = reply

    def again(self, number: int) -> Reply | None:
        """The answer to a request that came again; None while it is being worked out, or too large."""
        return self._known.get(number)


def keep_reachable(comm: Any) -> None:
    """Have a comm's messages handled by the kernel's main thread where the one they are meant for is gone.

    For kernels that choose the thread by the comm; elsewhere nothing changes.
    """
    chosen: Callable[[Any, Any], Any] | None = getattr(comm, "_reply_subshell_for", None)
    threads = getattr(getattr(comm, "kernel", None), "shell_channel_thread", None)
    known: Callable[[], list[str]] | None = getattr(getattr(threads, "manager", None), "list_subshell", None)
    if chosen is None or known is None:
        return

    def reachable(data: Any, default: Any) -> Any:
        name = chosen(data, default)
        return name if name is None or name in known() else None

    comm._reply_subshell_for = reachable
