"""Groups of ops that work element by element."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from groups import Group
from numerics import ALL, BOOL, FLOATS, INTEGERS, NUMBERS, name

INF, NAN = float("inf"), float("nan")


def pair(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(any values, any values, values that are not zero), limits and specials among them."""
    if dtype == BOOL:
        return torch.tensor([[True, False, True, False]]), torch.tensor([[True], [False]]), torch.tensor([[True]])
    if dtype.is_floating_point:
        a = torch.tensor([[0.0, -0.0, 1.5, -2.25, 7.5, -7.5], [INF, -INF, NAN, 0.1, 1e-3, 100.0]])
        b = torch.tensor([[2.0, -3.0, 0.5, -0.75, -2.0, 2.0], [1.0, INF, 1.0, NAN, 3.0, -0.7]])
        return a.to(dtype), b.to(dtype), b.to(dtype)
    info = torch.iinfo(dtype)
    a = torch.tensor([[0, 1, 7, 100, info.max, info.min], [3, info.max - 1, info.min + 1, 8, 9, 10]])
    b = [[2, 3, 5, 7, info.max, 1], [info.max, 2, 3, 4, 10, 9]]
    if info.min < 0:
        b = [[2, -3, -5, 7, -1, -2], [info.max, info.min, 3, -4, -10, 9]]
        a[1, 3:] *= -1
    return a.to(dtype), torch.tensor([b[0][::-1], b[1][::-1]]).to(dtype), torch.tensor(b).to(dtype)


def bits(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(any values, any values, shift amounts)."""
    a, b, _ = pair(dtype)
    return a, b, torch.tensor([[0, 1, 2, 3, 4, 7], [0, 7, 6, 5, 1, 2]]).to(dtype)


def exponents(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """(bases, exponents that are not negative)."""
    base = torch.tensor([0, 1, 2, 3, 5, 7, 9, 2]).to(dtype)
    if dtype != torch.uint8:
        base[-3:] *= -1
    return base, torch.tensor([0, 3, 5, 2, 1, 0, 2, 3]).to(dtype)


def domain(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(any reals, positive reals, reals in (-1, 1))."""
    if not dtype.is_floating_point:
        wide = torch.tensor([0, 1, 2, 3, 4, 5, 1, 0]).to(dtype)
        return wide, wide.clone().fill_(1), wide.clone().fill_(0)
    specials = [INF, -INF, NAN]
    wide = torch.tensor([0.0, -0.0, 0.3, -0.4, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, -3.5, 5.0, -6.0, *specials])
    positive = torch.tensor([0.0, 1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, 50.0, 100.0, 700.0, *specials])
    unit = torch.tensor([-1.0, -0.99, -0.7, -0.5, -0.2, -0.01, 0.0, 0.01, 0.2, 0.5, 0.7, 0.99, 1.0, *specials])
    return wide.to(dtype), positive.to(dtype), unit.to(dtype)


ARITHMETIC = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul": lambda a, b, n: a * b,
    "neg": lambda a, b, n: -a,
    "add alpha": lambda a, b, n: torch.add(a, b, alpha=2),
    "sub alpha": lambda a, b, n: torch.sub(a, b, alpha=3),
    "rsub": lambda a, b, n: 3 - a,
    "add scalar": lambda a, b, n: a + 3,
    "add float scalar": lambda a, b, n: a + 1.5,
    "mul scalar": lambda a, b, n: a * 3,
    "abs": lambda a, b, n: a.abs(),
    "square": lambda a, b, n: a.square(),
    "sign": lambda a, b, n: a.sign(),
    "signbit": lambda a, b, n: a.signbit(),
    "maximum": lambda a, b, n: torch.maximum(a, b),
    "minimum": lambda a, b, n: torch.minimum(a, b),
    "fmax": lambda a, b, n: torch.fmax(a, b),
    "fmin": lambda a, b, n: torch.fmin(a, b),
    "clamp": lambda a, b, n: a.clamp(1, 5),
    "clamp min": lambda a, b, n: a.clamp(min=2),
    "clamp max": lambda a, b, n: a.clamp(max=2),
    "clamp tensors": lambda a, b, n: torch.clamp(a, b, n),
    "addcmul": lambda a, b, n: torch.addcmul(a, b, n, value=2),
    "addcdiv": lambda a, b, n: torch.addcdiv(a, b, n),
    "lerp": lambda a, b, n: torch.lerp(a, b, 0.3),
    "lerp tensor": lambda a, b, n: torch.lerp(a, b, n),
    "hypot": lambda a, b, n: torch.hypot(a, b),
    "copysign": lambda a, b, n: torch.copysign(a, b),
    "heaviside": lambda a, b, n: torch.heaviside(a, b),
    "positive": lambda a, b, n: +a,
}

