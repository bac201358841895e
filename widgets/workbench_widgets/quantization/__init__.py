"""The quantization view: what became of each operator, what observers saw, and a switch for each layer."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_widgets.context import Context
from workbench_widgets.quantization.document import quantization_document
from workbench_widgets.quantization.editor import edit, move
from workbench_widgets.quantization.measure import accuracy_document, measure, overlays
from workbench_widgets.quantization.picture import picture
from workbench_widgets.view import View

__all__ = ["VIEW"]


def _initial(context: Context) -> Iterable[tuple[str, str]]:
    if not context.has_stage("quantized"):
        return
    for method in context.methods:
        yield "quantization", method
        yield "quantization.accuracy", method


VIEW = View(
    name="quantization",
    title="Quantization",
    documents={"quantization": quantization_document, "quantization.accuracy": accuracy_document},
    calls={"quantization.measure": measure, "quantization.edit": edit, "quantization.move": move},
    initial=_initial,
    picture=picture,
    overlays=overlays,
    shows=("quantized",),
    height=620,
)
