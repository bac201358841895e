"""On the wire, our schema of XNNPACK blobs is the one inside the `executorch` package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

executorch = pytest.importorskip("executorch", reason="compares with the package's own schema")

OURS = Path(__file__).parents[2] / "schema" / "xnnpack.fbs"
THEIRS = Path(executorch.__path__[0]) / "backends" / "xnnpack" / "serialization"


class Schema:
    """The declarations of a schema, to be had without their names."""

    def __init__(self, path: Path) -> None:
        text = re.sub(r"//[^\n]*", "", path.read_text())
        found = re.findall(r"(table|union|enum)\s+(\w+)[^{]*\{([^}]*)\}", text)
        self._declared = {name: (kind, body) for kind, name, body in found}

    def shape(self, name: str) -> Any:
        """What a name stands for: kinds, types, defaults and order, and nothing that is called something."""
        bare = name.strip("[]")
        if bare not in self._declared:
            return name
        kind, body = self._declared[bare]
        members = re.split(r"[;,]", re.sub(r"\([^)]*\)", "", body))
        parts = tuple(self._member(kind, member.strip()) for member in members if member.strip())
        return ("list" if name.startswith("[") else "one", kind, parts)

    def _member(self, kind: str, text: str) -> Any:
        if kind == "enum":
            return text.partition("=")[2].strip()
        _, colon, type_ = (part.strip() for part in text.partition(":"))
        if kind == "union":
            return self.shape(type_ if colon else text)
        type_, _, default = (part.strip() for part in type_.partition("="))
        return (self.shape(type_), bool(default))


@pytest.mark.parametrize("name", ["schema.fbs", "runtime_schema.fbs"])
def test_schema_equals_that_of_the_package_but_for_names(name: str) -> None:
    ours, theirs = Schema(OURS).shape("Graph"), Schema(THEIRS / name).shape("XNNGraph")
    if name == "schema.fbs":
        # What only older files have is in their schema for reading alone: a tensor's last field.
        last = re.search(r"\n[^\n]*dq_datatype[^\n]*", OURS.read_text())
        assert last is not None
        shortened = Schema(OURS)
        kind, body = shortened._declared["Tensor"]
        shortened._declared["Tensor"] = (kind, re.sub(r"dq_datatype[^;]*;", "", body))
        ours = shortened.shape("Graph")
    assert ours == theirs
    assert len(str(ours)) > 5_000  # the walk went into the tables


def test_schema_says_the_identifier_that_runtimes_take() -> None:
    assert 'file_identifier "XN01"' in OURS.read_text()
