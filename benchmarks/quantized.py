"""Quantized networks beside the peers: latency, accuracy, bytes, and what quantizing takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.delegated import Measured, best_of_rounds, scaled
from benchmarks.tables import Table, table_of

__all__ = ["QUANTIZED", "quantization", "quantized_files", "quantized_on"]

STATIC = ("mlp", "dscnn", "mobilenet_v2", "resnet18", "vit_tiny")
# Network and mode.
CASES = (*((name, "int8") for name in STATIC), ("minilm", "dynamic"), ("minilm", "int4"))
OURS = ("workbench/cpu", "workbench/xnnpack")
THEIRS = ("executorch/xnnpack", "onnxruntime")
HEAD = ("workbench cpu", "workbench xnnpack", "ET XNNPACK", "ONNX RT")

QUANTIZED = ("quantized_one_core", "quantized_two_cores", "quantized_files", "quantization")


def _cases(networks: Sequence[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Network, mode and peers; ONNX Runtime's tool has no 4-bit weights beside 8-bit activations."""
    return [
        (name, mode, THEIRS[:1] if mode == "int4" else THEIRS) for name, mode in CASES if name in networks
    ]


def quantized_on(measured: Measured, networks: Sequence[str], cores: int, rounds: int) -> Table:
    """Milliseconds of one execution, and how far the result is from eager's floats."""
    rows: list[list[Any]] = []
    for name, mode, theirs in _cases(networks):
        peers = [f"{peer}/{mode}" for peer in (*OURS, *theirs)]
        for peer in peers:
            measured("make", name, peer)
        found = best_of_rounds(measured, name, peers, rounds, cores)
        times = {peer: found[peer].get("seconds") for peer in peers}
        best = min((s for peer in theirs if (s := times[f"{peer}/{mode}"]) is not None), default=None)
        ours = times[peers[0]]
        every = [f"{peer}/{mode}" for peer in (*OURS, *THEIRS)]
        rows.append(
            [
                f"{name} {mode}",
                *(scaled(found.get(peer, {}), "seconds", 1e3) for peer in every),
                None if best is None or not ours else best / ours,
                *(found.get(peer, {}).get("sqnr") for peer in every),
            ]
        )
    title = f"Quantized execution, ms (batch 1, {cores} core{'s' if cores > 1 else ''})"
    head = ["network", *HEAD, "best peer / cpu", *(f"SQNR {name}" for name in HEAD)]
    note = (
        f"best of {rounds} rounds, peers in turns; int8: static, weights per channel (ONNX Runtime: QDQ); "
        "dynamic, int4: linears whose activations are quantized at run time; SQNR against eager, dB"
    )
    return table_of(title, head, rows, note)


def quantized_files(measured: Measured, networks: Sequence[str]) -> Table:
    """Bytes of the files."""
    rows: list[list[Any]] = []
    for name, mode, theirs in _cases(networks):
        sizes = {peer: measured("make", name, f"{peer}/{mode}").get("bytes") for peer in (*OURS, *theirs)}
        known = [sizes.get(peer) for peer in (*OURS, *THEIRS)]
        ours, other = known[1], known[2]
        rows.append(
            [
                f"{name} {mode}",
                *(None if size is None else size / 1e6 for size in known),
                None if ours is None or other is None else 100 * (ours / other - 1),
            ]
        )
    return table_of("Quantized files, MB", ["network", *HEAD, "xnnpack / ET, % more"], rows)


def quantization(measured: Measured, networks: Sequence[str], quick: bool) -> Table:
    """Seconds of prepare, calibrate and convert, and the accuracy on the inputs that calibrated."""
    rows: list[list[Any]] = []
    for name, mode, _ in _cases(networks):
        ours = measured("quantization", name, f"workbench/{mode}")
        theirs = {} if quick else measured("quantization", name, f"executorch/{mode}")
        a, b = ours.get("seconds"), theirs.get("seconds")
        rows.append(
            [
                f"{name} {mode}",
                a,
                b,
                None if not a or b is None else b / a,
                ours.get("sqnr"),
                theirs.get("sqnr"),
            ]
        )
    head = ["network", "workbench, s", "ExecuTorch, s", "x faster", "SQNR workbench", "SQNR ExecuTorch"]
    return table_of(
        "Prepare, calibrate, convert (torch.export not counted)",
        head,
        rows,
        "SQNR in dB: the converted programs in eager PyTorch, the worst of the calibration inputs",
    )
