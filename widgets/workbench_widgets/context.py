"""What a view is about: the lowering, program, run or comparison behind it, and who must hear of changes."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from workbench.compare import Comparison
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.inspector.trace import Kind
from workbench.lowering import Lowering, Run
from workbench.opened import OpenedProgram
from workbench.pipeline import steps_of
from workbench.recipe import Recipe
from workbench.selection import Selection
from workbench.stages import Stage
from workbench_widgets.contract import About
from workbench_widgets.contract import Stage as StageEntry

__all__ = ["EVERYTHING", "STAGES", "Context"]

T = TypeVar("T")

# Name of a stage in views -> its attribute of a lowering, the pipeline's steps that it stands for (the last
# one makes it), and its title. A lowering has those whose steps its recipe asks for.
STAGES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "exported": ("exported", ("export",), "Exported"),
    "pruned": ("pruned", ("prune",), "Pruned"),
    "quantized": ("quantized", ("prepare", "calibrate", "quantize"), "Quantized"),
    "edge": ("edge", ("edge",), "Edge"),
    "partitioned": ("partitioned", ("partition",), "Partitioned"),
    "lowered": ("lowered", ("lower",), "Lowered"),
    "planned": ("plan", ("plan",), "Planned"),
    "program": ("program", ("program",), "Program"),
}
# Stages that stand in views under the name of another: three steps, one entry.
_ALIASES = {"prepared": "quantized", "calibrated": "quantized"}
EVERYTHING = "*"


class Context:
    """The subject of one widget.

    Args:
        subject: A `Lowering`, a stage of one, a `Run`, an `OpenedProgram` or a `Comparison`.
        run: A run of the subject whose measurements the views show; by default the subject itself if it is
            one.

    Attributes:
        subject: What was given.
        lowering: The lowering, or None (a program from a file, a stage that outlived its lowering).
        opened: The program from a file, or None.
        comparison: The comparison, or None.
        shown: Name of the stage that the widget begins with.
    """

    def __init__(self, subject: Any, *, run: Run | None = None) -> None:
        self.subject = subject
        self.lowering: Lowering | None = None
        self.opened: OpenedProgram | None = None
        self.comparison: Comparison | None = None
        self._lone: Stage | None = None
        self._run = run
        self._listeners: dict[int, Callable[[frozenset[str]], None]] = {}
        self._receivers: dict[int, Callable[[str, Any], None]] = {}
        self._states: dict[Any, Any] = {}
        self.shown = "exported"
        self._take(subject)
        self.selection = self._selection()
        self._forget = self._listen()

    def _take(self, subject: Any) -> None:
        if isinstance(subject, Lowering):
            self.lowering = subject
        elif isinstance(subject, Stage):
            self.shown = _name_of(subject)
            self.lowering = subject.owner
            self._lone = subject if self.lowering is None else None
        elif isinstance(subject, Run):
            self._run = subject
            self.shown = "run"
            self._take_program(subject.of)
        elif isinstance(subject, OpenedProgram):
            self.opened = subject
            self.shown = "program"
        elif isinstance(subject, Comparison):
            self.comparison = subject
            self.shown = "compare"
            first = subject.sides[0]
            self._take_program(first.of if isinstance(first, Run) else first)
        else:
            raise WorkbenchError(
                "there is no view of this object",
                expected="a lowering, one of its stages, a run, an opened program or a comparison",
                found=type(subject).__name__,
            )

    def _take_program(self, of: Any) -> None:
        if isinstance(of, Lowering):
            self.lowering = of
        elif isinstance(of, OpenedProgram):
            self.opened = of

    def _listen(self) -> Callable[[], None] | None:
        return None if self.lowering is None else self.lowering.on_change(self._relowered)

    def _selection(self) -> Selection:
        if self.lowering is not None:
            return self.lowering.selection
        return self.opened.selection if self.opened is not None else Selection()

    # ---- what there is -------------------------------------------------------------------------------------

    @property
    def run(self) -> Run | None:
        """The run whose measurements are shown."""
        return self._run

    @property
    def stages(self) -> list[str]:
        """Names of the stages that can be shown, in order."""
        if self.lowering is not None:
            return [*self._of_lowering(), "run"]
        if self._lone is not None:
            return [_name_of(self._lone)]
        return ["program", "run"]

    def _of_lowering(self) -> list[str]:
        assert self.lowering is not None
        steps = {"export", *(step.name for step in steps_of(self.lowering.recipe))}
        return [name for name, (_, own, _) in STAGES.items() if own[-1] in steps]

    def at(self, stage: str) -> Context:
        """The same context, beginning with another stage.

        Raises:
            WorkbenchError: There is no such stage.
        """
        if stage not in (*self.stages, "compare"):
            raise WorkbenchError("there is no such stage", expected=", ".join(self.stages), found=stage)
        other = copy.copy(self)
        other.shown = stage
        return other

    def has_stage(self, name: str) -> bool:
        """Whether a stage of this name can be had with `stage`."""
        if self._lone is not None:
            return _name_of(self._lone) == name
        return self.lowering is not None and name in self._of_lowering()

    def node_count(self) -> int:
        """Nodes of all stages together; of a program from a file its instructions."""
        if self.lowering is not None:
            stages = [self.stage(name) for name in self._of_lowering()]
        elif self._lone is not None:
            stages = [self._lone]
        else:
            chains = (chain for method in self.program.methods for chain in method.chains)
            return sum(len(chain.instructions) for chain in chains)
        return sum(_count(stage._programs.values()) for stage in stages)

    def stage(self, name: str) -> Stage:
        """A stage by the name that views use.

        Raises:
            WorkbenchError: There is no such stage.
        """
        if self._lone is not None and _name_of(self._lone) == name:
            return self._lone
        if self.lowering is None or name not in self._of_lowering():
            raise WorkbenchError("there is no such stage", expected=", ".join(self.stages), found=name)
        stage: Stage = getattr(self.lowering, STAGES[name][0])
        return stage

    @property
    def program(self) -> ir.Program:
        """The program in memory.

        Raises:
            WorkbenchError: The widget is about a stage before it.
        """
        if self.opened is not None:
            return self.opened.program
        emitted = getattr(self._lone, "emitted", None)
        if self.lowering is not None:
            emitted = self.lowering.program.emitted
        if emitted is None:
            raise WorkbenchError("this stage has no program yet", hint="show the lowering")
        program: ir.Program = emitted.program
        return program

    @property
    def methods(self) -> list[str]:
        """Names of the methods."""
        if self.lowering is not None:
            return list(self.lowering.methods)
        if self._lone is not None:
            return list(self._lone.methods)
        return [method.name for method in self.program.methods]

    def example_inputs(self, method: str) -> list[Any]:
        """Inputs that a method can be run with: the example's, or random ones for a program from a file."""
        if self.lowering is not None:
            return self.lowering.example_inputs(method)
        if self.opened is not None:
            return self.opened.random_inputs(method)
        raise WorkbenchError("there is nothing to run", hint="show the lowering")

    def about(self, view: str) -> About:
        """What the view is told first."""
        methods = self.methods
        chosen = self._run.method if self._run is not None and self._run.method in methods else methods[0]
        return About(
            view=view,
            title=self._title(),
            family=_family(self.selection),
            stages=[self._entry(name) for name in self.stages],
            stage=self.shown,
            methods=methods,
            method=chosen,
            can_lower=self.lowering is not None,
            can_run=self.lowering is not None or self.opened is not None,
        )

    def _title(self) -> str:
        subject = self.comparison or self.lowering or self.opened or self._lone
        # Without what takes a line of its own: times stand in the bar.
        return repr(subject).splitlines()[0].strip("<>").split("; ")[0]

    def _entry(self, name: str) -> StageEntry:
        if name == "run":
            return StageEntry("run", "Run", _measured(self._run), None)
        _, steps, title = STAGES[name]
        if self.lowering is None and self._lone is None:
            return StageEntry(name, title, "", None)
        known = {} if self.lowering is None else self.lowering.seconds
        taken = [known[step] for step in steps if step in known]
        seconds = sum(taken) if taken else None
        return StageEntry(name, title, _detail(self.stage(name)), seconds)

    # ---- what changes --------------------------------------------------------------------------------------

    def update(self, recipe: Recipe) -> None:
        """Lower again in place; raises as `Lowering.update`, and nothing changes then."""
        if self.lowering is None:
            raise WorkbenchError("there is nothing to lower again", hint="show the lowering")
        # The view shows that it goes on; a bar would land in the output of whichever cell ran last.
        self.lowering.update(recipe, progress=False)

    def set_run(self, run: Run | None) -> None:
        """Show another run's measurements."""
        self._run = run
        self.changed("overlays", "profile", "about")

    def _relowered(self, _: Any) -> None:
        self._run = None
        self.changed(EVERYTHING)

    def changed(self, *kinds: str) -> None:
        """Tell the views that documents of these kinds are stale (`EVERYTHING` for all)."""
        for listener in list(self._listeners.values()):
            listener(frozenset(kinds))

    def emit(self, event: str, data: Any) -> None:
        """Send an event of the contract to the views; may be called from any thread."""
        for receiver in list(self._receivers.values()):
            receiver(event, data)

    def connect(
        self, changed: Callable[[frozenset[str]], None], emitted: Callable[[str, Any], None]
    ) -> Callable[[], None]:
        """Hear of stale documents and of events; returns what ends it."""
        key = id(changed)
        self._listeners[key], self._receivers[key] = changed, emitted

        def remove() -> None:
            self._listeners.pop(key, None)
            self._receivers.pop(key, None)

        return remove

    def state(self, make: Callable[[Context], T]) -> T:
        """What a view keeps in Python for this widget; made when it is first asked for."""
        if make not in self._states:
            self._states[make] = make(self)
        made: T = self._states[make]
        return made

    def close(self) -> None:
        """Stop listening to the lowering, and close what views keep."""
        if self._forget is not None:
            self._forget()
            self._forget = None
        for state in self._states.values():
            # What a view keeps may have work under way, a run for example.
            close = getattr(state, "close", None)
            if close is not None:
                close()

    def resume(self) -> None:
        """Listen again after `close`, with nothing of what views kept."""
        self._states.clear()
        if self._forget is None:
            self._forget = self._listen()


