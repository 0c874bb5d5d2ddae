"""Functions of one complex variable, with real results among them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.arithmetic import exponential, logarithm, product
from pipeline.frontend.complex_numbers.table import Parts, always, aten, join, rule, split


def magnitude(x: Parts) -> Tensor:
    """|z| = m sqrt(1 + (l / m)²), for the greater and the lesser m, l of |re|, |im|; infinite if one of them is."""
    one, other = x.re.abs(), x.im.abs()
    greater, lesser = torch.maximum(one, other), torch.minimum(one, other)
    ratio = torch.where(greater == 0, 0.0, lesser / greater)
    size = greater * torch.sqrt(1 + ratio * ratio)
    is_infinite = (one == math.inf) | (other == math.inf)
    return torch.where(is_infinite, math.inf, size)


@rule(aten.abs.default)
def absolute(z: Tensor) -> Tensor:
    """abs(z) -> see `magnitude`."""
    return magnitude(split(z))


@rule(aten.angle.default)
def angle(z: Tensor) -> Tensor:
    """angle(z) -> atan2(im, re)."""
    re, im = split(z)
    return torch.atan2(im, re)


@rule(aten.sgn.default)
def sgn(z: Tensor) -> Tensor:
    """sgn(z) -> z / |z|, 0 for 0."""
    x = split(z)
    size = magnitude(x)
    return join(*(torch.where(size == 0, 0.0, part / size) for part in x))


@always(aten.polar.default)
def polar(size: Tensor, angle: Tensor) -> Tensor:
    """polar(r, phi) -> r cos phi, r sin phi."""
    size, angle = torch.broadcast_tensors(size, angle)
    return join(size * angle.cos(), size * angle.sin())


@always(aten.complex.default)
def complex_of(re: Tensor, im: Tensor) -> Any:
    """complex(re, im) -> complex of both in one shape."""
    if re.shape == im.shape:
        return NotImplemented
    return join(*torch.broadcast_tensors(re, im))


@rule(aten.exp.default)
def exp(z: Tensor) -> Tensor:
    """exp(z) -> see `exponential`."""
    return join(*exponential(split(z)))


@rule(aten.exp2.default)
def exp2(z: Tensor) -> Tensor:
    """exp2(z) -> exp(z ln 2)."""
    re, im = split(z)
    turned = im * math.log(2)
    size = re.exp2()
    return join(size * turned.cos(), size * turned.sin())


@rule(aten.expm1.default)
def expm1(z: Tensor) -> Tensor:
    """expm1(z) -> expm1(re) cos im - 2 sin²(im / 2), e^re sin im: nothing is lost near 0."""
    re, im = split(z)
    half = (im * 0.5).sin()
    return join(re.expm1() * im.cos() - 2 * half * half, re.exp() * im.sin())


@rule(aten.log.default)
def log(z: Tensor) -> Tensor:
    """log(z) -> ln |z|, arg z."""
    return join(*logarithm(split(z)))


def _log_to(base: float) -> Any:
    def decomposed(z: Tensor) -> Tensor:
        return join(*(part * (1 / math.log(base)) for part in logarithm(split(z))))

    decomposed.__doc__ = f"log(z) / log({base})."
    return decomposed


rule(aten.log2.default)(_log_to(2))
rule(aten.log10.default)(_log_to(10))


@rule(aten.log1p.default)
def log1p(z: Tensor) -> Tensor:
    """log1p(z) -> log1p(re (2 + re) + im²) / 2, arg (1 + z) for a small z; ln |1 + z| otherwise."""
    re, im = split(z)
    far = logarithm(Parts(re + 1, im))
    near = 0.5 * torch.log1p(re * (2 + re) + im * im)
    is_near = (re.abs() < 0.5) & (im.abs() < 0.5)
    return join(torch.where(is_near, near, far.re), far.im)


def root(x: Parts) -> Parts:
    """sqrt(z): t = sqrt((|re| + |z|) / 2), and im / 2t; the other way round for re < 0."""
    t = torch.sqrt(0.5 * x.re.abs() + 0.5 * magnitude(x))
    other = torch.where(t == 0, 0.0, x.im.abs() / (2 * t))
    is_right = x.re >= 0
    return Parts(torch.where(is_right, t, other), torch.copysign(torch.where(is_right, other, t), x.im))


@rule(aten.sqrt.default)
def sqrt(z: Tensor) -> Tensor:
    """sqrt(z) -> see `root`."""
    return join(*root(split(z)))


@rule(aten.rsqrt.default)
def rsqrt(z: Tensor) -> Tensor:
    """rsqrt(z) -> 1 / sqrt(z)."""
    return torch.reciprocal(torch.sqrt(z))


@rule(aten.tanh_backward.default)
def tanh_backward(gradient: Tensor, result: Tensor) -> Tensor:
    """tanh_backward(g, t) -> g conj(1 - t²)."""
    return gradient * (1 - result * result).conj()


@rule(aten.sigmoid_backward.default)
def sigmoid_backward(gradient: Tensor, result: Tensor) -> Tensor:
    """sigmoid_backward(g, s) -> g conj(s (1 - s))."""
    return gradient * (result * (1 - result)).conj()


@rule(aten.sigmoid.default)
def sigmoid(z: Tensor) -> Tensor:
    """sigmoid(z) -> 1 / (1 + exp(-z))."""
    return torch.reciprocal(1 + torch.exp(-z))


@rule(aten.sinh.default)
def sinh(z: Tensor) -> Tensor:
    """sinh(z) -> sinh re cos im, cosh re sin im."""
    return join(*_sinh(split(z)))


@rule(aten.cosh.default)
def cosh(z: Tensor) -> Tensor:
    """cosh(z) -> cosh re cos im, sinh re sin im."""
    re, im = split(z)
    return join(re.cosh() * im.cos(), re.sinh() * im.sin())


def _sinh(x: Parts) -> Parts:
    return Parts(x.re.sinh() * x.im.cos(), x.re.cosh() * x.im.sin())


@rule(aten.sin.default)
def sin(z: Tensor) -> Tensor:
    """sin(z) -> sin re cosh im, cos re sinh im."""
    re, im = split(z)
    return join(re.sin() * im.cosh(), re.cos() * im.sinh())


@rule(aten.cos.default)
def cos(z: Tensor) -> Tensor:
    """cos(z) -> cos re cosh im, -sin re sinh im."""
    re, im = split(z)
    return join(re.cos() * im.cosh(), -(re.sin() * im.sinh()))


def _tanh(x: Parts) -> Parts:
    """By t = tanh re and u = tan im: (t (1 + u²), u (1 - t²)) / (1 + t² u²), in which no exponential overflows.

    u is kept finite by multiplying with cos² im: (t, sin im cos im / cosh² re) / (cos² im + t² sin² im).
    """
    t, sine, cosine = x.re.tanh(), x.im.sin(), x.im.cos()
    decay = (-2 * x.re.abs()).exp()
    inverse_square = 4 * decay / ((1 + decay) * (1 + decay))  # of cosh re
    below = cosine * cosine + t * t * sine * sine
    return Parts(t / below, sine * cosine * inverse_square / below)


@rule(aten.tanh.default)
def tanh(z: Tensor) -> Tensor:
    """tanh(z) -> see `_tanh`."""
    return join(*_tanh(split(z)))


@rule(aten.tan.default)
def tan(z: Tensor) -> Tensor:
    """tan(z) -> -i tanh(iz)."""
    re, im = split(z)
    turned = _tanh(Parts(-im, re))
    return join(turned.im, -turned.re)


def _atanh(x: Parts) -> Parts:
    """±log1p(4 |re| / ((1 - |re|)² + im²)) / 4 with re's sign, atan2(2 im, (1 - re)(1 + re) - im²) / 2."""
    size, square = x.re.abs(), x.im * x.im
    far = (1 - size) * (1 - size) + square
    turn = torch.atan2(2 * x.im, (1 - size) * (1 + size) - square)
    return Parts(torch.copysign(0.25 * torch.log1p(4 * size / far), x.re), 0.5 * turn)


