import pytest
import torch

from workbench.backends import NamedDataStore
from workbench.errors import PartitionError


def test_equal_data_is_kept_once_under_all_its_names():
    store = NamedDataStore()
    store.add_named_data("a", b"12345678", alignment=16)
    store.add_named_data("b", bytearray(b"12345678"))
    store.add_named_data("c", b"other")
    output = store.get_named_data_store_output()
    assert [bytes(buffer) for buffer in output.buffers] == [b"12345678", b"other"]
    assert output.pte_data["a"].buffer_index == output.pte_data["b"].buffer_index == 0
    assert output.pte_data["a"].alignment == 16


def test_tensors_are_referenced_with_type_and_sizes():
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    store = NamedDataStore()
    store.add_named_data("t", tensor)
    output = store.get_named_data_store_output()
    tensor[0, 0] = 5.0
    assert torch.frombuffer(output.buffers[0], dtype=torch.float32)[0] == 5.0
    assert (output.pte_data["t"].dtype, output.pte_data["t"].sizes) == (torch.float32, (2, 3))


def test_name_for_two_pieces_of_data_is_refused():
    store = NamedDataStore()
    store.add_named_data("a", b"one")
    with pytest.raises(PartitionError, match="called 'a'"):
        store.add_named_data("a", b"two")


def test_name_given_twice_keeps_the_larger_alignment():
    store = NamedDataStore()
    store.add_named_data("a", b"one", alignment=64)
    store.add_named_data("a", b"one", alignment=4)
    assert store.get_named_data_store_output().pte_data["a"].alignment == 64


def test_merging_joins_equal_data_and_keeps_files_apart():
    first, second = NamedDataStore(), NamedDataStore()
    first.add_named_data("a", b"data")
    second.add_named_data("b", b"data")
    second.add_named_data("c", b"more", external_tag="weights")
    first.merge_named_data_store(second.get_named_data_store_output())
    output = first.get_named_data_store_output()
    assert len(output.buffers) == 2
    assert list(output.pte_data) == ["a", "b"] and list(output.external_data["weights"]) == ["c"]


def test_alignment_must_be_positive():
    with pytest.raises(PartitionError, match="alignment"):
        NamedDataStore().add_named_data("a", b"", alignment=0)


def test_empty_tensor_has_no_bytes():
    store = NamedDataStore()
    store.add_named_data("empty", torch.empty(0, 3))
    assert store.get_named_data_store_output().buffers[0].nbytes == 0
