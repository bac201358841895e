"""What the command line is pointed at: models, example inputs, dynamic dimensions, partitioners, tensors."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.errors import ExportError, PartitionError, RecipeError, WorkbenchError

__all__ = [
    "Model",
    "dynamic_shapes",
    "load_model",
    "load_tensor",
    "load_tensors",
    "partitioner_named",
    "shaped",
]

_SHAPE = re.compile(r"^(\d+(?:x\d+)*)?(?::(\w+))?$")
_DYNAMIC = re.compile(r"^(\d+)\.(\d+)=(?:([A-Za-z_]\w*):)?(\d+)\.\.(\d+)$")


@dataclass(frozen=True)
class Model:
    """What there is to lower.

    Attributes:
        model: A module, TorchScript or an exported program.
        inputs: Example inputs, or None where they must be given.
        dynamic_shapes: As `torch.export.export` takes them, or None.
    """

    model: Any
    inputs: tuple[Any, ...] | None = None
    dynamic_shapes: Any = None


def load_model(text: str) -> Model:
    """The model behind `FILE.py:factory`, `FILE.pt2`, `FILE.pt` or `package.module:factory`.

    A factory returns the module; or module and example inputs; or module, example inputs and dynamic shapes.

    Raises:
        ExportError: There is no such file or factory, it fails, or returns something else.
    """
    place, colon, name = text.rpartition(":")
    if not colon or "/" in name or name.endswith((".py", ".pt", ".pt2", ".jit")):
        if text.endswith(".py"):
            raise ExportError(f"{text} is a module; name the factory in it", hint=f"{text}:make_model")
        from workbench.export import load

        return Model(load(text))
    factory = getattr(_module(place), name, None)
    if factory is None:
        raise ExportError(f"{place} has no `{name}`", hint="name a function that returns the model")
    made = factory
    if callable(factory) and not isinstance(factory, torch.nn.Module):
        try:
            made = factory()
        except WorkbenchError:
            raise
        except Exception as error:
            raise ExportError(f"{text} failed: {type(error).__name__}: {error}") from error
    parts = made if isinstance(made, tuple) else (made,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], torch.nn.Module | torch.export.ExportedProgram):
        raise ExportError(
            f"{text} returned no model",
            expected="module, or (module, inputs), or (module, inputs, dynamic shapes)",
            found=f"({', '.join(type(part).__name__ for part in parts)})",
        )
    model = parts[0].eval() if isinstance(parts[0], torch.nn.Module) else parts[0]
    inputs = None
    if len(parts) > 1 and parts[1] is not None:
        inputs = tuple(parts[1]) if isinstance(parts[1], list | tuple) else (parts[1],)
    return Model(model, inputs, parts[2] if len(parts) > 2 else None)


def _module(place: str) -> Any:
    path = Path(place).resolve()
    if place.endswith(".py") and not path.exists():
        raise ExportError(f"there is no file {place}")
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Classes of the file must be found again by name, and the file may import its neighbours.
        sys.modules[spec.name] = module
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
    except WorkbenchError:
        raise
    except Exception as error:
        raise ExportError(f"{place} can't be imported: {type(error).__name__}: {error}") from error
    return module


def shaped(text: str) -> torch.Tensor:
    """An example input from `1x3x224x224` or `1x128:int64`; integers are zero, other numbers random.

    Raises:
        RecipeError: The text is no shape, or names no dtype.
    """
    match = _SHAPE.match(text)
    if match is None:
        raise RecipeError("no shape", expected="1x3x224x224 or 1x128:int64", found=repr(text))
    sizes = [int(size) for size in match[1].split("x")] if match[1] else []
    dtype = getattr(torch, match[2] or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise RecipeError("no dtype", expected="a dtype of torch, such as float32", found=repr(match[2]))
    return torch.randn(sizes).to(dtype) if dtype.is_floating_point else torch.zeros(sizes, dtype=dtype)


def load_tensors(paths: Iterable[str]) -> list[Any]:
    """Inputs from files: an array of `.npy`, all arrays of `.npz`, a value or a list of `.pt`.

    Raises:
        RecipeError: A file is missing, of another kind, or damaged.
    """
    found: list[Any] = []
    for path in paths:
        value = load_tensor(path)
        found += value if isinstance(value, list | tuple) else [value]
    return found


def load_tensor(path: str) -> Any:
    """What one file holds; raises as `load_tensors`."""
    import numpy as np

    suffix = Path(path).suffix
    if not Path(path).exists():
        raise RecipeError(f"there is no file {path}")
    try:
        if suffix == ".npy":
            return torch.from_numpy(np.load(path, allow_pickle=False))
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return [torch.from_numpy(archive[name]) for name in archive.files]
        if suffix in (".pt", ".pth"):
            return torch.load(path, weights_only=True)
    except Exception as error:
        raise RecipeError(f"{path} can't be read: {type(error).__name__}: {error}") from error
    raise RecipeError(
        f"{path} holds no input", expected="a file .npy, .npz or .pt", found=suffix or "no suffix"
    )


def dynamic_shapes(given: Sequence[str], inputs: Sequence[Any]) -> Any:
    """The dynamic shapes of `INPUT.DIM=MIN..MAX` and `INPUT.DIM=NAME:MIN..MAX`; equal names are equal sizes.

    Raises:
        RecipeError: The text is malformed, or there is no such input or dimension.
    """
    if not given:
        return None
    dims: dict[str, Any] = {}
    shapes: list[dict[int, Any]] = [{} for _ in inputs]
    for text in given:
        match = _DYNAMIC.match(text)
        if match is None:
            raise RecipeError(
                "no dynamic dimension", expected="INPUT.DIM=MIN..MAX, such as 0.2=14..640", found=repr(text)
            )
        index, dim, low, high = int(match[1]), int(match[2]), int(match[4]), int(match[5])
        if index >= len(inputs) or dim >= getattr(inputs[index], "ndim", 0):
            shown = ", ".join(str(tuple(getattr(value, "shape", ()))) for value in inputs)
            raise RecipeError(f"no input has the dimension {index}.{dim}", found=f"inputs of shape {shown}")
        if low > high:
            raise RecipeError("the least size is above the largest", found=repr(text))
        name = match[3] or f"d{index}_{dim}"
        shapes[index][dim] = dims.setdefault(name, torch.export.Dim(name, min=low, max=high))
    return tuple(shapes)


def partitioner_named(text: str) -> str:
    """The target `package.module:Class` of a partitioner, given so or by the name of its class.

    Raises:
        PartitionError: No partitioner of an installed backend has this name.
    """
    if ":" in text:
        return text
    import difflib

    from workbench.backends import Partitioner, backend_ids

    backend_ids()  # imports the packages of all backends
    pending, known = [Partitioner], {}
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        known[kind.__name__] = f"{kind.__module__}:{kind.__qualname__}"
    if text in known:
        return known[text]
    concrete = sorted(name for name in known if name not in ("Partitioner", "CapabilityPartitioner"))
    near = difflib.get_close_matches(text, concrete, n=1)
    raise PartitionError(
        f"no partitioner is called '{text}'",
        expected=", ".join(concrete),
        hint=f"did you mean '{near[0]}'?" if near else "give it as package.module:Class",
    )
