"""The widget behind every view: traits, documents, calls and events, held to the contract."""

from __future__ import annotations

import dataclasses
import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from ipywidgets import Layout
from ipywidgets.widgets.widget import _instances

from workbench.collecting import uncollected
from workbench.errors import WorkbenchError
from workbench_widgets.context import EVERYTHING, Context
from workbench_widgets.contract import Failure, Picked, contracts
from workbench_widgets.messages import Answers, keep_reachable
from workbench_widgets.outputs import outputs
from workbench_widgets.pack import pack, parse
from workbench_widgets.still import still_picture
from workbench_widgets.view import View, all_views, document

__all__ = ["ViewWidget", "bundle", "failure"]

STATIC = Path(__file__).resolve().parent / "static"
_LOG = logging.getLogger("workbench_widgets")


@cache
def bundle(name: str, suffix: str) -> str:
    """The script (`js`) or the style (`css`) of a view.

    Raises:
        WorkbenchError: It has not been built.
    """
    path = STATIC / f"{name}.{suffix}"
    if not path.is_file():
        if suffix == "css":
            return ""
        raise WorkbenchError(
            f"the bundle of the view '{name}' is missing",
            expected=str(path.relative_to(STATIC.parent.parent)),
            hint="build it with `make widgets`",
        )
    return path.read_text(encoding="utf-8")


@cache
def _declared() -> tuple[dict[str, tuple[type[Any], type[Any]]], dict[str, type[Any]]]:
    calls: dict[str, tuple[type[Any], type[Any]]] = {}
    events: dict[str, type[Any]] = {}
    for _, module in contracts():
        calls.update(getattr(module, "CALLS", {}))
        events.update(getattr(module, "EVENTS", {}))
    return calls, events


def failure(error: BaseException) -> Failure:
    """An error as views show it."""
    if isinstance(error, WorkbenchError):
        return Failure(type(error).__name__, error.message, error.details)
    where = traceback.extract_tb(error.__traceback__)
    details = {"where": f"{where[-1].name}, line {where[-1].lineno}"} if where else {}
    return Failure(type(error).__name__, str(error) or type(error).__name__, details)


