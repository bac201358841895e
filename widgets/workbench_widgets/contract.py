"""The contract between Python and TypeScript, declared once here and in the `contract.py` of each view.

`python -m workbench_widgets.contract` writes `contract.ts` from it (`--check` only compares). A view's
`contract.py` declares dataclasses and up to three tables: `DOCUMENTS` (kind -> what a view draws), `CALLS`
(name -> what a view asks for and what it gets), `EVENTS` (name -> what Python streams).
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench_widgets.columns import Strings

__all__ = ["About", "Failure", "Picked", "Stage", "contracts", "generate"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Stage:
    """One entry of the stage bar.

    Attributes:
        name: `exported`, `pruned` and `quantized` (where the recipe asks for them), `edge`, `partitioned`,
            `lowered`, `planned`, `program` or `run`.
        title: What people read.
        detail: A few words: counts, bytes or time.
        seconds: How long the step took; None where it did not run.
    """

    name: str
    title: str
    detail: str
    seconds: float | None


@dataclass(frozen=True)
class About:
    """What a widget is about.

    Attributes:
        view: The view's name.
        title: One line.
        family: The same for all widgets that share one selection.
        stages: Those that exist, in order.
        stage: The one that was asked for.
        methods: Names of the methods.
        method: The one that is shown first.
        can_lower: Recipes can be changed and lowered again.
        can_run: There are inputs to run with.
    """

    view: str
    title: str
    family: str
    stages: list[Stage]
    stage: str
    methods: list[str]
    method: str
    can_lower: bool
    can_run: bool


@dataclass(frozen=True)
class Failure:
    """An error as views show it.

    Attributes:
        kind: Class of the error.
        message: What went wrong.
        details: Where, what was expected, what was found, what to do.
    """

    kind: str
    message: str
    details: dict[str, str]


@dataclass(frozen=True)
class Picked:
    """The selection.

    Attributes:
        method: The method that the handles belong to.
        handles: Source handles, ascending.
        node: The node's name that was picked, for the one with the focus; None where several were.
    """

    method: str
    handles: list[int]
    node: str | None


def contracts() -> Iterator[tuple[str, types.ModuleType]]:
    """The contract of each view, by the view's name."""
    for path in sorted(HERE.glob("*/contract.py")):
        yield path.parent.name, importlib.import_module(f"workbench_widgets.{path.parent.name}.contract")


def generate() -> str:
    """The text of `contract.ts`."""
    tables: dict[str, dict[str, str]] = {"DOCUMENTS": {}, "CALLS": {}, "EVENTS": {}}
    seen: dict[str, type[Any]] = {}
    roots: list[Any] = [About, Failure, Picked]
    for view, module in contracts():
        for table, known in tables.items():
            for name, declared in getattr(module, table, {}).items():
                if name in known:
                    raise ValueError(f"{table} of {view} declares {name!r} a second time")
                parts = declared if isinstance(declared, tuple) else (declared,)
                roots += parts
                texts = [_type(part) for part in parts]
                known[name] = (
                    texts[0] if table != "CALLS" else f"{{ arguments: {texts[0]}; result: {texts[1]} }}"
                )
    for root in roots:
        _collect(root, seen)
    lines = ["// Written by `python -m workbench_widgets.contract`; do not edit.", ""]
    interfaces = [line for name in sorted(seen) for line in _interface(seen[name])]
    if any("StringColumn" in line for line in interfaces):
        lines += ['import type { StringColumn } from "./common/unpack.ts";', ""]
    lines += interfaces
    for title, table in (("Documents", "DOCUMENTS"), ("Calls", "CALLS"), ("Events", "EVENTS")):
        entries = [f'  readonly "{name}": {text};' for name, text in sorted(tables[table].items())]
        lines += [f"export interface {title} {{", *entries, "}", ""]
    return "\n".join(lines)


def _collect(hint: Any, seen: dict[str, type[Any]]) -> None:
    for part in typing.get_args(hint):
        if not isinstance(part, str):
            _collect(part, seen)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        known = seen.setdefault(hint.__name__, hint)
        if known is not hint:
            raise ValueError(f"two dataclasses of the contract are called {hint.__name__}")
        for item in typing.get_type_hints(hint, include_extras=True).values():
            if item is not hint:
                _collect(item, seen)


def _interface(kind: type[Any]) -> list[str]:
    hints = typing.get_type_hints(kind, include_extras=True)
    first = (kind.__doc__ or "").strip().splitlines()[0]
    fields = [f"  readonly {item.name}: {_type(hints[item.name])};" for item in dataclasses.fields(kind)]
    return [f"/** {first} */", f"export interface {kind.__name__} {{", *fields, "}", ""]


_ARRAYS = {
    "float64": "Float64Array",
    "float32": "Float32Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "uint16": "Uint16Array",
    "uint8": "Uint8Array",
}
_PLAIN: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "unknown",
    Strings: "StringColumn",
}


def _type(hint: Any) -> str:
    """The TypeScript type of an annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _ARRAYS[str(arguments[1])]
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(part) for part in arguments)
    if origin is typing.Literal:
        return " | ".join(f'"{part}"' if isinstance(part, str) else str(part).lower() for part in arguments)
    if origin in (list, tuple):
        inner = _type(arguments[0])
        return f"readonly ({inner})[]" if " | " in inner else f"readonly {inner}[]"
    if origin in (dict, Mapping):
        return f"Readonly<Record<string, {_type(arguments[1])}>>"
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return hint.__name__
    if hint in _PLAIN:
        return _PLAIN[hint]
    raise TypeError(f"the contract can't hold a {hint}")


def main(arguments: list[str]) -> int:
    """Write `contract.ts`, or compare with it."""
    path = HERE / "contract.ts"
    text = generate()
    if "--check" in arguments:
        if path.read_text(encoding="utf-8") == text:
            return 0
        print("contract.ts is out of date: python -m workbench_widgets.contract", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    # Views import this module by its name: the classes of a second copy would be others.
    sys.exit(importlib.import_module("workbench_widgets.contract").main(sys.argv[1:]))
