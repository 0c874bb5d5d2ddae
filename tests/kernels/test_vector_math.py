"""The vector forms of mathematical functions against float64 and long double, over the whole range of their types."""

from __future__ import annotations

import itertools
import math
import re

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("x86-64", "x86-64-v3", "x86-64-v4") if set(isa(cpu).required) <= host_features()]

#: The largest errors that docs/vector-math.md states, in ulp; those of CPUs without fused multiply-add are one more.
BOUNDS = {
    "exp": 1.0,
    "exp2": 1.0,
    "expm1": 2.0,
    "sinh": 1.0,
    "cosh": 1.0,
    "log": 1.0,
    "log2": 2.0,
    "log10": 1.0,
    "log1p": 1.0,
    "asinh": 1.0,
    "acosh": 1.0,
    "atanh": 1.0,
    "sin": 1.0,
    "cos": 1.0,
    "tan": 1.0,
    "asin": 1.0,
    "acos": 1.0,
    "atan": 1.0,
    "tanh": 1.5,
    "erf": 1.5,
    "rsqrt": 1.5,
}

#: The same of float64.
DOUBLE_BOUNDS = {
    "exp": 1.0,
    "exp2": 1.0,
    "expm1": 1.5,
    "sinh": 2.5,
    "cosh": 2.0,
    "tanh": 2.5,
    "log": 1.0,
    "log2": 1.0,
    "log10": 1.0,
    "log1p": 2.0,
    "asinh": 2.0,
    "acosh": 2.0,
    "atanh": 2.0,
    "sin": 1.0,
    "cos": 1.0,
    "tan": 2.0,
    "asin": 1.0,
    "acos": 1.0,
    "atan": 1.0,
    "erf": 1.0,
}

#: What NumPy calls otherwise.
NUMPY = {name: f"arc{name.removeprefix('a')}" for name in ("asinh", "acosh", "atanh", "asin", "acos", "atan")}

SPECIAL = (0.0, 1.0, 0.5, 2.0, 3.0, 1e-40, 1.1754944e-38, 1e-10, 0.9999999, 1.0000001, 1e10, 3e38, float("inf"))


def floats(step):
    """Every so many of the float32 numbers: all exponents, signs, denormals, infinities, NaN."""
    bits = torch.arange(-(2**31), 2**31, step, dtype=torch.int64).to(torch.int32)
    borders = torch.tensor([*SPECIAL, 88.72, 88.73, 87.34, 103.9, 104.1, 149.5, 150.5, 2.0**20, float("nan")])
    return torch.cat([bits.view(torch.float32), borders, -borders])


def ulp_errors(result, exact):
    """The distance to the exact result in units of the last place of the float32 nearest to it."""
    nearest = exact.float()
    spacing = (torch.nextafter(nearest.abs(), torch.tensor(float("inf"))).double() - nearest.abs().double()).clamp(
        min=2.0**-149
    )
    return (result.double() - exact).abs() / spacing


def check(result, exact, bound, x):
    """NaN, infinities and the signs of zeros are the same; other results are near enough."""
    assert torch.equal(result.isnan(), exact.isnan())
    infinite = exact.float().isinf()
    assert torch.equal(result[infinite], exact.float()[infinite])
    rest = ~(infinite | exact.isnan())
    zero = rest & (exact == 0)
    assert torch.equal(result[zero], exact.float()[zero])
    assert torch.equal(result[zero].signbit(), exact[zero].signbit())
    errors = ulp_errors(result[rest], exact[rest])
    worst = errors.argmax()
    assert errors[worst] <= bound, f"{errors[worst]:.2f} ulp at {x[rest][worst]!r}"


@pytest.mark.parametrize("name", BOUNDS)
def test_within_ulps(name):
    x, function = floats(1024), getattr(torch, name)
    check(pipeline.compile(Function(function), (x,))(x), function(x.double()), BOUNDS[name], x)


