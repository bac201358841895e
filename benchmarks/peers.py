"""Each peer: how it gets ready to run a network. A function here returns a call without arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from networks import Network

Call = Callable[[], Any]


def eager(network: Network, files: Path) -> Call:
    """PyTorch as it is."""
    del files

    def call() -> Any:
        with torch.inference_mode():
            return network.model(*network.inputs)

    return call


def workbench(network: Network, files: Path) -> Call:
    """Our program in our runtime."""
    from workbench.runtime import Runtime

    method = Runtime.get().load_program(ours(network, files)).load_method("forward")
    inputs = list(network.inputs)
    return lambda: method.execute(inputs)


def executorch(network: Network, files: Path) -> Call:
    """ExecuTorch's program on its portable kernels, in its runtime."""
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(str(theirs(network, files)))
    method = program.load_method("forward")
    assert method is not None
    inputs = list(network.inputs)
    return lambda: (program, method.execute(inputs))[1]


def onnxruntime(network: Network, files: Path) -> Call:
    """ONNX Runtime, CPU provider."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = str(onnx_file(network, files))
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    feed = {name: value.numpy() for name, value in zip(names, network.inputs, strict=True)}
    return lambda: session.run(None, feed)


def openvino(network: Network, files: Path) -> Call:
    """OpenVINO, CPU device, latency hint, float32."""
    import openvino as ov

    core = ov.Core()
    settings = {
        "INFERENCE_NUM_THREADS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(str(onnx_file(network, files))), "CPU", settings)
    request = compiled.create_infer_request()
    feed = [value.numpy() for value in network.inputs]
    return lambda: request.infer(feed)


PEERS: dict[str, Callable[[Network, Path], Call]] = {
    "workbench": workbench,
    "executorch": executorch,
    "eager": eager,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}


def exported(network: Network) -> torch.export.ExportedProgram:
    """The network, captured."""
    with torch.no_grad():
        return torch.export.export(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes)


def ours(network: Network, files: Path) -> Path:
    """Our `.pte` of a network, made once."""
    path = files / f"{network.name}.workbench.pte"
    if not path.exists():
        import workbench as wb

        wb.lower(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes).save(path)
    return path


def theirs(network: Network, files: Path) -> Path:
    """ExecuTorch's undelegated `.pte` of a network, made once (lstm: 26 s)."""
    path = files / f"{network.name}.executorch.pte"
    if not path.exists():
        from executorch.exir import to_edge

        to_edge(exported(network)).to_executorch().save(str(path))
    return path


def onnx_file(network: Network, files: Path) -> Path:
    """The network as an ONNX file, made once."""
    path = files / f"{network.name}.onnx"
    if not path.exists():
        torch.onnx.export(network.model, network.inputs, str(path), dynamo=True, verbose=False)
    return path