def _name_of(stage: Stage) -> str:
    """The name under which a stage stands in views."""
    name = stage.name.lower()
    return _ALIASES.get(name, name)


_families: WeakKeyDictionary[Selection, str] = WeakKeyDictionary()


def _family(selection: Selection) -> str:
    """A name for a selection on the page, which outlives it: an address would be given to another one."""
    known = _families.get(selection)
    if known is None:
        known = _families[selection] = secrets.token_hex(8)
    return known


_details: WeakKeyDictionary[Stage, str] = WeakKeyDictionary()


def _detail(stage: Stage) -> str:
    """A few words about a stage."""
    known = _details.get(stage)
    if known is None:
        known = _details[stage] = _describe(stage)
    return known


def _measured(run: Run | None) -> str:
    """The median time of an execution; a run that is under way has none yet."""
    if run is None:
        return ""
    if run.running:
        return "running"
    if run.trace is None:
        return "not measured"
    events = run.trace.batch().events
    whole = events[events["kind"] == Kind.EXECUTE]
    if not len(whole):
        return "not measured"
    median = float(np.median(whole["end_ns"] - whole["start_ns"])) / 1e6
    return f"{median:.3g} ms" if median < 1000 else f"{median / 1000:.3g} s"


def _bytes(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    size, unit = (count / 1024, "KiB") if count < 1024**2 else (count / 1024**2, "MiB")
    return f"{size:,.0f} {unit}" if size >= 100 else f"{size:.3g} {unit}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _describe(stage: Stage) -> str:
    serialized = getattr(stage, "serialized", None)
    if serialized is not None:
        return _bytes(len(serialized.buffer))
    parts = getattr(stage, "parts", None)
    if parts is not None:
        decisions = [item for part in parts.values() for item in part.plan.decisions.values()]
        return f"{sum(item.quantized for item in decisions):,} of {_plural(len(decisions), 'operator')}"
    report = getattr(stage, "report", None)
    if report is not None:
        return _bytes(sum(method.size for method in report.methods.values()))
    tags = getattr(stage, "tags", None)
    if tags is not None:
        return _plural(sum(map(len, tags.values())), "partition")
    return _plural(_count(stage._programs.values()), "node")


def _count(programs: Iterable[Any]) -> int:
    return sum(len(program.graph.nodes) for program in programs)
