"""Fourier transforms as torch's three: complex to complex, real to half a spectrum, and back."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.dft import BACKWARD, FORWARD, transform
from pipeline.frontend.complex_numbers.half_spectra import half_spectrum, real_numbers, whole_spectrum
from pipeline.frontend.complex_numbers.table import Parts, always, aten, join, split
from pipeline.frontend.complex_numbers.whole_transforms import (
    half_spectrum_of,
    is_whole,
    is_whole_column,
    real_numbers_of,
    transformed_columns,
    transformed_rows,
)


@always(aten._fft_c2c.default)
def c2c(z: Tensor, dim: list[int], normalization: int, forward: bool) -> Tensor:
    """_fft_c2c(z, dims) -> a transform along each of the dims."""
    scale = _factor(normalization, [z.size(axis) for axis in dim])
    return _complex_along(z, dim, FORWARD if forward else BACKWARD, scale) if dim else z.clone()


@always(aten._fft_r2c.default)
def r2c(x: Tensor, dim: list[int], normalization: int, onesided: bool) -> Tensor:
    """_fft_r2c(x, dims) -> half a spectrum along the last of the dims, or all of it, then as `c2c` along the others."""
    *others, last = dim
    scale = _factor(normalization, [x.size(axis) for axis in dim])
    z = _moved(_spectrum(_moved(x, last, -1), onesided, 1 if others else scale), -1, last)
    return _complex_along(z, others, FORWARD, scale) if others else z


@always(aten._fft_c2r.default)
def c2r(z: Tensor, dim: list[int], normalization: int, last_dim_size: int) -> Tensor:
    """_fft_c2r(z, dims, n) -> as `c2c` along all dims but the last, then n real numbers of half a spectrum."""
    *others, last = dim
    scale = _factor(normalization, [*(z.size(axis) for axis in others), last_dim_size])
    half = _moved(_complex_along(z, others, BACKWARD, 1) if others else z, last, -1)
    if is_whole(last_dim_size, z.dtype, is_real=True):
        return _moved(real_numbers_of(half, last_dim_size, scale), -1, last)
    return _moved(real_numbers(split(half), last_dim_size) * scale, -1, last)


def _complex_along(z: Tensor, dims: list[int], sign: int, scale: Any) -> Tensor:
    """scale * the transform along each of the dims."""
    *others, last = dims
    for axis in others:
        z = _along(z, axis % z.dim(), sign, 1)
    return _along(z, last % z.dim(), sign, scale)


def _along(z: Tensor, dim: int, sign: int, scale: Any) -> Tensor:
    if dim < z.dim() - 1 and is_whole_column(z, dim):
        return transformed_columns(z, dim, sign, scale)
    if is_whole(z.size(dim), z.dtype):
        return transformed_rows(z, dim, sign, scale)
    parts = transform(Parts(*(part.movedim(dim, -1) for part in split(z))), sign)
    return join(*(part.movedim(-1, dim) for part in _scaled(parts, scale)))


def _spectrum(x: Tensor, onesided: bool, scale: Any) -> Tensor:
    if is_whole(x.size(-1), x.dtype, is_real=True):
        half = half_spectrum_of(x, scale)
        return half if onesided else join(*whole_spectrum(split(half), x.size(-1)))
    parts = half_spectrum(x)
    return join(*_scaled(parts if onesided else whole_spectrum(parts, x.size(-1)), scale))


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    """movedim, which for complex tensors is one of their parts, unless it moves nothing."""
    return x if (source - target) % x.dim() == 0 else x.movedim(source, target)


def _factor(normalization: int, sizes: list[Any]) -> Any:
    """What a transform over `sizes` is multiplied by: 1, 1 / sqrt(n) or 1 / n, as torch numbers them."""
    count = math.prod(sizes)
    return (1, count**-0.5, 1 / count)[normalization]


def _scaled(parts: Parts, factor: Any) -> Parts:
    return parts if isinstance(factor, int) and factor == 1 else Parts(parts.re * factor, parts.im * factor)


def composite(op: Any) -> Any:
    """The rule that has torch take an op apart."""

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)

    decomposed.__doc__ = f"{op} -> what torch makes of it: one of the three above, pads, slices."
    return decomposed


@always(aten.fft_fftfreq.default)
def frequencies(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """fftfreq(n, d) -> 0, 1, .., n / 2 rounded up, then the negative ones, divided by n * d."""
    whole = torch.arange(n, dtype=dtype or torch.get_default_dtype(), device=device)
    return torch.where(whole < (n + 1) // 2, whole, whole - n) * (1.0 / (n * d))


@always(aten.fft_rfftfreq.default)
def half_frequencies(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """rfftfreq(n, d) -> 0, 1, .., n / 2, divided by n * d."""
    return torch.arange(n // 2 + 1, dtype=dtype or torch.get_default_dtype(), device=device) * (1.0 / (n * d))


_SHIFTS = ("fftshift", "ifftshift")
_TRANSFORMS = [
    inverse + kind + dims for inverse in ("", "i") for kind in ("fft", "hfft", "rfft") for dims in ("", "2", "n")
]
for _name in (*_SHIFTS, *_TRANSFORMS):
    _op = getattr(aten, f"fft_{_name}").default
    always(_op)(composite(_op))
