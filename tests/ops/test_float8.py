"""Floats of 8 bits: codes are eager's to the bit, whatever is cast from and to them, moved, written or multiplied."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from dynamo_state import fresh_dynamo
from torch import nn

import pipeline
from pipeline.errors import UnsupportedOpError
from pipeline.runtime.interface.small_floats import SMALL_FLOATS, as_doubles

__all__ = ["fresh_dynamo"]

FORMATS = [torch.float8_e4m3fn, torch.float8_e5m2]
OTHERS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def codes(dtype):
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def assert_same(found, expected):
    """Bit by bit, but for which NaN it is."""
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype in FORMATS:
            nan = other.float().isnan()
            assert torch.equal(one.float().isnan(), nan)
            one, other = (each.view(torch.uint8)[~nan] for each in (one, other))
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def check(function, *args, **options):
    executable = pipeline.compile(function, args, fallback="error", **options)
    assert_same(executable(*args), function(*args))
    return executable


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_what_codes_stand_for(dtype):
    wide = codes(dtype).float()
    small = codes(dtype)[(wide >= 0) & (wide < 100)]
    check(lambda x: [x.to(other) for other in OTHERS], codes(dtype))
    check(lambda x: [x.to(torch.int32), x.to(torch.bool), x.to(torch.uint8)], small)


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_rounding(dtype):
    """Of every float16, of numbers of all magnitudes in other dtypes, and of what lies between two numbers."""
    torch.manual_seed(0)
    halves = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16)
    drawn = torch.randn(20000) * 10 ** torch.empty(20000).uniform_(-8, 6)
    known = codes(dtype).float()
    known = known[known.isfinite()].sort().values
    between = (known[1:] + known[:-1]) / 2
    near = torch.cat([between, between.nextafter(torch.tensor(torch.inf)), between.nextafter(-torch.tensor(torch.inf))])
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 448, 464, 464.1, 480, 57344, 61440, 1e30])
    floats = torch.cat([drawn, near, special])
    check(lambda x, y: [x.to(dtype), *(y.to(other).to(dtype) for other in OTHERS)], halves, floats)
    check(lambda x: [x.to(dtype)], torch.arange(-500, 500))
    check(lambda x: [x.to(dtype)], torch.tensor([True, False]))
    check(lambda x: [x.to(dtype).to(other) for other in FORMATS], floats)


def moved(x, y):
    return [
        x.t(),
        x[1:, ::2],
        x.reshape(-1),
        torch.cat([x, y]),
        torch.stack([x, y], 1),
        x.flip(0),
        x.roll(1, 0),
        torch.where(x.float() > 0, x, y),
        x[torch.tensor([2, 0, 2])],
        x.unsqueeze(1).expand(-1, 3, -1),
        F.embedding(torch.tensor([1, 1, 0]), x.view(torch.uint8)).view(x.dtype),
        F.pad(x.float(), (1, 2)).to(x.dtype),
        *x.unbind(1),
        *y.chunk(2),
        torch.zeros_like(x),
        torch.full((3,), 2.7, dtype=x.dtype),
        x.new_ones(2),
        x.view(torch.int8) + 1,
        x.clone(),
    ]


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_moves(dtype):
    torch.manual_seed(0)
    check(moved, torch.randn(4, 5).to(dtype), torch.randn(4, 5).to(dtype))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 1)], ids=str)
def test_small_sizes(shape, dtype):
    check(lambda x: [x, x.float() * 2, (x.float() * 2).to(dtype), x.t()], torch.ones(shape).to(dtype))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_other_layouts(dtype):
    x = torch.randn(6, 8).to(dtype)

    def function(x):
        return [x.float(), x.t(), x.clone()]

    for given in (x.t(), x[::2, 1::3], x[:1].expand(6, 8)):
        assert_same(pipeline.compile(function, (given,))(given), function(given))


def write(cache, x, at):
    cache[:, at] = x.to(cache.dtype)
    cache[0, 0].fill_(0.3)
    cache[:, -1:].copy_(x)
    return [cache.float().sum(1)]


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_memory_that_is_written_to(dtype):
    torch.manual_seed(0)
    x, at = torch.randn(2, 1, 4), torch.tensor([3])
    caches = [torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0)).to(dtype) for _ in range(2)]
    executable = pipeline.compile(write, (caches[0].clone(), x, at), fallback="error")
    results = [call(cache, x, at) for call, cache in zip((executable, write), caches, strict=True)]
    assert_same(results[0], results[1])
    assert_same(caches[:1], caches[1:])


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_sizes_that_are_found_at_run_time(dtype):
    compiled = torch.compile(moved, backend="pipeline", dynamic=True, options={"fallback": "error"})
    for rows, columns in ((4, 5), (7, 3), (12, 9)):
        x, y = torch.randn(2, rows, columns).to(dtype)
        assert_same(compiled(x, y), moved(x, y))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_gradients_are_rounded_as_eager_does(dtype):
    torch.manual_seed(0)
    x = torch.randn(5, 7)

    def function(x):
        return (x.to(dtype).to(torch.float32) * x).sum(1)

    found = []
    for call in (torch.compile(function, backend="pipeline", options={"fallback": "error"}), function):
        leaf = x.clone().requires_grad_()
        result = call(leaf)
        result.square().sum().backward()
        found.append((result.detach(), leaf.grad))
    torch.testing.assert_close(*found)


SCALES = {
    "matrices": (torch.tensor(0.5), torch.tensor(2.0)),
    "one element": (torch.tensor([0.5]), torch.tensor([[2.0]])),
    "rows": (torch.linspace(0.1, 1, 16)[:, None], torch.linspace(0.5, 2, 32)[None]),
}


@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("scales", SCALES)
def test_products(scales, out_dtype):
    torch.manual_seed(0)
    a, b = torch.randn(16, 48).to(torch.float8_e4m3fn), torch.randn(32, 48).to(torch.float8_e4m3fn)
    bias = torch.randn(32).to(torch.bfloat16 if out_dtype.itemsize == 1 else out_dtype)

    def function(a, b, s, t, bias):
        return [torch._scaled_mm(a, b.t(), s, t, bias=each, out_dtype=out_dtype).float() for each in (None, bias)]

    args = (a, b, *SCALES[scales], bias)
    found = pipeline.compile(function, args, fallback="error")(*args)
    rounding = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float8_e4m3fn: 0.13}[out_dtype]
    torch.testing.assert_close(found, function(*args), rtol=rounding, atol=rounding)


class Quantized(nn.Module):
    """A layer whose weight is kept in 8 bits."""

    def __init__(self, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("weight", torch.randn(24, 16).to(dtype))
        self.register_buffer("scale", torch.rand(24))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale[:, None])


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_weights_and_what_is_saved(dtype, tmp_path):
    model, x = Quantized(dtype), torch.randn(3, 16)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)
    executable.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    torch.testing.assert_close(loaded(x), executable(x), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_arrays_of_numpy(dtype):
    """ml_dtypes' where it is installed, else bytes with a name."""
    kind = SMALL_FLOATS[str(dtype).removeprefix("torch.")]
    given = np.arange(256, dtype=np.uint8).view(kind)
    executable = pipeline.compile(lambda x: (x.float(), x.flip(0)), (codes(dtype),))
    wide, turned = executable(given)
    np.testing.assert_array_equal(wide, codes(dtype).float().numpy())
    np.testing.assert_array_equal(as_doubles(given), codes(dtype).double().numpy())
    assert turned.dtype == kind
    np.testing.assert_array_equal(turned.view(np.uint8), given.view(np.uint8)[::-1])


def test_what_is_not_computed():
    x = torch.ones(3).to(torch.float8_e4m3fn)
    with pytest.raises(UnsupportedOpError, match="8-bit floats") as raised:
        pipeline.compile(lambda x: torch.sort(x)[0], (x,), fallback="error")
    assert "aten.sort" in str(raised.value)
    assert "getitem" not in str(raised.value)
