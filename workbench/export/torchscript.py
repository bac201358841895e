"""TorchScript modules as exported programs.

`torch.export` refuses a TorchScript module. Here its graph is run operator by operator by an ordinary module,
which `torch.export` can trace: so dynamic shapes, buffers and source handles work as for any other model.
Branches and loops on Python values are followed as they are for the example inputs; those on tensor values
are refused with the line of the script, as `torch.export` refuses them in Python.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import traceback as fx_traceback

from workbench import provenance
from workbench.errors import ExportError, WorkbenchError
from workbench.export.hints import hint_for
from workbench.export.script_ops import ALWAYS, PYTHON_OPS, converted, is_container, is_plain

__all__ = ["ScriptRunner", "export_torchscript"]

_MARK = "torchscript"
_TORCH = os.path.dirname(torch.__file__) + os.sep
# `File "x.py", line 3` in scripts, `x.py(3): forward` in traces.
_RANGE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)|(?P<bare>[^\s:]+\.py)[:(](?P<number>\d+)')


def export_torchscript(
    script: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any = None
) -> ExportedProgram:
    """Capture a TorchScript module or function.

    Args:
        script: A `torch.jit.ScriptModule` or `ScriptFunction`.
        args: Example inputs.
        kwargs: Example keyword inputs.
        dynamic_shapes: As of `torch.export.export`, by position.

    Raises:
        ExportError: The script does something that has no operator, or branches on a tensor's value.
    """
    runner = ScriptRunner(script).eval()
    ordered = (*args, *(kwargs[name] for name in runner.keywords(len(args), kwargs)))
    shapes = None if dynamic_shapes is None else (_by_position(dynamic_shapes, runner, len(ordered)),)
    try:
        with torch.no_grad(), fx_traceback.preserve_node_meta():
            program = torch.export.export(runner, ordered, dynamic_shapes=shapes, strict=False)
    except WorkbenchError:
        raise
    except Exception as error:
        text = str(error).strip()
        raise ExportError(
            f"the TorchScript module could not be captured: {text.splitlines()[0] if text else error!r}",
            stage="export",
            node=_position["kind"],
            source=_position["source"],
            hint=hint_for(error, text),
        ) from error
    _restore_sources(program)
    return program


# Where the run stands. Not in the module: torch.export runs a copy of it.
_position: dict[str, str | None] = {"kind": None, "source": None}


class ScriptRunner(torch.nn.Module):
    """Runs a TorchScript graph operator by operator.

    Args:
        script: The module or function; parameters and buffers are shared, not copied.
    """

    def __init__(self, script: Any) -> None:
        super().__init__()
        is_module = isinstance(script, torch.jit.ScriptModule)
        graph = (script.forward.graph if is_module else script.graph).copy()
        torch._C._jit_pass_inline(graph)
        torch._C._jit_pass_dce(graph)
        self._graph: Any = (graph,)  # In a tuple: torch.nn.Module need not know it.
        self._inputs = [item.debugName() for item in graph.inputs()]
        self._names = list(self._inputs)
        self._self_name = self._names.pop(0) if is_module else None
        arguments = (script._c._get_method("forward") if is_module else script).schema.arguments
        defaults = [item.default_value for item in arguments[int(is_module) :]]
        self._defaults = dict(zip(self._names, defaults, strict=True))
        if is_module:
            self.module = _tree(script, {})

    def keywords(self, given: int, kwargs: Mapping[str, Any]) -> list[str]:
        """The keyword inputs in the order in which the script takes them.

        Raises:
            ExportError: A keyword is unknown.
        """
        rest = [re.sub(r"\.\d+$", "", name) for name in self._names[given:]]
        unknown = sorted(set(kwargs) - set(rest))
        if unknown:
            raise ExportError(
                f"the script has no input `{unknown[0]}`", stage="export", expected=", ".join(rest)
            )
        return [name for name in rest if name in kwargs]

    def forward(self, *inputs: Any) -> Any:
        """Run the graph."""
        values: dict[str, Any] = {}
        if self._self_name is not None:
            values[self._self_name] = self.module
        if len(inputs) > len(self._names):
            raise ExportError(
                "too many inputs for the script",
                stage="export",
                expected=f"{len(self._names)} ({', '.join(self._names)})",
                found=str(len(inputs)),
            )
        values.update(self._defaults)
        values.update(zip(self._names, inputs, strict=False))
        return self._run(self._graph[0], values)[0]

    def _run(self, block: Any, values: dict[str, Any]) -> list[Any]:
        for node in block.nodes():
            self._step(node, values)
        return [values[item.debugName()] for item in block.outputs()]

    def _step(self, node: Any, values: dict[str, Any]) -> None:
        _position.update(kind=node.kind(), source=_source_of(node))
        inputs = [values[item.debugName()] for item in node.inputs()]
        outputs = [item.debugName() for item in node.outputs()]
        control = _CONTROL.get(node.kind())
        if control is not None:
            results = control(self, node, inputs, values)
        else:
            mark = {_MARK: [_position["source"] or "", node.scopeName()]}
            with fx_traceback.annotate(mark):
                results = _compute(node, inputs)
        values.update(zip(outputs, results, strict=True))

    def _if(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        taken, other = node.blocks()
        return self._run(taken if bool(inputs[0]) else other, values)

    def _loop(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        limit, proceed, carried = inputs[0], inputs[1], inputs[2:]
        (body,) = node.blocks()
        names = [item.debugName() for item in body.inputs()]
        count = 0
        while count < limit and bool(proceed):
            values.update(zip(names, [count, *carried], strict=True))
            proceed, *carried = self._run(body, values)
            count += 1
        return carried

    def _constant(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        return [node.outputsAt(0).toIValue()] if node.hasAttributes() else [None]

    def _get(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        return [_resolved(getattr(inputs[0], node.s("name")))]

    def _set(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        owner, value = inputs
        known = getattr(owner, node.s("name"), None)
        if isinstance(known, torch.Tensor) and isinstance(value, torch.Tensor):
            if known.shape != value.shape or known.dtype != value.dtype:
                raise ExportError(
                    f"the script changes the size or type of its state `{node.s('name')}`",
                    stage="export",
                    source=_position["source"],
                    expected=f"{known.dtype} {list(known.shape)}",
                    found=f"{value.dtype} {list(value.shape)}",
                    hint="run the script once on the example inputs, so that its state has its final size",
                )
            known.copy_(value)  # State stays in its buffer.
        else:
            setattr(owner, node.s("name"), value)
        return []

    def _raise(self, node: Any, inputs: list[Any], values: dict[str, Any]) -> list[Any]:
        raise ExportError(
            f"the script raises: {inputs[0]}",
            stage="export",
            source=_position["source"],
            hint="the example inputs lead the script into an error; run it on them in eager",
        )


_Control = Callable[[ScriptRunner, Any, list[Any], dict[str, Any]], list[Any]]
_CONTROL: dict[str, _Control] = {
    "prim::If": ScriptRunner._if,
    "prim::Loop": ScriptRunner._loop,
    "prim::Constant": ScriptRunner._constant,
    "prim::GetAttr": ScriptRunner._get,
    "prim::SetAttr": ScriptRunner._set,
    "prim::RaiseException": ScriptRunner._raise,
}


def _compute(node: Any, inputs: list[Any]) -> list[Any]:
    """Results of an operator: by Python for lists and numbers, by torch's dispatcher for tensors."""
    kind = node.kind()
    python = PYTHON_OPS.get(kind)
    if python is not None and _in_python(kind, inputs):
        result = python(node, *inputs)
        return result if isinstance(result, _Many) else [result]
    namespace, name = kind.split("::")
    text = node.schema()
    if text == "(no schema)":
        raise ExportError(
            f"the script's `{kind}` has no operator", stage="export", source=_source_of(node), node=kind
        )
    schema = torch._C.parse_schema(text)
    operator = getattr(getattr(getattr(torch.ops, namespace), name), schema.overload_name or "default")
    positional, named = [], {}
    for argument, value in zip(schema.arguments, inputs, strict=True):
        given = converted(argument, value)
        if argument.kwarg_only:
            named[argument.name] = given
        else:
            positional.append(given)
    result = operator(*positional, **named)
    count = len(schema.returns)
    return [] if count == 0 else list(result) if count > 1 else [result]


