"""The search for how to compress a model: `wb.search(model, data, metric, budget)`."""

from __future__ import annotations

from workbench.search.api import search
from workbench.search.budget import Budget
from workbench.search.result import Point, SearchResult
from workbench.search.space import SCHEMES, Choice

__all__ = ["SCHEMES", "Budget", "Choice", "Point", "SearchResult", "search"]
