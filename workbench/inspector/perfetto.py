"""A timeline of all runs, in the JSON that ui.perfetto.dev and chrome://tracing open.

The format: "Trace Event Format", the document of the Chromium project; times are microseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.inspector.names import DELEGATE_EVENT, EXECUTE_EVENT, KERNEL_PREFIX, OVERHEAD_EVENT
from workbench.inspector.roofline import group_work
from workbench.inspector.symbols import MethodSymbols, Node
from workbench.serialize.etdump import ProfileEvent, RunBlock

if TYPE_CHECKING:
    from workbench.inspector.inspector import Inspector

__all__ = ["timeline", "write_timeline"]

_PROCESS = 1
_METHOD, _INSTRUCTIONS, _FIRST_DELEGATE = 1, 2, 3


def write_timeline(inspector: Inspector, path: str | os.PathLike[str]) -> None:
    """Write the timeline of a profile to a file."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(timeline(inspector), file)


def timeline(inspector: Inspector) -> dict[str, Any]:
    """The timeline of a profile.

    Returns:
        The document: a track for whole methods, one for instructions, one for the inside of each backend's
        delegates. Source line, module and shapes are in each event's arguments.
    """
    events: list[dict[str, Any]] = []
    tracks = {"methods": _METHOD, "instructions": _INSTRUCTIONS}
    scale = inspector.seconds_per_tick() * 1e6
    for run, block in enumerate(inspector.etdump.blocks):
        events.extend(_run_events(inspector, run, block, tracks, scale))
    named: list[dict[str, Any]] = [_metadata("process_name", 0, "Lowering Workbench")]
    for name, track in tracks.items():
        named.append(_metadata("thread_name", track, name))
        named.append({**_metadata("thread_sort_index", track, ""), "args": {"sort_index": track}})
    return {"traceEvents": named + events, "displayTimeUnit": "ns"}


def _metadata(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _run_events(
    inspector: Inspector, run: int, block: RunBlock, tracks: dict[str, int], scale: float
) -> Iterator[dict[str, Any]]:
    method = block.name.removeprefix("Execute").strip() or "forward"
    symbols = None if inspector.symbols is None else inspector.symbols.method(method)
    if not block.name.startswith("Execute"):
        symbols = None
    known: dict[tuple[int, int | str | None, str], dict[str, Any]] = {}
    for event in block.events:
        if not isinstance(event, ProfileEvent) or event.name == OVERHEAD_EVENT:
            continue
        key = (event.instruction, event.delegate_id, event.name)
        if key not in known:
            known[key] = _arguments(event, symbols)
        yield {
            "ph": "X",
            "name": _label(event, method, symbols),
            "cat": block.name,
            "pid": _PROCESS,
            "tid": _track(event, symbols, tracks),
            "ts": event.start * scale,
            "dur": max(event.end - event.start, 0) * scale,
            "args": {"run": run, **known[key]},
        }


def _is_instruction(event: ProfileEvent) -> bool:
    return event.instruction >= 0 and not event.name.startswith(("Method::", "Program::"))


def _label(event: ProfileEvent, method: str, symbols: MethodSymbols | None) -> str:
    if event.delegate_id is not None:
        return str(event.delegate_id)
    if event.name == DELEGATE_EVENT and symbols is not None:
        return symbols.backend(event.instruction) or event.name
    if event.name == EXECUTE_EVENT:
        return method
    return event.name.removeprefix(KERNEL_PREFIX)


def _track(event: ProfileEvent, symbols: MethodSymbols | None, tracks: dict[str, int]) -> int:
    if event.delegate_id is not None:
        backend = (symbols.backend(event.instruction) if symbols is not None else None) or "delegates"
        return tracks.setdefault(f"inside {backend}", _FIRST_DELEGATE + len(tracks) - 2)
    return _INSTRUCTIONS if _is_instruction(event) else _METHOD


def _arguments(event: ProfileEvent, symbols: MethodSymbols | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if _is_instruction(event):
        arguments["instruction"] = event.instruction
    if symbols is None or not _is_instruction(event):
        return arguments
    handles = symbols.handles(event.instruction, event.delegate_id)
    nodes = symbols.resolve(handles)
    if handles:
        arguments["debug_handles"] = list(handles)
    if nodes:
        arguments["nodes"] = [node.name for node in nodes]
        arguments["ops"] = [node.op for node in nodes]
        arguments["shapes"] = [node.shapes for node in nodes if node.shapes]
        arguments["source"] = _distinct(node.source or _last_line(node) for node in nodes)
        arguments["module"] = _distinct(node.module for node in nodes)
        work = group_work(nodes)
        if work is not None:
            arguments["flops"] = work.flops
            arguments["bytes"] = work.bytes_moved
    return arguments


def _distinct(items: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(item for item in items if item))


def _last_line(node: Node) -> str:
    lines = [
        line.strip() for line in (node.stack_trace or "").splitlines() if line.strip().startswith("File")
    ]
    return lines[0] if lines else ""
