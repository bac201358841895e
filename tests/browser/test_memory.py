"""The memory view: choosing tensors, pinning them, planning again."""

from __future__ import annotations

from playwright.sync_api import Locator

from browser.lab import Lab

SIZE = "planned.plan.report.methods['forward'].size"

_RECT = """(root, name) => {
  const {chart, document} = root.wbView;
  const rows = Array.from({length: document.name.length}, (_, row) => row);
  const row = rows.find((row) => document.name.get(row) === name);
  const frame = chart.frame(), places = root.wbView.places();
  const at = chart.viewport.canvas.getBoundingClientRect();
  const left = frame.x(document.first[row]);
  const right = frame.x(document.last[row] + 1);
  const bottom = frame.y(places.offset[row]);
  const top = frame.y(places.offset[row] + document.bytes[row]);
  return {x: at.left + left, y: at.top + top, width: right - left, height: bottom - top};
}"""


def shown(lab: Lab) -> Locator:
    lab.kernel.run("planned = fresh('onet_static')")
    return lab.show("planned.plan")


def middle(view: Locator, name: str) -> tuple[float, float]:
    box = view.evaluate(_RECT, name)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_click_on_a_tensor_selects_its_node(lab: Lab) -> None:
    view = shown(lab)
    lab.page.mouse.click(*middle(view, "convolution_1"))
    wanted = lab.kernel.value("sorted(planned.edge.table.set_index('node').handles['convolution_1'])")
    lab.kernel.until("sorted(planned.selection.handles)", lambda found: found == wanted)
    lab.until(
        lambda: "110 KiB" in view.inner_text() or "110.25" in view.inner_text(), "its bytes are not shown"
    )


def test_tensors_at_the_peak_are_listed_and_chosen_by_click(lab: Lab) -> None:
    view = shown(lab)
    peak = view.get_by_role("region", name="Alive at the peak")
    wanted = lab.kernel.value("sorted(planned.plan.table[planned.plan.table.at_peak].tensor)")
    listed = [text.split()[0] for text in peak.get_by_role("button").all_inner_texts()]
    assert sorted(listed) == wanted
    peak.get_by_role("button", name="mul").first.click()
    lab.kernel.until("planned.selection.node", lambda node: node == "mul")


def test_dragging_a_tensor_pins_it_and_plan_again_obeys(lab: Lab) -> None:
    view = shown(lab)
    before = lab.kernel.value("planned.plan.table.set_index('tensor').offset['convolution_1'].item()")
    x, y = middle(view, "convolution_1")
    lab.page.mouse.click(x, y)
    lab.page.wait_for_timeout(100)
    x, y = middle(view, "convolution_1")
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x, y - 60, steps=5)
    lab.page.mouse.move(x, y - 80, steps=3)
    lab.page.mouse.up()
    again = view.get_by_role("button", name="Plan again")
    lab.until(again.is_enabled, "the drag changed nothing")
    again.click()
    pins = lab.kernel.until("planned.recipe.memory.pins")
    arena, offset = pins["convolution_1"]
    after = lab.kernel.value("planned.plan.table.set_index('tensor').offset['convolution_1'].item()")
    assert arena == 1 and offset == after and after != before
    expected = lab.kernel.value(
        "bool(torch.allclose(planned.run(*network('onet_static').inputs).outputs[0],"
        " lowered('onet_static').run(*network('onet_static').inputs).outputs[0]))"
    )
    assert expected is True, "the outputs changed with the plan"


def test_planner_alignment_and_limit_are_previewed_and_applied(lab: Lab) -> None:
    view = shown(lab)
    before = lab.kernel.value(SIZE)
    view.get_by_role("combobox", name="Planner").select_option("naive")
    lab.until(
        lambda: "MiB" in view.get_by_role("region").first.inner_text(), "no preview of the larger arena"
    )
    assert lab.kernel.value(SIZE) == before, "a preview must not change the lowering"
    view.get_by_role("button", name="Plan again").click()
    lab.kernel.until("planned.recipe.memory.planner", lambda name: name == "naive")
    assert lab.kernel.value(SIZE) > before
    view.get_by_role("combobox", name="Planner").select_option("best")
    view.get_by_role("combobox", name="Alignment").select_option("64")
    view.get_by_role("button", name="Plan again").click()
    lab.kernel.until("planned.recipe.memory.alignment", lambda found: found == 64)
    offsets = lab.kernel.value("[int(one) for one in planned.plan.table.offset]")
    assert all(offset % 64 == 0 for offset in offsets)


def test_limit_that_cannot_hold_shows_an_error_with_what_to_do(lab: Lab) -> None:
    view = shown(lab)
    field = view.get_by_role("textbox", name="Limit")
    field.fill("1000")
    field.press("Enter")
    lab.until(lambda: view.locator(".wb-error").count() == 1, "no error is shown", timeout=15)
    text = view.locator(".wb-error").inner_text()
    assert "does not fit" in text and "What to do" in text
    assert lab.kernel.value("dict(planned.recipe.memory.arena_limits)") == {}


def test_undo_takes_a_choice_back(lab: Lab) -> None:
    view = shown(lab)
    planner = view.get_by_role("combobox", name="Planner")
    planner.select_option("naive")
    undo = view.get_by_role("button", name="Undo (Ctrl+Z)")
    lab.until(undo.is_enabled, "nothing to undo")
    undo.click()
    lab.until(lambda: planner.input_value() == "best", "not undone")
    view.get_by_role("button", name="Redo (Ctrl+Shift+Z)").click()
    lab.until(lambda: planner.input_value() == "naive", "not redone")


def test_table_of_the_tensors_is_linked(lab: Lab) -> None:
    view = shown(lab)
    view.get_by_role("button", name="The tensors as a table").click()
    grid = view.get_by_role("grid", name="Tensors of the memory plan")
    grid.locator("tr[data-row]").filter(has_text="_softmax").click()
    lab.kernel.until("planned.selection.node", lambda node: node == "_softmax")


_END_THREADS = """
def end_threads():
    # As JupyterLab does when it takes nobody to use them any longer.
    thread = get_ipython().kernel.shell_channel_thread
    gone = thread.manager.list_subshell()
    for name in gone:
        thread.io_loop.add_callback(thread.manager._delete_subshell, name)
    return len(gone)
"""


def test_plan_and_selection_arrive_when_the_kernel_ended_the_thread_that_the_page_sends_to(lab: Lab) -> None:
    view = shown(lab)
    lab.kernel.run(_END_THREADS)
    planner = view.get_by_role("combobox", name="Planner")
    again = view.get_by_role("button", name="Plan again")
    ended = 0
    for name in ("naive", "greedy", "best"):
        planner.select_option(name)
        again.click()
        lab.kernel.until("planned.recipe.memory.planner", lambda found: found == name)  # noqa: B023
        lab.until(lambda: again.count() == 1, "still planning")
        ended += lab.kernel.value("end_threads()")
        lab.kernel.until("not get_ipython().kernel.shell_channel_thread.manager.list_subshell()")
        lab.page.mouse.click(*middle(view, "convolution_1"))
        lab.kernel.until("planned.selection.node == 'convolution_1'")
        lab.kernel.run("planned.selection.clear()")
        lab.until(lambda: view.locator(".wb-memory-pin").count() == 0, "still selected")
    assert ended, "the page sends to the main thread anyway: the test shows nothing"
