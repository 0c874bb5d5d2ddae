"""Sums, products, quotients and powers. Real operands count as complex ones with zeros, as in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.table import Parts, aten, join, promoted, rule, split


@rule(aten.add.Tensor, aten.add.Scalar)
def add(a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """add(a, b, alpha) -> the sums of the parts."""
    x, y = promoted(a, b if alpha == 1 else b * alpha)
    return join(x.re + y.re, x.im + y.im)


@rule(aten.sub.Tensor, aten.sub.Scalar)
def sub(a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """sub(a, b, alpha) -> the differences of the parts."""
    x, y = promoted(a, b if alpha == 1 else b * alpha)
    return join(x.re - y.re, x.im - y.im)


@rule(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """rsub(a, b, alpha) -> b - alpha a."""
    x, y = promoted(a if alpha == 1 else a * alpha, b)
    return join(y.re - x.re, y.im - x.im)


def product(x: Parts, y: Parts) -> Parts:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    return Parts(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def quotient(x: Parts, y: Parts) -> Parts:
    """(a + bi)/(c + di) = ((ac + bd) + (bc - ad)i)/(c² + d²), c and d scaled to at most 1, as torch computes it."""
    scale = _greatest(y)
    c, d = y.re / scale, y.im / scale
    a, b = x.re / scale, x.im / scale
    square = c * c + d * d
    return Parts((a * c + b * d) / square, (b * c - a * d) / square)


def _greatest(x: Parts) -> Any:
    if not isinstance(x.re, Tensor):
        return max(abs(x.re), abs(x.im))
    return torch.maximum(x.re.abs(), x.im.abs())


@rule(aten.mul.Tensor, aten.mul.Scalar)
def mul(a: Any, b: Any) -> Tensor:
    """mul(a, b) -> see `product`."""
    return join(*product(*promoted(a, b)))


@rule(aten.div.Tensor, aten.div.Scalar)
def div(a: Any, b: Any) -> Tensor:
    """div(a, b) -> see `quotient`; by a real number, the quotients of the parts."""
    x, y = promoted(a, b)
    if not isinstance(b, Tensor):
        return join(*_by_number(x, y))
    return join(*quotient(x, y))


def _by_number(x: Parts, y: Parts) -> Parts:
    if y.im == 0:
        return Parts(x.re / y.re, x.im / y.re)
    if abs(y.re) + abs(y.im) == 0:
        return quotient(x, Parts(torch.full_like(x.re, y.re), torch.full_like(x.re, y.im)))
    return quotient(x, y)


@rule(aten.reciprocal.default)
def reciprocal(z: Tensor) -> Tensor:
    """reciprocal(z) -> 1 / z."""
    y = split(z)
    return join(*quotient(Parts(torch.ones_like(y.re), torch.zeros_like(y.re)), y))


@rule(aten.neg.default)
def neg(z: Tensor) -> Tensor:
    """neg(z) -> -re, -im."""
    re, im = split(z)
    return join(-re, -im)


@rule(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default, aten._conj_copy.default)
def conj(z: Tensor | complex) -> Tensor:
    """conj(z) -> re, -im; the view that it is in eager has been looked through by then.

    In graphs of gradients numbers stand where a tensor of no dim was made of one.
    """
    if isinstance(z, complex):
        return torch.full([], z.conjugate(), dtype=torch.complex128)
    re, im = split(z)
    return join(re, -im)


def logarithm(x: Parts) -> Parts:
    """ln |z|, arg z; without squares of what is large or small."""
    return Parts(log_of_magnitude(x), torch.atan2(x.im, x.re))


def log_of_magnitude(x: Parts) -> Tensor:
    """ln |z| = ln m + log1p((l / m)²) / 2, for the greater and the lesser m, l of |re|, |im|."""
    one, other = x.re.abs(), x.im.abs()
    greater, lesser = torch.maximum(one, other), torch.minimum(one, other)
    ratio = torch.where(lesser == greater, (lesser > 0).to(lesser.dtype), lesser / greater)
    return greater.log() + 0.5 * torch.log1p(ratio * ratio)


def exponential(x: Parts) -> Parts:
    """e^re (cos im + i sin im); of a real number real."""
    size = x.re.exp()
    return Parts(size * x.im.cos(), torch.where(x.im == 0, x.im, size * x.im.sin()))


@rule(aten.pow.Tensor_Tensor, aten.pow.Scalar)
def pow_tensor(base: Any, exponent: Any) -> Tensor:
    """pow(b, e) -> exp(e ln b); 1 for e = 0, and 0 for b = 0 and another e."""
    x, y = promoted(base, exponent)
    like = x.re if isinstance(x.re, Tensor) else y.re
    x = Parts(*(part if isinstance(part, Tensor) else torch.full_like(like, part) for part in x))
    power = exponential(product(y, logarithm(x)))
    is_zero = (x.re == 0) & (x.im == 0)
    is_one = torch.as_tensor((y.re == 0) & (y.im == 0)) if isinstance(y.re, Tensor) else None
    re, im = (torch.where(is_zero, 0.0, part) for part in power)
    if is_one is not None:
        re, im = torch.where(is_one, 1.0, re), torch.where(is_one, 0.0, im)
    return join(re, im)


@rule(aten.pow.Tensor_Scalar)
def pow_scalar(base: Tensor, exponent: Any) -> Tensor:
    """pow(b, n) -> products for a small whole n, b ** ±0.5 -> (r)sqrt(b), else exp(n ln b), as torch does."""
    z = base if base.is_complex() else base.to(torch.result_type(base, exponent))
    if exponent == 0:
        return torch.ones_like(z)
    if exponent in (1, 2, 3):
        return {1: z.clone, 2: lambda: z * z, 3: lambda: z * z * z}[int(exponent.real)]()
    if exponent in (-1, -2):
        return torch.reciprocal(z if exponent == -1 else z * z)
    if exponent in (0.5, -0.5):
        return torch.sqrt(z) if exponent == 0.5 else torch.rsqrt(z)
    return pow_tensor(z, exponent)


@rule(aten.ldexp.Tensor)
def ldexp(z: Tensor, exponent: Tensor) -> Tensor:
    """ldexp(z, e) -> z * 2 ** e."""
    return z * torch.exp2(exponent.to(torch.promote_types(exponent.dtype, torch.float32)))


@rule(aten.addcmul.default)
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    """addcmul(x, a, b, value) -> x + value * a * b."""
    return x + (a * b if value == 1 else value * (a * b))


@rule(aten.addcdiv.default)
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    """addcdiv(x, a, b, value) -> x + value * a / b."""
    return x + (a / b if value == 1 else value * (a / b))


@rule(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(a: Tensor, b: Tensor, weight: Any) -> Tensor:
    """lerp(a, b, w) -> a + w (b - a)."""
    return a + weight * (b - a)
