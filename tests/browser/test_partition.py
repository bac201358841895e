"""The partition editor: every edit by hand, and what it does to the lowering."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator

from browser.graphs import Graph
from browser.lab import Lab

TAGS = """sorted(
    (str(row.tag), row.node)
    for row in edited.partitioned.table.itertuples() if row.tag and row.op.startswith("aten")
)"""
EDITS = "[dict(edit.data) for edit in edited.recipe.edits]"


class Editor:
    """The view of the chain's partition, two tags of an addition and a multiplication each."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        lab.kernel.run("edited = fresh('chain', partitioner=DEMO)")
        self.view: Locator = lab.show("edited.partitioned")
        self.graph = Graph(lab, self.view)
        self.graph.still()
        self.undo = self.view.get_by_role("button", name="Undo", exact=True)
        self.redo = self.view.get_by_role("button", name="Redo", exact=True)

    def tool(self, name: str) -> None:
        self.view.locator(f"[data-tool={name}]").click()

    def action(self, name: str) -> Locator:
        return self.view.locator(f"[data-action={name}]")

    def tab(self, name: str) -> None:
        self.view.get_by_role("tab", name=name).click()

    def relower(self) -> None:
        self.view.get_by_role("button", name="Write the edits to the recipe").click()
        self.lab.until(
            lambda: "Δ" in self.view.inner_text() or "before" in self.view.inner_text().lower(), "no result"
        )

    def edits(self, count: int) -> list[dict[str, object]]:
        """The edits of the recipe after lowering again."""
        self.relower()
        found: list[dict[str, object]] = self.lab.kernel.until(EDITS, lambda edits: len(edits) == count)
        return found


@pytest.fixture
def editor(lab: Lab) -> Iterator[Editor]:
    return Editor(lab)


def test_partitions_are_listed_and_reasons_stand_at_the_nodes(editor: Editor) -> None:
    text = editor.view.inner_text()
    assert "AddMulBackendDemo_0" in text and "AddMulBackendDemo_1" in text
    editor.graph.click("relu")
    editor.lab.until(lambda: "the backend has no aten.relu" in editor.view.inner_text(), "no reason is shown")


def test_eraser_takes_a_node_out_and_the_recipe_has_it(editor: Editor) -> None:
    editor.tool("erase")
    editor.graph.stroke("mul")
    editor.lab.until(lambda: not editor.undo.is_disabled(), "the edit is not made")
    (edit,) = editor.edits(1)
    assert edit["action"] == "erase"
    tags = editor.lab.kernel.value(TAGS)
    assert [node for _, node in tags] == ["add", "add_1", "mul_1"]


def test_paint_assigns_a_node_to_the_target(editor: Editor) -> None:
    editor.tool("erase")
    editor.graph.stroke("mul")
    editor.lab.until(lambda: not editor.undo.is_disabled(), "the edit is not made")
    editor.view.get_by_role("combobox", name="Target of Assign and Paint").select_option(
        "AddMulBackendDemo_0"
    )
    editor.tool("paint")
    editor.graph.stroke("mul")
    editor.lab.until(
        lambda: "2" in editor.view.get_by_role("tab", name="History").inner_text(), "not painted"
    )
    assert [edit["action"] for edit in editor.edits(2)] == ["erase", "assign"]
    assert ["AddMulBackendDemo_0", "mul"] in editor.lab.kernel.value(TAGS)


def test_lasso_selects_and_keys_split_and_merge(editor: Editor) -> None:
    editor.tool("lasso")
    editor.graph.around("mul")
    editor.lab.kernel.until("edited.selection.node or len(edited.selection.handles)")
    editor.graph.canvas.focus()
    editor.lab.page.keyboard.press("s")
    editor.lab.until(
        lambda: "3" in editor.view.get_by_role("tab", name="Partitions").inner_text(), "not split"
    )
    assert [edit["action"] for edit in editor.edits(1)] == ["split"]
    assert len({tag for tag, _ in editor.lab.kernel.value(TAGS)}) == 3
    editor.graph.around("add", "mul")
    editor.graph.canvas.focus()
    editor.lab.page.keyboard.press("m")
    editor.lab.until(
        lambda: "2" in editor.view.get_by_role("tab", name="Partitions").inner_text(), "not merged"
    )
    assert [edit["action"] for edit in editor.edits(2)] == ["split", "merge"]
    assert len({tag for tag, _ in editor.lab.kernel.value(TAGS)}) == 2


def test_join_tool_merges_two_partitions_by_clicks(editor: Editor) -> None:
    editor.tool("split")
    editor.graph.stroke("mul")
    editor.lab.until(lambda: "3" in editor.view.get_by_role("tab", name="Partitions").inner_text(), "not cut")
    editor.tool("merge")
    editor.graph.click("add")
    editor.graph.click("mul")
    editor.lab.until(
        lambda: "2" in editor.view.get_by_role("tab", name="Partitions").inner_text(), "not joined"
    )


