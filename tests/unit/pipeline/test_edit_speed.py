"""An edit of a partition is made while one waits."""

from __future__ import annotations

import gc
import time

import pytest

import workbench as wb
from networks import build


@pytest.mark.slow
def test_edit_of_a_transformer_takes_less_than_a_second() -> None:
    network = build("vit_tiny")
    recipe = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
    lowering = wb.lower(network.model, network.inputs, recipe=recipe)
    table = lowering.partitioned.table
    tagged = table[(table["tag"] != "") & table["op"].str.startswith("aten")]
    assert len(tagged) > 20
    spent = []
    for place in range(4):
        edit = wb.Edit("partition", {"action": "erase", "handles": list(tagged.iloc[3 * place]["handles"])})
        changed = lowering.recipe.replace(edits=[*lowering.recipe.edits, edit])
        start = time.process_time()
        again = lowering.relower(changed)
        spent.append(time.process_time() - start)
        assert again.ran[:2] == ("partition", "lower")
        assert gc.isenabled()
        start = time.process_time()
        lowering.update(changed)
        spent.append(time.process_time() - start)
        assert lowering.program.buffer == again.program.buffer
    # 0.4 s each, but for the first one, which measures fingerprints.
    assert sorted(spent)[len(spent) // 2] < 1
    assert lowering.partitioned.table["tag"].ne("").sum() < table["tag"].ne("").sum()