def _in_python(kind: str, inputs: list[Any]) -> bool:
    return kind in ALWAYS or all(map(is_plain, inputs)) or is_container(inputs[0])


class _Many(list[Any]):
    """Several results of one node, apart from a result that is a list."""


def _unpack(node: Any, sequence: Any) -> _Many:
    return _Many(sequence)


PYTHON_OPS["prim::ListUnpack"] = _unpack
PYTHON_OPS["prim::TupleUnpack"] = _unpack


class _Place(NamedTuple):
    """Where a tensor is registered; torch.export swaps modules' tensors, so a list must not hold them."""

    module: torch.nn.Module
    name: str


_Known = dict[tuple[Any, ...], _Place]


def _tree(script: Any, known: _Known) -> torch.nn.Module:
    """An ordinary module with the parameters, buffers, attributes and submodules of a script module.

    Args:
        script: The script module.
        known: Filled with all tensors that were registered, by identity of their data.
    """
    module = torch.nn.Module()
    for name, parameter in script.named_parameters(recurse=False):
        module.register_parameter(name, torch.nn.Parameter(parameter.detach(), requires_grad=False))
    persistent = script.state_dict().keys()
    for name, buffer in script.named_buffers(recurse=False):
        module.register_buffer(name, buffer, persistent=name in persistent)
    for name, child in script.named_children():
        module.add_module(name, _tree(child, known))
    for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        known.setdefault(_identity(tensor), _Place(module, name))
    for name in _read_attributes(script):
        _copy_attribute(module, script, name, known)
    return module


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)


