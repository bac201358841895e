"""One measurement, in the process that `measure.in_worker` started: prints one line of JSON at the end."""

from __future__ import annotations

import gc
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "notebooks")]

import torch  # noqa: E402

from benchmarks import peers, quantized_peers  # noqa: E402
from benchmarks.measure import forget_peak, median_seconds, resident_bytes  # noqa: E402
from networks import MTCNN, Network, build, mtcnn  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(peers.threads())


def network_named(name: str) -> Network:
    """A benchmark network or one of MTCNN's."""
    return mtcnn(name) if name in MTCNN else build(name)


def lowering(network: Network, files: Path, budget: float, peer: str) -> dict[str, Any]:
    """Seconds from an exported program to the file's bytes, export not counted.

    `workbench[/delegate]`: ours beside `run_decompositions`; `executorch[/delegate]`: theirs, once.
    """
    owner, _, delegate = peer.partition("/")
    start = time.perf_counter()
    program = peers.exported(network)
    result: dict[str, Any] = {"export": time.perf_counter() - start, "nodes": len(program.graph.nodes)}
    if owner == "executorch":
        start = time.perf_counter()
        manager = peers.lower_theirs(program, delegate)
        _ = manager.buffer
        result["executorch"] = time.perf_counter() - start
        path = files / f"{network.name}.executorch{delegate}.pte"
        if not path.exists():
            manager.save(str(path))
        return result

    made: list[Any] = []

    def ours() -> None:
        made[:] = [_lower_ours(program, delegate)]

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
    result.update(_delegation_of(made[0]))
    return result


def _lower_ours(program: torch.export.ExportedProgram, delegate: str) -> bytes:
    from workbench import managers

    if not delegate:
        return managers.to_edge(program).to_executorch().buffer
    partitioner = [peers.our_partitioner(delegate)]
    return managers.to_edge_transform_and_lower(program, partitioner=partitioner).to_executorch().buffer


def _delegation_of(file: bytes) -> dict[str, int]:
    """How many delegates a program calls, and how many kernels stay outside of them."""
    from workbench.emit.ir import DelegateCall, KernelCall
    from workbench.serialize import read_program

    method = read_program(file).methods[0]
    instructions = [i for chain in method.chains for i in chain.instructions]
    return {
        "subgraphs": sum(isinstance(i, DelegateCall) for i in instructions),
        "left": sum(isinstance(i, KernelCall) for i in instructions),
    }


def execution(network: Network, files: Path, budget: float, peer: str) -> dict[str, Any]:
    """Seconds of one execution, and the largest difference from eager."""
    expected = network.eager()
    call = {**peers.PEERS, **quantized_peers.PEERS}[peer](network, files)
    found = call()
    seconds = median_seconds(call, budget=budget)
    return {"seconds": seconds, "difference": _difference(found, expected), "sqnr": _sqnr(found, expected)}


