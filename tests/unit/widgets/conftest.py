"""What the tests of the widgets share: a small lowering, and widgets without built bundles or a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench_widgets import widget
from workbench_widgets.context import Context
from workbench_widgets.report import writing
from workbench_widgets.view import View, all_views
from workbench_widgets.widget import ViewWidget


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        return torch.sigmoid((self.second(y) + y) * y)


INPUTS = (torch.linspace(-1, 1, 12).reshape(3, 4),)


@pytest.fixture(scope="session")
def lowered() -> wb.Lowering:
    """Lowered once for all tests; not to be changed."""
    torch.manual_seed(0)
    return wb.lower(Net().eval(), INPUTS, progress=False)


@pytest.fixture
def lowering(lowered: wb.Lowering) -> wb.Lowering:
    """A lowering of its own for each test: tests select and lower again. The stages are shared."""
    return wb.Lowering(lowered._result, lowered.seconds["export"])


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts and styles in the place of the bundles, which only `make widgets` builds."""

    def bundle(name: str, suffix: str) -> str:
        return f"/* {name} */" if suffix == "css" else f"export default '{name}';"

    monkeypatch.setattr(widget, "bundle", bundle)
    monkeypatch.setattr(writing, "bundle", bundle)


class Page:
    """The page's side of a widget: what it was sent, and what it asks."""

    def __init__(self, shown: ViewWidget) -> None:
        self.widget = shown
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self._asked = 0
        shown.send = self._take  # type: ignore[method-assign]

    def _take(self, content: Any, buffers: Any = None) -> None:
        self.sent.append((content, [bytes(data) for data in buffers or ()]))

    def ask(self, **message: Any) -> tuple[dict[str, Any], list[bytes]]:
        """The one reply to a message."""
        before = len(self.sent)
        self._asked += 1
        self.widget._handle_custom_msg({"id": self._asked, **message}, [])
        replies = [reply for reply in self.sent[before:] if "id" in reply[0] and "taken" not in reply[0]]
        assert len(replies) == 1
        assert replies[0][0]["id"] == self._asked
        return replies[0]


@pytest.fixture
def show(bundles: None) -> Iterator[Callable[..., Page]]:
    """Shows a subject in a view, by name or given; closes it behind the test."""
    made: list[ViewWidget] = []

    def show(subject: Any, view: str | View = "panel", **options: Any) -> Page:
        chosen = all_views()[view] if isinstance(view, str) else view
        context = subject if isinstance(subject, Context) else Context(subject)
        made.append(ViewWidget(chosen, context, **options))
        return Page(made[-1])

    yield show
    for shown in made:
        shown.close()
