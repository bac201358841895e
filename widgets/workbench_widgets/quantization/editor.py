"""The per-layer switch: writes the recipe, lowers again in place, and measures what depends on it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from workbench.errors import QuantizationError, WorkbenchError
from workbench.lowering import Lowering
from workbench.recipe import Edit
from workbench_widgets.context import Context
from workbench_widgets.quantization.choices import configs, describe, edit_of
from workbench_widgets.quantization.contract import (
    QuantizationEdit,
    QuantizationMove,
    QuantizationOutcome,
)
from workbench_widgets.quantization.document import operators_of, part_of
from workbench_widgets.quantization.history import Action, History
from workbench_widgets.quantization.measure import Known, again, known_of

__all__ = ["edit", "move"]


def edit(context: Context, request: QuantizationEdit) -> QuantizationOutcome:
    """Quantize a layer or a module otherwise.

    An edit takes the place of an earlier one about the same thing; nothing stays of one that asks for what
    the quantizer does anyhow.

    Raises:
        WorkbenchError: There is no such layer or choice, or the program can't be lowered so; nothing has
            changed then.
    """
    lowering = _editable(context)
    history = context.state(History)
    before = history.now(request.method)
    others = tuple(item for item in before if not _same_target(item, request))
    made = edit_of(request, _base(context, request, others))
    after = others if made is None else (*others, made)
    target = request.node or f"module {request.module}"
    title = f"{target}: as the quantizer has it" if made is None else describe(made)
    if after == before:
        return _unchanged(context, lowering, request.method, f"{title}: nothing to change")
    return _changed(context, request.method, Action(title, before, after), "did", request.node)


def move(context: Context, request: QuantizationMove) -> QuantizationOutcome:
    """Go back or forth in the history; errors as of `edit`."""
    lowering = _editable(context)
    history = context.state(History)
    method = request.method
    if request.what in ("undo", "redo"):
        action = history.undo(method) if request.what == "undo" else history.redo(method)
        if action is None:
            return _unchanged(context, lowering, method, f"There is nothing to {request.what}.")
        return _changed(context, method, action, "undid" if request.what == "undo" else "redid")
    before = history.now(method)
    if request.what == "clear":
        return _changed(context, method, Action("no decisions by hand", before, ()), "did")
    if not 0 <= request.index < len(before):
        raise QuantizationError(
            "there is no such edit", expected=f"0 to {len(before) - 1}", found=str(request.index)
        )
    after = (*before[: request.index], *before[request.index + 1 :])
    return _changed(
        context, method, Action(f"without {describe(before[request.index])}", before, after), "did"
    )


def _editable(context: Context) -> Lowering:
    if context.lowering is None:
        raise QuantizationError("there is no lowering behind this stage", hint="show the lowering itself")
    return context.lowering


def _same_target(edit: Edit, request: QuantizationEdit) -> bool:
    key, name = ("node", request.node) if request.node else ("module", request.module)
    return bool(edit.data.get(key)) and edit.data.get(key) == name


def _base(context: Context, request: QuantizationEdit, others: Sequence[Edit]) -> object:
    """The config of a layer without edits of its own; None for modules."""
    assert context.lowering is not None
    if not (request.node or request.module):
        raise QuantizationError("an edit is about a layer or a module", found="neither")
    if not request.node:
        return None
    program = part_of(context, request.method).program
    known = configs(context.lowering.recipe, program, others)
    if known and request.node not in known:
        raise QuantizationError("there is no such layer", expected=", ".join(known), found=request.node)
    return known.get(request.node)


def _unchanged(context: Context, lowering: Lowering, method: str, text: str) -> QuantizationOutcome:
    size = float(len(lowering.program.serialized.buffer))
    known = known_of(context, method)
    db = None if known is None else _finite(known)
    count = len(part_of(context, method).plan.decisions)
    return QuantizationOutcome(text, 0.0, [], size, size, known is not None, db, db, 0, count)


def _changed(context: Context, method: str, action: Action, done: str, node: str = "") -> QuantizationOutcome:
    """Lower again with other edits of one method, and tell what came of it."""
    lowering = _editable(context)
    history = context.state(History)
    wanted = action.before if done == "undid" else action.after
    known = known_of(context, method)
    size = float(len(lowering.program.serialized.buffer))
    start = time.perf_counter()
    others = [
        item for item in lowering.recipe.edits if not (item.step == "prepare" and item.method == method)
    ]
    context.update(lowering.recipe.replace(edits=[*others, *wanted]))
    if done == "did":
        history.did(method, action)
    elif done == "undid":
        history.undid(method)
    else:
        history.redid(method)
    measured: Known | None = None
    problem = ""
    if known is not None:
        try:
            measured = again(context, method, known)
        except WorkbenchError as error:  # the program is lowered; only its accuracy is not known
            problem = f" The accuracy could not be measured again: {error.message}"
    context.changed("quantization", "quantization.accuracy", "overlays")
    verb = {"did": "", "undid": "Undone: ", "redid": "Redone: "}[done]
    names = set(operators_of(context, method))
    return QuantizationOutcome(
        text=f"{verb}{action.title}{_not_honoured(context, method, node, action)}{problem}",
        seconds=time.perf_counter() - start,
        ran=list(lowering.ran),
        bytes_before=size,
        bytes_after=float(len(lowering.program.serialized.buffer)),
        measured=measured is not None,
        sqnr_before=None if known is None else _finite(known),
        sqnr_after=None if measured is None else _finite(measured),
        affected=0 if measured is None else len(measured.measurement.affected & names),
        operators=len(names),
    )


def _not_honoured(context: Context, method: str, node: str, action: Action) -> str:
    """Why a layer that shall be quantized stays in floats all the same."""
    asked = action.after[-1].data.get("config") if node and len(action.after) else None
    decision = part_of(context, method).plan.decisions.get(node)
    if asked is None or decision is None or decision.quantized:
        return ""
    return f", but it stays in floats: {decision.why}"


def _finite(known: Known) -> float | None:
    db = known.measurement.report.sqnr_db
    return db if math.isfinite(db) else None
