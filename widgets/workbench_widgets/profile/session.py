"""Runs of one widget: started from the view or shown in it, watched while they go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import ExecutionError, WorkbenchError
from workbench.inspector import LiveRun
from workbench.inspector.peaks import known_peaks
from workbench.inspector.totals import Totals, Update
from workbench.lowering import Lowering, Run
from workbench.run import Runnable, new_trace
from workbench.runtime import Runtime
from workbench_widgets.context import Context
from workbench_widgets.contract import Failure
from workbench_widgets.profile.contract import (
    ProfileBatch,
    ProfileDocument,
    ProfileEnded,
    ProfileStarted,
    StartRequest,
)
from workbench_widgets.profile.document import (
    Before,
    Outcome,
    State,
    compare_values,
    machine_peaks,
    make_document,
    signatures,
)
from workbench_widgets.profile.measured import History, Measured, measure
from workbench_widgets.profile.rows import Row, describe, symbols_of

__all__ = ["ProfileState", "Watch"]

_LOG = logging.getLogger("workbench_widgets")
# Seconds between batches: faster than eyes follow, slow enough to cost the run nothing.
_PERIOD = 0.08
# While no execution ends, how often the view hears that time goes on, in periods.
_PATIENCE = 5
# Events that a run from the view keeps for percentiles, the timeline, exports, and for the Inspector, which
# takes some microseconds for each when another view asks it.
_KEEP = 1 << 16
# Limits of one batch: entries of `samples`, sampled executions, entries of `recent`.
_SAMPLES, _SAMPLED, _RECENT = 1 << 14, 8, 256


class Watch:
    """A run whose events are added up, as they come or at once."""

    def __init__(self, run: Run, number: int, *, values: bool) -> None:
        self.run = run
        self.number = number
        self.values = values
        self.totals = Totals()
        self.history = History()
        self.rows: list[Row] = []
        self.live: LiveRun | None = run._live
        self.finished = False
        self.document: ProfileDocument | None = None
        self.place: dict[Any, int] = {}
        self.missed = 0
        self._position = 0

    def take(self) -> Update:
        """Add up what has come since the last time."""
        trace = self.run.trace
        assert trace is not None
        trace.collect()
        batch = trace.batch(self._position)
        missed = batch.end - len(batch) - self._position
        if missed > 0:  # this thread was kept from looking for so long that the trace forgot them
            self.missed += missed
            self.totals.skip()
        self._position = batch.end
        update = self.totals.add(batch)
        self.history.add(update.executions, update.durations)
        return update

    def state(self) -> State:
        """What the run is doing."""
        if self.live is None:
            return "done"
        if not self.finished and self.live.running:
            return "running"
        if self.live.error is not None:
            return "failed"
        return "stopped" if self.live.cancelled else "done"


class ProfileState:
    """What the profile view keeps for one widget."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watch: Watch | None = None
        self._shown: Run | None = None  # what the context had when it was last looked at
        self._before = Before()
        self._number = 0
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._methods: dict[tuple[str, str, int], Any] = {}

    # ---- documents -----------------------------------------------------------------------------------------

    def document(self, method: str) -> ProfileDocument:
        """The profile of a method as it stands."""
        method = method or self._context.methods[0]
        watch = self.watch()
        if watch is None or watch.run.method != method:
            rows = self._describe(method, None, ())
            return make_document(method, rows, Measured(), Outcome(), self._before)
        with self._lock:
            if watch.document is None or watch.state() == "running":
                watch.document = self._make(watch)
            if watch.document.peaks is None and known_peaks() is not None:
                watch.document = replace(watch.document, peaks=machine_peaks(known_peaks()))
            return watch.document

    def watch(self) -> Watch | None:
        """What is known of the run that the widget shows, which another view may have made meanwhile."""
        run = self._context.run
        with self._lock:
            if run is self._shown:
                return self._watch
            self._shown = run
            if run is not None and run.trace is not None:
                self._follow(run)
            elif not self.running:
                self._remember()
                self._watch = None
            return self._watch

    def _follow(self, run: Run) -> None:
        """Show a run that was not started here."""
        self._remember()
        self._number += 1
        watch = self._watch = Watch(run, self._number, values=bool(run.trace and run.trace.outputs))
        watch.take()
        watch.rows = self._describe(run.method, run, watch.totals.keys)
        if watch.live is not None and watch.live.running:
            self._observe(watch)
        else:
            watch.finished = True

    def _remember(self) -> None:
        """Keep the medians of the run that goes, for the comparison with the next."""
        watch = self._watch
        if watch is None or not watch.totals.executions:
            return
        document = watch.document or self._make(watch)
        medians = dict(zip(signatures(watch.rows), document.median.tolist(), strict=True))
        self._before = Before(medians, document.total_median)

    def _describe(self, method: str, run: Run | None, keys: Sequence[Any]) -> list[Row]:
        lowering = self._context.lowering
        if run is not None:
            lowering = run.lowering if run._origin is not None else None
        program = run.of._program() if run is not None and lowering is None else None
        if lowering is not None:
            program = lowering._program()
        known = {item.name: item for item in (program or self._context.program).methods}
        if method not in known:
            raise WorkbenchError(
                "there is no such method", expected=", ".join(known), found=method, hint="pick another"
            )
        return describe(known[method], symbols_of(lowering, method), keys)

    def _make(self, watch: Watch) -> ProfileDocument:
        trace = watch.run.trace
        state = watch.state()
        gaps = None
        if watch.values and state != "running" and trace is not None and watch.totals.executions:
            lowering = watch.run.lowering if watch.run._origin is not None else None
            gaps = compare_values(trace, lowering, watch.run.method, watch.run.inputs)
        live = watch.live
        outcome = Outcome(
            run=watch.number,
            state=state,
            runtime=watch.run.runtime,
            elapsed=live.elapsed if live is not None else sum(watch.history.all[1]) / 1e3,
            dropped=watch.missed + (0 if trace is None else trace.dropped),
            problem=_failure(live.error) if live is not None and live.error is not None else None,
            gaps=gaps,
        )
        measured = measure(trace, watch.totals, watch.history)
        return make_document(watch.run.method, watch.rows, measured, outcome, self._before)

    # ---- running -------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        watch = self._watch
        return watch is not None and watch.live is not None and watch.live.running and not watch.finished

    def start(self, request: StartRequest) -> ProfileStarted:
        """Run a method in the background.

        Raises:
            ExecutionError: A run is under way, the request is impossible, or the program can't be loaded.
        """
        if request.repeat < 0 or request.seconds < 0 or not (request.repeat or request.seconds):
            raise ExecutionError(
                "a run needs an end",
                code="InvalidArgument",
                expected="a number of executions, or seconds",
                found=f"{request.repeat} executions, {request.seconds:g} s",
            )
        with self._lock:
            self.watch()
            if self.running:
                raise ExecutionError(
                    "a run is under way already", code="InvalidState", hint="stop it, or wait for its end"
                )
            of = self._subject()
            inputs = self._context.example_inputs(request.method)
            loaded = self._load(of, request.runtime, request.method)
            trace = new_trace(values=request.values, runtime=request.runtime)
            live = LiveRun(
                loaded,
                inputs,
                repeat=request.repeat or 1 << 40,
                seconds=request.seconds or None,
                session=trace.session,
                keep=_KEEP,
            )
            run = Run(
                of, request.method, live.trace, live=live, inputs=tuple(inputs), runtime=request.runtime
            )
            self._remember()
            self._number += 1
            watch = self._watch = Watch(run, self._number, values=request.values)
            watch.rows = self._describe(request.method, run, ())
            started = ProfileStarted(
                self._number, request.method, request.repeat, request.seconds, streams=True
            )
            live.begin()
            self._observe(watch)
        return started

    def stop(self) -> None:
        """End the run after the execution that is under way."""
        watch = self._watch
        if watch is not None and watch.live is not None:
            watch.live.cancel()

    def close(self) -> None:
        """The widget is gone: end a run that was started from it; one of the user's goes on."""
        self._closed = True
        watch = self._watch
        if watch is not None and self._context.run is not watch.run:
            self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended and the views have been told; whether that is so."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _subject(self) -> Runnable:
        of = self._context.lowering or self._context.opened
        if of is None:
            raise ExecutionError(
                "there is nothing to run",
                code="InvalidState",
                hint="show the lowering, or the opened program",
            )
        return of

    def _load(self, of: Runnable, runtime: Any, method: str) -> Any:
        if runtime != "native":
            return of._load(runtime, method)
        # A method of its own: the user's cells may execute theirs meanwhile.
        stage = of.program if isinstance(of, Lowering) else of
        key = (runtime, method, id(stage))
        if key not in self._methods:
            self._methods = {key: Runtime.get().load_program(of._source()).load_method(method)}
        return self._methods[key]

    # ---- watching ------------------------------------------------------------------------------------------

    def _observe(self, watch: Watch) -> None:
        self._thread = threading.Thread(
            target=self._work, args=(watch,), name="workbench-profile", daemon=True
        )
        self._thread.start()

    def _work(self, watch: Watch) -> None:
        try:
            self._stream(watch)
        except Exception:
            _LOG.exception("a profile could not be shown")
            self.stop()
        finally:
            watch.finished = True

    def _stream(self, watch: Watch) -> None:
        live = watch.live
        assert live is not None
        quiet, ended, first = 0, False, True
        while not ended and not self._closed:
            # A short run shows something soon; afterwards a steady pace.
            ended = live.wait(_PERIOD / 4 if first else _PERIOD)
            with self._lock:
                update = watch.take()
                if update.grown:
                    watch.rows = self._describe(watch.run.method, watch.run, watch.totals.keys)
                    self._context.emit("profile.rows", self._make(watch))
                    watch.place = _places(watch)
            quiet = 0 if len(update.executions) else quiet + 1
            if len(update.executions) or quiet % _PATIENCE == 0:
                self._context.emit("profile.batch", make_batch(watch, update))
            first = first and not len(update.executions)
        if self._closed:
            return
        watch.finished = True
        with self._lock:
            watch.document = self._make(watch)
        self._context.emit("profile.ended", ProfileEnded(watch.number, watch.document))
        if self._context.run is watch.run:
            self._context.changed("overlays", "profile", "about")
        elif watch.totals.executions and self._is_current(watch.run):
            self._shown = watch.run
            self._context.set_run(watch.run)
        self._context.changed("timeline")

    def _is_current(self, run: Run) -> bool:
        """Whether a run is of the program as it is now: it may have been lowered again meanwhile."""
        return run._origin is None or run.lowering is self._context.lowering


