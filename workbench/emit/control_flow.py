"""`cond`, `while_loop`, `map` and `scan` as jumps and number primitives that every runtime has.

    cond                      while_loop                   map, scan
       jump F if not p           carried <- init              carried <- init; i <- 0; n <- size
       ... true branch ...    L: ... condition -> p ...       (jump E if n is 0, where n may be)
       jump E                    jump E if not p           L: slices <- xs[i]
    F: ... false branch ...      ... body -> new ...          ... body -> new, y ...
    E:                           carried <- new               ys[i] <- y; carried <- new; i <- i + 1
                                 jump L                       jump L if i != n
                              E:                           E:

The results of a branch are written straight into the values of the control-flow node: both branches have the
same memory for them, which nobody else writes (the aliasing of pytorch/executorch #21490 can't occur), and
nothing is moved.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule, Node

from workbench.emit import ir
from workbench.errors import EmitError
from workbench.passes.alias_views import ALIAS_KEY, operands_of
from workbench.passes.spec_propagation import SPEC_KEY, Dynamism, TensorSpec

if TYPE_CHECKING:
    from workbench.emit.emitter import MethodEmitter

__all__ = ["emit_control_flow"]


def emit_control_flow(emitter: MethodEmitter, graph_module: GraphModule, node: Node) -> None:
    """Write a control-flow node.

    Raises:
        EmitError: It is of a kind that can't be written.
    """
    kind = str(node.target)
    function = {"cond": _cond, "while_loop": _while, "map_impl": _map, "scan": _scan}.get(kind)
    if function is None:
        raise EmitError(
            f"the higher-order operator `{kind}` can't be written",
            node=node.name,
            expected="cond, while_loop, map or scan",
        )
    function(emitter, graph_module, node)


def _cond(emitter: MethodEmitter, graph_module: GraphModule, node: Node) -> None:
    outs = _results(emitter, node)
    (true, _), (false, _) = operands_of(graph_module, node)
    operands: Any = node.args[3] if len(node.args) > 3 else ()
    inputs = [_value(emitter, item, node) for item in operands]
    over_true = ir.JumpFalse(_value(emitter, node.args[0], node), 0)
    emitter.append(over_true)
    _branch(emitter, true, inputs, outs)
    over_false = ir.JumpFalse(emitter.table.boolean(False), 0)
    emitter.append(over_false)
    over_true.destination = len(emitter.instructions)
    _branch(emitter, false, inputs, outs)
    over_false.destination = len(emitter.instructions)


def _while(emitter: MethodEmitter, graph_module: GraphModule, node: Node) -> None:
    carried: Any = node.args[2]
    extra: Any = node.args[3] if len(node.args) > 3 else ()
    (condition, _), (body, _) = operands_of(graph_module, node)
    outs = _results(emitter, node)
    _initialize(emitter, carried, outs, node)
    inputs = [*outs, *(_value(emitter, item, node) for item in extra)]
    start = len(emitter.instructions)
    (proceed,) = _branch(emitter, condition, inputs)
    leave = ir.JumpFalse(proceed, 0)
    emitter.append(leave)
    _carry(emitter, _branch(emitter, body, inputs), outs)
    emitter.append(ir.JumpFalse(emitter.table.boolean(False), start))
    leave.destination = len(emitter.instructions)
    emitter.loops.append((start, len(emitter.instructions) - 1))


def _map(emitter: MethodEmitter, graph_module: GraphModule, node: Node) -> None:
    _body, mapped, extra = [*node.args, ()][:3]
    _loop(emitter, graph_module, node, (), mapped, extra)


def _scan(emitter: MethodEmitter, graph_module: GraphModule, node: Node) -> None:
    _body, carried, scanned, extra = [*node.args, ()][:4]
    _loop(emitter, graph_module, node, carried, scanned, extra)


def _loop(
    emitter: MethodEmitter, graph_module: GraphModule, node: Node, carried: Any, scanned: Any, extra: Any
) -> None:
    """A loop over the first dimension of `scanned`."""
    ((body, _),) = operands_of(graph_module, node)
    if not scanned:
        raise EmitError("a loop over nothing can't be written", node=node.name)
    specs = node.meta[SPEC_KEY]
    for spec in specs[len(carried) :] if isinstance(specs, tuple) else (specs,):
        spec.dynamism = Dynamism.BOUND  # `et_copy_index` lets it grow by one slice each time.
    table = emitter.table
    outs = _results(emitter, node)
    carries, stacked = outs[: len(carried)], outs[len(carried) :]
    _initialize(emitter, carried, carries, node)
    sources = [_value(emitter, item, node) for item in scanned]
    zero, index = table.integer(0), table.fresh(ir.Int(0))
    count, done = table.fresh(ir.Int(0)), table.fresh(ir.Bool(False))
    emitter.call("aten::sym_size", "int", (sources[0], zero, count))
    emitter.append(ir.Move(zero, index))
    leave = _skip_if_empty(emitter, sources[0], count)
    start = len(emitter.instructions)
    placeholders = list(body.graph.find_nodes(op="placeholder"))
    slices = []
    for source, placeholder in zip(sources, placeholders[len(carried) :], strict=False):
        slices.append(table.tensor(placeholder.meta[SPEC_KEY]))
        emitter.call("aten::select_copy", "int_out", (source, zero, index, slices[-1], slices[-1]))
    inputs = [*carries, *slices, *(_value(emitter, item, node) for item in extra)]
    results = _branch(emitter, body, inputs)
    for value, target in zip(results[len(carried) :], stacked, strict=True):
        emitter.call("executorch_prim::et_copy_index", "tensor", (target, value, index))
    _carry(emitter, results[: len(carried)], carries)
    emitter.call("executorch_prim::add", "Scalar", (index, table.integer(1), index))
    emitter.call("executorch_prim::eq", "Scalar", (index, count, done))
    emitter.append(ir.JumpFalse(done, start))
    emitter.loops.append((start, len(emitter.instructions) - 1))
    if leave is not None:
        leave.destination = len(emitter.instructions)


def _skip_if_empty(emitter: MethodEmitter, source: int, count: int) -> ir.JumpFalse | None:
    spec = emitter.table.specs.get(source)
    if spec is not None and spec.is_static and spec.sizes and spec.sizes[0] > 0:
        return None
    some = emitter.primitive(operator.gt, count, emitter.table.integer(0), boolean=True)
    leave = ir.JumpFalse(some, 0)
    emitter.append(leave)
    return leave


def _branch(
    emitter: MethodEmitter, graph_module: GraphModule, inputs: list[int], outs: list[int] | None = None
) -> list[int]:
    """Write a branch; its results go into `outs` if these are given.

    Returns:
        The values of the results.
    """
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    for placeholder, value in zip(placeholders, inputs, strict=True):
        emitter.env[placeholder] = value
    given: Any = graph_module.graph.output_node().args[0]
    results = list(given) if isinstance(given, (list, tuple)) else [given]
    taken: set[tuple[Node, int]] = set()
    direct = [False] * len(results)
    for position, (result, out) in enumerate(zip(results, outs or (), strict=False)):
        key = _source(result)
        if key is not None and key not in taken and _fits(emitter, result, out):
            taken.add(key)
            emitter.bound[key] = out
            direct[position] = True
    emitter.graph(graph_module)
    values = [
        emitter.env[item] if isinstance(item, Node) else emitter.table.constant(item) for item in results
    ]
    if outs is None:
        return values
    for value, out, written in zip(values, outs, direct, strict=True):
        if written:
            continue
        if out in emitter.table.specs:
            emitter.clone(value, out)
        else:
            emitter.append(ir.Move(value, out))
    return outs


def _source(result: Any) -> tuple[Node, int] | None:
    """The node that computes a result, and its position among the node's; None for what is passed on."""
    if not isinstance(result, Node) or result.op != "call_function" or ALIAS_KEY in result.meta:
        return None
    if result.target is operator.getitem:
        source: Any = result.args[0]
        index: Any = result.args[1]
        return (source, index) if isinstance(source.meta[SPEC_KEY], tuple) else None
    return (result, 0)


