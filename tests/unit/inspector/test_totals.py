"""Events added up while they come."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.inspector.totals import RowKey, Totals
from workbench.inspector.trace import EventBatch, Kind, Trace


def record(session, times, *, calls=1):
    """One execution: instruction 0 `calls` times, a delegate's call with two events inside."""
    now = 1000 * session.execution
    for _ in range(calls):
        session.record(Kind.INSTRUCTION, "aten::add.out", now, now + times[0], 0)
    session.record(Kind.DELEGATE, "mm", now + 100, now + 100 + times[1], 1, number=7)
    session.record(Kind.DELEGATE, "x", now + 200, now + 201, 1, text="layer.0")
    session.record(Kind.INSTRUCTION, "Backend", now + 100, now + 300, 1)
    session.record(Kind.EXECUTE, "forward", now, now + 500)


ADD = RowKey(0, 0, None, "aten::add.out")
KEYS = [ADD, RowKey(0, 1, 7, "mm"), RowKey(0, 1, "layer.0", "x"), RowKey(0, 1, None, "Backend")]


def batch_of(session):
    trace = Trace(session)
    trace.collect()
    return trace.batch()


def test_rows_and_sums(session):
    for duration in (10, 30, 20):
        record(session, (duration, 5))
    totals = Totals()
    update = totals.add(batch_of(session))
    assert totals.keys == KEYS
    assert update.grown
    assert update.executions.tolist() == [0, 1, 2]
    np.testing.assert_allclose(update.times[:, 0], [1e-5, 3e-5, 2e-5])
    np.testing.assert_allclose(update.durations, 5e-4)
    statistics = totals.statistics
    assert statistics.count.tolist() == [3, 3, 3, 3]
    assert (statistics.min[0], statistics.max[0], statistics.last[0]) == pytest.approx((1e-5, 3e-5, 2e-5))
    assert statistics.sum[0] == pytest.approx(6e-5)


def test_calls_of_a_loop_count_with_their_sum(session):
    record(session, (10, 5), calls=4)
    totals = Totals()
    update = totals.add(batch_of(session))
    assert update.times[0, 0] == pytest.approx(4e-5)
    assert (totals.statistics.count[0], totals.statistics.calls[0]) == (1, 4)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 11])
def test_batches_of_any_size_give_the_same(session, size):
    for duration in range(1, 8):
        record(session, (duration, 2 * duration), calls=1 + duration % 3)
    batch = batch_of(session)
    whole, parts = Totals(), Totals()
    expected = whole.add(batch)
    seen = []
    for start in range(0, len(batch), size):
        seen.append(parts.add(EventBatch(batch.events[start : start + size], batch.names)))
    assert parts.keys == whole.keys
    assert parts.executions == whole.executions == 7
    for name in ("count", "calls", "sum", "min", "max", "last"):
        np.testing.assert_allclose(getattr(parts.statistics, name), getattr(whole.statistics, name))
    assert sum(len(update.executions) for update in seen) == 7
    np.testing.assert_array_equal(
        np.concatenate([u.times for u in seen if len(u.executions)]), expected.times
    )


def test_rows_that_did_not_run_are_missing(session):
    record(session, (10, 5))
    session.record(Kind.INSTRUCTION, "aten::mul.out", 1000, 1040, 2)
    session.record(Kind.EXECUTE, "forward", 1000, 1100)
    totals = Totals()
    update = totals.add(batch_of(session))
    assert np.isnan(update.times).tolist() == [[False] * 4 + [True], [True] * 4 + [False]]
    assert totals.statistics.count.tolist() == [1, 1, 1, 1, 1]
    assert totals.statistics.last.tolist() == pytest.approx([1e-5, 5e-6, 1e-6, 2e-4, 4e-5])


def test_new_rows_appear_later(session):
    record(session, (10, 5))
    totals = Totals()
    batch = batch_of(session)
    totals.add(batch)
    session.record(Kind.INSTRUCTION, "aten::mul.out", 1000, 1040, 2)
    session.record(Kind.EXECUTE, "forward", 1000, 1100)
    update = totals.add(batch_of(session))
    assert update.grown
    assert totals.keys[4] == RowKey(0, 2, None, "aten::mul.out")
    assert np.isnan(totals.statistics.min[:4]).sum() == 0


def test_an_execution_that_is_under_way_waits(session):
    record(session, (10, 5))
    session.record(Kind.INSTRUCTION, "aten::add.out", 1000, 1010, 0)
    totals = Totals()
    totals.add(batch_of(session))
    assert totals.executions == 1
    assert totals.statistics.count[0] == 1
    session.record(Kind.EXECUTE, "forward", 1000, 1100)
    totals.add(batch_of(session))
    assert (totals.executions, totals.statistics.count[0]) == (2, 2)


def test_execution_with_missing_events_does_not_count(session):
    for _ in range(3):
        record(session, (10, 5))
    batch = batch_of(session)
    totals = Totals()
    totals.add(EventBatch(batch.events[:7], batch.names))  # the first, and a part of the second
    totals.skip()
    totals.add(EventBatch(batch.events[8:9], batch.names))
    update = totals.add(EventBatch(batch.events[9:], batch.names))
    assert update.executions.tolist() == [2]
    assert totals.executions == 2
    assert totals.statistics.count.tolist() == [2, 2, 2, 2]


def test_empty_batches_change_nothing(session):
    totals = Totals()
    update = totals.add(batch_of(session))
    assert (len(update.executions), totals.executions, totals.keys) == (0, 0, [])
