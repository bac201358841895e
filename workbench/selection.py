"""What is selected: some nodes, by their source handles, the same in all views and in Python.

Source handles mean the same in every stage (see `workbench.provenance`), so one selection serves all stages
of a model and all lowerings of one capture.
"""

from __future__ import annotations

import difflib
import logging
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workbench.errors import SelectionError

__all__ = ["Named", "Selection", "resolve"]

_LOG = logging.getLogger(__name__)
# Listeners that answer each other's changes settle within two or three rounds, or never.
_ROUNDS = 50


class Selection:
    """Selected nodes, with listeners.

    Args:
        method: The method that is selected in from the start; None where that is not known.

    Attributes:
        method: The method that the handles belong to.
        handles: Source handles; empty where nothing is selected.
        node: The name of the one node that was picked, or None: several, or picked by handle.
    """

    def __init__(self, method: str | None = None) -> None:
        self._state: tuple[str | None, frozenset[int], str | None] = (method, frozenset(), None)
        self._listeners: dict[object, Callable[[Selection], object]] = {}
        self._lock = threading.Lock()
        self._version = 0
        self._notifying = False

    @property
    def method(self) -> str | None:
        """The method that the handles belong to."""
        return self._state[0]

    @property
    def handles(self) -> frozenset[int]:
        """The selected source handles."""
        return self._state[1]

    @property
    def node(self) -> str | None:
        """The name of the one node that was picked, or None."""
        return self._state[2]

    def set(self, handles: Iterable[int] = (), *, node: str | None = None, method: str | None = None) -> None:
        """Select other nodes. Listeners hear of it if it changes anything.

        Args:
            handles: Source handles.
            node: The name of the node, if one was picked.
            method: The method that they belong to; by default the one of the last selection.

        Raises:
            SelectionError: A handle is no positive integer, or a name is no text; nothing changes then.
        """
        chosen = _handles(handles)
        for name, value in (("node", node), ("method", method)):
            if value is not None and not isinstance(value, str):
                raise SelectionError(f"`{name}` is a name", expected="text or None", found=repr(value))
        with self._lock:
            state = (self._state[0] if method is None else method, chosen, node)
            if state == self._state:
                return
            self._state = state
            self._version += 1
        self._notify()

    def clear(self) -> None:
        """Select nothing."""
        self.set()

    def on_change(self, callback: Callable[[Selection], object]) -> Callable[[], None]:
        """Call back with this selection after each change.

        A callback may change the selection itself: the change is told once the callbacks of the first are
        through. What a callback raises is raised by `set` after all others were called.

        Returns:
            A function that ends it.
        """
        if not callable(callback):
            raise SelectionError("a listener is a function", found=repr(callback))
        key = object()
        self._listeners[key] = callback

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    def _notify(self) -> None:
        with self._lock:
            if self._notifying:  # the round that is under way sees to it
                return
            self._notifying = True
        errors: list[Exception] = []
        told = -1
        try:
            for _ in range(_ROUNDS):
                with self._lock:
                    if told == self._version:
                        self._notifying = False
                        break
                    told = self._version
                errors += self._round()
            else:
                raise SelectionError("the listeners of a selection keep changing it", found=repr(self))
        finally:
            self._notifying = False
        for error in errors[1:]:
            _LOG.error("a listener of a selection failed", exc_info=error)
        if errors:
            raise errors[0]

    def _round(self) -> Iterator[Exception]:
        for key, callback in list(self._listeners.items()):
            if key in self._listeners:  # not removed by a callback before it
                try:
                    callback(self)
                except Exception as error:
                    yield error

    def __bool__(self) -> bool:
        return bool(self.handles) or self.node is not None

    def __repr__(self) -> str:
        method = "" if self.method is None else f" of {self.method}"
        shown = ", ".join(map(str, sorted(self.handles)[:8])) + (", ..." if len(self.handles) > 8 else "")
        node = "" if self.node is None else f" ({self.node})"
        return f"<Selection{method}: {shown or 'nothing'}{node}>"


Named = Callable[[], Iterable[tuple[str, Mapping[str, frozenset[int]]]]]


def resolve(
    value: Any, named: Named, modules: Named = tuple
) -> tuple[frozenset[int], str | None, str | None]:
    """What a user gave to be selected, as arguments of `Selection.set`.

    Args:
        value: Handles, names of nodes, paths of modules, one of these, rows of a table with a column
            `handles`, or None.
        named: Gives for each method, and each of its graphs, the handles by the nodes' names; asked only for
            names, in the order of preference.
        modules: The same for paths of modules; asked where there is no such node.

    Returns:
        The handles, the node's name if it is one, and the method if the value says which.

    Raises:
        SelectionError: A name is not known, or the value is none of these.
    """
    if value is None:
        return frozenset(), None, None
    if isinstance(value, Selection):
        return value.handles, value.node, value.method
    if hasattr(value, "columns") or (hasattr(value, "index") and hasattr(value, "to_dict")):
        return _of_rows(value)
    if isinstance(value, str):
        method, handles, node = _of_name(value, named, modules)
        return handles, node, method
    if not isinstance(value, Iterable):
        return _handles((value,)), None, None
    items = list(value)
    names = [item for item in items if isinstance(item, str)]
    if not names:
        return _handles(items), None, None
    found = [_of_name(name, named, modules) for name in names]
    methods = {method for method, _, _ in found}
    if len(methods) > 1:
        raise SelectionError(
            "these nodes are of several methods", expected="one method", found=", ".join(sorted(methods))
        )
    rest = _handles(item for item in items if not isinstance(item, str))
    node = found[0][2] if len(items) == 1 else None
    return rest.union(*(handles for _, handles, _ in found)), node, methods.pop()


def _of_name(name: str, named: Named, modules: Named) -> tuple[str, frozenset[int], str | None]:
    known: dict[str, None] = {}
    for ask, node in ((named, name), (modules, None)):
        for method, handles in ask():
            if name in handles:
                return method, handles[name], node
            known.update(dict.fromkeys(handles))
    near = difflib.get_close_matches(name, known, n=3)
    raise SelectionError(
        f"no stage has a node '{name}'",
        expected="the name of a node, or the path of a module",
        found=name,
        hint=f"did you mean {' or '.join(near)}?" if near else "the tables of the stages have the names",
    )


def _of_rows(rows: Any) -> tuple[frozenset[int], str | None, str | None]:
    """What rows of a table, or one row, stand for."""
    records = rows.to_dict("records") if hasattr(rows, "columns") else [rows.to_dict()]
    if any("handles" not in record for record in records):
        raise SelectionError(
            "these rows don't say which nodes they stand for",
            expected="a column `handles`",
            found=", ".join(map(str, rows.columns if hasattr(rows, "columns") else rows.index)),
        )
    methods = {record["method"] for record in records if isinstance(record.get("method"), str)}
    if len(methods) > 1:
        raise SelectionError(
            "these rows are of several methods", expected="one method", found=", ".join(sorted(methods))
        )
    handles = _handles(handle for record in records for handle in record["handles"])
    node = records[0].get("node") if len(records) == 1 else None
    return handles, node if isinstance(node, str) else None, methods.pop() if methods else None


def _handles(values: Iterable[Any]) -> frozenset[int]:
    try:
        # numpy's integers, too
        found = [None if isinstance(value, bool) else operator.index(value) for value in values]
    except TypeError:
        found = [None]
    handles = frozenset(handle for handle in found if handle is not None and handle > 0)
    if None in found or len(handles) < len(set(found)):
        raise SelectionError("that is no source handle", expected="integers from 1", found=repr(values)[:80])
    return handles
