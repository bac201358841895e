"""A JupyterLab server of the tests' own, and the browser that looks at it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # The heap is measured after a collection, and a frame's time by a clock that is not coarsened.
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
)
# What would ask the network for something, or put itself in front of the notebook.
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Light", "adaptive-theme": False},
    "@jupyterlab/notebook-extension:tracker": {"kernelShutdown": False},
}


def chromium() -> str:
    """Path of the browser: $CHROMIUM, else the one in PATH.

    Raises:
        RuntimeError: There is none; says what to install.
    """
    named = os.environ.get("CHROMIUM")
    usual = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found = named or next(filter(None, usual), None)
    if not found or not Path(found).exists():
        raise RuntimeError(
            "the browser tests need Chromium: `apt-get install chromium` (Debian), or name one in $CHROMIUM"
            + (f"; $CHROMIUM is {named}, and is not there" if named else "")
        )
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """JupyterLab (and Notebook 7, which lives on the same server) with folders of its own.

    Args:
        folder: An empty folder; notebooks, settings, connection files and the log go there.

    Attributes:
        url: Address, with a slash at the end.
        token: What requests have to show.
        notebooks: Folder that the server serves.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.runtime = folder / "runtime"
        self.token = secrets.token_hex(16)
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/"
        for path in (self.notebooks, self.runtime, folder / "config" / "labconfig", folder / "ipython"):
            path.mkdir(parents=True)
        overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
        overrides.write_text(json.dumps(SETTINGS), encoding="utf-8")
        self._log = open(folder / "server.log", "wb")  # noqa: SIM115 - as long as the process
        options = {
            "ServerApp.port": port,
            "ServerApp.port_retries": 0,
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.root_dir": self.notebooks,
            "ServerApp.allow_root": True,
            "ServerApp.open_browser": False,
            "IdentityProvider.token": self.token,
            "LabApp.expose_app_in_browser": True,
            "LabApp.extension_manager": "readonly",
            "LabApp.news_url": "None",
            "LanguageServerManager.autodetect": False,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())],
            cwd=self.notebooks,
            env=self._environment(),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    def _environment(self) -> dict[str, str]:
        folder = self.folder
        paths = [ROOT, ROOT / "widgets", ROOT / "tests", ROOT / "notebooks"]
        own = {
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_DATA_DIR": folder / "data",
            "JUPYTER_RUNTIME_DIR": self.runtime,
            "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
            "IPYTHONDIR": folder / "ipython",
            "JUPYTER_PREFER_ENV_PATH": 1,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": 1,
            "HF_HUB_OFFLINE": 1,
        }
        kept = {key: value for key, value in os.environ.items() if key != "TORCH_LOGS"}
        return kept | {key: str(value) for key, value in own.items()}

    def _wait(self, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                self.request("GET", "api/status")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
            else:
                return
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log()[-3000:]}")

    def log(self) -> str:
        """What the server wrote."""
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the server's REST interface; JSON in, JSON out."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def stop(self) -> None:
        """End the server and its kernels."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
