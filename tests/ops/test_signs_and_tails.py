"""The signs of zeros and NaN, bits of numbers, and erfc and mish where they are next to nothing."""

import pytest
import torch
from torch import nn

import pipeline

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class Signs(nn.Module):
    def forward(self, x, y):
        return x.signbit(), torch.copysign(x, y), torch.copysign(x, -0.0), torch.copysign(x, 2)


class Bits(nn.Module):
    def forward(self, x):
        bits = x.view(INTEGERS[x.dtype.itemsize])
        return bits, (bits & 12345).view(x.dtype)


class BitsInPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y.view(torch.int32).add_(1)
        return y


class Erfc(nn.Module):
    def forward(self, x):
        return x.erfc()


def same_bits(result, expected):
    """Equal to the last bit, that of a NaN's sign included; which NaN it is does not matter."""
    if not expected.is_floating_point():
        return torch.equal(result, expected)
    return torch.equal(result.nan_to_num(7), expected.nan_to_num(7)) and torch.equal(
        result.signbit(), expected.signbit()
    )


def special(dtype):
    x = torch.tensor([1.5, -1.5, 0.0, -0.0, torch.nan, torch.nan, torch.inf, -torch.inf, 1e-45], dtype=dtype)
    x[5] = torch.copysign(x[5], torch.tensor(-1.0, dtype=dtype))
    return x


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_of_zeros_and_nan(dtype):
    x = special(dtype)
    y = x.flip(0)[:, None]
    assert list(x.signbit()[:6]) == [False, True, False, True, False, True]
    for result, expected in zip(pipeline.compile(Signs(), (x, y))(x, y), Signs()(x, y), strict=True):
        assert same_bits(result, expected)


class Truncated(nn.Module):
    def forward(self, x):
        return x.trunc(), torch.div(x, -2, rounding_mode="trunc"), x.fix()


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncation_keeps_signs(dtype):
    x = torch.cat([special(dtype), torch.tensor([0.5, -0.5, 2.5, -2.5, 1e5, -1e5], dtype=dtype)])
    x = x[x == x]
    for result, expected in zip(pipeline.compile(Truncated(), (x,))(x), Truncated()(x), strict=True):
        assert same_bits(result, expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.bool])
def test_signs_of_integers(dtype):
    x, y = torch.arange(-4, 4).to(dtype), special(torch.float32)[:, None]
    for result, expected in zip(pipeline.compile(Signs(), (x, y))(x, y), Signs()(x, y), strict=True):
        assert result.dtype == expected.dtype and same_bits(result, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 3), (0, 3), ()])
def test_views_of_bits(dtype, shape):
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    for result, expected in zip(pipeline.compile(Bits(), (x,))(x), Bits()(x), strict=True):
        assert result.dtype == expected.dtype and torch.equal(result, expected)


def test_bits_changed_in_place():
    x = torch.randn(5)
    assert torch.equal(pipeline.compile(BitsInPlace(), (x,))(x), BitsInPlace()(x))


def test_bits_of_unknown_sizes():
    batch = torch.export.Dim("batch", min=0, max=64)
    executable = pipeline.compile(Bits(), (torch.randn(3, 4),), dynamic_shapes=({0: batch},))
    for size in (1, 7):
        x = torch.randn(size, 4)
        assert torch.equal(executable(x)[0], Bits()(x)[0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_erfc_relative_to_itself(dtype):
    """Against float64 in eager; the smallest results are denormal, which have fewer bits."""
    x = torch.cat([torch.linspace(-7, 28, 4001, dtype=torch.float64), special(torch.float64)]).to(dtype)
    result, expected = pipeline.compile(Erfc(), (x,))(x), x.double().erfc()
    assert torch.equal(result.isnan(), expected.isnan())
    normal = expected >= torch.finfo(dtype).tiny
    error = ((result.double() - expected).abs() / expected)[normal].max()
    assert error <= (1e-14 if dtype == torch.float64 else torch.finfo(dtype).eps)
    small = ~normal & ~expected.isnan()
    spacing = torch.finfo(dtype).tiny * torch.finfo(dtype).eps
    assert ((result.double() - expected).abs()[small] <= spacing * 1.01).all()


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 2e-6), (torch.float64, 2e-15)], ids=str)
def test_mish_to_its_last_digits_from_tail_to_tail(dtype, close):
    """x * tanh(softplus(x)) with the digits of tanh(y) = -expm1(-2 y) / (1 + exp(-2 y)), which holds in both tails."""
    x = torch.cat((torch.linspace(-80, 120, 9973, dtype=dtype), special(dtype)))
    wide = x.double()
    doubled = -2 * torch.nn.functional.softplus(wide, threshold=1e3)
    exact = wide * (-doubled.expm1() / (1 + doubled.exp()))
    result = pipeline.compile(nn.Mish(), (x,))(x)
    torch.testing.assert_close(result.double(), exact, rtol=close, atol=1e-38, equal_nan=True)
    assert torch.equal(result.signbit()[:-10], torch.nn.functional.mish(x).signbit()[:-10])


class Neighbours(nn.Module):
    def forward(self, x, y):
        return torch.nextafter(x, y), torch.angle(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_next_numbers_and_angles(dtype):
    """Towards all kinds of numbers: past zero, into subnormal ones, to and from infinity; eager's NaN have any sign."""
    largest = torch.finfo(dtype).max
    x = torch.cat([special(dtype), torch.tensor([largest, -largest, 1.0, -1.0], dtype=dtype), torch.randn(9).to(dtype)])
    y = x.flip(0)[:, None]
    for result, expected in zip(pipeline.compile(Neighbours(), (x, y))(x, y), Neighbours()(x, y), strict=True):
        assert same_bits(result.where(result == result, torch.nan), expected.where(expected == expected, torch.nan))


def test_angles_of_integers():
    x = torch.tensor([-3, 0, 5])
    angle = pipeline.compile(Angle(), (x,))(x)
    torch.testing.assert_close(angle, torch.angle(x))


class Angle(nn.Module):
    def forward(self, x):
        return torch.angle(x)