@pytest.mark.parametrize("cpu", CPUS)
def test_within_ulps_on_other_cpus(cpu):
    x = floats(2**17)
    functions = [getattr(torch, name) for name in BOUNDS]
    results = pipeline.compile(Function(lambda x: [f(x) for f in functions]), (x,), cpu=cpu)(x)
    extra = 0.0 if isa(cpu).fma else 1.0
    for function, result, bound in zip(functions, results, BOUNDS.values(), strict=True):
        check(result, function(x.double()), bound + extra, x)


def test_erf_at_the_borders_of_its_intervals():
    """Where another polynomial begins, each float, and those above of which 1 is the nearest one."""
    borders = torch.arange(0.25, 4.5, 0.25).view(torch.int32)
    x = (borders[:, None] + torch.arange(-2000, 2000, dtype=torch.int32)).flatten().view(torch.float32)
    x = torch.cat([x, -x, torch.rand(500_000) * 8 - 4])
    result = pipeline.compile(Function(torch.erf), (x,))(x)
    check(result, torch.erf(x.double()), BOUNDS["erf"], x)
    assert result.abs().max() == 1


def test_pow():
    torch.manual_seed(0)
    integers = torch.tensor([-3.0, -2.0, 4.0, 5.0, 16777215.0, 16777216.0, 33554431.0, -33554433.0, 1e30])
    numbers = torch.cat([torch.tensor(SPECIAL), -torch.tensor(SPECIAL), integers, torch.tensor([float("nan")])])
    pairs = list(itertools.product(numbers.tolist(), repeat=2))
    bases = torch.rand(100_000) * 20 - 4
    exponents = torch.cat([torch.rand(50_000) * 80 - 40, torch.randint(-30, 30, (50_000,)).float()])
    x = torch.cat([torch.tensor([pair[0] for pair in pairs]), bases])
    y = torch.cat([torch.tensor([pair[1] for pair in pairs]), exponents])
    check(pipeline.compile(Function(torch.pow), (x, y))(x, y), torch.pow(x.double(), y.double()), 1.0, x)


@pytest.mark.parametrize("exponent", [2.5, -1.5, 4.0, 0.0])
def test_constant_exponents(exponent):
    x = floats(2**16)
    result = pipeline.compile(Function(lambda x: torch.pow(x, exponent)), (x,))(x)
    check(result, torch.pow(x.double(), exponent), 1.0, x)


@pytest.mark.parametrize("exponent", [0.5, -0.5, 2.0, 3.0, -1.0, -2.0])
def test_exponents_with_a_form_of_their_own(exponent):
    """As in eager, where they are products, quotients and roots of f32."""
    x = floats(2**16)
    result = pipeline.compile(Function(lambda x: torch.pow(x, exponent)), (x,))(x)
    torch.testing.assert_close(result, torch.pow(x, exponent), rtol=2e-7, atol=0, equal_nan=True)


def test_constant_to_the_power():
    x = floats(2**14)
    for base in (2.0, 0.3, 10.0):
        result = pipeline.compile(Function(lambda x, base=base: torch.pow(base, x)), (x,))(x)
        check(result, torch.pow(torch.tensor(base).double(), x.double()), 1.0, x)


def test_atan2():
    torch.manual_seed(0)
    numbers = [*SPECIAL, *(-number for number in SPECIAL), float("nan")]
    pairs = list(itertools.product(numbers, repeat=2))
    y, x = torch.tensor(pairs).unbind(1)
    y, x = torch.cat([y, torch.randn(100_000)]), torch.cat([x, torch.randn(100_000)])
    check(pipeline.compile(Function(torch.atan2), (y, x))(y, x), torch.atan2(y.double(), x.double()), 1.0, y)


