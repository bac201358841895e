"""The vector functions against double precision: dense sweeps, edges, special values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import engine_harness
from engine_harness import INPUT, Step

pytestmark = pytest.mark.skipif(
    engine_harness.library() is None, reason="the target wb_engine_harness is not built"
)

Function = Callable[[torch.Tensor], torch.Tensor]
INF = float("inf")
SPECIAL = torch.tensor(
    [0.0, -0.0, INF, -INF, float("nan"), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, -1e-40, 1e-30, 1e10, -1e10]
)
SWEEP = torch.cat(
    [
        SPECIAL,
        torch.linspace(-9, 9, 200_003),
        torch.linspace(-110, 110, 60_001),
        torch.logspace(-30, 30, 5001),
        -torch.logspace(-30, 30, 5001),
    ]
)
# The largest error in units in the last place (ulp), as the comments in operators/common promise.
ACCURATE: dict[str, tuple[Function, int]] = {
    "Rsqrt": (torch.rsqrt, 1),
    "Exp": (torch.exp, 2),
    "Expm1": (torch.expm1, 3),
    "Log": (torch.log, 2),
    "Log1p": (torch.log1p, 2),
    "Sin": (torch.sin, 2),
    "Cos": (torch.cos, 2),
    "Tan": (torch.tan, 4),
    "Asin": (torch.asin, 3),
    "Acos": (torch.acos, 3),
    "Atan": (torch.atan, 3),
    "Sinh": (torch.sinh, 3),
    "Cosh": (torch.cosh, 4),
    "Tanh": (torch.tanh, 3),
    "Erf": (torch.erf, 6),
}
# Those that are products with something near 0: the error against max(1, |x|).
BOUNDED: dict[str, Function] = {
    "Sigmoid": torch.sigmoid,
    "Silu": F.silu,
    "Gelu": F.gelu,
    "GeluTanh": lambda x: F.gelu(x, approximate="tanh"),
    "Mish": F.mish,
}
EXACT: dict[str, Function] = {
    "Identity": lambda x: x,
    "Abs": torch.abs,
    "Neg": torch.neg,
    "Ceil": torch.ceil,
    "Floor": torch.floor,
    "Round": torch.round,
    "Trunc": torch.trunc,
    "Sign": torch.sign,
    "Square": torch.square,
    "Sqrt": lambda x: x.double().sqrt().float(),
    "Reciprocal": torch.reciprocal,
    "LogicalNot": lambda x: torch.logical_not(x).float(),
    "IsNan": lambda x: torch.isnan(x).float(),
}


def _same(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return (found == expected) | (found.isnan() & expected.isnan())


def _ulps(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Distances in floats; of what is below 2^-126 as if it were 0."""
    tiny = 1.17549435e-38
    near = (found.abs() <= tiny) & (expected.abs() <= tiny)
    distance = (found.view(torch.int32).long() - expected.view(torch.int32).long()).abs()
    return torch.where(_same(found, expected) | near, 0, distance)


def _unary(name: str, x: torch.Tensor, **parameters: float) -> torch.Tensor:
    out = engine_harness.run(
        "Pointwise", [x], [(x.shape, torch.float32)], post=[Step(name, (0,), **parameters)]
    )[0]
    assert out is not None
    return out


@pytest.mark.parametrize("name", ACCURATE)
def test_function_stays_within_its_bound(name: str) -> None:
    function, bound = ACCURATE[name]
    found = _unary(name, SWEEP)
    ulps = _ulps(found, function(SWEEP.double()).float())
    worst = int(ulps.argmax())
    assert int(ulps[worst]) <= bound, (float(SWEEP[worst]), float(found[worst]))


@pytest.mark.parametrize("name", BOUNDED)
def test_activation_stays_within_half_a_millionth(name: str) -> None:
    found = _unary(name, SWEEP).double()
    expected = BOUNDED[name](SWEEP.double())
    error = (found - expected).abs() / SWEEP.double().abs().clamp(min=1)
    finite = SWEEP.isfinite()
    assert float(error[finite].max()) <= 3e-7
    assert bool(_same(found[~finite], expected[~finite]).all())