def _places(watch: Watch) -> dict[Any, int]:
    return {row.key: index for index, row in enumerate(watch.rows) if row.key is not None}


def make_batch(watch: Watch, update: Update) -> ProfileBatch:
    """What a run has measured so far, bounded in size whatever the run."""
    live, statistics, keys = watch.live, watch.totals.statistics, watch.totals.keys
    assert live is not None
    place = watch.place or _places(watch)
    rows = np.array([place.get(key, -1) for key in keys], np.int32)
    new = len(update.executions)
    sampled = min(new, _SAMPLED, max(_SAMPLES // max(len(keys), 1), 1))
    picked = np.linspace(0, new - 1, sampled).astype(np.int64) if sampled else np.zeros(0, np.int64)
    stride = max(-(-new // _RECENT), 1)
    padded = np.full(-(-new // stride) * stride, -np.inf)
    padded[:new] = update.durations
    return ProfileBatch(
        run=watch.number,
        executions=watch.totals.executions,
        elapsed=live.elapsed,
        dropped=watch.missed + (watch.run.trace.dropped if watch.run.trace is not None else 0),
        row=rows,
        count=statistics.count.copy(),
        sum=statistics.sum.copy(),
        min=statistics.min.copy(),
        max=statistics.max.copy(),
        last=statistics.last.copy(),
        sampled=sampled,
        samples=update.times[picked].astype(np.float32).ravel(),
        first=int(update.executions[0]) if new else watch.totals.executions,
        stride=stride,
        recent=padded.reshape(-1, stride).max(1).astype(np.float32) if new else np.zeros(0, np.float32),
    )


def _failure(error: BaseException) -> Failure:
    if isinstance(error, WorkbenchError):
        return Failure(type(error).__name__, error.message, error.details)
    return Failure(type(error).__name__, str(error) or type(error).__name__, {})
