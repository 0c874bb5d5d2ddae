"""The target vulkan, end to end on the driver for CPUs."""

from __future__ import annotations

import math

import pytest
import torch
from agreement_with_eager import check, compare
from gpu_models import MODELS, Function, ResNet18
from torch import nn

import pipeline
from pipeline.errors import ArgumentError, CompileError, PipelineError
from pipeline.frontend.decompositions.grouped_products import grouped_product
from pipeline.runtime.device.vulkan import VulkanDevice


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_eager(name):
    check(MODELS[name](), "vulkan")


def _run(function, *args, tolerance=1e-5):
    model = Function(function)
    compare(pipeline.compile(model, args, target="vulkan")(*args), function(*args), tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_round_after_each_op(dtype):
    a, b = (torch.randn(7, 9, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in (1, 2))
    _run(lambda a, b: (a * b + a, a / b, a.float() + b, a > b, (a * 100).to(torch.int32), a.exp()), a, b, tolerance=0)
    _run(lambda a, b: a @ b.t(), a, b, tolerance=2e-2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_rounding_to_integers(dtype):
    """Ties, numbers without room for a fraction, zeros with signs, what is not finite."""
    bounds = [2.0**power + part for power in (23, 24, 31, 33, 51, 52, 53) for part in (-1, -0.5, 0, 0.5, 1.5)]
    near = [math.nextafter(half, end) for half in (0.5, 1.5, 2.5, 3.5) for end in (0, half, math.inf)]
    x = torch.tensor([0.0, *near, *bounds, 65504.0, 1e300, math.inf, math.nan], dtype=torch.float64).to(dtype)
    x = torch.cat([x, -x])

    def roundings(x):
        results = x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), x.round(decimals=1), x.remainder(3), x.fmod(3)
        return *results, x.nan_to_num().round().signbit()

    _run(roundings, x, tolerance=0)


def test_rounding_to_16_bits():
    x = torch.randn(4000) * torch.logspace(-9, 6, 4000)
    x = torch.cat([x, torch.tensor([0.0, -0.0, 65519.0, 65520.0, float("inf"), -float("inf"), float("nan"), 2.0**-25])])
    _run(lambda x: (x.half(), x.bfloat16()), x, tolerance=0)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap(dtype):
    generator = torch.Generator().manual_seed(0)
    low = 0 if dtype == torch.uint8 else -120
    a, b = torch.randint(low, 120, (50,), generator=generator), torch.randint(1, 120, (50,), generator=generator)

    def ops(a, b):
        return (
            a * b + a,
            a - b,
            a // b,
            a % b,
            a < b,
            a >> 2,
            a << 1,
            a & b,
            -a,
            a.max(),
            torch.maximum(a, b),
            a.float(),
        )

    _run(ops, a.to(dtype), b.to(dtype), tolerance=0)


def test_integers_of_32_bits_in_64():
    """Mesa 22.3 compares a number that was extended to 64 bits with a constant as if it were unsigned."""
    x = torch.tensor([-100, -7, -6, 0, 6, 13], dtype=torch.int32)
    _run(lambda x: (x.long() < 0, x.long() > -3, x.long() < 1, x.long() + 1 < 0, x.long() >= 2**40), x, tolerance=0)


@pytest.mark.parametrize("shape", [(1, 2), (1, 3), (3, 1), (4, 5)])
def test_counters_are_compared_with_numbers(shape):
    """The same of loop counters: the diagonal of a matrix of one row was taken for what lies above it."""
    x = torch.arange(1.0, 1.0 + shape[0] * shape[1]).reshape(shape)
    _run(lambda x: (x.tril(), x.triu(), x.tril(-1), x.triu(1), x.bool().tril()), x, tolerance=0)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_quotients_and_remainders_of_the_least_numbers(dtype):
    limits = torch.iinfo(dtype)
    x = torch.tensor([limits.min, limits.min + 1, -8, -7, 0, 1, 7, limits.max - 1, limits.max], dtype=dtype)

    def divided(x):
        return [(x % n, x.fmod(n), x // n, torch.div(x, n, rounding_mode="trunc")) for n in (1, 2, 3, 7, 100, -3, -100)]

    _run(divided, x, tolerance=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.bool], ids=str)
def test_narrow_arguments_are_compared_with_results(dtype):
    """A byte of 255 is the same word whether it comes from an argument, a weight or a computation."""
    x, weight = (torch.tensor(values).to(dtype) for values in ([0, 1, 255, 254, 255, 3], [255, 255, 0, 127, 128, 3]))

    def compared(x):
        return x.argmax(), x.argmin(), x == (x | weight), x == x.amax(), weight == (weight & x), x.sort(stable=True)

    _run(compared if dtype != torch.bool else lambda x: (x == (x | weight), weight == (weight & x)), x, tolerance=0)


def test_division_of_integers_rounds_down():
    x = torch.tensor([-100, -7, -6, 6, 13, 14], dtype=torch.int32)
    _run(lambda x: (x // 7, x % 7, torch.div(x, 7, rounding_mode="trunc"), x.fmod(7)), x, tolerance=0)


_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p tanh erf sin cos tan asin acos atan sinh cosh asinh acosh atanh "
    "sqrt rsqrt floor ceil round trunc sigmoid sign"
)


@pytest.mark.parametrize("name", _FUNCTIONS.split())
def test_functions(name):
    """Within 8 units of the last place, and infinities and NaN where they belong."""
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, 20.0, -20.0, 1e-30, torch.inf, -torch.inf, torch.nan, 88.0, -103.0])
    x = torch.cat(
        [torch.randn(500, generator=torch.Generator().manual_seed(0)) * 3, torch.linspace(-1e-3, 1e-3, 99), special]
    )
    function = getattr(torch, name)
    got = pipeline.compile(Function(function), (x,), target="vulkan")(x)
    torch.testing.assert_close(got, function(x.double()).float(), rtol=1e-6, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles(name):
    """Whole turns are left out of angles of every size; one is as near to a multiple of π/2 as f32 come."""
    bits = torch.randint(0, 0x7F800000, (4000,), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    x = torch.cat([bits.view(torch.float32), -bits.view(torch.float32), torch.tensor([16367173 * 2.0**72, 2.0**20])])
    function = getattr(torch, name)
    got = pipeline.compile(Function(function), (x,), target="vulkan")(x)
    torch.testing.assert_close(got, function(x.double()).float(), rtol=2e-7, atol=1e-37)


def test_functions_of_f64():
    """What is arithmetic on CPUs is so on devices; eager is off by up to one ulp, too."""
    x = torch.cat([torch.linspace(-6, 6, 2001), torch.tensor([0.0, -0.0, 40.0, 709.5, 1e30])]).double()
    x = torch.cat([x, torch.tensor([math.nan, math.inf, -math.inf, 1e-300], dtype=torch.float64)])
    names = [
        "exp",
        "exp2",
        "expm1",
        "sinh",
        "cosh",
        "tanh",
        "log",
        "log2",
        "log10",
        "log1p",
        "asinh",
        "acosh",
        "atanh",
        "asin",
        "acos",
        "atan",
        "erf",
    ]
    model = Function(lambda x: [getattr(torch, name)(x) for name in names])
    for name, got in zip(names, pipeline.compile(model, (x,), target="vulkan", fallback="error")(x), strict=True):
        expected = getattr(torch, name)(x)
        torch.testing.assert_close(
            got, expected, rtol=8e-16, atol=0, equal_nan=True, msg=lambda text, n=name: f"{n}: {text}"
        )


@pytest.mark.parametrize("name", ["sin", "tan"])
def test_functions_of_f64_that_devices_lack_are_refused(name):
    x = torch.randn(5, dtype=torch.float64)
    with pytest.raises(CompileError, match=f"math.{name} of f64 is not supported on Vulkan"):
        pipeline.compile(Function(getattr(torch, name)), (x,), target="vulkan", fallback="error")


def test_infinities_as_constants():
    """Naga refuses them; they come in as bits."""
    x = torch.tensor([1.0, -2.0, float("nan")])
    _run(
        lambda x: (torch.where(x > 0, float("inf"), -float("inf")), x.clamp(max=float("inf")), x.amax()), x, tolerance=0
    )


def test_one_submission_per_call(monkeypatch):
    counts = []
    original = VulkanDevice.download
    monkeypatch.setattr(VulkanDevice, "download", lambda self, views: counts.append(1) or original(self, views))
    model, x = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 4), nn.LayerNorm(4)), torch.tensor([1, 2])
    executable = pipeline.compile(model, (x,), target="vulkan")
    executable(x)
    counts.clear()
    executable(x)
    assert counts == [1]


def test_index_out_of_range_is_an_error():
    model = nn.Embedding(10, 5)
    executable = pipeline.compile(model, (torch.tensor([1, 2]),), target="vulkan")
    for index in (10, -1, 2**32):
        with pytest.raises(PipelineError, match="index out of range"):
            executable(torch.tensor([1, index]))
    compare(executable(torch.tensor([0, 9])), model(torch.tensor([0, 9])), 0)


def test_mutated_buffers_and_arguments():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count += x
            x.mul_(2)
            return self.count + 1

    model = Counter()
    executable = pipeline.compile(model, (torch.ones(3),), target="vulkan")
    for number in (1.0, 2.0):
        x = torch.ones(3)
        assert torch.equal(executable(x), torch.full((3,), number + 1))
        assert torch.equal(x, torch.full((3,), 2.0))
    assert torch.equal(model.count, torch.full((3,), 2.0))


def test_refresh_reads_new_weights():
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    executable = pipeline.compile(model, (x,), target="vulkan")
    executable(x)
    with torch.no_grad():
        model.weight.mul_(2)
    executable.refresh()
    compare(executable(x), model(x), 1e-5)


def test_out_takes_the_result():
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    executable = pipeline.compile(model, (x,), target="vulkan")
    out = torch.empty(2, 3)
    assert executable(x, out=out) is out
    compare(out, model(x), 1e-5)


def test_artifact(tmp_path):
    model, x = ResNet18().eval(), torch.randn(1, 3, 32, 32)
    executable = pipeline.compile(model, (x,), target="vulkan")
    executable.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    assert torch.equal(torch.from_numpy(loaded(x.numpy())), executable(x))


def test_numpy_arrays():
    import numpy as np

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    executable = pipeline.compile(Function(lambda x: x + 1), (torch.from_numpy(x),), target="vulkan")
    assert np.array_equal(executable(x), x + 1)


def test_a_wrong_argument_is_named():
    executable = pipeline.compile(nn.Linear(4, 3), (torch.randn(2, 4),), target="vulkan")
    with pytest.raises(ArgumentError, match="argument input: expected float32"):
        executable(torch.randn(2, 5))


def test_buffers_share_the_arena():
    executable = pipeline.compile(Function(lambda x: x @ x @ x @ x @ x), (torch.randn(16, 16),), target="vulkan")
    arena = executable._code.main.arena
    separate = sum(16 * 16 * 4 for step in executable._code.main.steps if step[0] == "arena")
    assert 0 < arena < separate


class Complex(nn.Module):
    """Has a weight and a state that are complex; gives complex and real numbers."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 4, dtype=torch.complex64, generator=generator))
        self.register_buffer("total", torch.zeros(5, 3, dtype=torch.complex64))

    def forward(self, z):
        self.total.add_(z)
        return z @ self.weight, z.real, z.conj() * 2, self.total.abs()


def test_complex_numbers():
    z = torch.randn(5, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
    models = [Complex().eval().requires_grad_(False) for _ in range(2)]
    executable = pipeline.compile(models[0], (z,), target="vulkan")
    for given in (z, z * 2):
        torch.testing.assert_close(executable(given), models[1](given))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_floats_of_8_bits(dtype):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    x = torch.randn(300, generator=torch.Generator().manual_seed(0)) * torch.logspace(-8, 6, 300)

    def function(codes, x):
        return codes.float(), x.to(dtype).view(torch.uint8), codes.reshape(16, 16).t().view(torch.uint8), codes

    found = pipeline.compile(function, (codes, x), target="vulkan")(codes, x)
    torch.testing.assert_close(found[:3], function(codes, x)[:3], rtol=0, atol=0, equal_nan=True)
    assert found[3].dtype == dtype
    assert torch.equal(found[3].view(torch.uint8), codes.view(torch.uint8))


def test_products_of_groups_of_rows():
    """The matrices of experts; where their rows end is read from the device."""
    x, y, ends = torch.randn(40, 32), torch.randn(6, 48, 32), torch.tensor([0, 1, 1, 33, 38, 38])
    _run(grouped_product, x, y, ends, tolerance=1e-4)
    _run(grouped_product, x, torch.randn(40, 24), ends, tolerance=1e-4)
