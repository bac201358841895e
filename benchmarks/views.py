"""`python -m benchmarks.views`: how fast the views are in a real JupyterLab, without a graphics card.

Each figure stands beside its limit; with `--check` the exit code tells whether all are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, processor
from benchmarks.tables import table_of

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "notebooks")]

from playwright.sync_api import Browser, Locator, sync_playwright  # noqa: E402

from browser.graphs import Graph  # noqa: E402
from browser.lab import Lab  # noqa: E402
from browser.server import CHROMIUM_FLAGS, Server, chromium  # noqa: E402

STATIC = ROOT / "widgets" / "workbench_widgets" / "static"
FILES = ROOT / "out" / "bench" / "files"

# Milliseconds from the run of a cell to the mark that the view sets after it has painted.
_FIRST_PICTURE = """async () => {
  const begin = performance.now();
  const painted = new Promise((done) => {
    const look = () => {
      if (!document.querySelector(".wb-root[data-wb-ready]")) return;
      observer.disconnect();
      done(performance.now() - begin);
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, {subtree: true, attributeFilter: ["data-wb-ready"]});
  });
  const panel = jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = 0;
  void jupyterapp.commands.execute("notebook:run-cell");
  return painted;
}"""

# Frames in a second while something moves in each of them.
_FRAMES = """async (canvas, [what, seconds]) => {
  const view = canvas.wbViewport;
  const {width, height} = canvas.getBoundingClientRect();
  const next = () => new Promise((done) => requestAnimationFrame(done));
  await next();
  const begin = performance.now();
  let frames = 0, worst = 0, last = begin;
  while (last - begin < seconds * 1000) {
    const phase = Math.floor(frames / 30) % 2 ? -1 : 1;
    if (what === "pan") view.pan(phase * 7, phase * 5);
    else view.zoom(phase > 0 ? 1.03 : 1 / 1.03, width / 2, height / 2);
    const now = await next();
    worst = Math.max(worst, now - last);
    last = now;
    frames++;
  }
  return {fps: (frames * 1000) / (last - begin), worst};
}"""


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        what: What was measured.
        value: The figure, or None where the measurement failed.
        unit: Its unit.
        limit: What it must not exceed, or not fall below for frames in a second; None without a limit.
        note: Anything else.
    """

    what: str
    value: float | None
    unit: str
    limit: float | None = None
    note: str = ""

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        if self.value is None:
            return False
        if self.limit is None:
            return True
        return self.value >= self.limit if self.unit == "fps" else self.value <= self.limit


