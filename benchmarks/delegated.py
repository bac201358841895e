"""The delegates beside the peers: latency on one and two cores, lowering, loading, memory.

The machine is shared and drifts, so every peer is measured in several rounds, the peers in turns; the figure
is the best of its rounds (each the median of one process).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.tables import Table, table_of

__all__ = [
    "DELEGATED",
    "NETWORKS",
    "Measured",
    "best_of_rounds",
    "delegated_load",
    "delegated_lowering",
    "execution_on",
    "memory",
    "scaled",
]

NETWORKS = ("mlp", "dscnn", "mobilenet_v2", "resnet18", "resnet50", "vit_tiny", "minilm", "lstm")
OURS = ("workbench/cpu", "workbench/xnnpack")
THEIRS = ("executorch/xnnpack", "onnxruntime", "openvino", "eager", "compile")
HEAD = ("workbench cpu", "workbench xnnpack", "ET XNNPACK", "ONNX RT", "OpenVINO", "eager", "compile")

# measured(what, network, *rest, cores=...) -> what the worker printed
Measured = Callable[..., dict[str, Any]]


def scaled(found: dict[str, Any], key: str, factor: float = 1.0) -> float | None:
    """One of the worker's numbers in another unit; None where it has none."""
    value = found.get(key)
    return None if value is None else value * factor


def best_of_rounds(
    measured: Measured, network: str, peers: Sequence[str], rounds: int, cores: int
) -> dict[str, dict[str, Any]]:
    """What each peer measured in its quickest round, the peers in turns."""
    best: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for peer in peers:
            found = measured("execution", network, peer, cores=cores, turn=turn)
            if peer not in best or found.get("seconds", math.inf) < best[peer].get("seconds", math.inf):
                best[peer] = found
    return best


def execution_on(measured: Measured, networks: Sequence[str], cores: int, rounds: int) -> Table:
    """Milliseconds of one execution of all peers, and how far ours stands before the best of them."""
    machine = measured("peaks", "mlp", cores=cores)
    peak = machine.get("gflops")
    rows: list[list[Any]] = []
    ratios = []
    for name in networks:
        found = best_of_rounds(measured, name, (*OURS, *THEIRS), rounds, cores)
        work = measured("work", name)
        ours = found[OURS[0]].get("seconds")
        peers = [s for peer in THEIRS if (s := found[peer].get("seconds")) is not None]
        ratio = min(peers) / ours if ours and peers else None
        if ratio is not None:
            ratios.append(ratio)
        flops = work.get("flops")
        share = 100 * flops / ours / 1e9 / peak if ours and flops and peak else None
        times = [scaled(found[peer], "seconds", 1e3) for peer in (*OURS, *THEIRS)]
        rows.append([name, *times, ratio, share, found[OURS[0]].get("difference")])
    geometric = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    rows.append(["geometric mean", *[None] * len(HEAD), geometric, None, None])
    title = f"Delegated execution, ms (float32, batch 1, {cores} core{'s' if cores > 1 else ''})"
    head = ["network", *HEAD, "best peer / cpu", "% of FMA peak", "max diff"]
    note = (
        f"best of {rounds} rounds, peers in turns; peak {peak:.0f} GFLOP/s measured, "
        if peak
        else f"best of {rounds} rounds, peers in turns; "
    )
    return table_of(
        title, head, rows, note + "FLOPs counted for the direct algorithms (Winograd can pass 100 %)"
    )


def delegated_lowering(measured: Measured, networks: Sequence[str], quick: bool) -> Table:
    """Seconds of lowering with each partitioner, torch.export not counted."""
    rows = []
    for name in networks:
        ours = {
            delegate: measured("lowering", name, f"workbench/{delegate}") for delegate in ("cpu", "xnnpack")
        }
        theirs = {} if quick else measured("lowering", name, "executorch/xnnpack")
        base = ours["cpu"].get("run_decompositions")
        rows.append(
            [
                name,
                base,
                *(found.get("workbench") for found in ours.values()),
                None if base is None else 1.5 * base + 0.5,
                theirs.get("executorch"),
                *(found.get("subgraphs") for found in ours.values()),
                *(found.get("left") for found in ours.values()),
            ]
        )
    head = ["network", "run_decomp.", "cpu", "xnnpack", "limit", "ET XNNPACK"]
    head += ["cpu subgraphs", "xnnpack subgraphs", "cpu left", "xnnpack left"]
    return table_of(
        "Delegated lowering, s (torch.export not counted)",
        head,
        rows,
        "limit: 1.5 x run_decompositions + 0.5 s",
    )


def delegated_load(measured: Measured, networks: Sequence[str]) -> Table:
    """Milliseconds from a path to a loaded method, packing of weights included."""
    peers = ("workbench/cpu", "workbench/xnnpack", "executorch/xnnpack")
    rows = []
    for name in networks:
        found = [measured("load", name, peer) for peer in peers]
        rows.append(
            [name, *(scaled(f, "seconds", 1e3) for f in found), *(scaled(f, "bytes", 1e-6) for f in found)]
        )
    head = ["network", "cpu", "xnnpack", "ET XNNPACK", "cpu .pte MB", "xnnpack .pte MB", "ET .pte MB"]
    return table_of("Delegated load with packing, ms (file in the page cache)", head, rows)


def memory(measured: Measured, networks: Sequence[str]) -> Table:
    """MiB that loading and running adds at most to what the process holds."""
    peers = ("workbench/cpu", "workbench/xnnpack", "executorch/xnnpack", "onnxruntime", "openvino")
    rows = []
    for name in networks:
        found = [measured("memory", name, peer) for peer in peers]
        rows.append([name, *(scaled(f, "peak", 1 / (1 << 20)) for f in found)])
    head = ["network", "cpu", "xnnpack", "ET XNNPACK", "ONNX RT", "OpenVINO"]
    note = (
        "most resident memory while loading and running, less what the process with its libraries held before"
    )
    return table_of("Peak resident memory, MiB", head, rows, note)


DELEGATED = ("one_core", "two_cores", "delegated_lowering", "delegated_load", "memory")
