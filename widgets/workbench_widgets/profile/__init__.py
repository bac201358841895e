"""Where the time goes: a table that fills while the program runs, a timeline, a roofline."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import TraceError
from workbench.inspector.peaks import measure_peaks
from workbench_widgets.context import Context
from workbench_widgets.profile.contract import (
    ExportedFile,
    ExportRequest,
    MachinePeaks,
    PeaksRequest,
    ProfileDocument,
    ProfileStarted,
    StartRequest,
    StopRequest,
    TimelineDocument,
)
from workbench_widgets.profile.document import machine_peaks, make_timeline
from workbench_widgets.profile.export import export
from workbench_widgets.profile.picture import picture
from workbench_widgets.profile.session import ProfileState
from workbench_widgets.view import View

__all__ = ["VIEW"]

CHOSEN = ("median", "slowest", "fastest")


def _profile(context: Context, key: str) -> ProfileDocument:
    return context.state(ProfileState).document(key)


def _timeline(context: Context, key: str) -> TimelineDocument:
    method, _, which = key.rpartition("/")
    watch = context.state(ProfileState).watch()
    if watch is None or watch.run.trace is None or watch.run.method != method:
        raise TraceError("nothing was recorded", found=f"method '{method}'", hint="run the program first")
    return make_timeline(method, which, watch.run.trace, watch.rows, watch.number)


def _start(context: Context, request: StartRequest) -> ProfileStarted:
    return context.state(ProfileState).start(request)


def _stop(context: Context, request: StopRequest) -> StopRequest:
    context.state(ProfileState).stop()
    return request


def _peaks(context: Context, request: PeaksRequest) -> MachinePeaks:
    del context
    peaks = machine_peaks(measure_peaks(again=request.again))
    assert peaks is not None
    return peaks


def _export(context: Context, request: ExportRequest) -> ExportedFile:
    state = context.state(ProfileState)
    watch = state.watch()
    run = watch.run if watch is not None and watch.run.method == request.method else None
    return export(state.document(request.method), run, request.format)


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    method = context.about("profile").method
    yield "profile", method


def _report(context: Context) -> Iterable[tuple[str, str]]:
    run = context.run
    if run is not None and run.trace is not None:
        measure_peaks()  # a report can't measure: what it shows is of the machine that ran
    yield from (("profile", method) for method in context.methods)
    if run is not None and run.trace is not None:
        yield from (("timeline", f"{run.method}/{which}") for which in CHOSEN)


VIEW = View(
    name="profile",
    title="Profile",
    documents={"profile": _profile, "timeline": _timeline},
    calls={
        "profile.start": _start,
        "profile.stop": _stop,
        "profile.peaks": _peaks,
        "profile.export": _export,
    },
    initial=_initial,
    report=_report,
    picture=picture,
    shows=("run",),
)
