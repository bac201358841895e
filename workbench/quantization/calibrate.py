"""Run samples through a prepared program, and let the observers see the values.

Observers change nothing, so that what one of them sees depends on the float program and the data alone:
what is known of a value can be kept when the plan of others changes, and more data can be added later.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node

from workbench import provenance
from workbench.backends.programs import copy_program
from workbench.errors import CalibrationError, CalibrationWarning
from workbench.progress import shows
from workbench.quantization.data import flat_sample, length, samples_of
from workbench.quantization.functional import writes_state
from workbench.quantization.lifting import attribute, unlift
from workbench.quantization.observers.base import not_finite
from workbench.quantization.observers.min_max import MinMax
from workbench.quantization.plan import Group, Plan
from workbench.quantization.programs import CalibratedProgram, PreparedProgram
from workbench.quantization.smooth import smooth, smoothable

__all__ = ["calibrate", "load_calibration", "save_calibration"]


def calibrate(
    prepared: PreparedProgram | CalibratedProgram,
    data: Any = None,
    *,
    method: str = "forward",
    known: Mapping[str, Any] | None = None,
    smoothed: float = 0.0,
    progress: bool | None = None,
) -> CalibratedProgram:
    """Let the observers see calibration data.

    Args:
        prepared: What `prepare` made; or what an earlier call returned, to which more data is added.
        data: An iterable of inputs (tensors, tuples of positional or dictionaries of keyword inputs), a
            function that returns one, or one by method name. Not needed where no scale depends on data.
        method: The method, for data by method name.
        known: Observers by name that have seen this data already; only the others are run.
        smoothed: Share of the range of activations that is moved into the weights before (`smooth`), 0 to 1.
        progress: Show a bar; by default on a terminal and in a notebook.

    Raises:
        CalibrationError: The data is empty, does not fit the model, or leads to NaN or infinities.
    """
    if smoothed:
        if isinstance(prepared, CalibratedProgram):
            raise CalibrationError(
                "a calibrated program can't be smoothed: its observers have seen other values",
                stage="calibrate",
                hint="smooth when the first data is given",
            )
        data = list(samples_of(data, method)) if data is not None else None
        prepared = _smoothed(prepared, data, smoothed, progress)
    observers, samples = _observers(prepared, known)
    waiting = {
        group.name: observers[group.name]
        for group in prepared.plan.groups
        if group.observed and not (known and group.name in known)
    }
    module = unlift(prepared.program)
    if waiting and data is None and not samples:
        raise CalibrationError(
            "the scales of activations need calibration data",
            stage="calibrate",
            expected="inputs to run the model with",
            found="none",
            hint="calibration=[(input,), ...], or scales at run time: "
            "get_symmetric_quantization_config(is_dynamic=True)",
        )
    if waiting and data is not None:
        samples += _run(prepared, waiting, samples_of(data, method), progress)
    _see_weights(prepared.plan.groups, module, observers)
    _check(prepared, waiting, samples)
    return CalibratedProgram(prepared.program, prepared.plan, observers, samples)


def _observers(
    prepared: PreparedProgram | CalibratedProgram, known: Mapping[str, Any] | None
) -> tuple[dict[str, Any], int]:
    """By group its observer: known ones as they are, those of an earlier calibration as copies."""
    before: Mapping[str, Any] = {}
    samples = 0
    if isinstance(prepared, CalibratedProgram):
        before, samples = prepared.observers, prepared.samples
    found: dict[str, Any] = {}
    for group in prepared.plan.groups:
        if known and group.name in known:
            found[group.name] = known[group.name]
        elif group.spec.observe is not None:
            made = group.spec.observe()
            made.name = group.name
            if group.observed and group.name in before:
                made = _copied(before[group.name], made)
            found[group.name] = made
    return found, samples


def _copied(observer: Any, fresh: Any) -> Any:
    if hasattr(observer, "state"):
        fresh.restore(observer.state())
    else:
        fresh.load_state_dict(observer.state_dict())
    return fresh


def _smoothed(prepared: PreparedProgram, data: Any, share: float, progress: bool | None) -> PreparedProgram:
    """The program after smoothing, by the channels' ranges in the data."""
    found = smoothable(prepared.program)
    if not found:
        return prepared
    if data is None:
        raise CalibrationError(
            "smoothing needs calibration data", stage="calibrate", hint="calibration=[(input,), ...]"
        )
    watched = {item.producer: MinMax(histogram=False) for item in found}
    _feed(prepared.program, {name: [watch] for name, watch in watched.items()}, data, progress)
    most = {
        name: np.maximum(np.abs(watch.channel_min), np.abs(watch.channel_max))
        for name, watch in watched.items()
        if watch.channel_min is not None
    }
    own = copy_program(prepared.program)
    smooth(own, most, share, found)
    return dataclasses.replace(prepared, program=own, plan=_renamed(prepared.plan, prepared.program, own))


