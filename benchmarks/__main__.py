"""`python -m benchmarks`: measure the workbench beside its peers and print the tables.

Every figure comes from a process of its own, pinned to one core (two where the table says so). Absolute times
move from machine to machine: what counts are the ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import delegated, quantized
from benchmarks.measure import ROOT, in_worker, processor
from benchmarks.tables import Table, table_of

NETWORKS = ("mlp", "dscnn", "mobilenet_v2", "resnet18", "vit_tiny", "minilm", "lstm")
WHAT = ("lowering", "execution", "load", "arena", "trace", *delegated.DELEGATED, *quantized.QUANTIZED)
PEERS = ("workbench", "executorch", "eager", "onnxruntime", "openvino")
# Tables that the README shows: their headings begin so.
_SHOWN = ("### Delegated execution", "### Quantized execution")
PACKAGES = ("torch", "executorch", "onnxruntime", "openvino")


class Bench:
    """One run of the measurements.

    Args:
        networks: Names of the networks.
        files: Where programs are kept from one measurement to the next.
        budget: Seconds for each figure.
        quick: Leave out what takes minutes: ExecuTorch's lowering, and its portable kernels on the large
            networks; one round instead of three.
    """

    def __init__(self, networks: list[str], files: Path, budget: float, quick: bool) -> None:
        self.all_networks = networks
        self.networks = [name for name in networks if name in NETWORKS]
        self.files = files
        self.budget = budget
        self.quick = quick
        self.raw: dict[str, dict[str, Any]] = {}

    def measured(
        self, what: str, network: str, *rest: str, cores: int = 1, turn: int | None = None
    ) -> dict[str, Any]:
        """One figure, kept in `raw`."""
        place = [] if cores == 1 and turn is None else [f"{cores} cores", f"turn {turn}"]
        key = "/".join((what, network, *rest, *place))
        if key in self.raw:
            return self.raw[key]
        print(f"  {key}", file=sys.stderr, flush=True)
        result = in_worker(what, network, str(self.files), str(self.budget), *rest, cores=cores)
        self.raw[key] = result
        return result

    def lowering(self) -> Table:
        """Seconds after torch.export, beside run_decompositions and ExecuTorch."""
        rows = []
        for name in self.networks:
            found = self.measured("lowering", name, "workbench")
            other = {} if self.quick else self.measured("lowering", name, "executorch")
            ours, base, theirs = (
                found.get("workbench"),
                found.get("run_decompositions"),
                other.get("executorch"),
            )
            limit = None if base is None else 1.3 * base + 0.3
            ratio = None if ours is None or theirs is None else theirs / ours
            rows.append([name, found.get("nodes"), found.get("export"), base, ours, limit, theirs, ratio])
        head = ["network", "nodes", "export", "run_decomp.", "workbench", "limit", "ExecuTorch", "x faster"]
        note = "limit: 1.3 x run_decompositions + 0.3 s"
        return table_of("Lowering, s (torch.export not counted)", head, rows, note)

    def execution(self) -> Table:
        """Milliseconds of one execution on one core, undelegated, beside all peers."""
        rows = []
        for name in self.networks:
            peers = [peer for peer in PEERS if not (self.quick and peer == "executorch")]
            times = {p: self.measured("execution", name, p) for p in peers}
            seconds = {p: found.get("seconds") for p, found in times.items()}
            ours, theirs = seconds.get("workbench"), seconds.get("executorch")
            ratio = None if ours is None or theirs is None else theirs / ours
            shown = [None if (s := seconds.get(p)) is None else s * 1e3 for p in PEERS]
            rows.append([name, *shown, ratio, times["workbench"].get("difference")])
        head = ["network", "workbench", "ET portable", "eager", "ONNX RT", "OpenVINO", "x ET", "max diff"]
        return table_of("Execution, ms (float32, batch 1, one core, undelegated)", head, rows)

    def load(self) -> Table:
        """Milliseconds from a path to a loaded method."""
        rows = []
        for name in self.networks:
            ours = self.measured("load", name, "workbench")
            theirs = self.measured("load", name, "executorch")
            a, b = ours.get("seconds"), theirs.get("seconds")
            sizes = [None if (n := x.get("bytes")) is None else n / 1e6 for x in (ours, theirs)]
            both = a is not None and b is not None
            rows.append(
                [name, *(None if t is None else t * 1e3 for t in (a, b)), a / b if both else None, *sizes]
            )
        head = ["network", "workbench", "ExecuTorch", "ratio", "our .pte MB", "their .pte MB"]
        return table_of("Load, ms (file in the page cache)", head, rows)

    def arena(self) -> Table:
        """Bytes of planned memory."""
        rows = []
        for name in self.networks:
            found = self.measured("arena", name)
            ours, theirs, bound = (found.get(k) for k in ("workbench", "executorch", "lower_bound"))
            over = None if not ours or not bound else 100 * (ours / bound - 1)
            rows.append([name, *(None if n is None else n / 1024 for n in (ours, theirs, bound)), over])
        head = ["network", "workbench", "ExecuTorch", "lower bound", "% over bound"]
        return table_of("Arena, KiB", head, rows)

    def trace(self) -> Table:
        """What a trace costs."""
        rows = []
        for name in self.networks:
            found = self.measured("trace", name)
            off, ratio = found.get("off"), found.get("ratio")
            slower = None if ratio is None else 100 * (ratio - 1)
            rows.append([name, None if off is None else off * 1e3, slower])
        return table_of("Trace", ["network", "off, ms", "on, % slower"], rows)

    def one_core(self) -> Table:
        """Delegates and all peers on one core."""
        return delegated.execution_on(self.measured, self.all_networks, 1, 1 if self.quick else 3)

    def two_cores(self) -> Table:
        """The same on two cores."""
        return delegated.execution_on(self.measured, self.all_networks, 2, 1 if self.quick else 3)

    def delegated_lowering(self) -> Table:
        """Lowering with each partitioner."""
        return delegated.delegated_lowering(self.measured, self.all_networks, self.quick)

    def delegated_load(self) -> Table:
        """Loading of delegated programs."""
        return delegated.delegated_load(self.measured, self.all_networks)

    def memory(self) -> Table:
        """Resident memory of delegated programs."""
        for name in ("mlp", *self.all_networks):
            for peer in ("workbench/cpu", "workbench/xnnpack", "executorch/xnnpack", "onnxruntime"):
                self.measured("make", name, peer)
        return delegated.memory(self.measured, self.all_networks)

    def quantized_one_core(self) -> Table:
        """Quantized networks and all peers on one core."""
        return quantized.quantized_on(self.measured, self.all_networks, 1, 1 if self.quick else 3)

    def quantized_two_cores(self) -> Table:
        """The same on two cores."""
        return quantized.quantized_on(self.measured, self.all_networks, 2, 1 if self.quick else 3)

    def quantized_files(self) -> Table:
        """Bytes of quantized files."""
        return quantized.quantized_files(self.measured, self.all_networks)

    def quantization(self) -> Table:
        """What quantizing takes."""
        return quantized.quantization(self.measured, self.all_networks, self.quick)


def _about() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return f"{processor()}; {time.strftime('%Y-%m-%d %H:%M')}; {', '.join(found)}"


def _publish(texts: list[str]) -> None:
    """The tables to docs/benchmarks.md, in place of those of the same name; some to README.md as well.

    A table of an earlier run stays, with what it was measured on.
    """
    about, *tables = texts
    page = ROOT / "docs" / "benchmarks.md"
    known = _sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    for table in tables:
        known[table.partition("\n")[0]] = f"{table.rstrip()}\n\nMeasured on {about.strip()}.\n"
    parts = ["# Measured beside the peers\n\n`make bench`, a process of its own for each figure.\n"]
    page.write_text("\n".join([*parts, *known.values()]), encoding="utf-8")
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition("<!-- figures: begin -->\n")
    _, end, after = rest.partition("<!-- figures: end -->")
    if not begin or not end:
        raise SystemExit("README.md has no marks for the figures")
    shown = "\n".join(known[title] for title in known if title.startswith(_SHOWN))
    path.write_text(before + begin + shown + end + after, encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """The tables of the page, by their headings."""
    parts = page.split("\n### ")[1:]
    return {f"### {part.partition(chr(10))[0]}": f"### {part.rstrip()}\n" for part in parts}


def main(arguments: list[str] | None = None) -> int:
    """Entry point; 1 where a measurement failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME,...", help="networks and tables to measure, by name")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, without the slow peers")
    parser.add_argument("--budget", type=float, help="seconds for each figure (2; 0.3 with --quick)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench", help="folder of the results")
    parser.add_argument("--readme", action="store_true", help="put the tables into docs/ and README.md")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",") if options.only else []
    unknown = sorted(set(wanted) - {*delegated.NETWORKS, *WHAT})
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join((*delegated.NETWORKS, *WHAT))}")
    networks = [name for name in delegated.NETWORKS if name in wanted] or list(delegated.NETWORKS)
    tables = [name for name in WHAT if name in wanted] or list(WHAT)

    out = options.out.resolve()
    files = out / "files"
    files.mkdir(parents=True, exist_ok=True)
    for stale in files.glob("*.workbench*.pte"):
        stale.unlink()
    budget = options.budget or (0.3 if options.quick else 2.0)
    bench = Bench(networks, files, budget, options.quick)
    about = _about()
    print(about)
    texts = [f"{about}\n"]
    for name in tables:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        measure: Callable[[], Table] = getattr(bench, name)
        table = measure()
        print("\n" + table.text(), flush=True)
        texts.append(table.markdown())
        # After each table: a run that is interrupted keeps what it has measured.
        (out / "results.md").write_text("\n".join(texts), encoding="utf-8")
        (out / "results.json").write_text(
            json.dumps({"about": about, "raw": bench.raw}, indent=1), encoding="utf-8"
        )
        if options.readme:
            _publish([texts[0], texts[-1]])
    failed = {key: found["error"] for key, found in bench.raw.items() if "error" in found}
    for key, why in failed.items():
        print(f"failed: {key}: {why}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