def _fits(emitter: MethodEmitter, result: Node, out: int) -> bool:
    """Whether a kernel may write its result straight into a value."""
    target = emitter.table.specs.get(out)
    spec = result.meta[SPEC_KEY]
    if target is None or not isinstance(spec, TensorSpec):
        return False
    same = spec.dtype == target.dtype and spec.dim_order == target.dim_order
    if target.is_static:
        return same and spec.is_static and spec.sizes == target.sizes
    return same and all(a <= b for a, b in zip(spec.sizes, target.sizes, strict=True))


def _results(emitter: MethodEmitter, node: Node) -> list[int]:
    outs = emitter.outs(node)
    emitter.env[node] = outs if isinstance(node.meta[SPEC_KEY], tuple) else outs[0]
    return list(outs)


def _value(emitter: MethodEmitter, item: Any, node: Node) -> int:
    return emitter.table.of_kind(item, "Scalar", True, emitter.env, node)


def _initialize(emitter: MethodEmitter, carried: Any, outs: list[int], node: Node) -> None:
    for item, out in zip(carried, outs, strict=True):
        emitter.assign(_value(emitter, item, node), out)


def _carry(emitter: MethodEmitter, results: list[int], carries: list[int]) -> None:
    """Give the results of a turn to the values that are carried, as if all at once."""
    safe = []
    for result, carry in zip(results, carries, strict=True):
        spec = emitter.table.specs.get(result)
        if result != carry and result in carries:
            # It is overwritten before it is read.
            if spec is not None:
                held = emitter.temporary(spec, f"{spec.name}.held")
                emitter.clone(result, held)
            else:
                held = emitter.table.fresh(ir.Int(0))
                emitter.append(ir.Move(result, held))
            result = held
        safe.append(result)
    for result, carry in zip(safe, carries, strict=True):
        emitter.assign(result, carry)
