"""The engine's LSTM and GRU against eager PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine_harness

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

HIDDEN = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 31, 32, 33, 48, 64]))


@pytest.fixture(autouse=True, scope="module")
def _threads() -> Iterator[None]:
    yield
    if engine_harness.library() is not None:
        engine_harness.set_threads(1)


def weights_of(module: torch.nn.RNNBase) -> list[torch.Tensor | None]:
    """The weights in the order of the engine's node."""
    found: list[torch.Tensor | None] = []
    for layer in range(module.num_layers):
        for suffix in ("", "_reverse") if module.bidirectional else ("",):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                weight = getattr(module, f"{name}_l{layer}{suffix}", None)
                found.append(None if weight is None else weight.detach())
    return found


def check(
    module: torch.nn.RNNBase,
    x: torch.Tensor,
    states: list[torch.Tensor] | None,
    outputs: tuple[bool, bool, bool] = (True, True, True),
) -> None:
    """Compare what the engine gives for a module with what the module gives."""
    lstm = isinstance(module, torch.nn.LSTM)
    with torch.no_grad():
        given_states = None if states is None else tuple(states) if lstm else states[0]
        y, last = module(x, given_states)
    expected = [y, *last] if lstm else [y, last]
    operands: list[torch.Tensor | None] = [x, *(states or [None] * (2 if lstm else 1))]
    weights = weights_of(module)
    attributes = {
        "layers": module.num_layers,
        "hidden": module.hidden_size,
        "bidirectional": int(module.bidirectional),
        "batch_first": int(module.batch_first),
    }
    found = engine_harness.run(
        "Lstm" if lstm else "Gru",
        [*operands, *weights],
        [(e.shape, torch.float32) if wanted else None for e, wanted in zip(expected, outputs, strict=False)],
        attributes,
        constants=range(len(operands), len(operands) + len(weights)),
    )
    for got, want in zip(found, expected, strict=True):
        if got is not None:
            torch.testing.assert_close(got, want, rtol=1e-5, atol=2e-6)


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from([torch.nn.LSTM, torch.nn.GRU]),
    steps=st.integers(1, 24),
    batch=st.one_of(st.integers(0, 5), st.sampled_from([16, 19])),
    inputs=st.integers(1, 40),
    hidden=HIDDEN,
    layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    batch_first=st.booleans(),
    bias=st.booleans(),
    stateful=st.booleans(),
    outputs=st.sampled_from(
        [(True, True, True), (True, False, False), (False, True, True), (False, True, False)]
    ),
    threads=st.integers(1, 2),
    seed=st.integers(0, 1000),
)
def test_sequences_agree_with_eager_for_any_sizes_and_options(
    kind: type[torch.nn.RNNBase],
    steps: int,
    batch: int,
    inputs: int,
    hidden: int,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    bias: bool,
    stateful: bool,
    outputs: tuple[bool, bool, bool],
    threads: int,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    module = kind(inputs, hidden, layers, bias=bias, bidirectional=bidirectional, batch_first=batch_first)
    x = torch.randn((batch, steps, inputs) if batch_first else (steps, batch, inputs))
    count = 2 if kind is torch.nn.LSTM else 1
    shape = (layers * (2 if bidirectional else 1), batch, hidden)
    states = [torch.randn(shape) for _ in range(count)] if stateful else None
    engine_harness.set_threads(threads)
    check(module, x, states, outputs)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("batch", "bidirectional", "layers"), [(1, False, 4), (2, True, 2), (40, True, 2)])
def test_every_way_of_sharing_between_threads_gives_the_same(
    kind: type[torch.nn.RNNBase], threads: int, batch: int, bidirectional: bool, layers: int
) -> None:
    torch.manual_seed(0)
    engine_harness.set_threads(threads)
    module = kind(24, 40, layers, bidirectional=bidirectional)
    check(module, torch.randn(70, batch, 24), None)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_sequences_longer_than_a_chunk_go_on_from_the_states(kind: type[torch.nn.RNNBase]) -> None:
    torch.manual_seed(0)
    engine_harness.set_threads(1)
    check(kind(5, 33, 2, bidirectional=True, batch_first=True), torch.randn(9, 200, 5), None)


@pytest.mark.parametrize("factor", [0.0, 30.0, 1000.0])
def test_saturated_gates_agree(factor: float) -> None:
    torch.manual_seed(0)
    engine_harness.set_threads(1)
    for kind in (torch.nn.LSTM, torch.nn.GRU):
        check(kind(8, 20), torch.randn(6, 2, 8) * factor, None)


def test_nan_reaches_only_its_row_of_the_batch() -> None:
    torch.manual_seed(0)
    engine_harness.set_threads(1)
    module = torch.nn.LSTM(3, 20)
    x = torch.randn(4, 3, 3)
    x[1, 1, 0] = torch.nan
    shapes = [((4, 3, 20), torch.float32), None, None]
    weights = weights_of(module)
    y = engine_harness.run(
        "Lstm", [x, None, None, *weights], shapes, {"layers": 1, "hidden": 20}, constants=range(3, 7)
    )[0]
    assert y is not None
    assert bool(y[1:, 1].isnan().all())
    assert bool(y[:, [0, 2]].isfinite().all())
    assert bool(y[0].isfinite().all())


def test_float16_weights_are_taken() -> None:
    torch.manual_seed(0)
    engine_harness.set_threads(1)
    module = torch.nn.GRU(7, 19).half()
    x = torch.randn(5, 2, 7)
    weights = weights_of(module)
    y = engine_harness.run(
        "Gru",
        [x, None, *weights],
        [((5, 2, 19), torch.float32), None],
        {"layers": 1, "hidden": 19},
        constants=range(2, 6),
    )[0]
    with torch.no_grad():
        expected, _ = module.float()(x)
    assert y is not None
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"hidden": 19}, r"weight_ih 0 must be \[76, 7\]"),
        ({"layers": 2}, "don't fit 2 layers"),
        ({"hidden": 0}, "0 units"),
        ({"bidirectional": 1}, "in 2 directions"),
    ],
)
def test_attributes_that_do_not_fit_the_weights_are_refused(change: dict[str, int], text: str) -> None:
    weights = weights_of(torch.nn.LSTM(7, 20))
    with pytest.raises(engine_harness.OperatorError, match=text):
        engine_harness.run(
            "Lstm",
            [torch.zeros(5, 2, 7), None, None, *weights],
            [((5, 2, 20), torch.float32), None, None],
            {"layers": 1, "hidden": 20, **change},
            constants=range(3, 7),
        )


def test_a_state_of_another_shape_is_refused() -> None:
    weights = weights_of(torch.nn.GRU(7, 20))
    with pytest.raises(engine_harness.OperatorError, match=r"initial hidden state 0 must be \[1, 2, 20\]"):
        engine_harness.run(
            "Gru",
            [torch.zeros(5, 2, 7), torch.zeros(1, 3, 20), *weights],
            [((5, 2, 20), torch.float32), None],
            {"layers": 1, "hidden": 20},
            constants=range(2, 6),
        )
