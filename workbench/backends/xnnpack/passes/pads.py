"""Zeros around an image become padding of the convolution that alone reads it."""

from __future__ import annotations

from workbench.backends.xnnpack.graph import Call, Graph

__all__ = ["run"]


def run(graph: Graph) -> int:
    """Fuse in one walk; gives how many pads went. Shapes are in PyTorch's order."""
    readers = graph.readers()
    results = set(graph.outputs)
    count = 0
    for call in graph.calls:
        if call.kind not in ("Conv2d", "DepthwiseConv2d"):
            continue
        value = call.inputs[0]
        pad = value.producer if value is not None else None
        if value is None or pad is None or not _fits(pad):
            continue
        if len(readers[value]) > 1 or value in results:
            continue
        before, after = pad.fields["pre_paddings"], pad.fields["post_paddings"]
        for side, amount in (
            ("top", before[2]),
            ("left", before[3]),
            ("bottom", after[2]),
            ("right", after[3]),
        ):
            call.fields[f"padding_{side}"] += amount
        call.inputs[0] = pad.inputs[0]
        call.absorb(pad)
        count += 1
    return count


def _fits(pad: Call) -> bool:
    if pad.kind != "StaticConstantPad" or pad.fields["padding_value"] != 0 or pad.output.rank != 4:
        return False
    return not any((*pad.fields["pre_paddings"][:2], *pad.fields["post_paddings"][:2]))
