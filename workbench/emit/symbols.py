"""Functions on symbols for which the runtimes have no primitive, composed of those that they have."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.errors import EmitError

if TYPE_CHECKING:
    from workbench.emit.emitter import MethodEmitter

__all__ = ["composed"]


def composed(emitter: MethodEmitter, node: Node) -> int:
    """Write a function on symbols with several instructions.

    Returns:
        The value of its result.

    Raises:
        EmitError: It can't be expressed.
    """
    target: Any = node.target
    table, do = emitter.table, emitter.primitive
    given = [table.of_kind(item, "Scalar", True, emitter.env, node) for item in node.args]
    if target is operator.ne:
        return do(operator.not_, do(operator.eq, *given, boolean=True), boolean=True)
    if target is operator.and_:
        return do(torch.sym_ite, given[0], given[1], table.boolean(False), boolean=True)
    if target is operator.or_:
        return do(torch.sym_ite, given[0], table.boolean(True), given[1], boolean=True)
    if target is math.floor:
        return do(operator.neg, do(math.ceil, do(operator.neg, given[0])))
    if target is operator.abs:
        return do(torch.sym_max, given[0], do(operator.neg, given[0]))
    if target is operator.pow and isinstance(node.args[1], int) and 1 <= node.args[1] <= 16:
        product = given[0]
        for _ in range(node.args[1] - 1):
            product = do(operator.mul, product, given[0])
        return product
    raise EmitError(
        f"`{target}` on sizes that are known only at run time can't be computed by the runtimes",
        node=node.name,
        hint="compute it from tensors, or make the dimension static",
    )
