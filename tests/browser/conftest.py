"""One JupyterLab, one browser and one kernel for all browser tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser.lab import SCREENSHOTS, Lab
from browser.server import CHROMIUM_FLAGS, Server, chromium

# The models that the tests look at: lowered when they are first asked for, kept in the kernel.
SETUP = """
import dataclasses
import torch, workbench as wb
from networks import Network, build, mtcnn
torch.set_num_threads(1)
DEMO = "workbench.backends.demo:AddMulPartitionerDemo"
_networks, _lowerings = {}, {}

class Chain(torch.nn.Module):
    # Two runs of additions and multiplications with a ReLU between them.
    def forward(self, x, y):
        first = (x + y) * y
        return (first.relu() + x) * y

def network(name):
    if name == "chain":
        return Network("chain", Chain(), (torch.randn(2, 8), torch.randn(2, 8)))
    if name not in _networks:
        one = mtcnn(name[:4]) if name[:4] in ("pnet", "rnet", "onet") else build(name)
        if name.endswith("_static"):
            inputs = tuple(value[:1] for value in one.inputs)
            one = dataclasses.replace(one, inputs=inputs, dynamic_shapes=None)
        _networks[name] = one
    return _networks[name]

def fresh(name, **options):
    one = network(name)
    shapes, recipe = one.dynamic_shapes, wb.Recipe(**options)
    return wb.lower(one.model, one.inputs, dynamic_shapes=shapes, recipe=recipe, progress=False)

def lowered(name, **options):
    key = name, repr(options)
    if key not in _lowerings:
        _lowerings[key] = fresh(name, **options)
    return _lowerings[key]

def quantized(name):
    if (name, "quantized") not in _lowerings:
        config = wb.get_symmetric_quantization_config(is_per_channel=True)
        quantizer = wb.XNNPACKQuantizer().set_global(config)
        _lowerings[name, "quantized"] = fresh(
            name, quantizer=quantizer, calibration=[network(name).inputs] * 2
        )
    return _lowerings[name, "quantized"]

def measured(name, repeat=5, **options):
    one = lowered(name, **options)
    return one.run(*network(name).inputs, profile=True, repeat=repeat)
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All browser tests run in one process, where tests are spread over several: they share the server."""
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("jupyter"))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def the_lab(server: Server, browser: Browser) -> Iterator[Lab]:
    made = Lab(browser, server)
    made.kernel.run(SETUP)
    yield made
    made.stop()


@pytest.fixture
def lab(the_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """JupyterLab with no notebook open; fails the test on console errors and requests to other hosts."""
    failed = request.session.testsfailed
    the_lab.problems.clear()
    yield the_lab
    if request.session.testsfailed > failed:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        the_lab.page.screenshot(path=SCREENSHOTS / f"failed-{request.node.name}.png")
    the_lab.width(1400)
    the_lab.theme("light")
    the_lab.close()
    the_lab.check()
