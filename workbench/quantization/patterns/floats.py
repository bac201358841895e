"""Operators that are computed in floats between quantized layers, and why."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from workbench.quantization.patterns.base import Context, Family, Outcome

__all__ = ["FAMILY"]

aten = torch.ops.aten

_BOUNDARY = (
    "computed in floats: its input is dequantized before, its result quantized by the layers that read it"
)
_WHY: dict[Any, str] = {
    aten.layer_norm.default: f"normalization is {_BOUNDARY}",
    aten.group_norm.default: f"normalization is {_BOUNDARY}",
    aten.instance_norm.default: f"normalization is {_BOUNDARY}",
    aten.rms_norm.default: f"normalization is {_BOUNDARY}",
    aten.batch_norm.default: "no convolution stands before it alone, so that it can't be folded",
    aten.scaled_dot_product_attention.default: f"attention is one operator, {_BOUNDARY}",
    aten.lstm.input: "recurrent layers carry their state in floats: errors would add up over the steps",
    aten.gru.input: "recurrent layers carry their state in floats: errors would add up over the steps",
    aten.rnn_tanh.input: "recurrent layers carry their state in floats: errors would add up over the steps",
    aten.div.Tensor: "integer division has no kernel",
    aten.index.Tensor: "the indices are computed when the program runs",
}


def _stays(node: Node, config: Any, context: Context) -> Outcome:
    del config, context
    return Outcome(why=_WHY[node.target])


FAMILY: dict[Any, Family] = dict.fromkeys(_WHY, _stays)
