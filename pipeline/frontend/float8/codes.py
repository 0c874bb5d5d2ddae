"""What the codes of floats of 8 bits stand for: float8_e4m3fn and float8_e5m2, as PyTorch has them.

Rounding is to nearest, ties to even, from float32, which wider numbers are rounded to first. e4m3fn has no infinity:
what is too large becomes its largest number, 448.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

#: Of float32.
_BIAS, _MANTISSA, _INFINITY = 127, 23, 0x7F800000


#: What NaN is encoded to, besides its sign.
_NAN = 0x7F


@dataclass(frozen=True)
class Format:
    """A sign, then bits of the exponent, then those of the mantissa.

    Attributes:
        mantissa: how many bits of it there are.
        bias: the exponent of 1.
        largest: the code of what is too large.
        has_infinity: whether that is infinity, not the largest number.
    """

    mantissa: int
    bias: int
    largest: int
    has_infinity: bool


FORMATS = {
    torch.float8_e4m3fn: Format(mantissa=3, bias=7, largest=0x7E, has_infinity=False),
    torch.float8_e5m2: Format(mantissa=2, bias=15, largest=0x7C, has_infinity=True),
}


def decode(x: Tensor) -> Tensor:
    """Floats of 8 bits as float32."""
    form = FORMATS[x.dtype]
    code = x.view(torch.uint8).to(torch.int32)
    magnitude = code & 0x7F
    normal = ((magnitude << (_MANTISSA - form.mantissa)) + ((_BIAS - form.bias) << _MANTISSA)).view(torch.float32)
    subnormal = magnitude.to(torch.float32) * 2.0 ** (1 - form.bias - form.mantissa)
    number = torch.where(magnitude < 1 << form.mantissa, subnormal, normal)
    if form.has_infinity:
        number = torch.where(magnitude == form.largest, torch.inf, number)
    number = torch.where(magnitude > form.largest, torch.nan, number)
    return torch.where(code > 0x7F, -number, number)


def encode(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers as floats of 8 bits."""
    form = FORMATS[dtype]
    number = x.to(torch.float32)
    bits = number.view(torch.int32)
    magnitude = bits & 0x7FFFFFFF
    dropped = _MANTISSA - form.mantissa
    is_odd = (magnitude >> dropped) & 1
    lowered = magnitude - ((_BIAS - form.bias) << _MANTISSA)
    normal = (lowered + ((1 << (dropped - 1)) - 1) + is_odd) >> dropped
    # the last bit of this number is the least number of the format: adding it rounds
    magic = 2.0 ** (_MANTISSA + 1 - form.bias - form.mantissa)
    subnormal = (number.abs() + magic).view(torch.int32) - _bits(magic)
    code = torch.where(magnitude < _bits(2.0 ** (1 - form.bias)), subnormal, normal).clamp(max=form.largest)
    code = torch.where(magnitude > _INFINITY, _NAN, code)
    return (code | ((bits >> 24) & 0x80)).to(torch.uint8).view(dtype)


def _bits(power: float) -> int:
    """The bits of a power of two as a float32."""
    return int(np.float32(power).view(np.int32))
