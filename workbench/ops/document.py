"""Writes `docs/operators.md` from the registry: `python -m workbench.ops.document [--check] [PATH]`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from workbench.ops.entry import ALL, FLOATS, INTEGERS, REALS, OperatorEntry
from workbench.ops.registry import entries, runtime_kernels

__all__ = ["main", "render"]

_HEAD = """# Operators

The operators of the edge dialect that the registry (`workbench/ops/`) describes, by family. *Kernel* is the
name in a `.pte` file; a tick says that our runtime has it. Shapes are symbolic: `(*s)` stands for any sizes.
Types are those of the first tensor. A result is compared with eager by the tolerance given for float32.

This file is made by `python -m workbench.ops.document`.
"""
_COLUMNS = "| operator | kernel | shapes | types | tolerance |\n| --- | --- | --- | --- | --- |"
_GROUPS = ((ALL, "all"), (REALS, "all but bool"), (FLOATS, "floats"), (INTEGERS, "integers"))


def render() -> str:
    """The text of the page."""
    families: dict[str, list[OperatorEntry]] = {}
    for entry in entries().values():
        families.setdefault(entry.family, []).append(entry)
    parts = [_HEAD]
    for family in sorted(families):
        parts.append(f"\n## {family}\n\n{_COLUMNS}")
        parts.extend(_row(entry) for entry in families[family])
    described = {entry.kernel for entry in entries().values()}
    rest = sorted(runtime_kernels() - described)
    if rest:
        parts.append("\n## Further kernels of the runtime\n\n" + "\n".join(f"- `{name}`" for name in rest))
    return "\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say by the exit code whether it is up to date."""
    check = "--check" in arguments
    paths = [item for item in arguments if not item.startswith("-")]
    target = Path(paths[0] if paths else "docs/operators.md")
    text = render()
    if check:
        fresh = target.exists() and target.read_text(encoding="utf-8") == text
        print(f"{target} is {'up to date' if fresh else 'out of date: run python -m workbench.ops.document'}")
        return 0 if fresh else 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"{target}: {len(entries())} operators")
    return 0


def _row(entry: OperatorEntry) -> str:
    tolerance = entry.tolerance(torch.float32)
    limits = "exact" if tolerance.rtol == 0 else f"rtol {tolerance.rtol:g}, atol {tolerance.atol:g}"
    tick = " ✓" if entry.kernel in runtime_kernels() else ""
    return f"| `{entry.name}` | `{entry.kernel}`{tick} | {entry.shapes} | {_types(entry.dtypes)} | {limits} |"


def _types(dtypes: tuple[torch.dtype, ...]) -> str:
    for group, name in _GROUPS:
        if dtypes == group:
            return name
    return ", ".join(str(item).removeprefix("torch.") for item in dtypes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
