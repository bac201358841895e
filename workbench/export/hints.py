"""What to do about the ways in which capture fails; one row each, the first that matches is given."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HINTS", "Hint", "hint_for"]


class Hint(NamedTuple):
    """A pattern of error type and message, and the advice for it."""

    pattern: str
    advice: str


HINTS: tuple[Hint, ...] = (
    Hint(
        r"Eq\(u\d+, 1\)|Data-dependent branching|data-dependent branching",
        "the model branches on a tensor's value. Write the branch with torch.cond, or with torch.where if "
        "both sides may be computed",
    ),
    Hint(
        r"specialized integer from data-dependent|data-dependent expression|GuardOnDataDependent",
        "a size depends on a tensor's value. Bound it with torch._check(size >= ...) and "
        "torch._check(size <= ...), or compute with the full size and mask",
    ),
    Hint(
        r"Constraints violated",
        "the model needs a relation between dimensions that `dynamic_shapes` does not state; take over the "
        "suggested fixes above",
    ),
    Hint(
        r"dynamic_shapes|treespec|tree structure|pytree",
        "`dynamic_shapes` must have the structure of the inputs: one entry per argument, in order or by name",
    ),
    Hint(
        r"\.numpy\(\)|\.tolist\(\)|numpy",
        "the model leaves PyTorch for NumPy. Use tensor operations, or move that part out of the model",
    ),
    Hint(
        r"same reduction dim|shapes cannot be multiplied|size of tensor|must match the size|expected input",
        "the example inputs do not fit the model; run the model on them in eager first",
    ),
    Hint(
        r"positional argument|unexpected keyword|missing \d+ required",
        "the example inputs do not fit the signature of `forward`",
    ),
    Hint(
        r"Unsupported|graph break|torch\._dynamo",
        "TorchDynamo cannot follow this code; try strict=False, which runs the model instead",
    ),
    Hint(
        r"mutat|in-place|assigned during export",
        "the model changes state that is no buffer; register it with register_buffer",
    ),
)
_DEFAULT = (
    "run the model in eager on the same inputs; if that works, cut the model down around the line above"
)


def hint_for(error: BaseException, text: str) -> str:
    """The advice for an error of capture."""
    described = f"{type(error).__name__}: {text}"
    return next((hint.advice for hint in HINTS if re.search(hint.pattern, described)), _DEFAULT)
