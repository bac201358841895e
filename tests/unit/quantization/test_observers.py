"""What observers see, and which scales follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from workbench.errors import CalibrationError, CalibrationWarning, QuantizationError
from workbench.quantization.observers import OBSERVERS, Observer, named
from workbench.quantization.observers.counts import Counts

ACTIVATIONS = ("min_max", "moving_average", "histogram", "percentile", "mse")


def _seen(name: str, *tensors: torch.Tensor, **options: Any) -> Observer:
    observer = named(name)(**options)
    for tensor in tensors:
        observer(tensor)
    return observer


def _quantized(x: torch.Tensor, observer: Observer) -> torch.Tensor:
    scale, zero = observer.calculate_qparams()
    return torch.fake_quantize_per_tensor_affine(x, float(scale), int(zero), -128, 127)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_scale_represents_what_was_seen(name: str) -> None:
    x = torch.linspace(-1, 3, 1001).reshape(7, -1)
    observer = _seen(name, x)
    assert float((_quantized(x, observer) - x).abs().max()) < 0.02
    report = observer.report()
    assert (report.min, report.max) == (-1, 3)
    assert report.low <= -0.97 and report.high >= 2.97
    assert report.elements == 1001
    assert report.counts is not None and report.counts.sum() == 1001
    assert report.edges is not None and report.edges[0] <= -1 and report.edges[-1] >= 3
    assert report.clipped <= 0.01
    np.testing.assert_allclose(report.channel_min, x.numpy().min(0))


@pytest.mark.parametrize("name", ["histogram", "percentile", "mse"])
def test_tails_are_clipped_where_that_pays(name: str) -> None:
    x = torch.randn(100, 400, generator=torch.Generator().manual_seed(0))
    limits: dict[str, Any] = {"quant_min": -8, "quant_max": 7}
    errors = {}
    for kind in (name, "min_max"):
        options = {"percentile": 99.5} if kind == "percentile" else {}
        observer = _seen(kind, x, **limits, **options)
        scale, zero = observer.calculate_qparams()
        back = torch.fake_quantize_per_tensor_affine(x, float(scale), int(zero), -8, 7)
        errors[kind] = float((back - x).square().mean())
        clipped = observer.report().clipped
        assert clipped > 0 if kind == name else clipped == 0
    assert errors[name] < 0.6 * errors["min_max"]


def test_tails_stay_where_clipping_does_not_pay() -> None:
    x = torch.rand(100, 100, generator=torch.Generator().manual_seed(0))
    for name in ("histogram", "mse"):
        assert _seen(name, x).report().clipped < 1e-3


def test_moving_average_forgets_an_odd_sample() -> None:
    tensors = [torch.tensor([-1.0, 1.0])] * 20
    observer = _seen("moving_average", *tensors[:10], torch.tensor([-100.0, 100.0]), *tensors)
    assert observer.report().high < 5
    assert observer.report().max == 100


def test_zero_is_represented_exactly() -> None:
    for name in ACTIVATIONS:
        observer = _seen(name, torch.rand(1000) + 2)
        assert float(_quantized(torch.zeros(1), observer)) == 0


def test_counts_do_not_depend_on_the_order() -> None:
    generator = torch.Generator().manual_seed(1)
    parts = [torch.randn(500, generator=generator) * scale for scale in (1e-3, 1.0, 70.0, 5.0)]
    results = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        counts = Counts()
        for index in order:
            counts.add(parts[index], float(parts[index].min()), float(parts[index].max()))
        assert counts.total == 2000
        used = np.flatnonzero(counts.counts)
        results.append((counts.width, counts.centers[used], counts.counts[used]))
    for width, centers, values in results[1:]:
        assert width == results[0][0]
        np.testing.assert_array_equal(centers, results[0][1])
        # A value on the edge of a bin may be rounded to either side.
        assert np.abs(values - results[0][2]).sum() <= 10


@pytest.mark.parametrize("values", [[0.0], [5.0], [-3.0, -3.0], [1e-30], [1e30, -1e30], [3.0, 3.0 + 1e-6]])
def test_counts_hold_extreme_values(values: list[float]) -> None:
    counts = Counts()
    tensor = torch.tensor(values)
    counts.add(tensor, float(tensor.min()), float(tensor.max()))
    assert counts.total == len(values)
    low, high = float(tensor.min()), float(tensor.max())
    assert low - counts.width <= counts.quantile(0.5) <= high + counts.width
    assert counts.quantile(0.0) <= low + counts.width and counts.quantile(1.0) >= high


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_state_resumes(name: str) -> None:
    first, second = torch.randn(4, 50), torch.randn(4, 50) * 3
    whole = _seen(name, first, second)
    begun = _seen(name, first)
    resumed = named(name)()
    resumed.restore(begun.state())
    resumed(second)
    assert resumed.calculate_qparams() == whole.calculate_qparams()
    np.testing.assert_array_equal(resumed.report().counts, whole.report().counts)


@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 3, 5), (2, 3, 4, 5), (1, 3, 4, 5), ()])
def test_channels_are_those_of_the_layout(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    report = _seen("min_max", x, x * 2).report()
    assert report.max == pytest.approx(float((x * 2).max().clamp(min=float(x.max()))))
    if len(shape) >= 2:
        axis = 1 if len(shape) != 3 else 2
        both = torch.stack([x, x * 2])
        axes = tuple(i for i in range(both.dim()) if i != axis + 1)
        np.testing.assert_allclose(report.channel_max, both.amax(axes).numpy())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_an_error(bad: float) -> None:
    for name in (*ACTIVATIONS, "weights"):
        x = torch.ones(2, 3)
        x[1, 1] = bad
        observer = named(name)()
        with pytest.raises(CalibrationError, match="not finite"):
            observer(x)
        assert observer.elements == 0


def test_nothing_seen_is_an_error() -> None:
    for name in ACTIVATIONS:
        with pytest.raises(CalibrationError, match="saw no value"):
            _seen(name, torch.empty(0, 3)).calculate_qparams()


def test_constant_values_warn_and_are_represented() -> None:
    for value in (0.0, 2.5, -7.0):
        observer = _seen("mse", torch.full((2, 4), value))
        observer.name = "relu"
        with pytest.warns(CalibrationWarning, match="relu: all 8 values"):
            observer.warn()
        x = torch.full((1,), value)
        assert float(_quantized(x, observer)) == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", ["min_max", "mse"])
def test_weights_have_a_scale_for_each_channel(axis: int, method: str) -> None:
    weight = torch.randn(4, 6) * torch.tensor([1.0, 10, 0.1, 0])[:, None]
    weight = weight if axis == 0 else weight.t().contiguous()
    observer = _seen("weights", weight, ch_axis=axis, method=method)
    scale, zero = observer.calculate_qparams()
    assert scale.shape == (4,) and bool((zero == 0).all())
    back = torch.fake_quantize_per_channel_affine(weight, scale, zero.int(), axis, -127, 127)
    limit = weight.movedim(axis, 0).abs().amax(1) * (0.6 if method == "mse" else 1 / 250) + 1e-9
    assert bool(((back - weight).movedim(axis, 0).abs().amax(1) <= limit).all())
    report = observer.report()
    assert report.counts.sum() == 24
    assert report.channel_max.shape == (4,)


def test_searched_scales_of_4_bits_have_the_smaller_error() -> None:
    weight = torch.randn(32, 256, generator=torch.Generator().manual_seed(3))
    errors = {}
    for method in ("min_max", "mse"):
        observer = _seen("weights", weight, quant_min=-8, quant_max=7, method=method)
        scale, zero = observer.calculate_qparams()
        back = torch.fake_quantize_per_channel_affine(weight, scale, zero.int(), 0, -8, 7)
        errors[method] = float((back - weight).square().mean())
    assert errors["mse"] < 0.8 * errors["min_max"]


def test_groups_have_scales_of_their_own() -> None:
    weight = torch.randn(8, 64)
    scale, zero = _seen("weights", weight, quant_min=-8, quant_max=7, group_size=16).calculate_qparams()
    assert scale.shape == zero.shape == (8, 4)
    with pytest.raises(QuantizationError, match="do not divide") as caught:
        _seen("weights", weight, group_size=24)
    assert caught.value.found == "(8, 64)"


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(QuantizationError, match="no such observer") as caught:
        named("minmax")
    assert "min_max" in str(caught.value)
    for name, options in (
        ("percentile", {"percentile": 40}),
        ("percentile", {"percentile": 101}),
        ("mse", {"smallest": 2.0}),
        ("histogram", {"cut": 0}),
        ("weights", {"method": "max"}),
    ):
        with pytest.raises(QuantizationError) as caught:
            named(name)(**options)
        assert caught.value.expected
    assert set(ACTIVATIONS) < set(OBSERVERS)
