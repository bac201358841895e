"""The command `workbench`: lower, run, inspect, verify. docs/command_line.md describes it for users."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import (
    ExecutionError,
    ExportError,
    RecipeError,
    SerializationError,
    TraceError,
    VerificationError,
    WorkbenchError,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FAULT", "INTERRUPTED", "NOT_LOWERED", "NOT_RUN", "NOT_VALID", "USAGE", "main"]

FAULT, USAGE, NOT_LOWERED, NOT_VALID, NOT_RUN, INTERRUPTED = 1, 2, 3, 4, 5, 130
_SHOWN_ROWS = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has said what is wrong
        return int(stop.code or 0)
    command: Callable[[argparse.Namespace], dict[str, Any]] = options.command
    try:
        result = command(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as error:  # the last line of defence: whatever it is becomes a code and a message
        return _failed(error, options)
    if options.json:
        print(json.dumps(result, indent=1, default=str))
    return 0


def _failed(error: Exception, options: argparse.Namespace) -> int:
    code = _code_of(error, options.name)
    if options.debug:
        traceback.print_exception(error)
    if options.json:
        details = error.details if isinstance(error, WorkbenchError) else {}
        message = error.message if isinstance(error, WorkbenchError) else str(error)
        kind = type(error).__name__
        print(
            json.dumps({"error": {"kind": kind, "message": message, **details}, "exit_code": code}, indent=1)
        )
    if isinstance(error, WorkbenchError | OSError):
        print(f"workbench {options.name}: {error}", file=sys.stderr)
    else:
        print(f"workbench {options.name}: {type(error).__name__}: {error}", file=sys.stderr)
        if not options.debug:
            print("this is a fault of the workbench; --debug shows where", file=sys.stderr)
    return code


def _code_of(error: Exception, command: str) -> int:
    if isinstance(error, RecipeError | OSError):
        return USAGE
    if isinstance(error, ExecutionError):
        return NOT_RUN
    if isinstance(error, SerializationError | TraceError):
        return NOT_VALID
    if isinstance(error, WorkbenchError):
        if isinstance(error, VerificationError) and command != "lower":
            return NOT_VALID
        return NOT_LOWERED
    return FAULT


# ---- lower -------------------------------------------------------------------------------------------------


def _lower(options: argparse.Namespace) -> dict[str, Any]:
    from workbench.lowering import lower
    from workbench.recipe import MemoryOptions, Recipe
    from workbench.sources import dynamic_shapes, load_model, load_tensors, partitioner_named, shaped

    source = load_model(options.model)
    inputs = source.inputs
    if options.example or options.shape:
        inputs = (*load_tensors(options.example), *(shaped(text) for text in options.shape))
    if inputs is None and not _is_exported(source.model):
        raise ExportError(
            f"{options.model} brings no example inputs",
            hint="let the factory return (module, inputs), or give --shape 1x3x224x224 or --example x.npy",
        )
    recipe = Recipe()
    if options.recipe:
        recipe = Recipe.from_json(Path(options.recipe).read_text(encoding="utf-8"))
    if options.partitioner:
        recipe = recipe.replace(partitioner=[partitioner_named(name) for name in options.partitioner])
    if options.planner:
        recipe = recipe.replace(memory=MemoryOptions(planner=options.planner))
    shapes = dynamic_shapes(options.dynamic, inputs or ()) or source.dynamic_shapes
    lowering = lower(source.model, inputs or (), recipe=recipe, dynamic_shapes=shapes)
    lowering.save(options.output)
    result: dict[str, Any] = {
        "program": str(options.output),
        "bytes": Path(options.output).stat().st_size,
        "methods": list(lowering.methods),
        "seconds": dict(lowering.seconds),
        "arena_bytes": _arena_bytes(lowering.program.emitted.program),
        "left_behind": len(lowering.why_not),
    }
    if options.etrecord:
        lowering.save_etrecord(options.etrecord)
        result["etrecord"] = str(options.etrecord)
    if not options.json:
        took = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in lowering.seconds.items())
        arena = sum(result["arena_bytes"].values())
        print(f"{options.output}: {result['bytes']:,} bytes, arena {arena:,} bytes")
        print(took)
        if recipe.partitioner and len(lowering.why_not):
            print(f"{len(lowering.why_not)} nodes were left to the runtime:")
            _show(lowering.why_not[["node", "target", "source", "reason", "eligible_if"]])
    return result


def _is_exported(model: Any) -> bool:
    from torch.export import ExportedProgram

    return isinstance(model, ExportedProgram)


def _arena_bytes(program: Any) -> dict[str, int]:
    return {method.name: int(sum(method.arena_sizes)) for method in program.methods}


# ---- run ---------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> dict[str, Any]:
    from workbench.opened import open as open_program
    from workbench.sources import load_tensors

    opened = open_program(options.program)
    inputs = load_tensors(options.inputs) if options.inputs else opened.random_inputs(options.method)
    if not options.inputs and not options.json:
        print("no --inputs: random numbers (seed 0), zeros for integers", file=sys.stderr)
    recorded = bool(options.trace or options.profile)
    run = opened.run(*inputs, method=options.method, profile=recorded, repeat=options.repeat)
    if options.output:
        import torch

        torch.save(list(run.outputs), options.output)
    if options.trace:
        run.save(options.trace)
    result: dict[str, Any] = {
        "method": options.method,
        "outputs": [_described(value) for value in run.outputs],
    }
    if recorded:
        result["profile"] = run.summary().to_dict(orient="records")
    if not options.json:
        for index, line in enumerate(result["outputs"]):
            print(f"output {index}: " + ", ".join(f"{key} {value}" for key, value in line.items()))
        if recorded:
            _show(run.summary())
        if options.trace:
            print(f"trace: {options.trace}", file=sys.stderr)
    return result


def _described(value: Any) -> dict[str, Any]:
    import torch

    if not isinstance(value, torch.Tensor):
        return {"value": value}
    shown: dict[str, Any] = {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if value.numel() and value.dtype is not torch.bool:
        numbers = value.double()
        shown.update(min=numbers.min().item(), max=numbers.max().item(), mean=numbers.mean().item())
    return shown


# ---- inspect and verify ------------------------------------------------------------------------------------


def _inspect(options: argparse.Namespace) -> dict[str, Any]:
    from workbench.opened import open as open_program

    opened = open_program(options.program)
    tables = {
        "methods": opened.methods,
        "segments": opened.sizes,
        "operators": opened.operators,
        "delegates": opened.delegates,
        "memory": opened.plan,
        "instructions": opened.instructions.drop(columns="handles"),  # index plus one
    }
    if options.trace:
        from workbench.inspector import Inspector

        inspector = Inspector(etdump=options.trace, etrecord=options.etrecord)
        if len(inspector.event_blocks) == 0:
            raise TraceError(f"{options.trace} holds no events")
        tables["profile"] = inspector.table(include_units=False)
    if not options.json:
        print(repr(opened))
        for title, table in tables.items():
            if len(table) and (title != "instructions" or options.all):
                print(f"\n{title}")
                _show(table, None if options.all else _SHOWN_ROWS)
    return {
        title: json.loads(table.to_json(orient="records", default_handler=str))
        for title, table in tables.items()
    }


def _verify(options: argparse.Namespace) -> dict[str, Any]:
    from workbench.opened import open as open_program
    from workbench.runtime import Runtime

    opened = open_program(options.program)
    loaded = []
    if not options.file_only:
        program = Runtime.get().load_program(options.program)
        for name in opened.methods["method"]:
            program.load_method(name)
            loaded.append(name)
    result = {
        "program": str(options.program),
        "valid": True,
        "methods": list(opened.methods["method"]),
        "loaded": loaded,
    }
    if not options.json:
        what = "the file is sound" if options.file_only else "the file is sound, and every method loads here"
        print(f"{options.program}: {what}")
    return result


def _show(table: pd.DataFrame, rows: int | None = _SHOWN_ROWS) -> None:
    import pandas as pd

    shown = table if rows is None else table.head(rows)
    with pd.option_context("display.width", 200, "display.max_colwidth", 70):
        print(shown.to_string(index=False))
    if len(shown) < len(table):
        print(f"... and {len(table) - len(shown)} more rows (--all)")


# ---- options -----------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    from workbench import __version__

    parser = argparse.ArgumentParser(
        prog="workbench",
        description="Lower PyTorch models to .pte programs, run them, and look into them.",
        epilog="exit codes: 0 done, 1 fault of the workbench, 2 usage, 3 not lowered, 4 bad file, 5 not run",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    lower = _command(commands, "lower", _lower, "capture a model and lower it to a .pte")
    lower.add_argument("model", help="FILE.py:factory, package.module:factory, FILE.pt2 or FILE.pt")
    lower.add_argument("-o", "--output", type=Path, required=True, help="the .pte to write")
    lower.add_argument("--partitioner", action="append", default=[], metavar="NAME", help="may be repeated")
    lower.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="INPUT.DIM=MIN..MAX",
        help="free a dimension: 0.0=1..8",
    )
    lower.add_argument(
        "--shape", action="append", default=[], metavar="1x3x224x224[:DTYPE]", help="example input"
    )
    lower.add_argument(
        "--example", action="append", default=[], metavar="FILE", help="example input, .npy or .pt"
    )
    lower.add_argument("--recipe", metavar="FILE.json", help="a recipe, as Recipe.to_json wrote it")
    lower.add_argument("--planner", help="memory planner")
    lower.add_argument("--etrecord", type=Path, help="write an ETRecord for the Inspector, too")

    run = _command(commands, "run", _run, "run a method of a program in the native runtime")
    run.add_argument("program", help="the .pte")
    run.add_argument("--inputs", nargs="+", default=[], metavar="FILE", help=".npy, .npz or .pt, in order")
    run.add_argument("--method", default="forward")
    run.add_argument("--repeat", type=_positive, default=1, metavar="N")
    run.add_argument("--profile", action="store_true", help="show where the time goes")
    run.add_argument("--trace", metavar="FILE", help="write the trace: .json for Perfetto, else ETDump")
    run.add_argument("--output", type=Path, metavar="FILE.pt", help="write the outputs")

    inspect = _command(commands, "inspect", _inspect, "show what is in a program")
    inspect.add_argument("program", help="the .pte, of this tool or any other")
    inspect.add_argument("--trace", metavar="FILE", help="an ETDump of the program")
    inspect.add_argument("--etrecord", metavar="FILE", help="what joins the trace with the model's source")
    inspect.add_argument("--all", action="store_true", help="all rows of all tables")

    verify = _command(commands, "verify", _verify, "check a program file, and that this runtime can load it")
    verify.add_argument("program", help="the .pte")
    verify.add_argument("--file-only", action="store_true", help="don't ask for kernels and backends")
    return parser


def _command(commands: Any, name: str, function: Any, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    parser.set_defaults(command=function)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