@pytest.mark.parametrize("name", EXACT)
def test_function_is_exact(name: str) -> None:
    assert bool(_same(_unary(name, SWEEP), EXACT[name](SWEEP)).all())


@pytest.mark.parametrize("name", ["Sin", "Cos", "Tan"])
def test_large_angles_are_reduced(name: str) -> None:
    x = torch.cat([torch.linspace(-70_000, 70_000, 100_001), torch.tensor([1e6, 3e7, -1e20, INF])])
    function, bound = ACCURATE[name]
    assert int(_ulps(_unary(name, x), function(x.double()).float()).max()) <= bound


@pytest.mark.parametrize("name", ["HardSigmoid", "HardSwish"])
def test_hard_activations_agree(name: str) -> None:
    function = F.hardsigmoid if name == "HardSigmoid" else F.hardswish
    torch.testing.assert_close(_unary(name, SWEEP), function(SWEEP), rtol=1e-6, atol=0, equal_nan=True)


def test_functions_with_parameters_agree() -> None:
    x = SWEEP
    expected = {
        ("Softplus", 2.0, 20.0): F.softplus(x, 2.0, 20.0),
        ("Elu", 0.7, 0.0): F.elu(x, 0.7),
        ("LeakyRelu", 0.1, 0.0): F.leaky_relu(x, 0.1),
        ("Clamp", -1.0, INF): x.clamp(min=-1.0),
        ("AddScalar", 3.5, 0.0): x + 3.5,
        ("MulScalar", 3.5, 0.0): x * 3.5,
        ("ReverseSubScalar", 3.5, 0.0): 3.5 - x,
        ("ReverseDivScalar", 3.5, 0.0): 3.5 / x,
    }
    for exponent in (2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7, 4.0, 0.0):
        expected["PowScalar", exponent, 0.0] = x.pow(exponent)
    for (name, a, b), result in expected.items():
        torch.testing.assert_close(
            _unary(name, x, a=a, b=b), result, rtol=1e-6, atol=1e-37, equal_nan=True, msg=f"{name} {a}"
        )


BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "Pow": torch.pow,
    "Atan2": torch.atan2,
    "Fmod": torch.fmod,
    "Remainder": torch.remainder,
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
    "Copysign": torch.copysign,
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": torch.div,
    "Prelu": lambda x, y: torch.where(x > 0, x, x * y),
    "SquaredDifference": lambda x, y: (x - y).square(),
    "Eq": lambda x, y: (x == y).float(),
    "Ne": lambda x, y: (x != y).float(),
    "Lt": lambda x, y: (x < y).float(),
    "Le": lambda x, y: (x <= y).float(),
    "Gt": lambda x, y: (x > y).float(),
    "Ge": lambda x, y: (x >= y).float(),
    "LogicalAnd": lambda x, y: torch.logical_and(x, y).float(),
    "LogicalOr": lambda x, y: torch.logical_or(x, y).float(),
    "LogicalXor": lambda x, y: torch.logical_xor(x, y).float(),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_function_agrees_in_every_pair_of_special_values(name: str) -> None:
    torch.manual_seed(0)
    special = torch.tensor(
        [0, -0.0, 1, -1, INF, -INF, float("nan"), 2, -2, 3, -3, 0.5, -0.5, 1e10, -1e10, 16777215.0]
    )
    x = torch.cat([special.repeat_interleave(len(special)), torch.randn(4000) * 3, torch.rand(4000) * 100])
    y = torch.cat([special.repeat(len(special)), torch.randn(4000) * 3, torch.randn(4000) * 10])
    found = engine_harness.run(
        "Pointwise", [x, y], [(x.shape, torch.float32)], post=[Step(name, (0, INPUT + 1))]
    )[0]
    assert found is not None
    through_double = name in ("Pow", "Atan2")
    expected = BINARY[name](x.double(), y.double()).float() if through_double else BINARY[name](x, y)
    ulps = _ulps(found, expected)
    worst = int(ulps.argmax())
    assert int(ulps[worst]) <= (3 if through_double else 0), (float(x[worst]), float(y[worst]))