class Bench:
    """The measurements, in one browser.

    Args:
        browser: Chromium.
        seconds: How long frames are counted.
    """

    def __init__(self, browser: Browser, seconds: float) -> None:
        self.browser = browser
        self.seconds = seconds

    @contextmanager
    def lab(self, setup: str = "") -> Iterator[Lab]:
        """A JupyterLab with a kernel of its own."""
        from browser.conftest import SETUP

        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder) / "jupyter")
            lab = Lab(self.browser, server)
            try:
                lab.kernel.run(SETUP + setup, timeout=600)
                yield lab
            finally:
                lab.stop()
                server.stop()

    def first(self, what: str, graph: str, limit: float) -> Iterator[Figure]:
        """From the run of a cell to the first picture, in a fresh kernel and a fresh page."""
        setup = f"""
from pathlib import Path
from benchmarks.views_graphs import random_graph, transformer
from workbench import pipeline
stage = pipeline.capture({graph}, progress=False)[0]
"""
        with self.lab(setup) as lab:
            nodes = lab.kernel.value("len(stage._programs['forward'].graph.nodes)")
            lab.open("stage")
            milliseconds = lab.page.evaluate(_FIRST_PICTURE)
            yield Figure(f"first picture, {what}", milliseconds / 1e3, "s", limit, f"{nodes:,} nodes")
            if nodes < 20_000:
                yield from self._frames(lab, what)
            lab.check()

    def _frames(self, lab: Lab, what: str) -> Iterator[Figure]:
        view = lab.view()
        graph = Graph(lab, view)
        for state in ("closed", "opened"):
            name = "Close all modules" if state == "closed" else "Open all modules"
            view.get_by_role("button", name=name).click()
            graph.still()
            graph.canvas.focus()
            lab.page.keyboard.press("f")
            lab.page.wait_for_timeout(600)
            drawn = len(graph.boxes())
            for action in ("pan", "zoom"):
                found = graph.canvas.evaluate(_FRAMES, [action, self.seconds])
                note = f"{drawn:,} boxes, longest frame {found['worst']:.0f} ms"
                yield Figure(f"{action}, {what}, all {state}", found["fps"], "fps", 30, note)

    def blocks(self) -> Iterator[Figure]:
        """About 10,000 nodes: 105 equal transformer blocks, exported."""
        yield from self.first("105 equal blocks", f"transformer(105, Path({str(FILES)!r}))", 2)

    def random(self) -> Iterator[Figure]:
        """10,000 nodes without repeats and without modules."""
        yield from self.first("random graph", "random_graph(10_000)", 2)

    def large(self) -> Iterator[Figure]:
        """50,000 nodes without repeats."""
        yield from self.first("large random graph", "random_graph(50_000)", 5)

    def partition(self) -> Iterator[Figure]:
        """Edits of the partition of vit_tiny: what the user waits for."""
        with self.lab("edited = fresh('vit_tiny', partitioner=DEMO)") as lab:
            view = lab.show("edited.partitioned")
            graph = Graph(lab, view)
            undo = view.get_by_role("button", name="Undo", exact=True)
            lab.kernel.run(
                "rows = [one for one in edited.partitioned.table.itertuples()"
                " if one.tag and one.op.startswith('aten.add')]\n"
                "edited.selection.set(rows[0].handles, node=rows[0].node)"
            )
            lab.page.wait_for_timeout(1500)
            yield Figure("partition edit made and shown, vit_tiny", _edit(view, graph, undo), "ms", 300)
            update = "edited.update(edited.recipe.replace(edits=[{0}]))"
            edit = 'wb.Edit("partition", {"action": "erase", "nodes": [rows[%d].node]})'
            times = []
            for index in range(5):
                call = update.format(edit % index)
                code = f"import time; begin = time.perf_counter(); {call}; took = time.perf_counter() - begin"
                times.append(lab.kernel.run(code, "took"))
            yield Figure("partition lowered again in place, vit_tiny", sorted(times)[2], "s", 1)

    def memory(self) -> Iterator[Figure]:
        """What stays after a view was shown a hundred times."""
        with self.lab() as lab:
            for name, code in (("graph", "lowered('onet_static').edge"), ("panel", "panel")):
                lab.kernel.run("panel = wb.workbench(lowered('onet_static'))")
                lab.open(code)
                before = lab.rerendered(10)
                after = lab.rerendered(100)
                grown = (after.heap - before.heap) / 2**20
                note = f"{before.heap / 2**20:.0f} MiB before; {after.widgets - before.widgets} more widgets"
                yield Figure(f"heap after 100 times, {name}", grown, "MiB", 2, note)
                lab.close()

    def sizes(self) -> Iterator[Figure]:
        """Bundles and the report."""
        for path in sorted(STATIC.glob("*.js")):
            size = len(gzip.compress(path.read_bytes(), 9))
            yield Figure(f"bundle {path.stem}, gzip", size / 1024, "KB", 150)
        import workbench as wb
        from networks import build

        network = build("vit_tiny")
        lowering = wb.lower(network.model, network.inputs, progress=False)
        run = lowering.run(*network.inputs, profile=True, repeat=3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            begin = time.perf_counter()
            lowering.to_html(path, run=run)
            took = time.perf_counter() - begin
            size = path.stat().st_size / 1e6
        yield Figure("report of vit_tiny", size, "MB", None, f"written in {took:.1f} s")


def _edit(view: Locator, graph: Graph, undo: Locator) -> float:
    """Milliseconds from the key to the answer of Python in the view, the median of five edits."""
    times = []
    for key in ("e", "z", "e", "z", "e", "z", "e", "z", "e"):
        wait = """(button, before) => new Promise((done, fail) => {
          const begin = performance.now();
          const observer = new MutationObserver(() => {
            if (button.title === before) return;
            observer.disconnect();
            requestAnimationFrame(() => done(performance.now() - begin));
          });
          observer.observe(button, {attributeFilter: ["title"]});
          setTimeout(() => fail(new Error("the edit was not shown within 5 s")), 5000);
          window.wbBegin();
        })"""
        before = undo.get_attribute("title")
        graph.canvas.focus()
        # The key is sent from within the page, so that the way of the test to the browser does not count.
        options = {"key": key, "ctrlKey": key == "z", "bubbles": True, "cancelable": True}
        graph.canvas.evaluate(
            """(canvas, options) => {
                 window.wbBegin = () => canvas.dispatchEvent(new KeyboardEvent("keydown", options));
               }""",
            options,
        )
        taken = undo.evaluate(wait, before)
        if key == "e":
            times.append(taken)
        view.page.wait_for_timeout(700)
    return sorted(times)[len(times) // 2]


def main(arguments: list[str] | None = None) -> int:
    """Entry point; with `--check` 1 where a limit is not kept."""
    groups = ("blocks", "random", "large", "partition", "memory", "sizes")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.views", description=__doc__)
    parser.add_argument("--only", metavar="NAME,...", help=f"some of {', '.join(groups)}")
    parser.add_argument("--seconds", type=float, default=3, help="how long frames are counted (3)")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is not kept")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench", help="folder of the results")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",") if options.only else list(groups)
    if unknown := sorted(set(wanted) - set(groups)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(groups)}")

    figures: list[Figure] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        bench = Bench(browser, options.seconds)
        for name in wanted:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            measure: Callable[[], Iterator[Figure]] = getattr(bench, name)
            try:
                for figure in measure():
                    shown = "-" if figure.value is None else f"{figure.value:.3g} {figure.unit}"
                    print(f"  {figure.what}: {shown}  {figure.note}", file=sys.stderr, flush=True)
                    figures.append(figure)
            except Exception as error:
                text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                figures.append(Figure(name, None, "", None, f"failed: {text[:160]}"))
        browser.close()
    _print(figures, options.out)
    return int(options.check and not all(figure.kept for figure in figures))


def _print(figures: list[Figure], out: Path) -> None:
    rows: list[list[Any]] = []
    for figure in figures:
        limit = "-" if figure.limit is None else f"{'>=' if figure.unit == 'fps' else '<='} {figure.limit:g}"
        rows.append(
            [figure.what, figure.value, figure.unit, limit, "yes" if figure.kept else "NO", figure.note]
        )
    about = (
        f"JupyterLab and Chromium without a graphics card on {processor()}; {time.strftime('%Y-%m-%d %H:%M')}"
    )
    table = table_of("Views", ["what", "measured", "unit", "limit", "kept", "note"], rows, about)
    print(table.text())
    out.mkdir(parents=True, exist_ok=True)
    (out / "views.md").write_text(table.markdown(), encoding="utf-8")
    data = {"about": about, "figures": [asdict(figure) for figure in figures]}
    (out / "views.json").write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
