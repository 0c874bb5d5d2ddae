"""Fourier transforms as torch's three: complex to complex, real to half a spectrum, and back."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.dft import BACKWARD, FORWARD, transform
from pipeline.frontend.complex_numbers.half_spectra import half_spectrum, real_numbers, whole_spectrum
from pipeline.frontend.complex_numbers.table import Parts, always, aten, join, split


@always(aten._fft_c2c.default)
def c2c(z: Tensor, dim: list[int], normalization: int, forward: bool) -> Tensor:
    """_fft_c2c(z, dims) -> a transform along each of the dims."""
    parts = split(z)
    sign = FORWARD if forward else BACKWARD
    for one in dim:
        parts = _along(parts, one, lambda line: transform(line, sign))
    return join(*_scaled(parts, _factor(normalization, [z.size(one) for one in dim])))


@always(aten._fft_r2c.default)
def r2c(x: Tensor, dim: list[int], normalization: int, onesided: bool) -> Tensor:
    """_fft_r2c(x, dims) -> half a spectrum along the last of the dims, or all of it, then as `c2c` along the others."""
    *others, last = dim
    parts = _along(Parts(x, None), last, lambda line: _spectrum(line.re, onesided))
    for one in others:
        parts = _along(parts, one, lambda line: transform(line, FORWARD))
    return join(*_scaled(parts, _factor(normalization, [x.size(one) for one in dim])))


@always(aten._fft_c2r.default)
def c2r(z: Tensor, dim: list[int], normalization: int, last_dim_size: int) -> Tensor:
    """_fft_c2r(z, dims, n) -> as `c2c` along all dims but the last, then n real numbers of half a spectrum."""
    *others, last = dim
    parts = split(z)
    for one in others:
        parts = _along(parts, one, lambda line: transform(line, BACKWARD))
    real = _along(parts, last, lambda line: Parts(real_numbers(line, last_dim_size), None)).re
    factor = _factor(normalization, [*(z.size(one) for one in others), last_dim_size])
    return real if factor == 1 else real * factor


def _spectrum(x: Tensor, onesided: bool) -> Parts:
    half = half_spectrum(x)
    return half if onesided else whole_spectrum(half, x.size(-1))


def _factor(normalization: int, sizes: list[Any]) -> Any:
    """What a transform over `sizes` is multiplied by: 1, 1 / sqrt(n) or 1 / n, as torch numbers them."""
    count = math.prod(sizes)
    return (1, count**-0.5, 1 / count)[normalization]


def _scaled(parts: Parts, factor: Any) -> Parts:
    return parts if isinstance(factor, int) and factor == 1 else Parts(parts.re * factor, parts.im * factor)


def _along(parts: Parts, dim: int, function: Any) -> Parts:
    """The function of the parts with `dim` as their last dimension."""
    moved = Parts(*(None if part is None else part.movedim(dim, -1) for part in parts))
    return Parts(*(None if part is None else part.movedim(-1, dim) for part in function(moved)))


def _composite(op: Any) -> Any:
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
    always(_op)(_composite(_op))
for _op in (aten.stft.default, aten.stft.center):
    always(_op)(_composite(_op))
