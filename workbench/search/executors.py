"""Where candidates run: processes of this machine, or any `concurrent.futures.Executor`.

A process that dies takes its whole pool along (`BrokenProcessPool`), and with it candidates that are not to
blame. The local pool is made anew then, and the lost candidates run one by one: who kills again is to blame.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

from workbench.search.work import one_thread

__all__ = ["Died", "LocalProcesses", "gather"]

Cancelled = Callable[[], bool]


class Died(Exception):  # noqa: N818  # it stands for what happened, in the table of outcomes
    """A worker ended without an answer."""


class LocalProcesses:
    """Fresh processes of this machine, which never share locks or threads with this one (`spawn`).

    Args:
        workers: How many; as many as this process may use cores by default.
        prepare: What each of them does first.
    """

    def __init__(self, workers: int | None = None, prepare: Callable[[], None] | None = one_thread) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.workers, self._prepare = workers or cores, prepare
        self._pool: ProcessPoolExecutor | None = None

    def pool(self) -> Executor:
        """The pool, made when it is first needed."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=self._prepare
            )
        return self._pool

    def close(self) -> None:
        """End the processes; new ones are made when they are needed again."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def gather(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    where: LocalProcesses | Executor,
    cancelled: Cancelled,
) -> Iterator[tuple[int, Any]]:
    """Run a function on all tasks.

    Args:
        function: At the top of a module.
        tasks: Arguments of each call.
        where: What runs them.
        cancelled: Asked now and then; tasks that have not begun are left then.

    Yields:
        Number of a task and its result or exception, as they come; the ones that were cancelled are not among
        them.
    """
    lost = []
    for index, result in _round(function, enumerate(tasks), where, cancelled):
        if isinstance(result, Died) and isinstance(where, LocalProcesses):
            lost.append(index)
        else:
            yield index, result
    broken = bool(lost)
    for index in sorted(lost):
        assert isinstance(where, LocalProcesses)
        if broken:
            where.close()
        if cancelled():
            return
        broken = False
        for answer in _round(function, [(index, tasks[index])], where, cancelled):
            broken = isinstance(answer[1], Died)
            yield answer
    if broken and isinstance(where, LocalProcesses):
        where.close()


def _round(
    function: Callable[..., Any],
    tasks: Iterable[tuple[int, tuple[Any, ...]]],
    where: LocalProcesses | Executor,
    cancelled: Cancelled,
) -> Iterator[tuple[int, Any]]:
    futures: dict[Future[Any], int] = {}
    for index, arguments in tasks:
        try:
            pool = where.pool() if isinstance(where, LocalProcesses) else where
            futures[pool.submit(function, *arguments)] = index
        except Exception as error:  # the pool broke while tasks were handed to it
            yield index, Died(f"{type(error).__name__}: {error}")
    waiting = set(futures)
    while waiting:
        # Short waits: futures of other libraries don't all wake their waiters when they are cancelled.
        done, waiting = wait_for(waiting, timeout=0.1, return_when="FIRST_COMPLETED")
        for future in sorted(done, key=futures.__getitem__):
            yield from _result(future, futures[future])
        if waiting and cancelled():
            for future in waiting:
                future.cancel()
            waiting = {future for future in waiting if not future.cancelled()}


def _result(future: Future[Any], index: int) -> Iterator[tuple[int, Any]]:
    try:
        yield index, future.result()
    except CancelledError:
        return
    except Exception as error:
        # `evaluate` answers errors of the candidate itself: what arrives here is the machinery's.
        yield index, Died(f"{type(error).__name__}: {error}".splitlines()[0])