DIVISION = {
    "true": lambda a, b, n: a / n,
    "true scalar": lambda a, b, n: a / 3,
    "rtrue": lambda a, b, n: 3 / n,
    "floor": lambda a, b, n: torch.div(a, n, rounding_mode="floor"),
    "trunc": lambda a, b, n: torch.div(a, n, rounding_mode="trunc"),
    "floor scalar": lambda a, b, n: torch.div(a, 3, rounding_mode="floor"),
    "trunc scalar": lambda a, b, n: torch.div(a, 3, rounding_mode="trunc"),
    "floor_divide": lambda a, b, n: a // n,
    "floor_divide scalar": lambda a, b, n: a // 3,
    "rfloor_divide": lambda a, b, n: 7 // n,
    "remainder": lambda a, b, n: a % n,
    "remainder scalar": lambda a, b, n: a % 3,
    "rremainder": lambda a, b, n: 7 % n,
    "fmod": lambda a, b, n: torch.fmod(a, n),
    "fmod scalar": lambda a, b, n: torch.fmod(a, 3),
    "reciprocal": lambda a, b, n: n.reciprocal(),
}

BY_NEGATIVE = {
    "floor": lambda a, b, n: a // -3,
    "trunc": lambda a, b, n: torch.div(a, -3, rounding_mode="trunc"),
    "remainder": lambda a, b, n: a % -3,
    "fmod": lambda a, b, n: torch.fmod(a, -3),
}

SHIFTS = {
    "left": lambda a, b, s: a << s,
    "right": lambda a, b, s: a >> s,
    "left scalar": lambda a, b, s: a << 2,
    "right scalar": lambda a, b, s: a >> 2,
}

BITWISE = {
    "and": lambda a, b, s: a & b,
    "or": lambda a, b, s: a | b,
    "xor": lambda a, b, s: a ^ b,
    "not": lambda a, b, s: ~a,
    "and scalar": lambda a, b, s: a & 6,
    "or scalar": lambda a, b, s: a | 6,
    "xor scalar": lambda a, b, s: a ^ 6,
}

LOGICAL = {
    "and": lambda a, b, n: torch.logical_and(a, b),
    "or": lambda a, b, n: torch.logical_or(a, b),
    "xor": lambda a, b, n: torch.logical_xor(a, b),
    "not": lambda a, b, n: torch.logical_not(a),
    "eq": lambda a, b, n: a == b,
    "ne": lambda a, b, n: a != b,
    "lt": lambda a, b, n: a < b,
    "le": lambda a, b, n: a <= b,
    "gt": lambda a, b, n: a > b,
    "ge": lambda a, b, n: a >= b,
    "eq scalar": lambda a, b, n: a == 1,
    "ne scalar": lambda a, b, n: a != 1,
    "lt scalar": lambda a, b, n: a < 7,
    "le scalar": lambda a, b, n: a <= 7,
    "gt scalar": lambda a, b, n: a > 7,
    "ge scalar": lambda a, b, n: a >= 7,
    "lt float scalar": lambda a, b, n: a < 7.5,
    "isnan": lambda a, b, n: a.isnan(),
    "isinf": lambda a, b, n: a.isinf(),
    "isfinite": lambda a, b, n: a.isfinite(),
    "isclose": lambda a, b, n: torch.isclose(a, b),
    "where": lambda a, b, n: torch.where(a > b, a, b),
    "where scalar": lambda a, b, n: torch.where(a > b, a, 0),
    "where scalars": lambda a, b, n: torch.where(a > b, 1.0, 0.0),
    "masked_fill": lambda a, b, n: a.masked_fill(a > b, 1),
    "bool as number": lambda a, b, n: (a > b) + (a < b).to(a.dtype),
}