def _read_attributes(script: Any) -> list[str]:
    """Names of the attributes that any method of a script module reads."""
    names: set[str] = set()
    for method in script._c._method_names():
        graph = script._c._get_method(method).graph
        names.update(node.s("name") for node in graph.findAllNodes("prim::GetAttr", recurse=True))
    return sorted(names)


def _copy_attribute(module: torch.nn.Module, script: Any, name: str, known: _Known) -> None:
    if hasattr(module, name) and name != "training":
        return
    value = getattr(script, name, None)
    if isinstance(value, torch.Tensor) and _identity(value) not in known:
        module.register_buffer(name, value, persistent=False)
        known[_identity(value)] = _Place(module, name)
    elif not isinstance(value, torch.nn.Module):
        setattr(module, name, _placed(module, name, value, known))


def _placed(module: torch.nn.Module, name: str, value: Any, known: _Known) -> Any:
    """A value with the places of its tensors in place of the tensors; new ones become buffers."""
    if isinstance(value, torch.Tensor):
        if _identity(value) not in known:
            module.register_buffer(name, value, persistent=False)
        return known.setdefault(_identity(value), _Place(module, name))
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(module, f"{name}_{i}", item, known) for i, item in enumerate(value))
    return value


def _resolved(value: Any) -> Any:
    if isinstance(value, _Place):
        return getattr(value.module, value.name)
    return [_resolved(item) for item in value] if isinstance(value, list) else value


def _by_position(shapes: Any, runner: ScriptRunner, count: int) -> tuple[Any, ...]:
    if isinstance(shapes, Mapping):
        names = [re.sub(r"\.\d+$", "", name) for name in runner._names[:count]]
        return tuple(shapes.get(name) for name in names)
    return tuple(shapes)


def _source_of(node: Any) -> str | None:
    """The innermost line of the script outside torch, or the innermost one."""
    frames = [
        f"{found['file'] or found['bare']}:{found['line'] or found['number']}"
        for found in _RANGE.finditer(node.sourceRange())
    ]
    own = [frame for frame in frames if not frame.startswith((_TORCH, "code/__torch__/torch/"))]
    return own[0] if own else frames[0] if frames else None


def _restore_sources(program: ExportedProgram) -> None:
    """Give the nodes the script's own lines and modules in place of those of the runner."""
    for node in provenance.nodes_of(program.graph_module):
        custom = dict(node.meta.get("custom") or {})
        mark = custom.pop(_MARK, None)
        if mark is None:
            continue
        node.meta["custom"] = custom
        source, scope = mark
        file, _, line = source.rpartition(":")
        node.meta["stack_trace"] = f'File "{file}", line {line}' if line else None
        path = scope.split("/")[-1].removeprefix("__module").strip(".")
        node.meta["nn_module_stack"] = {path: (path, "torch.jit.ScriptModule")}
