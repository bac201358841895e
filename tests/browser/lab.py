"""JupyterLab as a test drives it: notebooks, cells, their kernel, and what must not happen meanwhile."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, Request

from browser.kernel import Kernel
from browser.server import ROOT, Server

SCREENSHOTS = ROOT / "out" / "screenshots"

# Console errors that are JupyterLab's own, each with its reason. Nothing of the views belongs here.
KNOWN_NOISE = {
    "Could not restore the debugger state: Canceled future": (
        "JupyterLab's debugger panel asks the kernel about every notebook that is opened; closing the"
        " notebook before a busy kernel answers ends that"
    ),
    r"reading 'schema'\)": "Notebook 7 loads settings of plugins that it does not have",
    "Command 'filebrowser:open-path' not registered": "Notebook 7 has no file browser beside it",
}


@dataclass(frozen=True)
class Kept:
    """What there is at a moment: bytes of the page's heap, comms, Python widgets, elements."""

    heap: int
    comms: int
    widgets: int
    elements: int


_CURRENT = "const panel = jupyterapp.shell.currentWidget;"


class Lab:
    """One page with JupyterLab, one kernel for all of its notebooks.

    Args:
        browser: Chromium.
        server: The server.

    Attributes:
        page: Playwright's page.
        kernel: Python in the kernel of all notebooks.
        problems: Console errors, page errors and requests to other hosts since they were last looked at.
    """

    def __init__(self, browser: Browser, server: Server) -> None:
        self.server = server
        self.problems: list[str] = []
        made = server.request("POST", "api/kernels", {"name": "python3"})
        self.kernel_id: str = made["id"]
        self.kernel = Kernel(self._connection())
        self.context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
        self.page = self.watched(self.context.new_page())
        self.page.goto(f"{server.url}lab?token={server.token}&reset")
        self.page.wait_for_function("window.jupyterapp && jupyterapp.restored.then(() => true)")
        self.page.evaluate("async () => { await jupyterapp.restored; jupyterapp.shell.collapseLeft(); }")
        self._opened = 0

    def _connection(self) -> Path:
        path = self.server.runtime / f"kernel-{self.kernel_id}.json"
        end = time.monotonic() + 30
        while not path.exists():
            assert time.monotonic() < end, f"{path} was not written"
            time.sleep(0.05)
        return path

    # ---- what must not happen ------------------------------------------------------------------------------

    def watched(self, page: Page) -> Page:
        """Collect the page's errors, and its requests to other hosts."""
        page.on("console", self._console)
        page.on("pageerror", self._thrown)
        page.on("request", self._request)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        known = any(re.search(pattern, message.text) for pattern in KNOWN_NOISE)
        if message.type == "error" and not known:
            where = message.location
            place = f"{where.get('url', '')}:{where.get('lineNumber', '')}"
            self.problems.append(f"console error: {message.text} ({place})")

    def _thrown(self, error: Error) -> None:
        if not any(re.search(pattern, error.message) for pattern in KNOWN_NOISE):
            self.problems.append(f"page error: {error}\n{error.stack or ''}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.problems.append(f"request to another host: {request.url}")

    def check(self) -> None:
        """Fail on what was collected."""
        found, self.problems = self.problems, []
        assert not found, "\n".join(found)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Fail on errors of the lines inside."""
        self.check()
        yield
        self.check()

    # ---- notebooks -----------------------------------------------------------------------------------------

    def write(self, *cells: str) -> str:
        """A new notebook file with these cells, bound to the kernel; its path on the server."""
        self._opened += 1
        name = f"test-{self._opened}.ipynb"
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        notebook.cells = [nbformat.v4.new_code_cell(code) for code in cells]
        nbformat.write(notebook, self.server.notebooks / name)
        session = {"path": name, "name": name, "type": "notebook", "kernel": {"id": self.kernel_id}}
        self.server.request("POST", "api/sessions", session)
        return name

    def open(self, *cells: str) -> None:
        """Open a fresh notebook with these cells and wait until its kernel answers."""
        name = self.write(*cells)
        self.page.evaluate(
            """async (path) => {
                 const options = {path, factory: "Notebook"};
                 const panel = await jupyterapp.commands.execute("docmanager:open", options);
                 await panel.context.ready;
                 await panel.sessionContext.ready;
                 await panel.revealed;
                 jupyterapp.shell.activateById(panel.id);
               }""",
            name,
        )
        self.page.wait_for_function(
            "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus"
            " === 'connected'"
        )

    def save(self) -> str:
        """Save the open notebook; its path on the server."""
        path: str = self.page.evaluate(
            """async () => {
                 const {context} = jupyterapp.shell.currentWidget;
                 await context.save();
                 return context.path;
               }"""
        )
        return path

    def close(self) -> None:
        """Close all notebooks, and forget the widgets that they showed."""
        self.page.evaluate(
            """async () => {
                 for (const widget of [...jupyterapp.shell.widgets("main")]) {
                   if (widget.context) {
                     await widget.context.save().catch(() => undefined);
                     widget.close();
                   }
                 }
               }"""
        )
        self.kernel.run("import ipywidgets; ipywidgets.Widget.close_all()")

    def run(self, index: int = 0, wait: bool = True) -> None:
        """Run a cell of the open notebook."""
        code = f"""(index) => {{
            {_CURRENT}
            panel.content.activeCellIndex = index;
            panel.content.deselectAll();
            const done = jupyterapp.commands.execute("notebook:run-cell");
            return {"done" if wait else "null"};
        }}"""
        self.page.evaluate(code, index)

    @contextmanager
    def busy(self, index: int) -> Iterator[None]:
        """Keep the kernel busy with a cell (made by `waiting`) while the lines inside run."""
        self.run(index, wait=False)
        try:
            yield
        finally:
            (self.server.folder / "go").touch()
            self.page.wait_for_function(
                "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
            )

    @property
    def waiting(self) -> str:
        """Code of a cell that runs until `busy` ends."""
        flag = self.server.folder / "go"
        flag.unlink(missing_ok=True)
        return f"import pathlib, time\nwhile not pathlib.Path({str(flag)!r}).exists(): time.sleep(0.02)"

    def cell(self, index: int = 0) -> Locator:
        """A cell of the open notebook."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(index)

    def show(self, code: str, *, ready: bool = True) -> Locator:
        """Run code in a fresh notebook's only cell; the view that its value shows."""
        self.open(code)
        self.run()
        return self.view(0, ready=ready)

    def view(self, index: int = 0, *, ready: bool = True) -> Locator:
        """The view below a cell, once it has painted."""
        view = self.cell(index).locator(".wb-root").first
        mark = '[data-wb-ready="1"]' if ready else ""
        found = self.cell(index).locator(f".wb-root{mark}").first
        try:
            found.wait_for(state="visible", timeout=20_000)
        except Error as error:
            text = self.cell(index).inner_text()[:1500]
            raise AssertionError(f"no view below cell {index}; it says: {text}\n{self.problems}") from error
        return view

    def code_cells(self) -> list[str]:
        """The sources of the open notebook's cells, as the front end has them."""
        found: list[str] = self.page.evaluate(
            f"""() => {{
                {_CURRENT}
                return [...panel.content.model.cells].map((cell) => cell.sharedModel.getSource());
            }}"""
        )
        return found

    # ---- the look ------------------------------------------------------------------------------------------

    def theme(self, name: str) -> None:
        """Change the theme: `light` or `dark`."""
        title = f"JupyterLab {name.capitalize()}"
        wanted = "true" if name == "light" else "false"
        if self.page.evaluate("document.body.dataset.jpThemeLight") == wanted:
            return
        self.page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", title)
        self.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{wanted}'")
        # Its splash screen fades; JupyterLab throws when two of them meet.
        self.page.wait_for_function("!document.getElementById('jupyterlab-splash')")

    def width(self, pixels: int, height: int = 900) -> None:
        """Change the window's size so that a view is so many pixels wide."""
        self.page.set_viewport_size({"width": pixels + 130, "height": height})
        self.page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
        for _ in range(2):  # the notebook's margins depend on its width
            self.frames(2)
            found = self.page.evaluate(
                "document.querySelector('.wb-root')?.getBoundingClientRect().width ?? 0"
            )
            if not found or abs(found - pixels) < 1:
                break
            window = self.page.evaluate("innerWidth")
            self.page.set_viewport_size({"width": round(window + pixels - found), "height": height})
        self.frames(2)

    def frames(self, count: int = 2) -> None:
        """Wait until the page was painted so many times."""
        self.page.evaluate(
            """async (count) => {
                 for (let i = 0; i < count; i++) await new Promise((done) => requestAnimationFrame(done));
               }""",
            count,
        )

    def pictures(self, name: str, view: Locator, widths: tuple[int, ...] = (1400, 480)) -> list[Path]:
        """Screenshots of a view in light and dark, wide and narrow, to out/screenshots."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        made = []
        for theme in ("light", "dark"):
            self.theme(theme)
            for width in widths:
                self.width(width)
                self.page.mouse.move(2, 2)
                view.scroll_into_view_if_needed()
                self.page.wait_for_timeout(150)
                path = SCREENSHOTS / f"{name}-{theme}-{width}.png"
                view.screenshot(path=path)
                made.append(path)
        self.width(1400)
        self.theme("light")
        return made

    def overflow(self, view: Locator) -> list[str]:
        """Elements of a view that stick out of it to the right where nothing scrolls: clipped text."""
        found: list[str] = view.evaluate(
            """(root) => {
                 const right = root.getBoundingClientRect().right + 1;
                 const scrolls = (el) => {
                   for (let at = el; at && at !== root.parentElement; at = at.parentElement) {
                     const flow = getComputedStyle(at).overflowX;
                     if (flow === "auto" || flow === "scroll") return true;
                   }
                   return false;
                 };
                 const out = [];
                 for (const el of root.querySelectorAll("button, select, input, label, h3, p, span")) {
                   const box = el.getBoundingClientRect();
                   if (!box.width || box.right <= right || scrolls(el)) continue;
                   if (el.closest(".wb-visually-hidden")) continue;
                   const text = (el.textContent || el.ariaLabel || "").slice(0, 40);
                   out.push(`${el.tagName} "${text}" ${Math.round(box.right - right)} px`);
                 }
                 return out;
               }"""
        )
        return found

    # ---- memory --------------------------------------------------------------------------------------------

    def heap(self) -> int:
        """Bytes of the page's JavaScript heap after a collection."""
        client = self.context.new_cdp_session(self.page)
        try:
            for _ in range(3):
                client.send("HeapProfiler.collectGarbage")
            client.send("Performance.enable")
            metrics = client.send("Performance.getMetrics")["metrics"]
            return int(next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize"))
        finally:
            client.detach()

    def rerendered(self, times: int) -> Kept:
        """Run the first cell so many times; what page and kernel hold then."""
        for _ in range(times):
            self.run()
        self.view()
        self.page.wait_for_timeout(500)
        models = self.page.evaluate(
            """async () => {
                 const {kernel} = jupyterapp.shell.currentWidget.sessionContext.session;
                 return kernel._comms.size;
               }"""
        )
        widgets = self.kernel.value("len(__import__('ipywidgets').widgets.widget._instances)")
        nodes = self.page.evaluate("document.querySelectorAll('*').length")
        return Kept(self.heap(), models, widgets, nodes)

    def until(self, holds: Callable[[], Any], what: str, timeout: float = 10) -> Any:
        """Wait until something holds; its value."""
        end = time.monotonic() + timeout
        while not (found := holds()):
            assert time.monotonic() < end, what
            self.page.wait_for_timeout(50)
        return found

    def stop(self) -> None:
        """Close the page and the kernel."""
        self.kernel.close()
        self.context.close()
        self.server.request("DELETE", f"api/kernels/{self.kernel_id}")
