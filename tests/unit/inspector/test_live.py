from __future__ import annotations

import threading

import pytest

from workbench.errors import TraceError
from workbench.inspector import LiveRun
from workbench.inspector.trace import Kind


class SlowMethod:
    """Executes when it is told to, so that a test decides what has happened when it looks."""

    def __init__(self, fail_at: int = -1) -> None:
        self.may_run = threading.Semaphore(0)
        self.count = 0
        self.fail_at = fail_at

    def execute(self, inputs, trace):
        assert self.may_run.acquire(timeout=10)
        if self.count == self.fail_at:
            raise ValueError("broken kernel")
        trace.record(Kind.INSTRUCTION, "aten::add.out", self.count, self.count + 1, 0)
        trace.record(Kind.EXECUTE, "forward", self.count, self.count + 2)
        self.count += 1
        return [inputs[0] + self.count]


def test_events_stream_while_the_run_goes_on(session):
    method = SlowMethod()
    run = LiveRun.start(method, [10], repeat=3, session=session)
    seen = []
    method.may_run.release()
    for batch in run.events():
        seen.extend(name for name, _ in batch)
        if run.running and len(seen) == 2 * method.count:
            # All that happened has been seen, and the run is not over: it waits for this.
            method.may_run.release()
    assert seen == ["aten::add.out", "forward"] * 3
    assert run.result() == [13]
    assert run.executions == 3


def test_cancelled_run_ends_after_the_execution_under_way(session):
    method = SlowMethod()
    run = LiveRun.start(method, [0], repeat=1000, session=session)
    run.cancel()
    method.may_run.release()
    run.result(timeout=10)
    assert run.executions <= 1
    assert not run.running


def test_error_of_the_execution_is_raised_after_its_events(session):
    method = SlowMethod(fail_at=1)
    run = LiveRun.start(method, [0], repeat=5, session=session)
    method.may_run.release(2)
    seen = 0
    with pytest.raises(ValueError, match="broken kernel"):
        for batch in run.events():
            seen += len(batch)
    assert seen == 2
    with pytest.raises(ValueError, match="broken kernel"):
        run.result()


def test_result_says_when_the_run_takes_too_long(session):
    method = SlowMethod()
    run = LiveRun.start(method, [0], session=session)
    with pytest.raises(TraceError, match="not ended"):
        run.result(timeout=0.01)
    method.may_run.release()
    run.result(timeout=10)


def test_run_without_executions_is_refused(session):
    with pytest.raises(TraceError, match="at least one"):
        LiveRun(SlowMethod(), [0], repeat=0, session=session)
