"""One measurement, in the process that `measure.in_worker` started: prints one line of JSON at the end."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "notebooks")]

import torch  # noqa: E402

from benchmarks import peers  # noqa: E402
from benchmarks.measure import median_seconds  # noqa: E402
from networks import MTCNN, Network, build, mtcnn  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def network_named(name: str) -> Network:
    """A benchmark network or one of MTCNN's."""
    return mtcnn(name) if name in MTCNN else build(name)


def lowering(network: Network, files: Path, budget: float, executorch: bool) -> dict[str, Any]:
    """Seconds from an exported program to the file's bytes, export not counted."""
    from workbench import managers

    start = time.perf_counter()
    program = peers.exported(network)
    result: dict[str, Any] = {"export": time.perf_counter() - start, "nodes": len(program.graph.nodes)}

    def ours() -> int:
        return len(managers.to_edge(program).to_executorch().buffer)

    def decompositions() -> None:
        program.run_decompositions()

    # In turns, so that a slow moment of the machine meets both.
    times: dict[str, list[float]] = {"run_decompositions": [], "workbench": []}
    decompositions()
    ours()
    end = time.perf_counter() + 2 * budget
    while len(times["workbench"]) < 3 or time.perf_counter() < end:
        for name, call in (("run_decompositions", decompositions), ("workbench", ours)):
            gc.collect()
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    result.update({name: statistics.median(found) for name, found in times.items()})
    if executorch:
        from executorch.exir import to_edge

        start = time.perf_counter()
        manager = to_edge(program).to_executorch()
        _ = manager.buffer
        result["executorch"] = time.perf_counter() - start
        path = files / f"{network.name}.executorch.pte"
        if not path.exists():
            manager.save(str(path))
    return result


def execution(network: Network, files: Path, budget: float, peer: str) -> dict[str, Any]:
    """Seconds of one execution, and the largest difference from eager."""
    call = peers.PEERS[peer](network, files)
    expected = network.eager()
    found = call()
    seconds = median_seconds(call, budget=budget)
    return {"seconds": seconds, "difference": _difference(found, expected)}


def _difference(found: Any, expected: Any) -> float | None:
    flat = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    if isinstance(found, torch.Tensor):
        found = [found]
    flat_found = list(found.values()) if hasattr(found, "keys") else list(found)
    pairs = zip(flat_found, flat, strict=False)
    differences = [(torch.as_tensor(a).float() - b.float()).abs().max().item() for a, b in pairs]
    return max(differences, default=None)


def load(network: Network, files: Path, budget: float, peer: str) -> dict[str, Any]:
    """Seconds from a path to a method that can be executed; the file is in the page cache."""
    if peer == "workbench":
        from workbench.runtime import Runtime

        path: Any = peers.ours(network, files)
    else:
        from executorch.runtime import Runtime  # type: ignore[no-redef]

        path = str(peers.theirs(network, files))
    runtime = Runtime.get()

    def call() -> Any:
        program = runtime.load_program(path)
        return program, program.load_method("forward")

    return {"seconds": median_seconds(call, budget=budget), "bytes": Path(path).stat().st_size}


def arena(network: Network, files: Path) -> dict[str, Any]:
    """Bytes of planned memory in both files, and what lives at once at least."""
    import workbench as wb
    from workbench.serialize import read_program

    lowering = wb.lower(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes)
    method = lowering.plan.report.methods["forward"]
    sizes = {"workbench": sum(method.arena_sizes.values()), "lower_bound": method.lower_bound}
    theirs = read_program(peers.theirs(network, files)).methods[0]
    sizes["executorch"] = sum(theirs.arena_sizes)
    return sizes


def trace(network: Network, files: Path, budget: float) -> dict[str, Any]:
    """Seconds of one execution with and without a trace, measured in turns."""
    from workbench.lowering import new_trace
    from workbench.runtime import Runtime

    method = Runtime.get().load_program(peers.ours(network, files)).load_method("forward")
    inputs = list(network.inputs)
    once = median_seconds(lambda: method.execute(inputs), budget=0.2)
    calls = max(1, round(0.02 / once))
    ratios, off_times = [], []
    end = time.perf_counter() + 2 * budget
    session = new_trace(events=1 << 20)
    while len(ratios) < 5 or time.perf_counter() < end:
        times = []
        for tracing in (False, True, True, False):
            start = time.perf_counter()
            for _ in range(calls):
                method.execute(inputs, trace=session) if tracing else method.execute(inputs)
            times.append((time.perf_counter() - start) / calls)
            session.session.drain()
        ratios.append((times[1] + times[2]) / (times[0] + times[3]))
        off_times.append((times[0] + times[3]) / 2)
    return {"off": statistics.median(off_times), "ratio": statistics.median(ratios)}


def main(arguments: list[str]) -> int:
    """`worker WHAT NETWORK FILES BUDGET [PEER]`."""
    what, name, folder, seconds, *rest = arguments
    network, files, budget = network_named(name), Path(folder), float(seconds)
    if what == "lowering":
        result = lowering(network, files, budget, rest == ["executorch"])
    elif what == "execution":
        result = execution(network, files, budget, rest[0])
    elif what == "load":
        result = load(network, files, budget, rest[0])
    elif what == "arena":
        result = arena(network, files)
    else:
        result = trace(network, files, budget)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