POW = {
    "tensor": lambda a, b: a**b,
    "square": lambda a, b: a**2,
    "cube": lambda a, b: a**3,
    "zero": lambda a, b: a**0,
    "fourth": lambda a, b: a**4,
    "scalar base": lambda a, b: 2**b,
    "float exponent": lambda a, b: a**0.5,
    "float_power": lambda a, b: torch.float_power(a, b),
}

NEGATIVE_POW = {"minus one": lambda a, p, u: p**-1, "minus half": lambda a, p, u: p**-0.5, "xx": lambda a, p, u: p**u}

MATH = {
    "exp": lambda a, p, u: a.exp(),
    "exp2": lambda a, p, u: a.exp2(),
    "expm1": lambda a, p, u: a.expm1(),
    "log": lambda a, p, u: p.log(),
    "log2": lambda a, p, u: p.log2(),
    "log10": lambda a, p, u: p.log10(),
    "log1p": lambda a, p, u: p.log1p(),
    "sqrt": lambda a, p, u: p.sqrt(),
    "rsqrt": lambda a, p, u: p.rsqrt(),
    "sin": lambda a, p, u: a.sin(),
    "cos": lambda a, p, u: a.cos(),
    "tan": lambda a, p, u: a.tan(),
    "asin": lambda a, p, u: u.asin(),
    "acos": lambda a, p, u: u.acos(),
    "atan": lambda a, p, u: a.atan(),
    "atan2": lambda a, p, u: torch.atan2(a, u),
    "sinh": lambda a, p, u: a.sinh(),
    "cosh": lambda a, p, u: a.cosh(),
    "tanh": lambda a, p, u: a.tanh(),
    "asinh": lambda a, p, u: a.asinh(),
    "acosh": lambda a, p, u: (p + 1).acosh(),
    "atanh": lambda a, p, u: u.atanh(),
    "erf": lambda a, p, u: a.erf(),
    "erfc": lambda a, p, u: a.erfc(),
    "sigmoid": lambda a, p, u: a.sigmoid(),
    "logit": lambda a, p, u: p.logit(1e-3),
    "sinc": lambda a, p, u: a.sinc(),
    "xlogy": lambda a, p, u: torch.xlogy(a, p),
    "logaddexp": lambda a, p, u: torch.logaddexp(u, p),
    "floor": lambda a, p, u: a.floor(),
    "ceil": lambda a, p, u: a.ceil(),
    "round": lambda a, p, u: a.round(),
    "round decimals": lambda a, p, u: a.round(decimals=1),
    "trunc": lambda a, p, u: a.trunc(),
    "frac": lambda a, p, u: a.frac(),
    "nan_to_num": lambda a, p, u: a.nan_to_num(nan=3.0, posinf=9.0, neginf=-9.0),
    "deg2rad": lambda a, p, u: a.deg2rad(),
    "rad2deg": lambda a, p, u: u.rad2deg(),
}

