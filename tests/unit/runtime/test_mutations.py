"""Broken programs give errors, never a crash. `make fuzz` does the same at length, with sanitizers."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workbench.emit import ir

# Runs in a process of its own, which a crash would end. Prints how many were refused and how many ran.
WORKER = """
import random, sys
import torch
from workbench.errors import ExecutionError
from workbench.runtime import Runtime

DTYPES = {1: torch.int8, 0: torch.uint8, 3: torch.int32, 4: torch.int64, 6: torch.float32, 7: torch.float64,
          11: torch.bool}
refused = ran = 0
original = open(sys.argv[1], "rb").read()
for seed in range(int(sys.argv[2])):
    random.seed(seed)
    data = bytearray(original)
    for _ in range(random.choice((1, 1, 2, 8))):
        position = random.randrange(len(data) // 4) * 4
        way = random.randrange(4)
        if way == 0:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        elif way == 1:
            numbers = (0, 1, 2, 7, 255, 2**31 - 1, 2**32 - 1, 2**32 - 2)
            data[position : position + 4] = random.choice(numbers).to_bytes(4, "little")
        elif way == 2:
            other = random.randrange(len(data) // 4) * 4
            data[position : position + 4] = data[other : other + 4]
        elif random.random() < 0.2:
            del data[random.randrange(len(data)) :]
            break
    sys.stderr.write(f"{seed}\\n")
    try:
        program = Runtime.get().load_program(bytes(data))
        method = program.load_method(memory_limit=1 << 26)
        meta = method.metadata
        infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
        inputs = [torch.zeros(info.sizes(), dtype=DTYPES[info.dtype()]) for info in infos]
        method.execute(inputs, max_instructions=500)
        ran += 1
    except (ExecutionError, KeyError, UnicodeDecodeError):
        refused += 1
print(refused, ran)
"""


def program(builder: Any) -> bytes:
    """A program with a loop, a branch, a state, lists and constants."""
    x, index, state = builder.tensor(4, 3, dynamism=1), builder.tensor(2, dtype=4), builder.tensor(4, 3)
    sums, picked, joined = builder.tensor(4, 3), builder.tensor(2, 3), builder.tensor(6, 3)
    count, limit, done = builder.scalar(0), builder.scalar(3), builder.scalar(False)
    constant = builder.constant(1.0, 2.0, 3.0)
    builder.sum_of(x, constant, sums)
    start = len(builder.method.instructions)
    builder.call("aten::copy_", state, sums, builder.scalar(False), state)
    builder.call("executorch_prim::add.Scalar", count, builder.scalar(1), count)
    builder.call("executorch_prim::eq.Scalar", count, limit, done)
    builder.add(ir.JumpFalse(done, start))
    builder.call("aten::slice_copy.Tensor_out", sums, *map(builder.scalar, (0, 1, 3, 1)), picked, picked)
    pieces = builder.value(ir.TensorList((picked, sums)))
    builder.call("aten::cat.out", pieces, builder.scalar(0), joined, joined)
    return bytes(builder.bytes([x, index], [joined]))


@pytest.mark.parametrize("runs", [3000])
def test_broken_programs_end_in_errors_not_in_a_crash(builder: Any, tmp_path: Path, runs: int) -> None:
    path = tmp_path / "program.pte"
    path.write_bytes(program(builder))
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(path), str(runs)], capture_output=True, text=True, timeout=300
    )
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"ended with {done.returncode} in the run of seed {last}"
    refused, ran = map(int, done.stdout.split())
    assert refused + ran == runs
    assert refused > runs // 10  # the changes do reach what is checked
    assert ran > runs // 10  # and what is executed


def test_every_truncation_is_refused_or_harmless(builder: Any) -> None:
    from workbench.errors import ExecutionError
    from workbench.runtime import Runtime

    data = program(builder)
    kept = 0
    for length in range(0, len(data), 7):
        try:
            Runtime.get().load_program(data[:length])
            kept += 1
        except ExecutionError as error:
            assert error.code in {"InvalidProgram", "NotSupported"}, length
    assert kept == 0


def test_random_bytes_are_refused() -> None:
    from workbench.errors import ExecutionError
    from workbench.runtime import Runtime

    random.seed(0)
    for _ in range(300):
        data = b"\x20\0\0\0ET12" + random.randbytes(random.randrange(300))
        with pytest.raises(ExecutionError):
            Runtime.get().load_program(data)
