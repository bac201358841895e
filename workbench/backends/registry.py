"""The registry of backends: how a backend is found by its identifier.

A backend registers itself when its module is imported (`register_backend`), or names itself in its package's
entry points, group `lowering_workbench.backends`, with the identifier as the name and the class as the
object:

    [project.entry-points."lowering_workbench.backends"]
    MyBackend = "my_package.aot:MyBackend"

The backends of this package are found by a look at its subfolders, so that nothing names them.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TypeVar, overload

from workbench.backends.base import BackendDetails
from workbench.errors import PartitionError

__all__ = ["ENTRY_POINT_GROUP", "backend_ids", "get_backend", "register_backend", "unregister_backend"]

ENTRY_POINT_GROUP = "lowering_workbench.backends"

_registered: dict[str, type[BackendDetails]] = {}
_discovered = False

T = TypeVar("T", bound=type[BackendDetails])


@overload
def register_backend(backend: T) -> T: ...
@overload
def register_backend(backend: str) -> Callable[[T], T]: ...
def register_backend(backend: T | str) -> T | Callable[[T], T]:
    """Class decorator that makes a backend known, under its class name or the name given.

    Args:
        backend: The class, or the identifier that stands in the program.

    Returns:
        The class unchanged.

    Raises:
        PartitionError: Another class has this identifier already.
    """
    if isinstance(backend, str):
        identifier = backend
        return lambda cls: _add(identifier, cls)
    return _add(backend.__name__, backend)


def unregister_backend(backend_id: str) -> None:
    """Forget a backend; unknown identifiers are ignored."""
    _registered.pop(backend_id, None)


def get_backend(backend_id: str) -> type[BackendDetails]:
    """The class of a backend.

    Besides registered classes, direct subclasses of `BackendDetails` are found by class name, as in
    ExecuTorch.

    Raises:
        PartitionError: No backend has this identifier.
    """
    found = _registered.get(backend_id) or _subclass(backend_id)
    if found is None:
        _discover()
        found = _registered.get(backend_id)
    if found is None:
        known = backend_ids()
        near = difflib.get_close_matches(backend_id, known, n=1)
        raise PartitionError(
            f"no backend is called '{backend_id}'",
            stage="partition",
            expected="one of " + ", ".join(known) if known else "a registered backend",
            hint=f"did you mean '{near[0]}'?"
            if near
            else "import the module that registers it, or install its package",
        )
    return found


def backend_ids() -> list[str]:
    """The identifiers of all backends that can be found, sorted."""
    _discover()
    return sorted(_registered)


def _add(identifier: str, backend: T) -> T:
    known = _registered.setdefault(identifier, backend)
    # A module that is run twice (a notebook's cell, importlib.reload) replaces its own class.
    if known is not backend and (known.__module__, known.__qualname__) != (
        backend.__module__,
        backend.__qualname__,
    ):
        raise PartitionError(
            f"the backend '{identifier}' is registered twice",
            found=f"{known.__module__}.{known.__qualname__} and {backend.__module__}.{backend.__qualname__}",
        )
    _registered[identifier] = backend
    return backend


def _subclass(backend_id: str) -> type[BackendDetails] | None:
    return next(
        (cls for cls in reversed(BackendDetails.__subclasses__()) if cls.__name__ == backend_id), None
    )


def _discover() -> None:
    global _discovered
    if _discovered:
        return
    _discovered = True
    package = importlib.import_module(__name__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            importlib.import_module(f"{package.__name__}.{module.name}")
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name not in _registered:
            _add(point.name, point.load())