ACTIVATIONS = {
    "relu": lambda a, p, u: F.relu(a),
    "relu6": lambda a, p, u: F.relu6(a),
    "leaky_relu": lambda a, p, u: F.leaky_relu(a, 0.1),
    "elu": lambda a, p, u: F.elu(a),
    "selu": lambda a, p, u: F.selu(a),
    "celu": lambda a, p, u: F.celu(a, 1.3),
    "gelu": lambda a, p, u: F.gelu(u),
    "gelu tanh": lambda a, p, u: F.gelu(u, approximate="tanh"),
    "silu": lambda a, p, u: F.silu(u),
    "mish": lambda a, p, u: F.mish(u),
    "softplus": lambda a, p, u: F.softplus(a),
    "softsign": lambda a, p, u: F.softsign(u),
    "logsigmoid": lambda a, p, u: F.logsigmoid(a),
    "hardswish": lambda a, p, u: F.hardswish(u),
    "hardsigmoid": lambda a, p, u: F.hardsigmoid(a),
    "hardtanh": lambda a, p, u: F.hardtanh(a, -0.5, 0.5),
    "hardshrink": lambda a, p, u: F.hardshrink(a, 0.4),
    "softshrink": lambda a, p, u: F.softshrink(a, 0.4),
    "threshold": lambda a, p, u: F.threshold(a, 0.2, -1.0),
    "tanhshrink": lambda a, p, u: F.tanhshrink(u),
    "prelu": lambda a, p, u: F.prelu(a, u[8:9]),
    "glu": lambda a, p, u: F.glu(u),
}


def castable(dtype: torch.dtype) -> tuple[torch.Tensor]:
    """Values that every dtype can hold but for their sign and fraction."""
    return (torch.tensor([0.0, 1.0, 2.75, 100.0, 7.5, 3.0]).to(dtype),)


def signed(dtype: torch.dtype) -> tuple[torch.Tensor]:
    """Values with a sign, and integers that do not fit narrower dtypes."""
    if dtype.is_floating_point:
        return (torch.tensor([-1.0, -2.75, -100.0, 0.25, -0.5]).to(dtype),)
    return (torch.tensor([-1, -2, -100, torch.iinfo(dtype).max, torch.iinfo(dtype).min]).to(dtype),)


def cast_to(dtypes: tuple[torch.dtype, ...]) -> dict[str, object]:
    """A cast to each of the dtypes."""
    return {name(dtype): lambda a, dtype=dtype: a.to(dtype) for dtype in dtypes}


def mixed(_: torch.dtype) -> tuple[torch.Tensor, ...]:
    """A tensor in every dtype."""
    return tuple(torch.tensor([0, 1, 1, 0]).to(dtype) for dtype in ALL)


PROMOTION = {
    f"{name(one)} {operator} {name(other)}": (
        lambda *args, i=i, j=j, operator=operator: args[i] + args[j] if operator == "+" else args[i] == args[j]
    )
    for i, one in enumerate(ALL)
    for j, other in enumerate(ALL)
    for operator in ("+", "==")
    if i < j
}

ELEMENTWISE = {
    "arithmetic": Group(pair, ARITHMETIC, ALL),
    "division": Group(pair, DIVISION, NUMBERS),
    "division by a negative": Group(pair, BY_NEGATIVE, tuple(dtype for dtype in NUMBERS if dtype != torch.uint8)),
    "bitwise": Group(bits, BITWISE, (BOOL, *INTEGERS)),
    "shifts": Group(bits, SHIFTS, INTEGERS),
    "logical": Group(pair, LOGICAL, ALL),
    "pow": Group(exponents, POW, NUMBERS),
    "negative pow": Group(domain, NEGATIVE_POW, FLOATS),
    "math": Group(domain, MATH, ALL),
    "activations": Group(domain, ACTIVATIONS, FLOATS),
    "casts": Group(castable, cast_to(ALL), ALL),
    "signed casts": Group(
        signed,
        cast_to((BOOL, torch.int8, torch.int16, torch.int32, torch.int64, *FLOATS)),
        (torch.int8, torch.int16, torch.int32, torch.int64, *FLOATS),
    ),
    "promotion": Group(mixed, PROMOTION, (BOOL,)),
}
