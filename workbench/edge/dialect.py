"""The edge dialect's name in torch, which checks exported programs by it when it builds them."""

from __future__ import annotations

from typing import Any

import torch
from torch._export.verifier import Verifier
from torch.fx import GraphModule

__all__ = ["DIALECT", "EdgeVerifier"]

DIALECT = "WORKBENCH_EDGE"


class EdgeVerifier(Verifier):
    """Lets torch build, save and load programs of the edge dialect.

    What the dialect demands beyond a well-formed graph stands in `workbench.edge.invariants`, which the
    managers check once per stage; torch builds programs more often than that.
    """

    dialect = DIALECT

    def allowed_getattr_types(self) -> tuple[type[Any], ...]:
        """Graphs of branches, lowered modules and constants."""
        return (torch.nn.Module, torch.Tensor, torch.ScriptObject, *super().allowed_getattr_types())

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        """All operator kinds that fx knows."""
        return (*super().allowed_op_types(), torch._ops.OpOverloadPacket)

    def check_valid_op(self, op: Any) -> None:
        """Every operator is well formed here."""

    def check_additional(self, gm: GraphModule) -> None:
        """Nothing beyond torch's own checks."""
