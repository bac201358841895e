"""What the quantization view draws, asks for and gets.

Rows of the operators are those of the report of the prepared program; rows of the observers are the groups of
tensors that share their scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench_widgets.columns import F32, F64, I32, U8, Strings

__all__ = [
    "CALLS",
    "DOCUMENTS",
    "EVENTS",
    "QuantizationAccuracy",
    "QuantizationChoice",
    "QuantizationDocument",
    "QuantizationEdit",
    "QuantizationMeasure",
    "QuantizationMove",
    "QuantizationObservers",
    "QuantizationOutcome",
    "QuantizationProgress",
    "QuantizationStep",
]


@dataclass(frozen=True)
class QuantizationObservers:
    """What observers saw of groups of tensors, and what follows from it.

    Attributes:
        name: Of the group.
        kind: Short name of the observer; `fixed` and `dynamic` where nothing is observed.
        spec: How the tensors are quantized, in words.
        values: Names of the tensors.
        readers: Names of the nodes that read them quantized; empty for all.
        constant: 1 for weights.
        tensors: How many tensors were seen.
        elements: How many numbers.
        min: The smallest one, NaN where nothing was seen.
        max: The largest one.
        low: The smallest number that is represented.
        high: The largest one.
        scale: The scale; the largest of several.
        scale_min: The smallest of several.
        scales: How many there are; 0 where they are chosen at run time.
        zero_point: The first one.
        quant_min: Smallest integer.
        quant_max: Largest one.
        clipped: Share of the numbers outside [low, high].
        bins_start: First bin of each histogram, with one entry more than observers.
        counts: Numbers by bin.
        bins_low: Where the first bin begins.
        bins_high: Where the last one ends.
        channel_start: First channel of each observer, with one entry more than observers.
        channel_min: Smallest number of a channel.
        channel_max: Largest number of a channel.
        channel_scale: Scale of a channel.
        channels: How many channels there are; if more than are listed, each entry stands for several.
        worst: The channel that is served worst, as a place among the listed ones; -1 where there are none.
        worst_why: In which way.
        per_channel: 1 where channels have scales of their own.
        handle_start: First of each observer's handles.
        handles: Source handles.
    """

    name: Strings
    kind: Strings
    spec: Strings
    values: Strings
    readers: Strings
    constant: U8
    tensors: F64
    elements: F64
    min: F64
    max: F64
    low: F64
    high: F64
    scale: F64
    scale_min: F64
    scales: I32
    zero_point: I32
    quant_min: I32
    quant_max: I32
    clipped: F64
    bins_start: I32
    counts: F64
    bins_low: F64
    bins_high: F64
    channel_start: I32
    channel_min: F32
    channel_max: F32
    channel_scale: F32
    channels: I32
    worst: I32
    worst_why: Strings
    per_channel: U8
    handle_start: I32
    handles: I32


@dataclass(frozen=True)
class QuantizationChoice:
    """How one layer is quantized, as far as the switch offers it.

    Attributes:
        dtype: `float`, or `int8` or `int4` (the weights' bits): alone where inputs have fixed scales, with
            ` dynamic` where their scales are chosen at run time, with ` weights` where they stay in floats.
        observer: Short name of the observer of activations.
        granularity: What has a scale of its own in weights: `tensor`, `channel`, or the size of a group.
    """

    dtype: str
    observer: str
    granularity: str


@dataclass(frozen=True)
class QuantizationStep:
    """One decision by hand that the recipe holds.

    Attributes:
        text: In words.
        node: The layer; empty for a module.
        module: The module; empty for a layer.
        index: Place among the edits of this method.
    """

    text: str
    node: str
    module: str
    index: int


@dataclass(frozen=True)
class QuantizationDocument:
    """What became of each operator of one method, and what observers saw.

    Attributes:
        method: Name of the method.
        by: Who decided.
        stage: How far the quantization got in what is shown.
        samples: Number of calibration samples.
        backend: Names of the partitioners that were asked; empty for none.
        editable: There is a lowering whose recipe can take edits.
        why_not: Why there is none.
        configurable: The quantizer can be told how to quantize a layer; others can only keep it in floats.
        node: Name of each operator.
        op: Operator.
        module: Path of the module.
        source: `file:line` of the user's code.
        layer: Name of the main operator of the pattern that it belongs to; its own where it belongs to none.
        state: `quantized`, `float`, or `quantized, not fused`.
        how: How it is quantized.
        why: Why it stays in floats.
        backend_why: Why the backend did not take it.
        edited: 1 where an edit of the recipe is about its layer.
        choice: For each operator its place among `choices`, -1 where nothing is known.
        choices: Different ways in which layers are quantized now.
        observer: The observer that says most about the operator: that of its result, else of a weight or an
            input; -1 for none.
        use_start: First of the operator's observers, with one entry more than operators.
        use: Rows of observers.
        role: What the observer sees of the operator: `result`, `weight ...`, `input ...`.
        handle_start: First of each operator's handles.
        handles: Source handles.
        observers: The observers.
        observer_names: Short names of the observers that can be chosen.
        history: Decisions by hand, in order.
        undo: What would be undone; empty for nothing.
        redo: What would be redone; empty for nothing.
        python: Statements that make all edits of the recipe on `lowering`.
    """

    method: str
    by: str
    stage: Literal["prepared", "calibrated"]
    samples: int
    backend: str
    editable: bool
    why_not: str
    configurable: bool
    node: Strings
    op: Strings
    module: Strings
    source: Strings
    layer: Strings
    state: Strings
    how: Strings
    why: Strings
    backend_why: Strings
    edited: U8
    choice: I32
    choices: list[QuantizationChoice]
    observer: I32
    use_start: I32
    use: I32
    role: Strings
    handle_start: I32
    handles: I32
    observers: QuantizationObservers
    observer_names: list[str]
    history: list[QuantizationStep]
    undo: str
    redo: str
    python: str


@dataclass(frozen=True)
class QuantizationAccuracy:
    """What quantization does to the values, in the rows of the operators; empty before it was measured.

    Attributes:
        method: Name of the method.
        measured: Whether it was.
        samples: With how many samples.
        available: How many samples the recipe's calibration data holds; -1 where it does not say.
        sqnr_db: Signal to noise of the outputs; None where they are equal, or nothing was measured.
        seconds: How long measuring took.
        affected: Number of operators that were measured the last time.
        total: Signal to noise of each result as its readers get it, against floats; NaN where there is none.
        own: The same where only this operator's layer is quantized, and reads floats.
        inherited: What the errors of its inputs add.
        saturation: Share of the values that are clipped when the result is rounded.
    """

    method: str
    measured: bool
    samples: int
    available: int
    sqnr_db: float | None
    seconds: float
    affected: int
    total: F64
    own: F64
    inherited: F64
    saturation: F64


@dataclass(frozen=True)
class QuantizationMeasure:
    """Measure the accuracy of each operator.

    Attributes:
        method: Name of the method.
        samples: How many samples to take at most; 0 for all.
    """

    method: str
    samples: int


@dataclass(frozen=True)
class QuantizationEdit:
    """Quantize a layer or a module otherwise.

    Attributes:
        method: Name of the method.
        node: The layer, by the name of its main operator; empty where a module is meant.
        module: The module, by its path; empty where a layer is meant.
        dtype: As of `QuantizationChoice`; empty to leave it to the quantizer again.
        observer: As of `QuantizationChoice`; empty for the quantizer's.
        granularity: As of `QuantizationChoice`; empty for the quantizer's.
    """

    method: str
    node: str
    module: str
    dtype: str
    observer: str
    granularity: str


@dataclass(frozen=True)
class QuantizationMove:
    """A step in the history of decisions by hand.

    Attributes:
        method: Name of the method.
        what: `undo`; `redo`; `remove` one edit; `clear` all of this method.
        index: Which edit to remove, as of `QuantizationStep.index`; -1 for the others.
    """

    method: str
    what: Literal["undo", "redo", "remove", "clear"]
    index: int


@dataclass(frozen=True)
class QuantizationOutcome:
    """What lowering again did.

    Attributes:
        text: What was done, in words; and what did not come out as asked for.
        seconds: How long it took, measuring included.
        ran: The steps that ran.
        bytes_before: Of the program.
        bytes_after: Of the program.
        measured: Whether the accuracy was measured before, and so again.
        sqnr_before: Of the outputs, in dB; None where they are equal.
        sqnr_after: Of the outputs, in dB; None where they are equal.
        affected: Number of operators that were measured again.
        operators: Number of operators.
    """

    text: str
    seconds: float
    ran: list[str]
    bytes_before: float
    bytes_after: float
    measured: bool
    sqnr_before: float | None
    sqnr_after: float | None
    affected: int
    operators: int


@dataclass(frozen=True)
class QuantizationProgress:
    """How far measuring has come.

    Attributes:
        method: Name of the method.
        done: Samples that are done.
        total: Samples that there are.
    """

    method: str
    done: int
    total: int


DOCUMENTS = {"quantization": QuantizationDocument, "quantization.accuracy": QuantizationAccuracy}
CALLS = {
    "quantization.measure": (QuantizationMeasure, QuantizationAccuracy),
    "quantization.edit": (QuantizationEdit, QuantizationOutcome),
    "quantization.move": (QuantizationMove, QuantizationOutcome),
}
EVENTS = {"quantization.progress": QuantizationProgress}
