"""Arithmetic on the host's side of a plan: what sizes, conditions and loop counters are computed with.

Integers are Python's, kept in the range of their type as signed numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeline.runtime.interface.storage_types import numpy_dtype

Number = Any  # int, float or bool


def signed(value: int, width: int) -> int:
    """The value that the lowest `width` bits have as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """The value that the bits of a signed number have as an unsigned one."""
    return value & ((1 << width) - 1)


def _quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": operator.lshift,
    "shrsi": operator.rshift,
    "maxsi": max,
    "minsi": min,
    "divsi": _quotient,
    "remsi": lambda a, b: a - b * _quotient(a, b),
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
}

_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv,
    "remui": operator.mod,
    "ceildivui": lambda a, b: -(-a // b),
    "shrui": operator.rshift,
    "maxui": max,
    "minui": min,
}

_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


_FLOAT: dict[str, Callable[..., float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _divide,
    "negf": operator.neg,
    "maximumf": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    "minimumf": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "remf": np.fmod,
    "copysign": math.copysign,
    "atan2": math.atan2,
    "powf": np.float_power,
}

_INVERTIBLE = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_AS_IN_NUMPY = (
    *(*_INVERTIBLE, "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sqrt", "ceil", "floor", "trunc"),
)

#: Functions of one number, of MLIR's dialect math, as NumPy computes them of float64.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in _AS_IN_NUMPY},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _INVERTIBLE},
    "absf": np.abs,
    "erf": math.erf,
    "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}

#: Functions of the bits of an integer, and of how many there are.
_BITS: dict[str, Callable[[int, int], int]] = {
    "absi": lambda value, width: abs(signed(value, width)),
    "ctlz": lambda value, width: width - value.bit_length(),
    "ctpop": lambda value, width: value.bit_count(),
    "cttz": lambda value, width: (value & -value).bit_length() - 1 if value else width,
}

#: What a plan may compute.
OPS = (
    *_INTEGER,
    *_UNSIGNED,
    *_FLOAT,
    *_FUNCTIONS,
    *_BITS,
    *("cmpi", "cmpf", "select", "extsi", "extui", "trunci", "index_cast", "index_castui", "sitofp", "uitofp"),
    *("fptosi", "fptoui", "extf", "truncf"),
)


def compute(name: str, arguments: Sequence[Number], kind: str, source: str, predicate: int) -> Number:
    """The result, of type `kind`, of the op `name` on arguments the first of which has type `source`."""
    if name == "select":
        return arguments[1] if arguments[0] else arguments[2]
    if name == "cmpi":
        return _compare_integers(predicate, arguments, width(source))
    if name == "cmpf":
        return _compare_floats(predicate, arguments[0], arguments[1])
    if name in _INTEGER:
        return signed(_INTEGER[name](arguments[0], arguments[1]), width(kind))
    if name in _UNSIGNED:
        a, b = (unsigned(value, width(source)) for value in arguments)
        return signed(_UNSIGNED[name](a, b), width(kind))
    if name in _BITS:
        bits = width(kind)
        return signed(_BITS[name](unsigned(arguments[0], bits), bits), bits)
    if name in _FLOAT:
        with np.errstate(all="ignore"):
            return _rounded(float(_FLOAT[name](*arguments)), kind)
    if name in _FUNCTIONS:
        with np.errstate(all="ignore"):
            return _rounded(float(_FUNCTIONS[name](np.float64(arguments[0]))), kind)
    return _convert(name, arguments[0], kind, source)


def _compare_integers(predicate: int, arguments: Sequence[int], bits: int) -> int:
    a, b = arguments
    if predicate >= 6:
        a, b, predicate = unsigned(a, bits), unsigned(b, bits), predicate - 4
    return int(_COMPARISONS[predicate](a, b))


#: LLVM's float predicates as (less, equal, greater, unordered).
_FLOAT_PREDICATES = (
    "", "e", "g", "ge", "l", "le", "lg", "leg", "eu", "gu", "geu", "lu", "leu", "lgu", "u", "legu"
)  # fmt: skip


def _compare_floats(predicate: int, a: float, b: float) -> int:
    relation = "u" if math.isnan(a) or math.isnan(b) else "l" if a < b else "g" if a > b else "e"
    return int(relation in _FLOAT_PREDICATES[predicate])


def _convert(name: str, value: Number, kind: str, source: str) -> Number:
    if name in ("extui", "index_castui"):
        return signed(unsigned(value, width(source)), width(kind))
    if name in ("extsi", "trunci", "index_cast"):
        value = -value if name == "extsi" and source == "i1" else value
        return signed(value, width(kind))
    if name in ("fptosi", "fptoui"):
        return signed(int(value), width(kind)) if math.isfinite(value) else 0
    if name == "uitofp":
        value = unsigned(value, width(source))
    return _rounded(float(value), kind)


_FORMATS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def _rounded(value: float, kind: str) -> float:
    if kind not in _FORMATS:
        return value
    with np.errstate(over="ignore"):
        return float(np.float64(value).astype(numpy_dtype(_FORMATS[kind])))


def width(kind: str) -> int:
    """The bits of an integer type; those of `index` are 64."""
    return 64 if kind == "index" else int(kind[1:])
