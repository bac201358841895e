"""Documents as bytes, and back: a header of JSON, then the columns.

    "WBD1" | flags: uint32 | body
    body = header length: uint32 | header, padded to 8 bytes | columns, each padded to 8 bytes

Little endian. Bit 0 of the flags: the body is deflated (zlib). In the header a column of numbers stands as
`{"$column": [dtype, offset, rows]}`, offset in bytes from the end of the header; a column of text as
`{"$strings": [column of codes, values]}`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import types
import typing
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from workbench.errors import SerializationError
from workbench_widgets.columns import Strings

__all__ = ["pack", "parse", "unpack"]

_MAGIC = b"WBD1"
_DEFLATED = 1
# Below this many bytes a body is sent as it is.
_SMALL = 1 << 14
DTYPES = ("float64", "float32", "int32", "uint32", "uint16", "uint8")


def pack(document: Any, *, level: int = 1) -> bytes:
    """A document as bytes.

    Args:
        document: A dataclass of `columns`; every field is held against its annotation.
        level: How hard to deflate, 1 (quick) to 9 (small).

    Raises:
        SerializationError: A field holds something else than its annotation says, or a number that its column
            can't hold.
    """
    columns: list[bytes] = []
    position = 0

    def put(array: np.ndarray[Any, Any]) -> dict[str, Any]:
        nonlocal position
        data = np.ascontiguousarray(array).tobytes()
        padded = data + bytes(-len(data) % 8)
        reference = {"$column": [array.dtype.name, position, len(array)]}
        columns.append(padded)
        position += len(padded)
        return reference

    tree = _tree(document, type(document), type(document).__name__, put)
    header = json.dumps(tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    header += b" " * (-(len(header) + 4) % 8)
    body = b"".join((struct.pack("<I", len(header)), header, *columns))
    if len(body) < _SMALL:
        return _MAGIC + struct.pack("<I", 0) + body
    return _MAGIC + struct.pack("<I", _DEFLATED) + zlib.compress(body, level)


def unpack(data: bytes) -> Any:
    """What `pack` wrote, as dictionaries, lists, arrays and `Strings`.

    Raises:
        SerializationError: These are no such bytes.
    """
    if data[:4] != _MAGIC or len(data) < 12:
        raise SerializationError(
            "these bytes are no packed document", expected="WBD1", found=repr(bytes(data[:4]))
        )
    try:
        header, body, start = _open(data)
    except (zlib.error, struct.error, ValueError) as error:
        raise SerializationError("this document is damaged", found=str(error)) from error

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$column" in value:
            dtype, offset, rows = value["$column"]
            return np.frombuffer(body, dtype, rows, start + offset)
        if "$strings" in value:
            codes, values = value["$strings"]
            made = Strings(())
            made.codes, made.values = read(codes), values
            return made
        return {key: read(item) for key, item in value.items()}

    try:
        return read(header)
    except ValueError as error:  # a column that ends behind the bytes
        raise SerializationError("this document is damaged", found=str(error)) from error


def _open(data: bytes) -> tuple[Any, bytes, int]:
    """The header, what holds the columns, and where they begin in it."""
    (flags,) = struct.unpack_from("<I", data, 4)
    body = zlib.decompress(data[8:]) if flags & _DEFLATED else bytes(data[8:])
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body, 4 + length


def parse(kind: type[Any], data: Any) -> Any:
    """The dataclass that plain data (what a view sent) stands for.

    Raises:
        SerializationError: A field is missing, unknown or of another type.
    """
    return _parse(kind, data, kind.__name__)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _wrong(where: str, expected: Any, found: Any) -> SerializationError:
    name = expected if isinstance(expected, str) else getattr(expected, "__name__", str(expected))
    return SerializationError(
        f"`{where}` is not what the contract says",
        expected=name,
        found=f"{type(found).__name__} {found!r:.80}",
    )


def _tree(value: Any, hint: Any, where: str, put: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return put(_column(value, str(arguments[1]), where))
    if origin in (typing.Union, types.UnionType):
        # JSON has no infinities and no NaN: a number that may be missing is null then.
        missing = value is None or (isinstance(value, float) and not math.isfinite(value))
        if missing and type(None) in arguments:
            return None
        return _tree(value, _member(value, arguments, where), where, put)
    if origin is typing.Literal:
        if value not in arguments:
            raise _wrong(where, " | ".join(map(repr, arguments)), value)
        return value
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            raise _wrong(where, "a list", value)
        item = arguments[0]
        return [_tree(entry, item, f"{where}[{index}]", put) for index, entry in enumerate(value)]
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            raise _wrong(where, "a mapping", value)
        return {
            str(key): _tree(entry, arguments[1], f"{where}[{key!r}]", put) for key, entry in value.items()
        }
    if hint is Strings:
        if not isinstance(value, Strings):
            raise _wrong(where, Strings, value)
        return {"$strings": [put(value.codes), value.values]}
    if dataclasses.is_dataclass(hint):
        if type(value) is not hint:
            raise _wrong(where, hint, value)
        hints = _hints(typing.cast("Any", hint))
        return {
            item.name: _tree(getattr(value, item.name), hints[item.name], f"{where}.{item.name}", put)
            for item in dataclasses.fields(hint)
        }
    return _plain(value, hint, where)


def _plain(value: Any, hint: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
            raise _wrong(where, hint, value)
        if not math.isfinite(value):
            raise _wrong(where, "a finite number", value)
        return float(value)
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise _wrong(where, hint, value)
        return int(value)
    if not isinstance(value, hint):
        raise _wrong(where, hint, value)
    return value


def _column(value: Any, dtype: str, where: str) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise _wrong(where, f"a one-dimensional array of {dtype}", value)
    if value.dtype.name == dtype:
        return value
    if value.dtype.kind not in "iufb":
        raise _wrong(where, f"a column of {dtype}", value)
    with np.errstate(all="ignore"):
        cast = value.astype(dtype)
    wide = value.astype(np.float64)
    if np.dtype(dtype).kind == "f":
        fits = bool((np.isfinite(cast) == np.isfinite(wide)).all())  # rounding is all right
    else:
        fits = np.array_equal(cast.astype(np.float64), wide)
    if not fits:
        raise SerializationError(
            f"`{where}` has a number that its column can't hold",
            expected=dtype,
            found=f"{value.dtype.name}, {value.min()} to {value.max()}",
        )
    return cast


def _member(value: Any, arguments: tuple[Any, ...], where: str) -> Any:
    """The part of a union that a value belongs to."""
    parts = [part for part in arguments if part is not type(None)]
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        origin = typing.get_origin(part)
        plain = origin if isinstance(origin, type) else part
        if (
            isinstance(plain, type)
            and isinstance(value, plain)
            and not (plain is int and isinstance(value, bool))
        ):
            return part
    raise _wrong(where, " | ".join(map(str, parts)), value)


def _parse(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _parse(_member(value, arguments, where), value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise _wrong(where, " | ".join(map(repr, arguments)), value)
        return value
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        made = [_parse(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(made) if origin is tuple else made
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        return {key: _parse(arguments[1], item, f"{where}[{key!r}]") for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return _parse_fields(typing.cast("type[Any]", hint), value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _plain(value, hint, where)


def _parse_fields(kind: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(where, kind, value)
    fields = {item.name: item for item in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise SerializationError(
            f"`{where}` has a field that is not known", expected=", ".join(fields), found=unknown[0]
        )
    hints = _hints(typing.cast("Any", kind))
    made = {name: _parse(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    try:
        return kind(**made)
    except TypeError as error:
        raise SerializationError(f"`{where}` is incomplete: {error}") from error
