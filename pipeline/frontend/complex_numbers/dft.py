"""Discrete Fourier transforms along the last dimension, as matrix products by stages.

For n = n1 n2 the transform of x, seen as [n1, n2], is (Cooley and Tukey) transforms of length n1 along the columns, a
factor for each element, transforms of length n2 along the rows, and a transposition. So a transform of 4096 elements is
three products with matrices of 16 x 16. A length with a large prime factor is a convolution with a chirp (Bluestein),
of a length that is a power of two. Factors depend on sizes alone; they are computed once, in float64.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.arithmetic import product
from pipeline.frontend.complex_numbers.table import Parts

#: The sign of the exponent.
FORWARD, BACKWARD = -1, 1

#: The longest transform that is one product, and the longest one where its length has no smaller factor.
LONGEST, _LONGEST_PRIME = 32, 256


def transform(x: Parts, sign: int) -> Parts:
    """The transform of [.., n], not scaled, in order; one of symbolic length takes n² steps."""
    n = x.re.size(-1)
    if not isinstance(n, int) or n <= LONGEST:
        return _short_transform(x, sign)
    first = _first_factor(n)
    if first == n:
        return _short_transform(x, sign)
    if first is None:
        return _chirp_transform(x, sign)
    columns = Parts(*(part.unflatten(-1, (first, n // first)).transpose(-1, -2) for part in x))
    turned = product(_short_transform(columns, sign), roots(n // first, first, n, sign, x.re))
    rows = transform(Parts(*(part.transpose(-1, -2) for part in turned)), sign)
    return Parts(*(part.transpose(-1, -2).flatten(-2) for part in rows))


def _first_factor(n: int) -> int | None:
    """The length of the first stage: equal stages where there are such factors; None where all factors are large."""
    stages = math.ceil(math.log(n, LONGEST) - 1e-9)
    near = n ** (1 / stages)
    factors = [k for k in range(2, min(n, LONGEST) + 1) if n % k == 0]
    if factors:
        return min(factors, key=lambda k: abs(math.log(k / near)))
    return next((k for k in range(LONGEST, min(n, _LONGEST_PRIME) + 1) if n % k == 0), None)


def roots(rows: Any, columns: Any, n: Any, sign: int, like: Tensor) -> Parts:
    """The roots of unity exp(±2 pi i k l / n) for k < rows, l < columns, of the dtype of `like`.

    They come from (k l) mod n, so that no digits are lost to large angles.
    """
    k = torch.arange(rows, device=like.device).unsqueeze(1)
    steps = k * torch.arange(columns, device=like.device) % n
    return _on_circle(steps.double() * (sign * 2 * math.pi / n), like.dtype)


def _on_circle(angle: Tensor, dtype: torch.dtype) -> Parts:
    return Parts(angle.cos().to(dtype), angle.sin().to(dtype))


def _short_transform(x: Parts, sign: int) -> Parts:
    """The transform as one product: [re, im] @ [[cos, sin], [-sin, cos]]."""
    n = x.re.size(-1)
    cos, sin = roots(n, n, n, sign, x.re)
    factors = torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)])
    return halves(torch.cat([x.re, x.im], -1) @ factors)


def halves(both: Tensor) -> Parts:
    """[.., 2 n] -> two of [.., n]."""
    half = both.size(-1) // 2
    return Parts(both.narrow(-1, 0, half), both.narrow(-1, half, half))


def _chirp_transform(x: Parts, sign: int) -> Parts:
    """The transform as a convolution (Bluestein): with w[k] = exp(±pi i k² / n), w * ((x * w) convolved with 1 / w)."""
    n = x.re.size(-1)
    length = 1 << (2 * n - 2).bit_length()
    chirp = _chirp(n, sign, x.re)
    spectrum = transform(_padded(product(x, chirp), length), FORWARD)
    convolved = transform(product(spectrum, _chirp_spectrum(n, length, sign, x.re)), BACKWARD)
    result = product(Parts(*(part.narrow(-1, 0, n) for part in convolved)), chirp)
    return Parts(*(part * (1 / length) for part in result))


def _chirp(n: int, sign: int, like: Tensor) -> Parts:
    k = torch.arange(n, device=like.device)
    return _on_circle((k * k % (2 * n)).double() * (sign * math.pi / n), like.dtype)


def _padded(x: Parts, length: int) -> Parts:
    return Parts(*(torch.nn.functional.pad(part, (0, length - part.size(-1))) for part in x))


def _chirp_spectrum(n: int, length: int, sign: int, like: Tensor) -> Parts:
    """The transform of 1 / w on a circle of `length`: w[k] at k and at length - k; in float64."""
    wide = like.new_empty((), dtype=torch.float64)
    back = [
        torch.cat([part, part.new_zeros(length - 2 * n + 1), part.narrow(0, 1, n - 1).flip(0)])
        for part in _chirp(n, -sign, wide)
    ]
    return Parts(*(part.to(like.dtype) for part in transform(Parts(*back), FORWARD)))
