"""The graph on its canvas, as a hand with a mouse finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Locator

from browser.lab import Lab

_BOXES = """(canvas) => {
  const core = canvas.wbGraph;
  if (!core?.picture) return [];
  const {x, y, scale} = core.viewport.transform;
  const at = canvas.getBoundingClientRect();
  const {name, module_path: path} = core.model.document;
  return core.picture.boxes.map((box) => ({
    kind: box.kind,
    index: box.index,
    name: box.kind === "node" ? name.get(box.index) : path.get(box.index),
    open: box.open,
    x: at.left + x + box.x * scale,
    y: at.top + y + box.y * scale,
    width: box.width * scale,
    height: box.height * scale,
  }));
}"""


class Graph:
    """A graph in a view.

    Args:
        lab: JupyterLab.
        view: The view, or a part of one with one graph in it.
    """

    def __init__(self, lab: Lab, view: Locator) -> None:
        self.lab = lab
        self.view = view
        self.canvas = view.locator("canvas.wb-canvas[aria-label^='Graph.']").first

    def boxes(self) -> dict[str, dict[str, Any]]:
        """What is drawn, by name of the node or path of the module; places in pixels of the window."""
        self.still()
        return {box["name"]: box for box in self.canvas.evaluate(_BOXES)}

    def nodes(self) -> list[str]:
        """Names of the nodes that have a box of their own."""
        return [name for name, box in self.boxes().items() if box["kind"] == "node"]

    def open_modules(self) -> list[str]:
        """Paths of the open modules, without the whole."""
        return [name for name, box in self.boxes().items() if box["kind"] != "node" and box["open"] and name]

    def still(self) -> None:
        """Wait until nothing moves."""
        self.lab.until(
            lambda: self.canvas.evaluate(
                "(canvas) => !!canvas.wbGraph?.picture && !canvas.wbGraph.motion?.running"
            ),
            "the graph did not come to rest",
        )
        self.lab.frames(2)

    def reveal(self, name: str) -> None:
        """Bring a node into sight, as a jump to it does."""
        self.canvas.evaluate(
            """(canvas, name) => {
                 const {model} = canvas.wbGraph;
                 const names = Array.from({length: model.nodes}, (_, row) => model.document.name.get(row));
                 canvas.wbGraph.reveal([names.indexOf(name)]);
               }""",
            name,
        )
        self.lab.page.wait_for_timeout(350)

    def point(self, name: str, *, head: bool = False) -> tuple[float, float]:
        """The middle of a box, or of its head where it is open."""
        # A notebook scrolls to the cell that runs.
        self.canvas.evaluate("(canvas) => canvas.scrollIntoView({block: 'nearest'})")
        box = self.boxes()[name]
        down = min(9.0, box["height"] / 2) if head else box["height"] / 2
        return box["x"] + box["width"] / 2, box["y"] + down

    def click(self, name: str, **options: Any) -> None:
        """Click on a box."""
        self.lab.page.mouse.move(*self.point(name))
        self.lab.page.mouse.click(*self.point(name), **options)

    def double_click(self, name: str) -> None:
        """Open or close a module."""
        self.lab.page.mouse.dblclick(*self.point(name, head=True))

    def drag(self, points: Sequence[tuple[float, float]]) -> None:
        """Press at the first point, pass all others, let go at the last."""
        mouse = self.lab.page.mouse
        mouse.move(*points[0])
        mouse.down()
        for point in points[1:]:
            mouse.move(*point, steps=6)
        mouse.up()

    def stroke(self, *names: str) -> None:
        """Drag over boxes."""
        self.drag([self.point(name) for name in names] + ([self.point(names[0])] if len(names) == 1 else []))

    def around(self, *names: str) -> None:
        """Draw a loop around boxes."""
        boxes = [self.boxes()[name] for name in names]
        left = min(box["x"] for box in boxes) - 8
        top = min(box["y"] for box in boxes) - 8
        right = max(box["x"] + box["width"] for box in boxes) + 8
        bottom = max(box["y"] + box["height"] for box in boxes) + 8
        self.drag([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])
