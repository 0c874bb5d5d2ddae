"""Fourier transforms of real numbers, whose spectra are told by their first half, n // 2 + 1 elements.

A long one of an even n takes a complex transform of n / 2 elements, of which the even elements are the real parts and
the odd ones the imaginary parts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.arithmetic import product
from pipeline.frontend.complex_numbers.dft import BACKWARD, FORWARD, LONGEST, halves, roots, transform
from pipeline.frontend.complex_numbers.table import Parts


def half_spectrum(x: Tensor) -> Parts:
    """Of [.., n] real numbers the first n // 2 + 1 elements of their transform, not scaled."""
    n = x.size(-1)
    half = n // 2 + 1
    if not isinstance(n, int) or n <= LONGEST:
        return halves(x @ torch.cat(roots(n, half, n, FORWARD, x), 1))
    if n % 2:
        return Parts(*(part.narrow(-1, 0, half) for part in transform(Parts(x, torch.zeros_like(x)), FORWARD)))
    return _of_packed(transform(_unpacked(x), FORWARD), n)


def _unpacked(x: Tensor) -> Parts:
    pairs = x.unflatten(-1, (-1, 2))
    return Parts(pairs.select(-1, 0), pairs.select(-1, 1))


def _of_packed(z: Parts, n: int) -> Parts:
    """X[k] = (Z[k] + Z'[k]) / 2 - i w^k (Z[k] - Z'[k]) / 2, where Z'[k] = conj(Z[m - k]), m = n / 2, Z[m] = Z[0]."""
    z = Parts(*(torch.cat([part, part.narrow(-1, 0, 1)], -1) for part in z))
    mirrored = _mirrored(z)
    even = Parts(z.re + mirrored.re, z.im + mirrored.im)
    odd = Parts(z.im - mirrored.im, mirrored.re - z.re)  # of -i (Z - Z')
    turned = product(odd, _turns(z.re.size(-1), n, FORWARD, z.re))
    return Parts(0.5 * (even.re + turned.re), 0.5 * (even.im + turned.im))


def _mirrored(z: Parts) -> Parts:
    """conj(z[last - k])."""
    return Parts(z.re.flip(-1), -z.im.flip(-1))


def _turns(count: int, n: int, sign: int, like: Tensor) -> Parts:
    """exp(±2 pi i k / n) for k < count."""
    return Parts(*(part.select(0, 1) for part in roots(2, count, n, sign, like)))


def whole_spectrum(half: Parts, n: Any) -> Parts:
    """All n elements of a spectrum: X[n - k] = conj(X[k])."""
    rest = (n + 1) // 2 - 1
    back = _mirrored(Parts(*(part.narrow(-1, 1, rest) for part in half)))
    return Parts(*(torch.cat([part, other], -1) for part, other in zip(half, back, strict=True)))


def real_numbers(half: Parts, n: Any) -> Tensor:
    """The n real numbers, not scaled, whose spectrum backwards is told by its first n // 2 + 1 elements.

    The imaginary parts of the first element, and of the last one for an even n, count for nothing.
    """
    if not isinstance(n, int) or n <= LONGEST:
        return _few_real_numbers(half, n)
    if n % 2:
        return transform(whole_spectrum(_without_ends(half, n), n), BACKWARD).re
    half = _without_ends(half, n)
    mirrored = _mirrored(half)
    even = Parts(half.re + mirrored.re, half.im + mirrored.im)
    odd = Parts(half.re - mirrored.re, half.im - mirrored.im)
    turned = product(odd, _turns(n // 2 + 1, n, BACKWARD, half.re))
    packed = Parts(even.re - turned.im, even.im + turned.re)
    numbers = transform(Parts(*(part.narrow(-1, 0, n // 2) for part in packed)), BACKWARD)
    return torch.stack([*numbers], -1).flatten(-2)


def _without_ends(half: Parts, n: int) -> Parts:
    """The half spectrum with the imaginary parts that count for nothing set to zero."""
    count = n // 2 + 1
    inner = half.im.narrow(-1, 1, count - 2 + n % 2)
    ends = (1, 1 - n % 2)
    return Parts(half.re, torch.nn.functional.pad(inner, ends))


def _few_real_numbers(half: Parts, n: Any) -> Tensor:
    """[re, im] @ [[cos], [-sin]], where all elements but the first, and the last for an even n, count twice."""
    count = n // 2 + 1
    cos, sin = roots(count, n, n, BACKWARD, half.re)
    k = torch.arange(count, device=half.re.device).unsqueeze(1)
    is_end = (k == 0) | (2 * k == n)
    factors = torch.cat([torch.where(is_end, cos, 2 * cos), torch.where(is_end, 0.0, -2 * sin)])
    return torch.cat([half.re, half.im], -1) @ factors