class ViewWidget(anywidget.AnyWidget):
    """One view of one subject.

    Args:
        view: The view.
        context: What it is about.
        height: Pixels; by default the view's own.

    Raises:
        WorkbenchError: The view's bundle is missing.
        TypeError: A keyword is not known.
    """

    # anywidget makes a trait of a class attribute only; here each view has a style sheet of its own.
    _css = traitlets.Unicode().tag(sync=True)
    comm: Any  # a trait of its base, without a type
    about = traitlets.Dict(read_only=True).tag(sync=True)
    documents = traitlets.Dict(read_only=True).tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(min=120, max=4000).tag(sync=True)

    # Also a widget that could not be made is closed when it is collected.
    _ends: Sequence[Callable[[], None]] = ()
    _resting = False

    def __init__(self, view: View, context: Context, *, height: int | None = None) -> None:
        self.view = view
        self.context = context
        pixels = view.height if height is None else height
        code = {"_esm": bundle(view.name, "js"), "_css": bundle(view.name, "css")}
        # The page keeps one style sheet for each of these names.
        super().__init__(**code, _anywidget_id=f"workbench_widgets.{view.name}", height=pixels)
        self._answers = Answers()
        self._begin()
        self.observe(self._picked, "selection")
        self.on_msg(self._asked)

    def _begin(self) -> None:
        context = self.context
        self.set_trait("about", dataclasses.asdict(context.about(self.view.name)))
        self.set_trait("documents", dict(self._first()))
        self._take_selection()
        self._ends = [
            context.selection.on_change(lambda _: self._take_selection()),
            context.connect(self._changed, self._emit),
        ]

    def _first(self) -> Iterator[tuple[str, bytes]]:
        for kind, key in self.view.initial(self.context):
            try:
                yield f"{kind}:{key}", pack(document(self.context, kind, key))
            except Exception as error:
                # The view asks for it again, and shows the error where the picture would be.
                level = logging.DEBUG if isinstance(error, WorkbenchError) else logging.ERROR
                _LOG.log(level, "the document %s:%s can't be made", kind, key, exc_info=True)

    @traitlets.validate("selection")
    def _check_selection(self, proposal: Any) -> dict[str, Any]:
        value: dict[str, Any] = proposal["value"]
        try:
            picked: Picked = parse(Picked, value)
        except WorkbenchError as error:
            raise traitlets.TraitError(str(error)) from error
        if any(handle < 1 for handle in picked.handles):
            raise traitlets.TraitError(f"source handles count from 1: {picked.handles}")
        return value

    def _take_selection(self) -> None:
        chosen = self.context.selection
        picked = Picked(chosen.method or self.context.methods[0], sorted(chosen.handles), chosen.node)
        self.selection = dataclasses.asdict(picked)

    def _picked(self, change: Any) -> None:
        picked: Picked = parse(Picked, change["new"])
        self.context.selection.set(picked.handles, node=picked.node, method=picked.method)

    # ---- messages ------------------------------------------------------------------------------------------

    def _asked(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer a call or the request for a document: exactly one reply for each, an error included."""
        del buffers
        number = message.get("id") if isinstance(message, dict) else None
        if number is None:
            return
        self.send({"id": number, "taken": True})
        if not self._answers.take(number):
            known = self._answers.again(number)
            if known is not None:
                self.send(*known)
            return
        reply: tuple[dict[str, Any], list[bytes]]
        try:
            with uncollected():
                reply = {"id": number}, [pack(self._answer(message))]
        except Exception as error:
            if not isinstance(error, WorkbenchError):
                _LOG.exception("the view '%s' asked for %s", self.view.name, message)
            reply = {"id": number, "error": dataclasses.asdict(failure(error))}, []
        self._answers.given(number, reply)
        self.send(*reply)

    def _answer(self, message: dict[str, Any]) -> Any:
        if "document" in message:
            return document(self.context, str(message["document"]), str(message.get("key", "")))
        name = str(message.get("call"))
        declared = _declared()[0].get(name)
        for view in all_views().values():
            if declared is not None and name in view.calls:
                return view.calls[name](self.context, parse(declared[0], message.get("arguments", {})))
        known = sorted(name for view in all_views().values() for name in view.calls)
        raise WorkbenchError("there is no such call", expected=", ".join(known), found=name)

    def _changed(self, kinds: frozenset[str]) -> None:
        # What travelled first may be stale now; a new page that opens asks for it.
        kept = {} if EVERYTHING in kinds else self.documents
        kept = {name: data for name, data in kept.items() if name.partition(":")[0] not in kinds}
        self.set_trait("documents", kept)
        if kinds & {"about", EVERYTHING}:
            self.set_trait("about", dataclasses.asdict(self.context.about(self.view.name)))
        self.send({"changed": sorted(kinds)})

    def _emit(self, event: str, data: Any) -> None:
        declared = _declared()[1]
        if type(data) is not declared.get(event):
            raise WorkbenchError(
                f"the contract has no such event '{event}'",
                expected=", ".join(declared),
                found=repr(data)[:80],
            )
        self.send({"event": event}, [pack(data)])

    @traitlets.observe("comm")
    def _connected(self, change: Any) -> None:
        if change["new"] is not None:
            keep_reachable(change["new"])

    @property
    def closed(self) -> bool:
        """Whether it was closed for good."""
        return self.comm is None and not self._resting

    def live_bundle(self) -> dict[str, Any]:
        """What a front end that shows widgets reads; empty where none could."""
        if self._resting:
            self._resting = False
            self.context.resume()
            self._begin()
            self.layout = Layout()
            self.open()
        outputs.note(self)
        made: Any = super()._repr_mimebundle_()
        # With metadata beside it.
        return dict((made[0] if isinstance(made, tuple) else made) or {})

    def rest(self) -> None:
        """Let go of the page and of the subject's events until it is shown again: no output shows it."""
        if self.comm is None:
            return
        self._resting = True
        self._let_go()
        self.layout.close()
        _instances.pop(self.comm.comm_id, None)
        self.comm.close()
        self.comm = None

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and a still picture for whoever shows none."""
        del options  # the notebook filters what it is given
        return {**self.live_bundle(), **still_picture(self.view, self.context)}

    def close(self) -> None:
        """Forget the subject and remove the widget from the page."""
        self._resting = False
        self._let_go()
        if self.comm is not None:
            self.layout.close()  # a widget of its own, which would stay on the page
        super().close()

    def _let_go(self) -> None:
        for end in self._ends:
            end()
        if self._ends:
            self._ends = ()
            self.context.close()