def doubles(step):
    """Every so many of the float64 numbers, and numbers where approximations meet or results reach their limits."""
    bits = torch.arange(-(2**63), 2**63 - 1, step, dtype=torch.int64)
    near, far = (torch.linspace(-limit, limit, 100_001, dtype=torch.float64) for limit in (2, 40))
    borders = [0.0, 0.5, 0.55, 0.84375, 0.975, 1.0, 1.25, 7 / 16, 11 / 16, 19 / 16, 39 / 16, 1 / 0.35, 6.0, 20.0, 709.7]
    borders += [709.8, 710.47, 710.48, 745.1, 745.2, 1023.9, 1024.0, 1074.9, 1075.1, 2.0**28, 1e300, 5e-324]
    given = torch.tensor(borders, dtype=torch.float64)
    return torch.cat([bits.view(torch.float64), near, far, 1 + near * 1e-9, given, -given])


def exact(name, x):
    """The function in long double; numbers of mpmath's where NumPy has none."""
    if name != "erf":
        return getattr(np, NUMPY.get(name, name))(x.astype(np.longdouble))
    with mpmath.workprec(80):
        values = [mpmath.nstr(mpmath.erf(float(number)), 25) for number in x]
    return np.copysign(np.array([np.longdouble(value) for value in values]), x)  # which has no zero with a sign


def check_doubles(name, result, x, bound):
    """NaN, infinities and the signs of zeros are the same; other results are within so many ulp."""
    with np.errstate(all="ignore"):
        expected = exact(name, x)
        nearest = expected.astype(np.float64)
        assert np.array_equal(np.isnan(result), np.isnan(nearest))
        assert np.array_equal(result[np.isinf(nearest)], nearest[np.isinf(nearest)])
        assert np.array_equal(np.signbit(result[nearest == 0]), np.signbit(nearest[nearest == 0]))
        rest = np.isfinite(nearest)
        errors = np.abs(result[rest] - expected[rest]) / np.spacing(np.abs(nearest[rest]))
    assert errors.max() <= bound, f"{name}: {errors.max()} ulp at {x[rest][int(errors.argmax())]!r}"


@pytest.mark.parametrize(("name", "bound"), DOUBLE_BOUNDS.items())
def test_doubles_within_ulps(name, bound):
    x = doubles(2**44 + 12345)
    result = pipeline.compile(Function(getattr(torch, name)), (x,))(x).numpy()
    chosen = slice(None, None, 41 if name == "erf" else 1)
    check_doubles(name, result[chosen], x.numpy()[chosen], bound)


@pytest.mark.parametrize("cpu", CPUS)
def test_doubles_within_ulps_on_other_cpus(cpu):
    x = doubles(2**50 + 12345)[::7]
    names = [name for name in DOUBLE_BOUNDS if name != "erf"]
    model = Function(lambda x: [getattr(torch, name)(x) for name in names])
    extra = 0.0 if isa(cpu).fma else 1.0
    for name, result in zip(names, pipeline.compile(model, (x,), cpu=cpu)(x), strict=True):
        check_doubles(name, result.numpy(), x.numpy(), DOUBLE_BOUNDS[name] + extra)


def test_angles_of_points_in_doubles():
    torch.manual_seed(0)
    numbers = [0.0, 1.0, 0.5, 2.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e300, 1.7e308, math.inf]
    numbers += [*(-number for number in numbers), math.nan]
    y, x = torch.tensor(list(itertools.product(numbers, repeat=2)), dtype=torch.float64).unbind(1)
    y = torch.cat([y, torch.randn(100_000, dtype=torch.float64), torch.randn(1000, dtype=torch.float64) * 1e-200])
    x = torch.cat([x, torch.randn(101_000, dtype=torch.float64)])
    result = pipeline.compile(Function(torch.atan2), (y, x))(y, x).numpy()
    expected = np.arctan2(y.numpy().astype(np.longdouble), x.numpy().astype(np.longdouble))
    nearest = expected.astype(np.float64)
    finite = np.isfinite(nearest)
    assert np.array_equal(finite, np.isfinite(result))
    assert np.array_equal(np.signbit(result[finite]), np.signbit(nearest[finite]))
    with np.errstate(invalid="ignore"):
        errors = np.abs(result[finite] - expected[finite]) / np.spacing(np.abs(nearest[finite]))
    assert errors.max() <= 1.5


