"""Calibration data: any iterable of inputs, checked sample by sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from workbench.errors import CalibrationError

__all__ = ["flat_sample", "length", "samples_of"]


def samples_of(data: Any, method: str = "forward") -> Iterable[Any]:
    """The samples of what a user gave: an iterable, a function that returns one, or one by method name.

    Raises:
        CalibrationError: It is none of them.
    """
    if callable(data) and not isinstance(data, Iterable):
        data = data()
    if isinstance(data, Mapping) and method in data and not isinstance(data[method], torch.Tensor):
        data = data[method]
        if callable(data) and not isinstance(data, Iterable):
            data = data()
    if isinstance(data, torch.Tensor) or not isinstance(data, Iterable) or isinstance(data, str | Mapping):
        raise CalibrationError(
            "that is no calibration data",
            stage="calibrate",
            expected="an iterable of inputs: tensors, tuples of positional or dictionaries of keyword inputs",
            found=f"{type(data).__name__}"
            + (f" of shape {tuple(data.shape)}" if isinstance(data, torch.Tensor) else ""),
            hint="a single sample goes into a list: [(x,)]; "
            "a tensor of many: [(x[i:i+1],) for i in range(len(x))]",
        )
    return data


def length(data: Any) -> int | None:
    """How many samples there are, where the data knows."""
    return len(data) if isinstance(data, Sized) else None


def flat_sample(program: ExportedProgram, sample: Any, number: int) -> list[Any]:
    """The flat inputs of one sample.

    Args:
        program: What shall be run.
        sample: A tensor, a tuple or list of positional inputs, or a dictionary of keyword inputs.
        number: The sample's number, for messages.

    Raises:
        CalibrationError: It does not fit the program, or holds NaN or infinities.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(sample, Mapping):
        kwargs = dict(sample)
    elif isinstance(sample, tuple | list):
        args = tuple(sample)
    else:
        args = (sample,)
    inputs = [spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    leaves, _ = pytree.tree_flatten((args, _ordered(program, kwargs)))
    if len(leaves) != len(inputs):
        raise CalibrationError(
            f"calibration sample {number} has another number of inputs than the model",
            stage="calibrate",
            expected=f"{len(inputs)}: {', '.join(spec.arg.name for spec in inputs)}",
            found=f"{len(leaves)}: {', '.join(map(_shown, leaves))}",
            hint="a sample is a tuple of positional inputs; a pair (input, label) has to be cut to (input,)",
        )
    fakes = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for spec, leaf in zip(inputs, leaves, strict=True):
        _check(spec.arg.name, leaf, fakes.get(spec.arg.name), number)
    return leaves


def _ordered(program: ExportedProgram, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword inputs in the order in which the program was captured."""
    spec = program.call_spec.in_spec
    if not kwargs or spec is None:
        return kwargs
    names = list(spec.children()[1].context or []) if spec.num_children > 1 else []
    positional = spec.children()[0]
    if not names and positional.num_children == len(kwargs):
        return kwargs
    return {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs


def _shown(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{leaf.dtype}{tuple(leaf.shape)}"
    return type(leaf).__name__


def _check(name: str, leaf: Any, fake: Any, number: int) -> None:
    if not isinstance(fake, torch.Tensor):
        return
    fits = isinstance(leaf, torch.Tensor) and leaf.dtype == fake.dtype and leaf.dim() == fake.dim()
    if fits:
        fits = all(
            type(want) is not int or want == have for want, have in zip(fake.shape, leaf.shape, strict=True)
        )
    if not fits:
        raise CalibrationError(
            f"input `{name}` of calibration sample {number} does not fit the model",
            stage="calibrate",
            node=name,
            expected=f"{fake.dtype}{tuple(map(str, fake.shape))}".replace("'", ""),
            found=_shown(leaf),
            hint="export with dynamic_shapes where samples differ in size",
        )
    if leaf.dtype.is_floating_point and not bool(torch.isfinite(leaf).all()):
        nans, infinities = int(torch.isnan(leaf).sum()), int(torch.isinf(leaf).sum())
        raise CalibrationError(
            f"input `{name}` of calibration sample {number} is not finite",
            stage="calibrate",
            node=name,
            expected="finite numbers",
            found=f"{nans} NaN and {infinities} infinities among {leaf.numel():,} numbers",
            hint="repair or leave out the sample",
        )
