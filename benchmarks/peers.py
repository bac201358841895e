"""Each peer: how it gets ready to run a network. A function here returns a call without arguments.

A peer uses as many threads as the process has cores. All but eager and `torch.compile` need the network's
files and inputs only, so that memory can be measured without the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from networks import Network

Call = Callable[[], Any]


def threads() -> int:
    """One for each core that the process is pinned to."""
    return len(os.sched_getaffinity(0))


def eager(network: Network, files: Path) -> Call:
    """PyTorch as it is."""
    del files

    def call() -> Any:
        with torch.inference_mode():
            return network.model(*network.inputs)

    return call


def compiled(network: Network, files: Path) -> Call:
    """`torch.compile`, default settings."""
    del files
    function = torch.compile(network.model)

    def call() -> Any:
        with torch.inference_mode():
            return function(*network.inputs)

    return call


def workbench(network: Network, files: Path, delegate: str = "") -> Call:
    """Our program in our runtime: undelegated, or with our partitioner of that name."""
    from workbench.runtime import Runtime, set_threads

    set_threads(threads())
    method = Runtime.get().load_program(ours(network, files, delegate)).load_method("forward")
    inputs = list(network.inputs)
    return lambda: method.execute(inputs)


def executorch(network: Network, files: Path, delegate: str = "") -> Call:
    """ExecuTorch's program in its runtime: on its portable kernels, or delegated to XNNPACK."""
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    portable_lib._unsafe_reset_threadpool(threads())
    program = Runtime.get().load_program(str(theirs(network, files, delegate)))
    method = program.load_method("forward")
    assert method is not None
    inputs = list(network.inputs)
    return lambda: (program, method.execute(inputs))[1]


def onnxruntime(network: Network, files: Path) -> Call:
    """ONNX Runtime, CPU provider."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
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
        "INFERENCE_NUM_THREADS": threads(),
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(str(onnx_file(network, files))), "CPU", settings)
    request = compiled.create_infer_request()
    feed = [value.numpy() for value in network.inputs]
    return lambda: request.infer(feed)


PEERS: dict[str, Callable[[Network, Path], Call]] = {
    "workbench": workbench,
    "workbench/cpu": lambda network, files: workbench(network, files, "cpu"),
    "workbench/xnnpack": lambda network, files: workbench(network, files, "xnnpack"),
    "executorch": executorch,
    "executorch/xnnpack": lambda network, files: executorch(network, files, "xnnpack"),
    "eager": eager,
    "compile": compiled,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}


def exported(network: Network) -> torch.export.ExportedProgram:
    """The network, captured."""
    with torch.no_grad():
        return torch.export.export(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes)


def our_partitioner(delegate: str) -> Any:
    """Our partitioner of that name, None for none."""
    import workbench as wb

    return {"": lambda: None, "cpu": wb.CpuPartitioner, "xnnpack": wb.XnnpackPartitioner}[delegate]()


def ours(network: Network, files: Path, delegate: str = "") -> Path:
    """Our `.pte` of a network, made once."""
    path = files / f"{network.name}.workbench{delegate}.pte"
    if not path.exists():
        import workbench as wb

        recipe = wb.Recipe(partitioner=our_partitioner(delegate))
        wb.lower(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes, recipe=recipe).save(
            path
        )
    return path


def theirs(network: Network, files: Path, delegate: str = "") -> Path:
    """ExecuTorch's `.pte` of a network, made once (lstm: 26 s undelegated, 93 s delegated)."""
    path = files / f"{network.name}.executorch{delegate}.pte"
    if not path.exists():
        lower_theirs(exported(network), delegate).save(str(path))
    return path


def lower_theirs(program: torch.export.ExportedProgram, delegate: str) -> Any:
    """ExecuTorch's lowering, from an exported program to its program manager."""
    from executorch.exir import to_edge, to_edge_transform_and_lower

    if not delegate:
        return to_edge(program).to_executorch()
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()


def onnx_file(network: Network, files: Path) -> Path:
    """The network as an ONNX file, made once."""
    path = files / f"{network.name}.onnx"
    if not path.exists():
        torch.onnx.export(network.model, network.inputs, str(path), dynamo=True, verbose=False)
    return path
