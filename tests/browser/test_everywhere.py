"""Views on one page, on other front ends, after a reload, as plain HTML; and nothing that grows."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from browser.graphs import Graph
from browser.lab import Lab
from browser.server import ROOT

ONE = "lowered('onet_static', partitioner=DEMO)"


def test_row_of_the_profile_lights_graph_memory_and_python(lab: Lab) -> None:
    lab.open("measured('onet_static', partitioner=DEMO)", f"{ONE}.edge", f"{ONE}.plan")
    for index in range(3):
        lab.run(index)
    profile, graph, memory = (lab.view(index) for index in range(3))
    profile.get_by_role("treegrid").locator("tr[data-row]").filter(has_text="convolution_2").click()
    wanted = lab.kernel.value(f"sorted({ONE}.edge.table.set_index('node').handles['convolution_2'])")
    lab.kernel.until(f"sorted({ONE}.selection.handles)", lambda found: found == wanted)
    selected = """(canvas) => {
      const {picture, selected, model} = canvas.wbGraph;
      const boxes = picture.boxes.filter((box) => box.kind === "node" && selected(box));
      return boxes.map((box) => model.document.name.get(box.index));
    }"""
    lab.until(
        lambda: Graph(lab, graph).canvas.evaluate(selected) == ["convolution_2"], "the graph does not follow"
    )
    lab.until(lambda: "networks.py:83" in graph.inner_text(), "no source line in the graph's details")
    lab.until(
        lambda: "convolution_2" in memory.locator(".wb-side").inner_text(), "the memory plan does not follow"
    )
    lab.kernel.run(f"{ONE}.selection = '_softmax'")
    marked = profile.locator("tr[aria-selected=true]")
    lab.until(lambda: marked.count() == 1 and "softmax" in marked.inner_text(), "the profile does not follow")


def test_selection_is_shared_while_the_kernel_is_busy(lab: Lab) -> None:
    lab.open(f"{ONE}.edge", f"{ONE}.plan", lab.waiting)
    lab.run(0)
    lab.run(1)
    graph, memory = Graph(lab, lab.view(0)), lab.view(1)
    graph.still()
    with lab.busy(2):
        graph.click("convolution")
        side = memory.locator(".wb-side")
        lab.until(lambda: "networks.py:81" in side.inner_text(), "the plan waits for the kernel")
    lab.kernel.until(f"{ONE}.selection.node", lambda node: node == "convolution")


def test_callback_in_python_hears_of_a_choice_in_the_view(lab: Lab) -> None:
    lab.kernel.run(f"{ONE}.selection.clear()")
    lab.kernel.run(f"heard = []; end = {ONE}.selection.on_change(lambda one: heard.append(one.node))")
    view = lab.show(f"{ONE}.edge")
    graph = Graph(lab, view)
    graph.still()
    graph.click("convolution")
    lab.kernel.until("heard", lambda heard: heard[-1:] == ["convolution"])
    lab.kernel.run("end()")


def test_views_come_back_after_a_reload_of_the_page(lab: Lab) -> None:
    lab.open(f"{ONE}.plan")
    lab.run()
    lab.view()
    path = lab.save()
    other = lab.watched(lab.context.new_page())
    try:
        other.goto(f"{lab.server.url}lab/tree/{path}?token={lab.server.token}")
        other.locator('.wb-root[data-wb-ready="1"]').wait_for(timeout=30_000)
        assert "planner" in other.locator(".wb-root").inner_text()
        lab.check()
    finally:
        other.close()


def test_notebook_7_shows_a_view_and_takes_no_keys_from_it(lab: Lab) -> None:
    name = lab.write(f"{ONE}.edge", "'next'")
    page = lab.watched(lab.context.new_page())
    try:
        page.goto(f"{lab.server.url}notebooks/{name}?token={lab.server.token}")
        cell = page.locator(".jp-Cell").first
        cell.wait_for(timeout=30_000)
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(timeout=30_000)
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        view = page.locator('.wb-root[data-wb-ready="1"]')
        view.wait_for(timeout=30_000)
        view.locator("canvas.wb-canvas").first.focus()
        for key in ("d", "d", "x", "a", "0", "0"):
            page.keyboard.press(key)
        page.wait_for_timeout(200)
        assert page.locator(".jp-Cell").count() == 2
        assert page.locator(".jp-Dialog").count() == 0
        lab.check()
    finally:
        page.close()


def test_pictures_stand_in_where_no_script_runs(lab: Lab, tmp_path: Path) -> None:
    """What nbconvert and code hosts show of a saved notebook: no widget, a picture and its table."""
    from nbconvert import HTMLExporter

    cells = [f"{ONE}.edge", f"{ONE}.partitioned", f"{ONE}.plan", f"{ONE}.program", "measured('onet_static')"]
    lab.open(*cells)
    for index in range(len(cells)):
        lab.run(index)
    path = lab.save()
    notebook = nbformat.read(lab.server.notebooks / path, as_version=4)
    for cell in notebook.cells:
        data = {kind: text for output in cell.outputs for kind, text in output.get("data", {}).items()}
        assert "text/html" in data and "text/plain" in data, cell.source
        assert "<svg" in data["text/html"] or "<table" in data["text/html"], cell.source
        for output in cell.outputs:
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    notebook.metadata.pop("widgets", None)
    html, _ = HTMLExporter().from_notebook_node(notebook)
    assert html.count("<svg") >= 3 and "convolution" in html
    target = tmp_path / "notebook.html"
    target.write_text(html, encoding="utf-8")
    page = lab.context.browser.new_page(java_script_enabled=False)
    try:
        page.goto(target.as_uri())
        assert page.locator("svg:visible").count() >= 3
    finally:
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("code", [f"{ONE}.edge", f"{ONE}.plan", "panel"], ids=["graph", "memory", "panel"])
def test_nothing_grows_over_a_hundred_renders(lab: Lab, code: str) -> None:
    lab.kernel.run(f"panel = wb.workbench({ONE})")
    lab.open(code)
    before = lab.rerendered(10)
    after = lab.rerendered(100)
    assert after.comms == before.comms, "comms stay open"
    assert after.widgets == before.widgets, "Python widgets stay"
    assert after.elements <= before.elements + 20, "elements stay on the page"
    grown = (after.heap - before.heap) / 2**20
    assert grown < 2, f"the page's heap grew by {grown:.1f} MiB"


def test_pictures_of_the_readme_are_taken(lab: Lab) -> None:
    """The pictures that the README shows, from the views as they are; copied to docs/images by hand."""
    folder = ROOT / "out" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    subjects = {
        "panel": f"wb.workbench({ONE}, run=measured('onet_static', partitioner=DEMO))",
        "partition": f"{ONE}.partitioned",
        "memory": f"{ONE}.plan",
        "profile": "measured('onet_static', repeat=50)",
    }
    for name, code in subjects.items():
        lab.kernel.run(f"{ONE}.selection.clear(); lowered('onet_static').selection.clear()")
        view = lab.show(code)
        if name == "partition":
            Graph(lab, view).click("gt")
        if name == "panel":
            view.get_by_role("tab", name="Edge").click()
            lab.kernel.run(f"{ONE}.selection = 'convolution_1'")
        lab.width(1200)
        lab.page.wait_for_timeout(500)
        lab.page.mouse.move(2, 2)
        # Where the checkout lies is nobody's business.
        view.evaluate(
            """(root, folder) => {
                 const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
                 while (texts.nextNode()) {
                   const text = texts.currentNode;
                   text.textContent = text.textContent.replaceAll(folder, "");
                 }
               }""",
            f"{ROOT}/",
        )
        view.screenshot(path=folder / f"readme-{name}.png")
        assert (folder / f"readme-{name}.png").stat().st_size > 10_000
        lab.width(1400)
        lab.close()


_ALIVE = """
import gc
from ipywidgets.widgets.widget import _instances
from workbench_widgets.widget import ViewWidget
def alive():
    gc.collect()
    lowerings = sum(isinstance(one, wb.Lowering) for one in gc.get_objects())
    return lowerings, sum(isinstance(one, ViewWidget) for one in _instances.values())
def chosen():
    shown = [one.context.lowering for one in _instances.values() if isinstance(one, ViewWidget)]
    return any(one.selection.handles for one in shown)
"""


@pytest.mark.parametrize("shown", ["fresh('chain')", "wb.workbench(fresh('chain'))"])
def test_cell_that_lowers_anew_each_time_keeps_one_lowering(lab: Lab, shown: str) -> None:
    lab.kernel.run(_ALIVE)
    # IPython keeps the last value of each run in `Out`, as of any cell: this one has none.
    lab.open(f"display({shown})\nNone")
    lab.run()
    lab.view()
    lowerings, widgets = lab.kernel.value("alive()")
    open_comms = "jupyterapp.shell.currentWidget.sessionContext.session.kernel._comms.size"
    comms = lab.page.evaluate(open_comms)
    for _ in range(20):
        lab.run()
    view = lab.view()
    assert lab.kernel.value("alive()") == [lowerings, widgets]
    # And the last one, which nothing else holds, still answers.
    graph = Graph(lab, view)
    box = graph.boxes()[graph.nodes()[0]]
    lab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    lab.kernel.until("chosen()")
    lab.until(lambda: lab.page.evaluate(open_comms) <= comms, "the page keeps the closed ones")
