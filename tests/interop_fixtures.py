"""Programs that ExecuTorch makes, once for all tests and all test processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from networks import Network

CACHE = Path(__file__).resolve().parents[1] / "build" / "test-cache"


@pytest.fixture(scope="session")
def made_by_executorch() -> Callable[[Network], Path]:
    """A function that gives ExecuTorch's undelegated program of a network.

    Making one takes up to half a minute, so that they are kept in build/test-cache, named by what they
    depend on: the network's weights and inputs, and the version of the package.
    """
    from importlib.metadata import version

    CACHE.mkdir(parents=True, exist_ok=True)

    def make(network: Network) -> Path:
        digest = hashlib.blake2b(digest_size=8)
        for name, tensor in network.model.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
        digest.update(repr([tuple(value.shape) for value in network.inputs]).encode())
        path = CACHE / f"{network.name}-{version('executorch')}-{torch.__version__}-{digest.hexdigest()}.pte"
        with open(CACHE / f"{network.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another test process may be at it
            if not path.exists():
                half = path.with_suffix(f".{os.getpid()}")
                with torch.no_grad():
                    program = torch.export.export(
                        network.model, network.inputs, dynamic_shapes=network.dynamic_shapes
                    )
                from executorch.exir import to_edge

                with open(half, "wb") as file:
                    to_edge(program).to_executorch().write_to_file(file)
                half.rename(path)
        return path

    return make


@pytest.fixture(scope="session")
def run_in_executorch() -> Callable[..., list[Any]]:
    """A function that runs a program's `forward` in ExecuTorch's own runtime."""
    from executorch.runtime import Runtime, Verification

    def run(path: Path | bytes, inputs: tuple[Any, ...]) -> list[Any]:
        source = path if isinstance(path, bytes) else str(path)
        program = Runtime.get().load_program(source, verification=Verification.Minimal)
        method = program.load_method("forward")
        assert method is not None
        outputs = method.execute([value.contiguous() if _plain(value) else value for value in inputs])
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in outputs]

    return run


@pytest.fixture(scope="session")
def delegated_by_executorch() -> Callable[..., Path]:
    """A function that gives ExecuTorch's program of a model, delegated to XNNPACK.

    Called with a name, the model, its inputs, and a text that says what the model computes (anything that
    changes with it). Kept in build/test-cache, as those of `made_by_executorch`.
    """
    from importlib.metadata import version

    CACHE.mkdir(parents=True, exist_ok=True)

    def make(
        name: str,
        model: torch.nn.Module,
        inputs: tuple[Any, ...],
        source: str = "",
        dynamic_shapes: Any = None,
    ) -> Path:
        digest = hashlib.blake2b(digest_size=8)
        digest.update(source.encode())
        for key, tensor in model.state_dict().items():
            digest.update(key.encode())
            digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
        digest.update(repr([(tuple(value.shape), value.dtype, value.stride()) for value in inputs]).encode())
        versions = f"{version('executorch')}-{torch.__version__}"
        path = CACHE / f"xnnpack-{name}-{versions}-{digest.hexdigest()}.pte"
        with open(CACHE / f"xnnpack-{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
                from executorch.exir import to_edge_transform_and_lower

                half = path.with_suffix(f".{os.getpid()}")
                with torch.no_grad():
                    exported = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes)
                edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
                with open(half, "wb") as file:
                    edge.to_executorch().write_to_file(file)
                half.rename(path)
        return path

    return make


def _plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim != 4
