"""The graph view, by mouse and keyboard."""

from __future__ import annotations

from browser.graphs import Graph
from browser.lab import Lab

EDGE = "lowered('onet_static').edge"
HANDLES = "sorted(lowered('onet_static').selection.handles)"


def handles_of(lab: Lab, node: str, stage: str = "edge") -> list[int]:
    """Source handles of a node."""
    table = f"lowered('onet_static').{stage}.table"
    found: list[int] = lab.kernel.value(f"sorted({table}.set_index('node').handles[{node!r}])")
    return found


def test_click_on_a_node_selects_it_in_python_and_shows_what_is_known(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    graph.click("convolution")
    lab.kernel.until(HANDLES, lambda found: found == handles_of(lab, "convolution"))
    assert lab.kernel.value("lowered('onet_static').selection.node") == "convolution"
    details = view.locator(".wb-side")
    details.get_by_text("aten.convolution.default").first.wait_for()
    text = details.inner_text()
    for expected in ("networks.py:81", "(1, 32, 46, 46)", "float32", "conv1"):
        assert expected in text.replace("[", "(").replace("]", ")"), text


def test_python_selects_and_the_graph_shows_it(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    lab.kernel.run("lowered('onet_static').selection = 'addmm'")
    view.locator(".wb-side").get_by_text("aten.addmm.default").first.wait_for()
    marked = graph.canvas.evaluate(
        """(canvas) => {
             const {picture, selected} = canvas.wbGraph;
             return picture.boxes.filter((box) => !box.open && selected(box)).length;
           }"""
    )
    assert marked >= 1
    lab.kernel.run("lowered('onet_static').selection.clear()")
    lab.until(lambda: view.locator(".wb-side").get_by_text("Click a node").count(), "nothing is selected")


def test_modules_close_and_open_by_double_click_and_all_at_once(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    assert "gt" in graph.nodes()
    graph.double_click("prelu1")
    lab.until(lambda: "gt" not in graph.nodes(), "prelu1 stays open")
    assert graph.boxes()["prelu1"]["open"] is False
    graph.double_click("prelu1")
    lab.until(lambda: "gt" in graph.nodes(), "prelu1 stays closed")
    view.get_by_role("button", name="Close all modules").click()
    lab.until(lambda: graph.open_modules() == [], "a module stays open")
    view.get_by_role("button", name="Open all modules").click()
    lab.until(lambda: "prelu5" in graph.open_modules(), "prelu5 stays closed")


def test_search_goes_through_the_hits(lab: Lab) -> None:
    view = lab.show(EDGE)
    field = view.get_by_role("searchbox", name="Search nodes and modules")
    field.fill("op:mul")
    status = view.locator(".wb-graph-found")
    lab.until(lambda: "5" in status.inner_text(), "five multiplications")
    seen = []
    for _ in range(5):
        field.press("Enter")
        lab.page.wait_for_timeout(60)
        seen.append(lab.kernel.until("lowered('onet_static').selection.node"))
    assert sorted(set(seen)) == ["mul", "mul_1", "mul_2", "mul_3", "mul_4"]
    field.press("Shift+Enter")
    lab.kernel.until("lowered('onet_static').selection.node", lambda node: node == seen[-2])
    view.get_by_role("button", name="Next hit (Enter)").click()
    lab.kernel.until("lowered('onet_static').selection.node", lambda node: node == seen[-1])
    view.get_by_role("button", name="Regular expression").click()
    field.fill("^where_[12]$")
    lab.until(lambda: "2" in status.inner_text(), "two by the expression")
    field.fill("(")
    lab.until(lambda: view.locator(".wb-graph-problem").is_visible(), "a bad expression is told")


def test_attributes_are_searched(lab: Lab) -> None:
    view = lab.show(EDGE)
    view.get_by_role("searchbox", name="Search nodes and modules").fill("shape:256")
    lab.until(lambda: "/" in view.locator(".wb-graph-found").inner_text(), "found by shape")


def test_overlay_colours_by_numbers_and_has_a_legend(lab: Lab) -> None:
    view = lab.show(EDGE)
    choice = view.get_by_role("combobox", name="Colour by")
    lab.until(lambda: choice.locator("option").count() > 2, "overlays are offered")
    values = choice.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
    assert "output_bytes" in values
    before = view.locator(".wb-graph-legend").inner_text()
    choice.select_option("output_bytes")
    lab.until(lambda: view.locator(".wb-graph-legend").inner_text() != before, "the legend follows")
    assert "B" in view.locator(".wb-graph-legend").inner_text()


def test_slider_changes_the_stage_and_nodes_keep_their_places(lab: Lab) -> None:
    view = lab.show("lowered('onet_static', partitioner=DEMO).edge")
    graph = Graph(lab, view)
    before = graph.boxes()["convolution"]
    slider = view.get_by_role("slider", name="Stage")
    slider.focus()
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: "Partitioned" in view.locator(".wb-graph-stage").inner_text(), "the stage changes")
    after = graph.boxes()["convolution"]
    assert abs(before["x"] - after["x"]) < 2 and abs(before["y"] - after["y"]) < 2
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: "Lowered" in view.locator(".wb-graph-stage").inner_text(), "the stage changes again")
    lowered = graph.boxes()
    assert "mul" not in {
        box["name"] for box in lowered.values() if box["kind"] == "node" and not box["open"]
    } or any("delegate" in name.lower() for name in lowered)
    assert abs(before["x"] - lowered["convolution"]["x"]) < 40


def test_graph_is_walked_by_keyboard(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    graph.click("convolution")
    lab.kernel.until("lowered('onet_static').selection.node", lambda node: node == "convolution")
    lab.page.keyboard.press("Home")
    spoken = view.locator(".wb-visually-hidden[aria-live]").first
    told = []
    for _ in range(3):
        lab.page.keyboard.press("ArrowDown")
        lab.page.wait_for_timeout(60)
        told.append(spoken.inner_text())
    assert len(set(told)) == 3, told
    assert any("convolution" in text for text in told)
    lab.page.keyboard.press("ArrowUp")
    lab.page.wait_for_timeout(60)
    assert spoken.inner_text() not in ("", told[2]), "up goes to one of its producers"
    lab.page.keyboard.press("Enter")
    lab.page.keyboard.press("/")
    assert lab.page.evaluate("document.activeElement.type") == "search"


def test_enter_opens_and_backspace_leaves_a_module(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    graph.click("gt")
    lab.kernel.until("lowered('onet_static').selection.node", lambda node: node == "gt")
    lab.page.keyboard.press("Space")
    lab.page.keyboard.press("Backspace")
    lab.page.keyboard.press("Enter")
    lab.until(lambda: "gt" not in graph.nodes(), "Enter closes the module that Backspace went to")
    lab.page.keyboard.press("Enter")
    lab.until(lambda: "gt" in graph.nodes(), "Enter opens it")


def test_table_behind_the_picture_is_linked(lab: Lab) -> None:
    view = lab.show(EDGE)
    view.get_by_role("button", name="The nodes as a table").click()
    table = view.get_by_role("grid")
    table.wait_for()
    view.get_by_role("searchbox", name="Filter").fill("softmax")
    row = table.locator("tbody tr[data-row]").first
    row.click()
    lab.kernel.until(HANDLES, lambda found: found == handles_of(lab, "_softmax"))
    view.get_by_role("searchbox", name="Filter").fill("")
    table.focus()
    lab.page.keyboard.press("Home")
    lab.page.keyboard.press("ArrowDown")
    lab.kernel.until(HANDLES, lambda found: found != handles_of(lab, "_softmax"))


def test_equal_blocks_fold_and_closed_modules_keep_their_edges(lab: Lab) -> None:
    view = lab.show("lowered('vit_tiny').edge")
    graph = Graph(lab, view)
    kinds = {box["kind"] for box in graph.boxes().values()}
    assert "fold" in kinds, "twelve equal layers make a stack"
    assert len(graph.boxes()) <= 320
    lines = graph.canvas.evaluate(
        "(canvas) => canvas.wbGraph.picture.wirings.reduce((sum, one) => sum + one.placed.bundles.length, 0)"
    )
    assert lines > 0


def test_zoom_pan_and_fit(lab: Lab) -> None:
    view = lab.show(EDGE)
    graph = Graph(lab, view)
    graph.still()
    scale = "(canvas) => canvas.wbViewport.transform.scale"
    start = graph.canvas.evaluate(scale)
    graph.canvas.focus()
    lab.page.keyboard.press("+")
    assert graph.canvas.evaluate(scale) > start
    box = graph.canvas.bounding_box()
    assert box is not None
    lab.page.mouse.move(box["x"] + 200, box["y"] + 200)
    lab.page.keyboard.down("Control")
    lab.page.mouse.wheel(0, 400)
    lab.page.keyboard.up("Control")
    lab.until(lambda: graph.canvas.evaluate(scale) < start, "the wheel zooms")
    x = graph.canvas.evaluate("(canvas) => canvas.wbViewport.transform.x")
    graph.drag([(box["x"] + 30, box["y"] + 60), (box["x"] + 90, box["y"] + 80)])
    assert graph.canvas.evaluate("(canvas) => canvas.wbViewport.transform.x") - x > 40
    lab.page.keyboard.press("f")
    lab.frames(2)
    shown = graph.boxes()
    assert all(one["y"] >= box["y"] - 1 for one in shown.values())