def _pairs(found: Any, expected: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    flat = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    if isinstance(found, torch.Tensor):
        found = [found]
    flat_found = list(found.values()) if hasattr(found, "keys") else list(found)
    return [
        (torch.as_tensor(a).double(), torch.as_tensor(b).double())
        for a, b in zip(flat_found, flat, strict=False)
    ]


def _difference(found: Any, expected: Any) -> float | None:
    return max(((a - b).abs().max().item() for a, b in _pairs(found, expected)), default=None)


def _sqnr(found: Any, expected: Any) -> float | None:
    """Signal to quantization noise, dB, of the worst result; None where all are equal."""
    ratios = [
        10 * math.log10(signal / noise)
        for a, b in _pairs(found, expected)
        if (noise := (a - b).square().sum().item()) > 0 and (signal := b.square().sum().item()) > 0
    ]
    return min(ratios, default=None)


def quantization(network: Network, peer: str) -> dict[str, Any]:
    """Seconds of prepare, calibrate and convert, torch.export not counted."""
    owner, _, mode = peer.rpartition("/")
    program = peers.exported(network)
    data = quantized_peers.calibration(network)
    start = time.perf_counter()
    if owner == "workbench":
        module: Any = quantized_peers.quantize_ours(program, mode, data).module()
    else:
        module = quantized_peers.quantize_theirs(program, mode, data)
    seconds = time.perf_counter() - start
    # On the inputs that calibrated, which both saw.
    with torch.no_grad():
        ratios = [_sqnr(module(*inputs), network.model(*inputs)) for inputs in data]
    return {"seconds": seconds, "sqnr": min((r for r in ratios if r is not None), default=None)}


def load(network: Network, files: Path, budget: float, peer: str) -> dict[str, Any]:
    """Seconds from a path to a method that can be executed; the file is in the page cache."""
    owner, _, delegate = peer.partition("/")
    if owner == "workbench":
        from workbench.runtime import Runtime

        path: Any = peers.ours(network, files, delegate)
    else:
        from executorch.runtime import Runtime  # type: ignore[no-redef]

        path = str(peers.theirs(network, files, delegate))
    runtime = Runtime.get()

    def call() -> Any:
        program = runtime.load_program(path)
        return program, program.load_method("forward")

    return {"seconds": median_seconds(call, budget=budget), "bytes": Path(path).stat().st_size}


def memory(name: str, files: Path, peer: str) -> dict[str, Any]:
    """Bytes that loading and running adds at most to what the process held with the peer's library loaded.

    The model itself is never in the process: files and inputs are made beforehand, in another one. The
    library runs a small network first, so that what it sets up once does not count.
    """
    inputs = torch.load(files / f"{name}.inputs.pt", weights_only=True)
    network = Network(name, torch.nn.Identity(), tuple(inputs))
    small = Network("mlp", torch.nn.Identity(), tuple(torch.load(files / "mlp.inputs.pt", weights_only=True)))
    peers.PEERS[peer](small, files)()
    gc.collect()
    before = resident_bytes("VmRSS")
    forget_peak()
    call = peers.PEERS[peer](network, files)
    for _ in range(3):
        call()
    return {"peak": resident_bytes("VmHWM") - before, "held": resident_bytes("VmRSS") - before}


def make(network: Network, files: Path, peer: str) -> dict[str, Any]:
    """The files that a peer needs for a network."""
    inputs = files / f"{network.name}.inputs.pt"
    if not inputs.exists():
        torch.save(list(network.inputs), inputs)
    if peer in quantized_peers.PEERS:
        path = quantized_peers.file_of(network, files, peer)
    elif peer in ("onnxruntime", "openvino"):
        path = peers.onnx_file(network, files)
    else:
        owner, _, delegate = peer.partition("/")
        path = (peers.ours if owner == "workbench" else peers.theirs)(network, files, delegate)
    return {"bytes": path.stat().st_size}


def work(network: Network) -> dict[str, Any]:
    """Floating-point operations of one execution, counted for the direct algorithms."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network.model(*network.inputs)
    return {"flops": counter.get_total_flops()}


def machine_peaks() -> dict[str, Any]:
    """What this machine reaches on the cores of this process."""
    from workbench.inspector.peaks import measure_peaks

    peaks = measure_peaks()
    return {"gflops": peers.threads() * peaks.gflops, "gbytes": peaks.gbytes}


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
    files, budget = Path(folder), float(seconds)
    peer = rest[0] if rest else ""
    measurements: dict[str, Callable[[], dict[str, Any]]] = {
        "lowering": lambda: lowering(network_named(name), files, budget, peer),
        "execution": lambda: execution(network_named(name), files, budget, peer),
        "load": lambda: load(network_named(name), files, budget, peer),
        "memory": lambda: memory(name, files, peer),
        "make": lambda: make(network_named(name), files, peer),
        "arena": lambda: arena(network_named(name), files),
        "trace": lambda: trace(network_named(name), files, budget),
        "quantization": lambda: quantization(network_named(name), peer),
        "work": lambda: work(network_named(name)),
        "peaks": machine_peaks,
    }
    print(json.dumps(measurements[what]()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
