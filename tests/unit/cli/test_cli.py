"""The command: what it prints, what it writes, and the exit codes of everything that can go wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from workbench import cli
from workbench.cli import main

MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x).relu() * 2 + 1

class Data(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x

def make():
    torch.manual_seed(0)
    return Model()

def ready(): return make(), (torch.ones(2, 4),)
def data(): return Data(), (torch.ones(2),)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    (path / "model.py").write_text(MODULE)
    assert main(["lower", f"{path}/model.py:ready", "-o", f"{path}/model.pte", "--json"]) == 0
    np.save(path / "x.npy", np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    return path


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code = main([*arguments, "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return json.loads(shown.out)


def test_lower_run_inspect_verify_in_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, trace = folder / "row.pte", folder / "row.etdp"
    lowered = _json(capsys, "lower", f"{folder}/model.py:ready", "-o", str(program))
    assert lowered["bytes"] == program.stat().st_size
    assert lowered["arena_bytes"]["forward"] > 0
    assert _json(capsys, "verify", str(program))["loaded"] == ["forward"]
    inputs = ["--inputs", f"{folder}/x.npy", "--output", f"{folder}/y.pt", "--trace", str(trace)]
    ran = _json(capsys, "run", str(program), *inputs, "--repeat", "3")
    assert ran["outputs"][0]["shape"] == [2, 3]
    assert {"operator", "calls", "ms"} <= set(ran["profile"][0])
    (found,) = torch.load(folder / "y.pt")
    namespace: dict[str, Any] = {}
    exec(MODULE, namespace)
    with torch.no_grad():
        wanted = namespace["make"]().eval()(torch.from_numpy(np.load(folder / "x.npy")))
    torch.testing.assert_close(found, wanted)
    shown = _json(capsys, "inspect", str(program), "--trace", str(trace))
    assert shown["methods"][0]["method"] == "forward"
    assert len(shown["instructions"]) >= 3
    assert any("native_call" in str(row) for row in shown["profile"])


def test_text_output_names_files_and_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{folder}/model.pte", "--profile"]) == 0
    shown = capsys.readouterr()
    assert "output 0: shape [2, 3], dtype float32" in shown.out
    assert "operator" in shown.out
    assert "random numbers" in shown.err
    assert main(["inspect", f"{folder}/model.pte", "--all"]) == 0
    shown = capsys.readouterr()
    assert "aten::" in shown.out
    assert "instructions" in shown.out


def test_trace_for_perfetto_is_json(folder: Path) -> None:
    path = folder / "trace.json"
    assert main(["run", f"{folder}/model.pte", "--trace", str(path), "--json"]) == 0
    assert json.loads(path.read_text())["traceEvents"]


def test_partitioner_and_reasons_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "lower",
        f"{folder}/model.py:ready",
        "-o",
        f"{folder}/d.pte",
        "--partitioner",
        "AddMulPartitionerDemo",
    ]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "left to the runtime" in shown.out
    assert "relu" in shown.out
    inspected = _json(capsys, "inspect", f"{folder}/d.pte")
    assert inspected["delegates"]


def test_dynamic_dimension_is_free(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = f"{folder}/dynamic.pte"
    command = ["lower", f"{folder}/model.py:make", "-o", program, "--shape", "2x4", "--dynamic", "0.0=1..8"]
    assert main(command) == 0
    for batch in (1, 5, 8):
        np.save(folder / "b.npy", np.ones((batch, 4), np.float32))
        capsys.readouterr()
        ran = _json(capsys, "run", program, "--inputs", f"{folder}/b.npy")
        assert ran["outputs"][0]["shape"] == [batch, 3]
    np.save(folder / "b.npy", np.ones((9, 4), np.float32))
    assert main(["run", program, "--inputs", f"{folder}/b.npy"]) == cli.NOT_RUN


def test_recipe_file_is_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "recipe.json").write_text('{"memory": {"planner": "naive"}}')
    plain = _json(capsys, "lower", f"{folder}/model.py:ready", "-o", f"{folder}/p.pte")
    naive = _json(
        capsys,
        "lower",
        f"{folder}/model.py:ready",
        "-o",
        f"{folder}/n.pte",
        "--recipe",
        f"{folder}/recipe.json",
    )
    assert naive["arena_bytes"]["forward"] > plain["arena_bytes"]["forward"]


def test_etrecord_joins_the_trace_with_the_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "lower",
        f"{folder}/model.py:ready",
        "-o",
        f"{folder}/e.pte",
        "--etrecord",
        f"{folder}/e.etrecord",
    ]
    _json(capsys, *command)
    _json(capsys, "run", f"{folder}/e.pte", "--trace", f"{folder}/e.etdp")
    shown = _json(
        capsys,
        "inspect",
        f"{folder}/e.pte",
        "--trace",
        f"{folder}/e.etdp",
        "--etrecord",
        f"{folder}/e.etrecord",
    )
    assert any(row["op_types"] for row in shown["profile"])


# Name: command, exit code, what is said. {f} is a folder, {m} the module in it, {p} a program.
BAD = {
    "no command": ("", cli.USAGE, "COMMAND"),
    "unknown command": ("lowr", cli.USAGE, "invalid choice"),
    "no output": ("lower m.py:f", cli.USAGE, "--output"),
    "zero repeats": ("run {p} --repeat 0", cli.USAGE, "less than 1"),
    "no such model": ("lower {f}/none.py:f -o x.pte", cli.NOT_LOWERED, "no file"),
    "no such factory": ("lower {m}:none -o x.pte", cli.NOT_LOWERED, "has no `none`"),
    "no inputs": ("lower {m}:make -o x.pte", cli.NOT_LOWERED, "--shape"),
    "bad shape": ("lower {m}:make -o x.pte --shape 2by4", cli.USAGE, "1x3x224x224"),
    "wrong shape": ("lower {m}:make -o x.pte --shape 2x5", cli.NOT_LOWERED, "captured"),
    "bad dynamic": ("lower {m}:ready -o x.pte --dynamic 0", cli.USAGE, "MIN..MAX"),
    "data-dependent": ("lower {m}:data -o x.pte", cli.NOT_LOWERED, "model.py:14"),
    "no partitioner": ("lower {m}:ready -o x.pte --partitioner AddMul", cli.NOT_LOWERED, "AddMulPart"),
    "no planner": ("lower {m}:ready -o x.pte --planner gredy", cli.NOT_LOWERED, "greedy"),
    "unwritable": ("lower {m}:ready -o {f}/no/x.pte", cli.USAGE, "No such file"),
    "bad recipe": ("lower {m}:ready -o x.pte --recipe {f}/bad.json", cli.USAGE, "planer"),
    "no program": ("run {f}/none.pte", cli.NOT_VALID, "no file"),
    "no program to verify": ("verify {f}/none.pte", cli.NOT_VALID, "no file"),
    "not a program": ("run {m}", cli.NOT_VALID, "workbench run"),
    "truncated": ("verify {f}/short.pte", cli.NOT_VALID, "workbench verify"),
    "empty": ("inspect {f}/empty.pte", cli.NOT_VALID, "workbench inspect"),
    "no method": ("run {p} --method backward", cli.NOT_RUN, "forward"),
    "too many inputs": ("run {p} --inputs {f}/x.npy {f}/x.npy", cli.NOT_RUN, "input"),
    "wrong input shape": ("run {p} --inputs {f}/wide.npy", cli.NOT_RUN, "workbench run"),
    "wrong input dtype": ("run {p} --inputs {f}/ints.npy", cli.NOT_RUN, "workbench run"),
    "unreadable input": ("run {p} --inputs {m}", cli.USAGE, ".npy"),
    "no trace": ("inspect {p} --trace {f}/none.etdp", cli.USAGE, "none.etdp"),
    "not a trace": ("inspect {p} --trace {p}", cli.NOT_VALID, "workbench inspect"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), BAD.values(), ids=BAD)
def test_bad_input_has_a_code_and_a_message_and_no_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, code: int, said: str
) -> None:
    (folder / "bad.json").write_text('{"memory": {"planer": "greedy"}}')
    (folder / "short.pte").write_bytes((folder / "model.pte").read_bytes()[:-100])
    (folder / "empty.pte").write_bytes(b"")
    np.save(folder / "wide.npy", np.ones((2, 5), np.float32))
    np.save(folder / "ints.npy", np.ones((2, 4), np.int32))
    names = {"f": folder, "m": folder / "model.py", "p": folder / "model.pte"}
    assert main(arguments.format(**names).split()) == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err + shown.out


def test_error_as_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", f"{folder}/none.pte", "--json"]) == cli.NOT_VALID
    error = json.loads(capsys.readouterr().out)
    assert error["exit_code"] == cli.NOT_VALID
    assert error["error"]["kind"] == "SerializationError"


def test_debug_shows_the_traceback(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", f"{folder}/none.pte", "--debug"]) == cli.NOT_VALID
    assert "Traceback" in capsys.readouterr().err


def test_fault_of_the_workbench_is_said_to_be_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(source: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("workbench.opened.open", broken)
    assert main(["inspect", f"{folder}/model.pte"]) == cli.FAULT
    assert "fault of the workbench" in capsys.readouterr().err


def test_help_is_quick_and_loads_no_torch() -> None:
    code = "import sys; from workbench.cli import main; main(['--help']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "inspect" in done.stdout


def test_document_names_every_exit_code() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "command_line.md").read_text()
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    names = ("FAULT", "USAGE", "NOT_LOWERED", "NOT_VALID", "NOT_RUN", "INTERRUPTED")
    assert codes == {0, *(getattr(cli, name) for name in names)}
