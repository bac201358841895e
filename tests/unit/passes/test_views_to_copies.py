from __future__ import annotations

import torch

from workbench.passes.views_to_copies import ViewsToCopies, copy_of_view

aten = torch.ops.aten


def test_each_view_becomes_its_copy(lab, count):
    def views(x):
        return (
            x.view(4, 6).permute(1, 0),
            x.unsqueeze(0),
            x[:, 1:],
            x.select(0, 1),
            x.expand(2, 2, 3, 4).sum(0),
        )

    program = lab.decomposed(views, torch.randn(2, 3, 4))
    lab.run(program, ViewsToCopies())
    found = count(program)
    for name in ("view_copy", "permute_copy", "unsqueeze_copy", "expand_copy"):
        assert found[f"{name}.default"], found
    assert found["slice_copy.Tensor"]
    assert found["select_copy.int"]
    assert not any(node.target.is_view for node in program.graph.nodes if hasattr(node.target, "is_view"))


def test_copies_are_contiguous_and_strides_behind_them_follow(lab):
    program = lab.decomposed(lambda x: x.permute(1, 0).sin() * 2, torch.randn(3, 5))
    lab.run(program, ViewsToCopies())
    for node in program.graph.nodes:
        if node.op == "call_function":
            assert node.meta["val"].is_contiguous(), node


def test_channels_last_input_of_elementwise_operators_stays(lab):
    image = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last)
    program = lab.decomposed(lambda x: (x.sin(), x.view(1, 3, 4, 5)), image)
    lab.run(program, ViewsToCopies())
    sine = next(node for node in program.graph.nodes if node.target is aten.sin.default)
    assert sine.meta["val"].is_contiguous(memory_format=torch.channels_last)


def test_operators_that_are_no_views_have_no_copy():
    assert copy_of_view(aten.add.Tensor) is None
    assert copy_of_view(aten.add_.Tensor) is None
    assert copy_of_view(len) is None
    assert copy_of_view(aten._unsafe_view.default) is aten.view_copy.default


def test_views_inside_branches_are_replaced(lab):
    def branches(p, x):
        return torch.cond(p, lambda x: x.view(6) + 1, lambda x: x.reshape(6) * 2, (x,))

    program = lab.decomposed(branches, torch.tensor(True), torch.randn(2, 3))
    assert ViewsToCopies()(program).counts["views"] == 2
