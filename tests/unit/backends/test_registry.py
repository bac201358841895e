import importlib.metadata

import pytest

from workbench.backends import (
    BackendDetails,
    PreprocessResult,
    backend_ids,
    get_backend,
    register_backend,
    registry,
)
from workbench.errors import PartitionError


class Toy(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"")


@pytest.fixture
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_discovered", False)


def test_backends_of_the_package_are_found_without_being_named():
    assert {"AddMulBackendDemo", "BackendWithCompilerDemo"} <= set(backend_ids())


@pytest.mark.usefixtures("clean")
def test_registered_backend_is_found_by_its_identifier():
    assert register_backend("Vendor.Npu")(Toy) is Toy
    assert get_backend("Vendor.Npu") is Toy


@pytest.mark.usefixtures("clean")
def test_second_class_for_an_identifier_is_refused():
    register_backend("Same")(Toy)

    with pytest.raises(PartitionError, match="registered twice"):

        @register_backend("Same")
        class Another(BackendDetails):
            @staticmethod
            def preprocess(edge_program, compile_specs):
                return PreprocessResult(b"")


@pytest.mark.usefixtures("clean")
def test_subclass_is_found_by_its_name_without_registration():
    class JustDefinedHere(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            return PreprocessResult(b"")

    assert get_backend("JustDefinedHere") is JustDefinedHere


@pytest.mark.usefixtures("clean")
def test_unknown_backend_gets_a_suggestion():
    register_backend("Accelerator")(Toy)
    with pytest.raises(PartitionError) as caught:
        get_backend("Acelerator")
    assert "Accelerator" in (caught.value.hint or "")


@pytest.mark.usefixtures("clean")
def test_entry_points_of_other_packages_are_asked(monkeypatch):
    point = importlib.metadata.EntryPoint("FromAfar", f"{__name__}:Toy", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: Toy)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else []
    )
    assert get_backend("FromAfar") is Toy
