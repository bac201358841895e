"""LSTM and GRU, each a single node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Emit, Entry, Refusal, no
from workbench.backends.cpu.graph import NO_VALUE, Op

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _states(call: Call) -> list[Any]:
    given = call["hx"]
    return list(given) if isinstance(given, (tuple, list)) else [given]


def _recurrent(op: int) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        inputs = [emitter.value(call["input"])]
        inputs += [emitter.value(state) for state in _states(call)]
        parameters, biases = list(call["params"]), bool(call["has_biases"])
        for start in range(0, len(parameters), 4 if biases else 2):
            for position in range(4):
                given = position < 2 or biases
                inputs.append(emitter.value(parameters[start + position]) if given else NO_VALUE)
        used = call.used()
        count = 3 if op == Op.Lstm else 2
        outputs = [emitter.result(call, i) if i in used else NO_VALUE for i in range(count)]
        emitter.add(
            op,
            inputs,
            outputs,
            layers=int(call["num_layers"]),
            hidden=int(parameters[1].meta["val"].shape[1]),
            bidirectional=bool(call["bidirectional"]),
            batch_first=bool(call["batch_first"]),
        )

    return emit


def _check(op: int) -> Any:
    def check(call: Call) -> Refusal | None:
        if call["train"] and call["dropout"]:
            return no("it drops elements at random", "it were in evaluation mode")
        if call.tensor("input").dim() != 3:
            return no(f"its input has {call.tensor('input').dim()} dimensions", "it had a batch")
        parameters = list(call["params"])
        if not all(call.context.is_constant(item) for item in parameters):
            return no("a weight is computed while the program runs", "all weights were constants")
        directions = 2 if call["bidirectional"] else 1
        each = 4 if call["has_biases"] else 2
        if len(parameters) != each * directions * call["num_layers"]:
            return no("it projects its hidden state", "proj_size were 0")
        if len(_states(call)) != (2 if op == Op.Lstm else 1):
            return no("its state has an unknown form")
        return None

    return check


def _weights(gates: int, inputs: int, hidden: int, layers: int, directions: int, biases: bool) -> list[Any]:
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            width = inputs if layer == 0 else hidden * directions
            weights += [torch.randn(gates * hidden, width) / 4, torch.randn(gates * hidden, hidden) / 4]
            if biases:
                weights += [torch.randn(gates * hidden), torch.randn(gates * hidden)]
    return weights


def _samples(gates: int) -> Any:
    def samples() -> Iterator[tuple[Any, ...]]:
        for t, n, i, h, layers, both, biases, batch_first in (
            (5, 1, 7, 9, 1, False, True, False),
            (6, 3, 4, 8, 2, False, True, True),
            (4, 2, 5, 6, 2, True, False, True),
        ):
            directions = 1 + both
            x = torch.randn(n, t, i) if batch_first else torch.randn(t, n, i)
            states = [torch.randn(layers * directions, n, h) for _ in range(2 if gates == 4 else 1)]
            weights = _weights(gates, i, h, layers, directions, biases)
            hx = states if gates == 4 else states[0]
            yield x, hx, weights, biases, layers, 0.0, False, both, batch_first

    return samples


ENTRIES = [
    Entry((aten.lstm.input,), _recurrent(Op.Lstm), _check(Op.Lstm), keep=True, samples=_samples(4)),
    Entry((aten.gru.input,), _recurrent(Op.Gru), _check(Op.Gru), keep=True, samples=_samples(3)),
]
