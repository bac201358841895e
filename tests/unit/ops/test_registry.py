from __future__ import annotations

import pytest
import torch

from workbench.ops import registry
from workbench.ops.document import main, render
from workbench.ops.entry import plain_name
from workbench.ops.out_variant import out_variant, wire_name

aten = torch.ops.aten
ENTRIES = list(registry.entries().values())


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (aten.add.Tensor, "aten::add.out"),
        (aten.add.Scalar, "aten::add.Scalar_out"),
        (aten.mean.dim, "aten::mean.out"),
        (aten.max.dim, "aten::max.dim_max"),
        (aten.max.default, "aten::max.unary_out"),
        (aten.div.Tensor_mode, "aten::div.out_mode"),
        (aten.view_copy.default, "aten::view_copy.out"),
        (aten.split_with_sizes_copy.default, "aten::split_with_sizes_copy.out"),
        (aten.where.self, "aten::where.self_out"),
        (aten.full.default, "aten::full.out"),
        (aten.arange.start_step, "aten::arange.start_out"),
        (aten.native_layer_norm.default, "aten::native_layer_norm.out"),
        (aten.upsample_bilinear2d.vec, "aten::upsample_bilinear2d.vec_out"),
        (torch.ops.workbench._to_dim_order_copy.default, "dim_order_ops::_to_dim_order_copy.out"),
        (torch.ops.workbench._clone_dim_order.default, "dim_order_ops::_clone_dim_order.out"),
        (aten.add.out, "aten::add.out"),
    ],
)
def test_kernel_is_that_of_the_out_variant(operator, name):
    assert wire_name(operator) == name


def test_operator_without_out_variant_has_no_kernel():
    assert out_variant(aten.sym_size.int) is None
    assert wire_name(aten.sym_size.int) is None


def test_quantized_operators_have_the_names_of_the_wire():
    quantized = torch.ops.quantized_decomposed
    assert wire_name(quantized.quantize_per_tensor.default) == "quantized_decomposed::quantize_per_tensor.out"
    assert (
        wire_name(quantized.dequantize_per_channel.default)
        == "quantized_decomposed::dequantize_per_channel.out"
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: plain_name(entry.operator))
def test_eager_takes_every_sample(entry):
    for dtype in entry.dtypes:
        samples = list(entry.samples(dtype))
        assert samples
        for sample in samples:
            entry.expected(sample)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: plain_name(entry.operator))
def test_samples_are_the_same_for_the_same_seed(entry):
    def tensors(seed):
        return [
            item
            for sample in entry.samples(entry.dtypes[0], seed=seed)
            for item in torch.utils._pytree.tree_leaves((sample.args, dict(sample.kwargs)))
            if isinstance(item, torch.Tensor)
        ]

    assert all(torch.equal(a, b) for a, b in zip(tensors(3), tensors(3), strict=True))


def test_integers_and_exact_operators_have_no_tolerance():
    add, relu = registry.entry_of(aten.add.Tensor), registry.entry_of(aten.relu.default)
    assert add.tolerance(torch.int64).rtol == 0
    assert add.tolerance(torch.float32).rtol > 0
    assert relu.tolerance(torch.float32).rtol == 0


def test_each_operator_has_one_entry_and_each_kernel_one_operator():
    kernels = [entry.kernel for entry in ENTRIES]
    assert len(kernels) == len(set(kernels))
    assert all(len(name) < 100 for name in kernels)


def test_page_lists_every_operator(tmp_path):
    page = tmp_path / "operators.md"
    assert main([str(page)]) == 0
    text = page.read_text()
    assert text == render()
    for entry in ENTRIES:
        assert f"| `{entry.name}` | `{entry.kernel}`" in text
    assert main(["--check", str(page)]) == 0
    page.write_text("old")
    assert main(["--check", str(page)]) == 1
