"""Documents as bytes: round trips, the bytes that TypeScript is tested with, and what is refused."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.widgets.golden_documents import golden
from workbench.errors import SerializationError
from workbench_widgets import pack as module
from workbench_widgets.columns import F32, F64, I32, U8, Strings
from workbench_widgets.pack import pack, parse, unpack

GOLDEN = Path(module.__file__).parent / "common" / "golden.json"


@dataclass(frozen=True)
class Inner:
    title: str
    size: int = 0


@dataclass(frozen=True)
class Columns:
    floats: F64
    small: U8
    names: Strings


@dataclass(frozen=True)
class Plain:
    count: int
    ratio: float
    title: str
    exact: bool
    maybe: int | None
    kind: Literal["a", "b"]
    inner: list[Inner]
    table: dict[str, float]


PLAIN = Plain(1, 0.5, "t", True, None, "a", [Inner("x", 2)], {"k": 1.0})


def _assert_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    elif dataclasses.is_dataclass(wanted):
        for item in dataclasses.fields(wanted):
            _assert_equal(found[item.name], getattr(wanted, item.name))
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            _assert_equal(one, other)
    else:
        assert found == wanted


@pytest.mark.parametrize("name", ["plain", "deflated"])
def test_golden_bytes_are_read_as_they_were_written(name: str) -> None:
    data = base64.b64decode(json.loads(GOLDEN.read_text())[name])
    _assert_equal(unpack(data), golden()[name])
    assert struct.unpack_from("<I", data, 4) == ((1 if name == "deflated" else 0),)


def test_golden_bytes_are_written_again() -> None:
    kept = base64.b64decode(json.loads(GOLDEN.read_text())["plain"])
    assert pack(golden()["plain"]) == kept


@given(
    floats=st.lists(st.floats(width=64), max_size=40),
    small=st.lists(st.integers(0, 255), max_size=40),
    names=st.lists(st.text(max_size=8), max_size=40),
)
def test_columns_survive_the_way(floats: list[float], small: list[int], names: list[str]) -> None:
    document = Columns(np.array(floats, np.float64), np.array(small, np.uint8), Strings(names))
    _assert_equal(unpack(pack(document)), document)


@pytest.mark.parametrize("level", [1, 9])
def test_deflated_document_has_the_same_content_at_every_level(level: int) -> None:
    document = golden()["deflated"]
    _assert_equal(unpack(pack(document, level=level)), document)


def test_columns_begin_at_multiples_of_eight() -> None:
    data = pack(Columns(np.ones(3), np.ones(5, np.uint8), Strings("abc")))
    (length,) = struct.unpack_from("<I", data, 8)
    header = json.loads(data[12 : 12 + length])
    places = [header["floats"]["$column"][1], header["small"]["$column"][1]]
    assert (4 + length) % 8 == 0
    assert all(place % 8 == 0 for place in places)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"count": 1.5}, "Plain.count"),
        ({"count": True}, "Plain.count"),
        ({"ratio": "0.5"}, "Plain.ratio"),
        ({"ratio": float("nan")}, "Plain.ratio"),
        ({"ratio": float("inf")}, "Plain.ratio"),
        ({"title": None}, "Plain.title"),
        ({"exact": 1}, "Plain.exact"),
        ({"maybe": "x"}, "Plain.maybe"),
        ({"kind": "c"}, "Plain.kind"),
        ({"inner": [Inner("x"), "y"]}, "Plain.inner[1]"),
        ({"inner": [Inner(3)]}, "Plain.inner[0].title"),  # type: ignore[arg-type]
        ({"inner": Inner("x")}, "Plain.inner"),
        ({"table": {"k": "v"}}, "Plain.table['k']"),
    ],
)
def test_field_of_another_type_is_refused_by_name(change: dict[str, Any], where: str) -> None:
    with pytest.raises(SerializationError) as raised:
        pack(dataclasses.replace(PLAIN, **change))
    assert f"`{where}`" in str(raised.value)


@dataclass(frozen=True)
class Small:
    column: U8


@dataclass(frozen=True)
class Single:
    column: F32


@dataclass(frozen=True)
class Signed:
    column: I32


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (Small, np.array([1, 256])),
        (Small, np.array([-1, 3])),
        (Small, np.array([0.5])),
        (Small, np.array([np.nan])),
        (Signed, np.array([2**31])),
        (Signed, np.array([2**63], np.uint64)),
        (Signed, np.array([-(2**31) - 1])),
    ],
)
def test_number_that_its_column_can_not_hold_is_refused(kind: Any, column: Any) -> None:
    with pytest.raises(SerializationError, match="can't hold"):
        pack(kind(column))


@pytest.mark.parametrize("column", [[1.0], np.ones((2, 2)), "text", np.array(["a"]), np.array([None]), None])
def test_column_of_another_kind_is_refused(column: Any) -> None:
    with pytest.raises(SerializationError):
        pack(Single(column))


def test_wider_numbers_that_fit_are_narrowed() -> None:
    assert unpack(pack(Small(np.array([0, 255]))))["column"].dtype == np.uint8
    assert unpack(pack(Small(np.array([True, False]))))["column"].tolist() == [1, 0]
    assert unpack(pack(Single(np.array([1.5]))))["column"].tolist() == [1.5]


def test_float_beyond_single_precision_is_refused() -> None:
    with pytest.raises(SerializationError, match="can't hold"):
        pack(Single(np.array([1e300])))
    assert np.isinf(unpack(pack(Single(np.array([np.inf]))))["column"][0])


@pytest.mark.parametrize("data", [b"", b"WBD1", b"something else entirely"])
def test_other_bytes_are_no_document(data: bytes) -> None:
    with pytest.raises(SerializationError, match="no packed document"):
        unpack(data)


def test_cut_document_is_refused() -> None:
    data = pack(golden()["deflated"])
    with pytest.raises(SerializationError):
        unpack(data[: len(data) // 2])
    plain = pack(golden()["plain"])
    with pytest.raises(SerializationError):
        unpack(plain[: len(plain) // 2])


# ---- what views send ---------------------------------------------------------------------------------------


def test_arguments_are_parsed() -> None:
    data = {
        "count": 3,
        "ratio": 2,
        "title": "t",
        "exact": False,
        "maybe": 4,
        "kind": "b",
        "inner": [{"title": "x"}],
        "table": {"k": 1},
    }
    assert parse(Plain, data) == Plain(3, 2.0, "t", False, 4, "b", [Inner("x")], {"k": 1.0})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unknown": 1}, "not known"),
        ({"count": "3"}, "Plain.count"),
        ({"count": True}, "Plain.count"),
        ({"ratio": True}, "Plain.ratio"),
        ({"kind": "c"}, "Plain.kind"),
        ({"inner": [{"size": 1}]}, "incomplete"),
        ({"inner": [{"title": "x", "more": 1}]}, "not known"),
        ({"inner": {}}, "Plain.inner"),
        ({"exact": 1}, "Plain.exact"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, Any], words: str) -> None:
    data = {**dataclasses.asdict(PLAIN), **change}
    with pytest.raises(SerializationError, match=words.replace("[", r"\[")):
        parse(Plain, data)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_arguments_that_are_no_object_are_refused(data: Any) -> None:
    with pytest.raises(SerializationError):
        parse(Plain, data)


def test_missing_arguments_are_refused() -> None:
    with pytest.raises(SerializationError, match="incomplete"):
        parse(Plain, {"count": 1})
