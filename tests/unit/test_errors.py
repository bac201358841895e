from __future__ import annotations

import pickle

import pytest

from workbench import errors

_WARNINGS = {"CalibrationWarning"}


@pytest.mark.parametrize("name", sorted({*errors.__all__} - _WARNINGS))
def test_every_kind_is_a_workbench_error(name):
    error = getattr(errors, name)("it broke", node="relu")
    assert isinstance(error, errors.WorkbenchError)
    assert str(error).startswith("it broke\n")
    assert str(error).endswith("\n  node: relu")


@pytest.mark.parametrize("name", sorted(_WARNINGS))
def test_warnings_are_those_of_users(name):
    assert issubclass(getattr(errors, name), UserWarning)


def test_fields_are_printed_below_the_message_in_order():
    error = errors.VerificationError(
        "wrong", hint="mend it", expected="one\ntwo", stage="edge", node="n", source="m.py:3", found="x"
    )
    assert str(error).splitlines() == [
        "wrong",
        "  stage   : edge",
        "  node    : n",
        "  source  : m.py:3",
        "  expected: one",
        "            two",
        "  found   : x",
        "  hint    : mend it",
    ]


def test_code_of_an_execution_error_comes_first():
    error = errors.ExecutionError("refused", code="InvalidArgument", node="add")
    assert str(error) == "refused\n  code: InvalidArgument\n  node: add"


def test_errors_survive_pickling():
    error = errors.ExecutionError("refused", code="Oom", hint="more")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.ExecutionError
    assert (again.message, again.code, again.hint, str(again)) == ("refused", "Oom", "more", str(error))