def test_illegal_edit_is_shown_before_it_is_made_and_changes_nothing(editor: Editor) -> None:
    before = editor.lab.kernel.value(TAGS)
    editor.tool("merge")
    editor.graph.click("add")
    editor.lab.page.mouse.move(*editor.graph.point("mul_1"))
    editor.lab.until(lambda: "Not legal" in editor.view.inner_text(), "legality is not told while hovering")
    assert "relu" in editor.view.inner_text(), "the node in the way is not named"
    editor.graph.click("mul_1")
    editor.lab.until(lambda: "relu" in editor.view.inner_text(), "after the click nothing says why not")
    assert editor.undo.is_disabled()
    assert editor.lab.kernel.value(TAGS) == before
    assert editor.lab.kernel.value(EDITS) == []


def test_node_that_the_backend_cannot_run_is_not_assigned(editor: Editor) -> None:
    editor.graph.click("relu")
    editor.lab.until(lambda: "✗" in editor.view.inner_text(), "the button does not say that it can't be done")
    assert editor.action("assign").get_attribute("aria-disabled") == "true"
    editor.graph.canvas.focus()
    editor.lab.page.keyboard.press("a")
    editor.lab.page.wait_for_timeout(300)
    assert editor.undo.is_disabled()


def test_undo_and_redo_by_button_and_keys(editor: Editor) -> None:
    partitions = editor.view.get_by_role("tab", name="Partitions")
    editor.tool("split")
    editor.graph.stroke("mul")
    editor.lab.until(lambda: "3" in partitions.inner_text(), "not cut")
    editor.undo.click()
    editor.lab.until(lambda: "2" in partitions.inner_text(), "not undone")
    editor.graph.canvas.focus()
    editor.lab.page.keyboard.press("Control+Shift+Z")
    editor.lab.until(lambda: "3" in partitions.inner_text(), "not redone")
    editor.lab.page.keyboard.press("Control+Z")
    editor.lab.until(lambda: "2" in partitions.inner_text(), "not undone by keys")
    editor.redo.click()
    editor.lab.until(lambda: "3" in partitions.inner_text(), "not redone by the button")


def test_lowered_again_in_place_with_the_difference_and_replayed_headless(editor: Editor) -> None:
    editor.tool("erase")
    editor.graph.stroke("mul")
    editor.lab.until(lambda: not editor.undo.is_disabled(), "the edit is not made")
    editor.lab.kernel.run("before = bytes(edited.program.buffer)")
    editor.edits(1)
    assert editor.lab.kernel.value("bytes(edited.program.buffer) != before"), "the program is the old one"
    # The page shows the answer a little after Python has given it.
    result = editor.view.get_by_role("table", name="Before and after")
    result.wait_for()
    text = result.inner_text()
    assert "ms" in text or "µs" in text, "no time is shown"
    assert all(name in text for name in ("Program", "Memory", "Crossing", "Error")), text
    same = editor.lab.kernel.run(
        "one = network('chain')\n"
        "again = wb.lower(one.model, one.inputs, recipe=wb.Recipe.from_json(edited.recipe.to_json()),"
        " progress=False)",
        "bytes(again.program.buffer) == bytes(edited.program.buffer)",
    )
    assert same is True


def test_module_tool_and_table(lab: Lab) -> None:
    view = lab.show("lowered('onet_static', partitioner=DEMO).partitioned")
    graph = Graph(lab, view)
    graph.still()
    view.locator("[data-tool=module]").click()
    graph.click("gt")
    lab.until(
        lambda: "4 operators" in view.inner_text() or "prelu1" in view.inner_text(), "no module is chosen"
    )
    view.get_by_role("button", name="All operators as a table").click()
    view.get_by_role("grid").first.wait_for()
    assert "convolution" in view.inner_text()


def test_nodes_are_searched_by_name_operator_and_expression(lab: Lab) -> None:
    editor = Editor(lab)
    view = editor.view
    field = view.get_by_role("searchbox", name="Search nodes and modules")
    found = view.locator(".wb-graph-found")
    editor.graph.canvas.focus()
    lab.page.keyboard.press("/")
    assert field.evaluate("(field) => field === document.activeElement"), "the key leads elsewhere"
    lab.page.keyboard.type("op:add")
    lab.until(lambda: found.inner_text().endswith("/ 2"), "two additions")
    seen = []
    for key in ("Enter", "Enter", "Shift+Enter"):
        field.press(key)
        lab.page.wait_for_timeout(100)
        seen.append(lab.kernel.until("edited.selection.node"))
    assert sorted(seen[:2]) == ["add", "add_1"] and seen[2] == seen[0]
    # A hit is marked as if it was clicked: it can be edited at once.
    lab.until(lambda: seen[0] in view.locator(".wb-partition-marked").inner_text(), "the hit is not marked")
    view.get_by_role("button", name="Next hit (Enter)").click()
    lab.kernel.until("edited.selection.node", lambda node: node == seen[1])
    view.get_by_role("button", name="Previous hit (Shift+Enter)").click()
    lab.kernel.until("edited.selection.node", lambda node: node == seen[0])
    view.get_by_role("button", name="Regular expression").click()
    field.fill("^(relu|mul_1)$")
    lab.until(lambda: found.inner_text().endswith("/ 2"), "two by the expression")
    field.fill("(")
    lab.until(view.locator(".wb-graph-problem").is_visible, "a bad expression is not told of")
    field.fill("")
    # Letters are text here, not tools or edits.
    lab.page.keyboard.type("ea")
    assert lab.kernel.value(EDITS) == []
    assert editor.action("erase").get_attribute("aria-disabled") == "false"
    assert editor.undo.is_disabled()
