"""A run that is watched while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.errors import TraceError
from workbench.inspector.trace import EventBatch, Trace

__all__ = ["LiveRun"]

# How long events() waits for something new, in seconds: short at first, longer while nothing comes.
_SHORTEST_WAIT, _LONGEST_WAIT = 0.001, 0.05
# Whether or not somebody listens, the ring must not fill up: events are taken from it at least so often, in
# seconds, and before it is as full as this. Not after each execution, which costs short ones some percent.
_COLLECT_SECONDS, _COLLECT_SHARE = 0.004, 0.25


class LiveRun:
    """Executions of a method in a thread of their own, whose events stream.

    Args:
        method: A loaded method: `execute(inputs, trace=session)`, which leaves the GIL while it runs.
        inputs: Its inputs.
        repeat: How many executions.
        seconds: Begin no execution after this time, however many are left; None: no limit.
        session: The receiver of the events; by default one for 65,536 events is made.
        keep: How many events `trace` keeps; the oldest are forgotten beyond them. By default 4 million, of 48
            bytes each. None: all.

    Attributes:
        trace: All events so far.
        executions: How many executions are complete.
        repeat: How many are wanted.
        seconds: The limit of time.
    """

    def __init__(
        self,
        method: Any,
        inputs: Sequence[Any],
        *,
        repeat: int = 1,
        seconds: float | None = None,
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
        self.repeat, self.seconds = repeat, seconds
        self._method, self._inputs = method, inputs
        self._began: float | None = None
        self._ended: float | None = None
        self._cancelled = threading.Event()
        self._done = threading.Event()
        self._outputs: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="workbench-run", daemon=True)

    @classmethod
    def start(cls, method: Any, inputs: Sequence[Any], **options: Any) -> LiveRun:
        """Begin a run; arguments as of the class."""
        run = cls(method, inputs, **options)
        run.begin()
        return run

    def begin(self) -> None:
        """Begin the run; once."""
        self._thread.start()

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

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end early."""
        return self._cancelled.is_set()

    @property
    def error(self) -> BaseException | None:
        """What an execution raised."""
        return self._error

    @property
    def inputs(self) -> Sequence[Any]:
        """What the method is run with."""
        return self._inputs

    @property
    def elapsed(self) -> float:
        """Seconds that it has been running, or ran."""
        if self._began is None:
            return 0.0
        return (self._ended if self._ended is not None else time.monotonic()) - self._began

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most so many seconds; whether it has come."""
        return self._done.wait(timeout)

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
        self._began = time.monotonic()
        try:
            self._execute()
        except BaseException as error:
            self._error = error  # raised where the result is asked for
        finally:
            self._ended = time.monotonic()
            self.trace.collect()
            self._done.set()

    def _execute(self) -> None:
        assert self._began is not None
        end = None if self.seconds is None else self._began + self.seconds
        room = int(_COLLECT_SHARE * getattr(self.trace.session, "capacity", 1 << 16))
        collected, since, most = self._began, 0, 0
        for _ in range(self.repeat):
            if self._cancelled.is_set() or (end is not None and time.monotonic() >= end and self.executions):
                return
            self._outputs = self._method.execute(self._inputs, trace=self.trace.session)
            self.executions += 1
            since += 1
            now = time.monotonic()
            if since * most >= room or now - collected >= _COLLECT_SECONDS or not most:
                # What `events()` took meanwhile is missing here: hence the most that one execution had.
                most = max(most, -(-self.trace.collect() // since), 1)
                collected, since = now, 0
