"""`pipeline.transform`, a Fourier transform that is computed as a whole, on pairs of real numbers.

pipeline.transform(x, n, sign, scale, width) → scale * the sums of x times exp(sign 2 pi i k l / n), not in [.., n]
complex numbers but in rows of real ones: [r, 2 n] → [r, 2 n], [r, n] → [r, n + 2], [r, n + 2] → [r, n], or along the
columns of complex numbers, [r, n, 2 c] → [r, n, 2 c]. `width` is the size of the result's last dim.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SCHEMA = "(Tensor x, int n, int sign, float scale, int width) -> Tensor"


@torch.library.custom_op("pipeline::transform", mutates_args=(), schema=_SCHEMA)
def transform(x: Tensor, n: int, sign: int, scale: float, width: int) -> Tensor:
    """See the module's docstring."""
    if x.dim() == 3:
        return _pairs(_whole(_complex(x), n, sign, 1) * scale)
    if x.size(-1) == n:
        return _pairs(torch.fft.rfft(x) * scale)
    if width == n:
        return torch.fft.irfft(_complex(x), n, norm="forward") * scale
    return _pairs(_whole(_complex(x), n, sign, -1) * scale)


def _whole(z: Tensor, n: int, sign: int, dim: int) -> Tensor:
    return torch.fft.fft(z, n, dim) if sign < 0 else torch.fft.ifft(z, n, dim, norm="forward")


def _complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())


def _pairs(z: Tensor) -> Tensor:
    return torch.view_as_real(z).flatten(-2).contiguous()


@transform.register_fake
def _(x: Tensor, n: int, sign: int, scale: float, width: int) -> Tensor:
    return x.new_empty([*x.shape[:-1], width])