@pytest.mark.parametrize("cpu", CPUS)
def test_angles_of_doubles_next_to_multiples_of_half_a_turn(cpu):
    """Where an angle loses all its own bits; next to the border of the calls, signs of zeros, what is no number."""
    turns = np.concatenate([np.arange(4000), np.arange(660_000, 667_544)]).astype(np.longdouble)
    near = (turns * (np.longdouble(math.pi) / 2 + np.longdouble(6.123233995736766036e-17))).astype(np.float64)
    near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, 0), near * (1 + 1e-9)])
    border = [2.0**20, np.nextafter(2.0**20, 0), np.nextafter(2.0**20, np.inf), 1e22, 1e300, 5e-324, 2.0**-27, 1e-9]
    x = np.concatenate([near, border, -near, np.negative(border), [np.inf, -np.inf, np.nan]])
    names = ("sin", "cos", "tan")
    model = Function(lambda x: [getattr(torch, name)(x) for name in names])
    results = pipeline.compile(model, (torch.from_numpy(x),), cpu=cpu)(torch.from_numpy(x))
    for name, result in zip(names, (result.numpy() for result in results), strict=True):
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(x.astype(np.longdouble))
        nearest = exact.astype(np.float64)
        finite = np.isfinite(nearest)
        assert np.array_equal(finite, np.isfinite(result))
        assert np.array_equal(np.signbit(result[finite]), np.signbit(nearest[finite]))
        errors = np.abs(result[finite] - exact[finite]) / np.spacing(np.abs(nearest[finite]))
        assert errors.max() <= DOUBLE_BOUNDS[name], f"{name}: {errors.max()} ulp at {x[finite][errors.argmax()]!r}"


@pytest.mark.parametrize(
    "function", [torch.sigmoid, F.silu, F.gelu, F.softplus, F.mish, F.elu], ids=lambda f: f.__name__
)
def test_activations(function):
    x = torch.cat([torch.linspace(-100, 100, 200_001), torch.tensor([0.0, -0.0, float("nan"), float("inf"), 1e-40])])
    result, exact = pipeline.compile(Function(function), (x,))(x), function(x.double()).float()
    torch.testing.assert_close(result, exact, rtol=2e-6, atol=7e-7, equal_nan=True)


def test_no_call_of_libm_is_left():
    x = torch.rand(100)
    names = [name for name in BOUNDS if name not in ("sin", "cos", "tan")]
    executable = pipeline.compile(Function(lambda x: [getattr(torch, name)(x) for name in names]), (x,))
    left = set(re.findall(r"(?:intr|@)\.?\w+", executable.ir("llvm")))
    assert not left & {form for name in names for form in (f"intr.{name}", f"@{name}f", "intr.pow")}
    assert not [remark for remark in executable.remarks if remark.pass_name == "expand-vector-math"]


def test_what_stays_a_call_leaves_a_remark():
    x = torch.rand(100, dtype=torch.float64)
    executable = pipeline.compile(Function(torch.pow), (x, x))
    torch.testing.assert_close(executable(x, x), x**x)
    reasons = [remark.reason for remark in executable.remarks if remark.pass_name == "expand-vector-math"]
    assert len(reasons) == 1
    assert reasons[0].startswith("math.powf on vector<")


def test_cpus_without_fma_call_no_function_for_it():
    model = Function(lambda x, w: torch.log(torch.exp(F.gelu(x @ w))))
    executable = pipeline.compile(model, (torch.randn(33, 21), torch.randn(21, 40)), cpu="x86-64", assembly=True)
    assert "fma" not in executable.ir("asm")
    assert "math.fma" not in executable.ir("llvm")


def test_cpus_with_fma_use_it():
    model = Function(torch.matmul)
    executable = pipeline.compile(model, (torch.randn(33, 21), torch.randn(21, 40)), cpu="x86-64-v3", assembly=True)
    assert "vfmadd" in executable.ir("asm")
