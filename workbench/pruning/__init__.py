"""Pruning of exported programs: `wb.Recipe(pruning=StructuredPruner(0.3))`, or `prune` by hand."""

from __future__ import annotations

from workbench.pruning.base import Pruner
from workbench.pruning.coupling import Coupling, Family, WhyNot, couple
from workbench.pruning.magnitude import MagnitudePruner
from workbench.pruning.remove import mask, remove
from workbench.pruning.report import PruningReport
from workbench.pruning.structured import StructuredPruner

__all__ = [
    "Coupling",
    "Family",
    "MagnitudePruner",
    "Pruner",
    "PruningReport",
    "StructuredPruner",
    "WhyNot",
    "couple",
    "mask",
    "remove",
]