def _renamed(plan: Plan, before: ExportedProgram, after: ExportedProgram) -> Plan:
    """The plan with the new names of the weights that were changed."""
    pairs = zip(_operators(before), _operators(after), strict=True)
    names: dict[str, str] = {}
    for old, new in pairs:
        for one, other in zip(old.all_input_nodes, new.all_input_nodes, strict=True):
            names[one.name] = other.name
    return plan.renamed(names)


def _operators(program: ExportedProgram) -> list[Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _run(
    prepared: PreparedProgram | CalibratedProgram, waiting: dict[str, Any], data: Any, progress: bool | None
) -> int:
    taps: dict[str, list[Any]] = {}
    for group in prepared.plan.groups:
        if group.name in waiting:
            for value in group.values:
                taps.setdefault(value, []).append(waiting[group.name])
    return _feed(prepared.program, taps, data, progress)


def _feed(program: ExportedProgram, taps: Mapping[str, list[Any]], data: Any, progress: bool | None) -> int:
    """Run all samples; returns how many there were."""
    runner = _Runner(_with_own_state(unlift(program), program), taps)
    count = 0
    with torch.no_grad(), _shown(data, progress) as samples:
        for count, sample in enumerate(samples, 1):
            runner.sample = count
            runner.run(*flat_sample(program, sample, count))
    if not count:
        raise CalibrationError(
            "the calibration data is empty",
            stage="calibrate",
            expected="at least one sample",
            found="none",
            hint="an iterator can be read once only: give a list, or a function that returns a new iterator",
        )
    return count


def _with_own_state(module: GraphModule, program: ExportedProgram) -> GraphModule:
    """Give a module buffers of its own where running it may write them: the model's are not touched."""
    if writes_state(program):
        for target in program.graph_signature.inputs_to_buffers.values():
            owner, _, name = target.rpartition(".")
            holder = module.get_submodule(owner) if owner else module
            setattr(holder, name, getattr(holder, name).detach().clone())
    return module


class _Runner(Interpreter):
    """Runs the graph, shows values to observers, and lets go of each value after its last reader."""

    def __init__(self, module: GraphModule, taps: Mapping[str, list[Any]]) -> None:
        super().__init__(module)
        self.extra_traceback = False
        self.sample = 0
        self._taps = taps

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = getattr(self, n.op)(n.target, args, kwargs)
        for observer in self._taps.get(n.name, ()):
            self._show(n, observer, result)
        return result

    def _show(self, node: Node, observer: Any, value: Any) -> None:
        try:
            if not hasattr(observer, "report") and not bool(torch.isfinite(value).all()):
                raise not_finite(value, node.name)  # torchao's observers take such values in silence
            observer(value)
        except CalibrationError as error:
            error.node = node.name
            error.source = provenance.source_line(node)
            error.message = f"{error.message} (`{node.name}`, sample {self.sample})"
            raise


def _see_weights(groups: Iterable[Group], module: GraphModule, observers: Mapping[str, Any]) -> None:
    nodes = {node.name: node for node in module.graph.nodes}
    with torch.no_grad():
        for group in groups:
            observer = observers.get(group.name)
            if (
                observer is None
                or not group.constant
                or group.spec.dynamic
                or bool(getattr(observer, "elements", False))
            ):
                continue
            for value in group.values:
                tensor = attribute(module, str(nodes[value].target)).detach()
                if not hasattr(observer, "report") and not bool(torch.isfinite(tensor).all()):
                    raise not_finite(tensor, value)
                observer(tensor)


def _check(prepared: Any, waiting: Mapping[str, Any], samples: int) -> None:
    if waiting and samples == 1:
        warnings.warn(
            "calibrated with one sample: expected several that cover what the model will see, found one. The "
            "scales hold just its values, so that others may be clipped; give more data",
            CalibrationWarning,
            stacklevel=3,
        )
    for group in prepared.plan.groups:
        observer = waiting.get(group.name)
        if observer is None:
            continue
        if hasattr(observer, "warn"):
            observer.warn()
        if _unseen(observer):
            raise CalibrationError(
                f"the observer of `{group.name}` saw no value in {samples} samples",
                stage="calibrate",
                node=group.values[0],
                expected="at least one number",
                found="tensors without elements, or none",
                hint="give data that reaches this node, or keep its layer in floats "
                "(quantizer.set_module_name(name, None))",
            )


def _unseen(observer: Any) -> bool:
    if hasattr(observer, "elements"):
        return not observer.elements
    low = getattr(observer, "min_val", None)
    return isinstance(low, torch.Tensor) and (low.numel() == 0 or bool(torch.isinf(low).any()))


@contextmanager
def _shown(data: Iterable[Any], progress: bool | None) -> Iterator[Iterable[Any]]:
    if not shows(progress):
        yield data
        return
    from tqdm.auto import tqdm

    with tqdm(data, total=length(data), desc="calibrating", unit="sample", leave=False) as bar:
        yield bar


# ---- resuming ----------------------------------------------------------------------------------------------


def save_calibration(calibrated: CalibratedProgram, path: Any) -> None:
    """Write what the observers saw, so that another process can go on."""
    groups = {group.name: group for group in calibrated.plan.groups}
    states = {
        name: observer.state() if hasattr(observer, "state") else dict(observer.state_dict())
        for name, observer in calibrated.observers.items()
        if groups[name].observed
    }
    torch.save({"version": 1, "samples": calibrated.samples, "states": _plain(states)}, path)


def load_calibration(prepared: PreparedProgram, path: Any) -> CalibratedProgram:
    """Take up what `save_calibration` wrote, for a program that was prepared in the same way.

    Raises:
        CalibrationError: The file is of something else: another model, or another plan.
    """
    try:
        content = torch.load(path, weights_only=True)
        states, samples = content["states"], int(content["samples"])
    except Exception as error:
        raise CalibrationError(
            f"{path} holds no calibration",
            stage="calibrate",
            expected="a file that save_calibration wrote",
            found=f"{type(error).__name__}: {error}".splitlines()[0],
        ) from error
    observers, _ = _observers(prepared, None)
    wanted = {group.name for group in prepared.plan.groups if group.observed}
    if wanted != set(states):
        different = sorted(wanted ^ set(states))
        raise CalibrationError(
            f"{path} is the calibration of something else",
            stage="calibrate",
            expected=f"{len(wanted)} observers",
            found=f"{len(states)}, which differ in {', '.join(different[:5])}",
            hint="prepare the same model with the same quantizer",
        )
    for name, state in states.items():
        if hasattr(observers[name], "restore"):
            observers[name].restore(_arrays(state))
        else:
            observers[name].load_state_dict(state)
    _see_weights(prepared.plan.groups, unlift(prepared.program), observers)
    return CalibratedProgram(prepared.program, prepared.plan, observers, samples)


def _plain(value: Any) -> Any:
    """Arrays as tensors, which are read without running code."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "__array__") and not isinstance(value, torch.Tensor):
        return torch.as_tensor(value)
    return value


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _arrays(item) for key, item in value.items()}
    return value.numpy() if isinstance(value, torch.Tensor) else value
