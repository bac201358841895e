"""A run that is watched while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.errors import TraceError
from workbench.inspector.trace import EventBatch, Trace

__all__ = ["LiveRun"]

# How long events() waits for something new, in seconds: short at first, longer while nothing comes.
_SHORTEST_WAIT, _LONGEST_WAIT = 0.001, 0.05


class LiveRun:
    """Executions of a method in a thread of their own, whose events stream.

    Args:
        method: A loaded method: `execute(inputs, trace=session)`, which leaves the GIL while it runs.
        inputs: Its inputs.
        repeat: How many executions.
        session: The receiver of the events; by default one for 65,536 events is made.
        keep: How many events `trace` keeps; the oldest are forgotten beyond them. By default 4 million, of 48
            bytes each. None: all.

    Attributes:
        trace: All events so far.
        executions: How many executions are complete.
    """

    def __init__(
        self,
        method: Any,
        inputs: Sequence[Any],
        *,
        repeat: int = 1,
        session: Any = None,
        keep: int | None = 1 << 22,
    ) -> None:
        if repeat < 1:
            raise TraceError("a run needs at least one execution", found=str(repeat))
        if session is None:
            from workbench.runtime import TraceSession

            session = TraceSession()
        self.trace = Trace(session, limit=keep)
        self.executions = 0
        self._method, self._inputs, self._repeat = method, inputs, repeat
        self._cancelled = threading.Event()
        self._done = threading.Event()
        self._outputs: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="workbench-run", daemon=True)

    @classmethod
    def start(cls, method: Any, inputs: Sequence[Any], **options: Any) -> LiveRun:
        """Begin a run; arguments as of the class."""
        run = cls(method, inputs, **options)
        run._thread.start()
        return run

    def events(self) -> Iterator[EventBatch]:
        """New events as they come, until the run ends; begins with the first one each time that it is called.

        Raises:
            Exception: What the execution raised, after its events.
        """
        position, wait = 0, _SHORTEST_WAIT
        while True:
            finished = self._done.is_set()
            self.trace.collect()
            batch = self.trace.batch(position)
            if len(batch):
                position = batch.end
                wait = _SHORTEST_WAIT
                yield batch
            elif finished:
                break
            else:
                self._done.wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        self._raise()

    def cancel(self) -> None:
        """Ask the run to end after the execution that is under way."""
        self._cancelled.set()

    @property
    def running(self) -> bool:
        """Whether executions are still to come or under way."""
        return not self._done.is_set()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end; the outputs of the last execution, None if there was none.

        Args:
            timeout: Seconds.

        Raises:
            TraceError: The run has not ended in time.
            Exception: What the execution raised.
        """
        if not self._done.wait(timeout):
            raise TraceError("the run has not ended", expected=f"within {timeout} s")
        self._thread.join()
        self._raise()
        return self._outputs

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            for _ in range(self._repeat):
                if self._cancelled.is_set():
                    break
                self._outputs = self._method.execute(self._inputs, trace=self.trace.session)
                self.executions += 1
                # Whether or not somebody listens, the ring must not fill up.
                self.trace.collect()
        except BaseException as error:
            self._error = error  # raised where the result is asked for
        finally:
            self.trace.collect()
            self._done.set()
