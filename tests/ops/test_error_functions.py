"""erfc, erfcx, erfinv and functions of the normal distribution are lowered: against forty digits."""

import math

import mpmath
import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function

import pipeline

__all__ = ["fresh_dynamo"]

INF, NAN = math.inf, math.nan


def exact_erfcx(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


def exact_log_ndtr(x):
    half = mpmath.erfc(abs(x) / mpmath.sqrt(2)) / 2
    return mpmath.log(half) if x < 0 else mpmath.log1p(-half)


def exact_ndtri(p):
    """From eager's fifteen digits on."""
    if p == 0.5:
        return mpmath.mpf(0)
    start = torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64)).item()
    side = -1 if p > 0.5 else 1
    goal = mpmath.log(min(p, 1 - p))
    return mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(side * x)) - goal, start)


#: What is exact, where on the line, and what it is at places of its own.
FUNCTIONS = {
    "erfc": (torch.erfc, mpmath.erfc, (-6, 26), {INF: 0.0, -INF: 2.0, 0.0: 1.0, 30.0: 0.0}),
    "erfcx": (torch.special.erfcx, exact_erfcx, (-26, 60), {INF: 0.0, -INF: INF, 0.0: 1.0, -27.0: INF}),
    "log_ndtr": (torch.special.log_ndtr, exact_log_ndtr, (-60, 8), {INF: 0.0, -INF: -INF, -1e200: -INF}),
    "erfinv": (torch.erfinv, mpmath.erfinv, (-1, 1), {1.0: INF, -1.0: -INF, 1.5: NAN, -INF: NAN, 0.0: 0.0}),
    "ndtri": (torch.special.ndtri, exact_ndtri, (0, 1), {0.0: -INF, 1.0: INF, 0.5: 0.0, -0.1: NAN, 2.0: NAN}),
}

#: Close to ends of what functions are defined for, and where they are computed in another way.
EDGES = [1.25, math.sqrt(0.5) * 2.5, 1 / 0.35, 0.5, 0.9229, 1e-8, 1e-300, 1 - 2**-53, 1 - 1e-9, 1e-100, 0.0385]


def line(function, first, last, dtype):
    torch.manual_seed(0)
    points = torch.cat([torch.linspace(first, last, 80, dtype=torch.float64), torch.randn(60, dtype=torch.float64)])
    points = torch.cat([points, torch.tensor(EDGES, dtype=torch.float64), -torch.tensor(EDGES, dtype=torch.float64)])
    points = points.to(dtype)
    inside = (points.double() > first) & (points.double() < last) & function(points.double()).isfinite()
    return points[inside]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(name, dtype):
    function, exactly, (first, last), places = FUNCTIONS[name]
    x, special = line(function, first, last, dtype), torch.tensor(list(places)).to(dtype)
    with mpmath.workdps(40):
        exact = torch.tensor([float(exactly(mpmath.mpf(number))) for number in x.tolist()], dtype=torch.float64)
    result = pipeline.compile(Function(function), (torch.cat([x, special]),))(torch.cat([x, special]))
    assert result.dtype == dtype
    limits = torch.finfo(dtype)
    error = (result[: len(x)].double() - exact).abs() / exact.abs().clamp(min=limits.tiny) / limits.eps
    bound = torch.full_like(error, 4 if dtype == torch.float64 else 1)
    if name == "log_ndtr" and dtype == torch.float64:
        bound += x.square()  # x / sqrt(2) is rounded, as in eager
    assert (error <= bound)[exact.abs() < limits.max].all()
    if dtype == torch.float64:
        torch.testing.assert_close(result[len(x) :].tolist(), list(places.values()), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, dynamic):
    function = FUNCTIONS[name][0]
    x = torch.linspace(0.05, 0.95, 13, dtype=torch.float64).requires_grad_()
    compiled = torch.compile(function, backend="pipeline", dynamic=dynamic, options={"fallback": "error"})
    mine, its = (torch.autograd.grad(one(x).sin().sum(), x) for one in (compiled, function))
    torch.testing.assert_close(mine, its, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole_numbers_and_shapes(name):
    function = FUNCTIONS[name][0]
    programs = {
        "whole": torch.tensor([0, 1, 2, -3]),
        "one": torch.tensor(0.25),
        "none": torch.zeros(0, 3),
        "strides": torch.rand(5, 7).t(),
    }
    for argument in programs.values():
        result = pipeline.compile(Function(function), (argument,))(argument)
        torch.testing.assert_close(result, function(argument), equal_nan=True)


def test_quantiles_of_distributions():
    """Through classes of torch.distributions, with gradients by their parameters."""

    def quantiles(mean, scale, p):
        normal = torch.distributions.Normal(mean, scale, validate_args=False)
        half = torch.distributions.HalfNormal(scale, validate_args=False)
        return normal.icdf(p) * 2 + half.icdf(p), torch.special.log_ndtr((p - mean) / scale)

    arguments = [torch.rand(6, dtype=torch.float64).requires_grad_() for _ in range(3)]
    compiled = torch.compile(quantiles, backend="pipeline", options={"fallback": "error"})
    for mine, its in zip(compiled(*arguments), quantiles(*arguments), strict=True):
        torch.testing.assert_close(mine, its)
        gradients = (torch.autograd.grad(one.sum(), arguments, retain_graph=True) for one in (mine, its))
        torch.testing.assert_close(*gradients)
