"""The peers on quantized networks: how each makes its file, all with the same calibration inputs.

A peer is named `owner/delegate/mode`. Modes: `int8` static, per channel; `dynamic` int8 linears whose
activations are quantized at run time; `int4` the same with 4-bit weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import peers
from benchmarks.peers import Call
from networks import Network

__all__ = ["PEERS", "calibration", "file_of", "quantize_ours", "quantize_theirs"]

SAMPLES = 8


def calibration(network: Network) -> list[tuple[torch.Tensor, ...]]:
    """Inputs like the network's own, the same in every process."""
    generator = torch.Generator().manual_seed(1)

    def like(value: torch.Tensor) -> torch.Tensor:
        if value.is_floating_point():
            return torch.randn(value.shape, generator=generator)
        return torch.randint(0, int(value.max()) + 1, value.shape, generator=generator, dtype=value.dtype)

    return [tuple(like(value) for value in network.inputs) for _ in range(SAMPLES)]


# ---- ExecuTorch --------------------------------------------------------------------------------------------


def quantize_theirs(
    program: torch.export.ExportedProgram, mode: str, data: Sequence[tuple[torch.Tensor, ...]]
) -> torch.fx.GraphModule:
    """Prepared, calibrated and converted as ExecuTorch's documents say."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    narrow: dict[str, Any] = {"weight_qmin": -8, "weight_qmax": 7} if mode == "int4" else {}
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=mode != "int8", **narrow)
    prepared = prepare_pt2e(program.module(), XNNPACKQuantizer().set_global(config))
    with torch.no_grad():
        for inputs in data:
            prepared(*inputs)
    converted: torch.fx.GraphModule = convert_pt2e(prepared)
    return converted


def _theirs(network: Network, files: Path, mode: str) -> Path:
    """ExecuTorch's `.pte` on XNNPACK, made once."""
    path = files / f"{network.name}.executorchxnnpack.{mode}.pte"
    if not path.exists():
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        module = quantize_theirs(peers.exported(network), mode, calibration(network))
        with torch.no_grad():
            program = torch.export.export(module, network.inputs)
        to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch().save(
            str(path)
        )
    return path


def _executorch(network: Network, files: Path, mode: str) -> Call:
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    portable_lib._unsafe_reset_threadpool(peers.threads())
    program = Runtime.get().load_program(str(_theirs(network, files, mode)))
    method = program.load_method("forward")
    assert method is not None
    inputs = list(network.inputs)
    return lambda: (program, method.execute(inputs))[1]


# ---- ONNX Runtime ------------------------------------------------------------------------------------------


def _reader(names: Sequence[str], data: Sequence[tuple[torch.Tensor, ...]]) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest: Iterator[Mapping[str, Any]] = iter(
                {name: value.numpy() for name, value in zip(names, inputs, strict=True)} for inputs in data
            )

        def get_next(self) -> Any:
            return next(self.rest, None)

    return Reader()


def _onnx(network: Network, files: Path, mode: str) -> Path:
    """The network quantized by ONNX Runtime's tool, made once. Its default types, weights per channel."""
    path = files / f"{network.name}.{mode}.onnx"
    if path.exists():
        return path
    import onnx
    import onnxruntime as ort
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source = peers.onnx_file(network, files)
    ready = files / f"{network.name}.ready.onnx"
    # In one file first: the tool loses track of weights that stand in another.
    whole = files / f"{network.name}.whole.onnx"
    onnx.save(onnx.load(str(source)), str(whole))
    quant_pre_process(str(whole), str(ready), skip_symbolic_shape=True)
    whole.unlink()
    if mode == "dynamic":
        quantize_dynamic(str(ready), str(path), per_channel=True, weight_type=QuantType.QInt8)
    else:
        session = ort.InferenceSession(str(ready), providers=["CPUExecutionProvider"])
        reader = _reader([item.name for item in session.get_inputs()], calibration(network))
        quantize_static(str(ready), str(path), reader, quant_format=QuantFormat.QDQ, per_channel=True)
    ready.unlink()
    return path


def _onnxruntime(network: Network, files: Path, mode: str) -> Call:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = peers.threads(), 1
    path = str(_onnx(network, files, mode))
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    feed = {name: value.numpy() for name, value in zip(names, network.inputs, strict=True)}
    return lambda: session.run(None, feed)


# ---- the workbench -----------------------------------------------------------------------------------------


def quantizer(mode: str) -> Any:
    """Our quantizer for a mode."""
    import workbench as wb

    options: dict[str, Any] = {"weight_bits": 4} if mode == "int4" else {}
    config = wb.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=mode != "int8", **options)
    return wb.XNNPACKQuantizer().set_global(config)


def quantize_ours(
    program: torch.export.ExportedProgram, mode: str, data: Sequence[tuple[torch.Tensor, ...]]
) -> torch.export.ExportedProgram:
    """Prepared, calibrated and converted."""
    from workbench.quantization import calibrate, convert, prepare

    return convert(calibrate(prepare(program, quantizer(mode)), data, progress=False))


def _ours(network: Network, files: Path, delegate: str, mode: str) -> Path:
    """Our `.pte`, made once."""
    path = files / f"{network.name}.workbench{delegate}.{mode}.pte"
    if not path.exists():
        import workbench as wb

        program = quantize_ours(peers.exported(network), mode, calibration(network))
        wb.lower(program, recipe=wb.Recipe(partitioner=peers.our_partitioner(delegate))).save(path)
    return path


def _workbench(network: Network, files: Path, delegate: str, mode: str) -> Call:
    from workbench.runtime import Runtime, set_threads

    set_threads(peers.threads())
    method = Runtime.get().load_program(_ours(network, files, delegate, mode)).load_method("forward")
    inputs = list(network.inputs)
    return lambda: method.execute(inputs)


# ---- all of them -------------------------------------------------------------------------------------------

MODES = ("int8", "dynamic", "int4")
_FILES: dict[str, Callable[[Network, Path, str], Path]] = {
    "workbench/cpu": lambda network, files, mode: _ours(network, files, "cpu", mode),
    "workbench/xnnpack": lambda network, files, mode: _ours(network, files, "xnnpack", mode),
    "executorch/xnnpack": _theirs,
    "onnxruntime": _onnx,
}
_CALLS: dict[str, Callable[[Network, Path, str], Call]] = {
    "workbench/cpu": lambda network, files, mode: _workbench(network, files, "cpu", mode),
    "workbench/xnnpack": lambda network, files, mode: _workbench(network, files, "xnnpack", mode),
    "executorch/xnnpack": _executorch,
    "onnxruntime": _onnxruntime,
}


def file_of(network: Network, files: Path, peer: str) -> Path:
    """The file of a peer, `owner[/delegate]/mode`, made once."""
    name, _, mode = peer.rpartition("/")
    return _FILES[name](network, files, mode)


PEERS: dict[str, Callable[[Network, Path], Call]] = {
    f"{name}/{mode}": partial(_CALLS[name], mode=mode) for name in _CALLS for mode in MODES
}