@rule(aten.atanh.default)
def atanh(z: Tensor) -> Tensor:
    """atanh(z) -> see `_atanh`."""
    return join(*_atanh(split(z)))


@rule(aten.atan.default)
def atan(z: Tensor) -> Tensor:
    """atan(z) -> -i atanh(iz)."""
    re, im = split(z)
    turned = _atanh(Parts(-im, re))
    return join(turned.im, -turned.re)


def _acos_parts(x: Parts) -> tuple[Parts, Parts]:
    """sqrt(1 - z), sqrt(1 + z): of which Kahan's formulas for asin and acos are made."""
    return root(Parts(1 - x.re, -x.im)), root(Parts(1 + x.re, x.im))


def _asinh_of(number: Tensor) -> Tensor:
    """Of a real number: sign(x) log1p(|x| + x² / (1 + sqrt(1 + x²)))."""
    size = number.abs()
    square = size * size
    return torch.copysign(torch.log1p(size + square / (1 + torch.sqrt(1 + square))), number)


def _asin(x: Parts) -> Parts:
    """atan2(re, Re(sqrt(1 - z) sqrt(1 + z))), asinh(Im(conj(sqrt(1 - z)) sqrt(1 + z))) (Kahan)."""
    low, high = _acos_parts(x)
    straight = product(low, high)
    crossed = product(Parts(low.re, -low.im), high)
    return Parts(torch.atan2(x.re, straight.re), _asinh_of(crossed.im))


@rule(aten.asin.default)
def asin(z: Tensor) -> Tensor:
    """asin(z) -> see `_asin`."""
    return join(*_asin(split(z)))


@rule(aten.asinh.default)
def asinh(z: Tensor) -> Tensor:
    """asinh(z) -> -i asin(iz)."""
    re, im = split(z)
    turned = _asin(Parts(-im, re))
    return join(turned.im, -turned.re)


def _acos(x: Parts) -> Parts:
    """2 atan2(Re sqrt(1 - z), Re sqrt(1 + z)), asinh(Im(conj(sqrt(1 + z)) sqrt(1 - z))) (Kahan)."""
    low, high = _acos_parts(x)
    crossed = product(Parts(high.re, -high.im), low)
    return Parts(2 * torch.atan2(low.re, high.re), _asinh_of(crossed.im))


@rule(aten.acos.default)
def acos(z: Tensor) -> Tensor:
    """acos(z) -> see `_acos`."""
    return join(*_acos(split(z)))


@rule(aten.acosh.default)
def acosh(z: Tensor) -> Tensor:
    """acosh(z) -> ±i acos(z), so that the real part is not negative."""
    x = split(z)
    turned = _acos(x)
    return join(torch.copysign(turned.im, torch.ones_like(x.re)), torch.copysign(turned.re, x.im))
