"""Ops of torch in terms of others: those that torch-mlir lacks or gets wrong, so that they never reach it.

Each function replaces one overload while torch.export runs its decompositions, opens with before → after, and returns
NotImplemented where the op can stay as it is. What is rewritten after that, on the graph, is in `graph_passes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Decomposition = Callable[..., Any]

#: The functions of this file, by the overload that they replace.
REPLACEMENTS: dict[Any, Decomposition] = {}


def _replaces(*overloads: Any) -> Callable[[Decomposition], Decomposition]:
    def register(function: Decomposition) -> Decomposition:
        REPLACEMENTS.update(dict.fromkeys(overloads, function))
        return function

    return register


def _is_float(*values: Any) -> bool:
    """Whether torch computes an op on these operands in floating point."""
    return any(value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, float) for value in values)


def _promoted(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands, one of them perhaps a number, as tensors of their common dtype."""
    dtype = torch.result_type(a, b)
    device = (a if isinstance(a, Tensor) else b).device
    first, second = (
        value.to(dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=dtype, device=device)
        for value in (a, b)
    )
    return first, second


def _in_float32(function: Decomposition) -> Decomposition:
    """The function with operands of 16 bits computed in float32 and rounded once, as torch does."""

    def wrapped(*tensors: Tensor) -> Tensor:
        dtype = tensors[0].dtype
        if dtype not in (torch.float16, torch.bfloat16):
            return function(*tensors)
        return function(*(tensor.float() for tensor in tensors)).to(dtype)

    return wrapped


# Signs and comparisons


@_replaces(aten.neg.default)
def neg(x: Tensor) -> Tensor:
    """neg(x) → x * -1 for integers, which torch-mlir negates in floating point."""
    return NotImplemented if _is_float(x) else x * -1


@_replaces(aten.abs.default)
def absolute(x: Tensor) -> Tensor:
    """abs(x) → x for unsigned integers."""
    return NotImplemented if x.dtype.is_signed else x.clone()


@_replaces(aten.signbit.default)
def signbit(x: Tensor) -> Tensor:
    """signbit(x) → x < 0 or 1/x < 0, which is how -0.0 shows; a NaN counts as positive."""
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0)) if _is_float(x) else x < 0


@_replaces(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Tensor, sign: Any) -> Tensor:
    """copysign(x, s) → where(signbit(s), -abs(x), abs(x))."""
    x, sign = _promoted(x, sign)
    if not _is_float(x):
        x = x.to(torch.get_default_dtype())
    magnitude = x.abs()
    return torch.where(sign.signbit(), magnitude * -1, magnitude)


@_replaces(aten.maximum.default)
def maximum(a: Tensor, b: Tensor) -> Tensor:
    """maximum(a, b) → where(a > b or a is NaN, a, b): torch-mlir's loses the NaN of the first operand."""
    a, b = _promoted(a, b)
    return torch.where((a > b) | (a != a), a, b) if _is_float(a) else NotImplemented


@_replaces(aten.minimum.default)
def minimum(a: Tensor, b: Tensor) -> Tensor:
    """minimum(a, b) → where(a < b or a is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a < b) | (a != a), a, b) if _is_float(a) else NotImplemented


@_replaces(aten.fmax.default)
def fmax(a: Tensor, b: Tensor) -> Tensor:
    """fmax(a, b) → where(a >= b or b is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a >= b) | (b != b), a, b) if _is_float(a) else torch.maximum(a, b)


@_replaces(aten.fmin.default)
def fmin(a: Tensor, b: Tensor) -> Tensor:
    """fmin(a, b) → where(a <= b or b is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a <= b) | (b != b), a, b) if _is_float(a) else torch.minimum(a, b)


@_replaces(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """clamp(x, low, high) → where(x < low, low, ..) then where(.. > high, high, ..); a NaN stays, as in torch."""
    if low is not None:
        x = _limit(x, low, torch.lt)
    if high is not None:
        x = _limit(x, high, torch.gt)
    return x


@_replaces(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Tensor, low: Any) -> Tensor:
    """clamp_min(x, low) → where(x < low, low, x)."""
    return _limit(x, low, torch.lt)


@_replaces(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Tensor, high: Any) -> Tensor:
    """clamp_max(x, high) → where(x > high, high, x)."""
    return _limit(x, high, torch.gt)


def _limit(x: Tensor, limit: Any, beyond: Decomposition) -> Tensor:
    x, limit = _promoted(x, limit)
    passed = beyond(x, limit)
    if _is_float(limit) and limit.dim():
        passed = passed | (limit != limit)
    return torch.where(passed, limit, x)


@_replaces(aten.isclose.default)
def isclose(a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """isclose(a, b) → a == b or abs(a - b) is finite and at most atol + rtol * abs(b)."""
    close = a == b
    if equal_nan and _is_float(a):
        close = close | ((a != a) & (b != b))
    if rtol == 0 and atol == 0:
        return close
    first, second = (a, b) if _is_float(a) else (a.to(torch.get_default_dtype()), b.to(torch.get_default_dtype()))
    distance = (first - second).abs()
    return close | ((distance < math.inf) & (distance <= atol + (rtol * second).abs()))


@_replaces(aten.ne.Tensor)
def ne(a: Tensor, b: Tensor) -> Tensor:
    """ne(a, b) of bools → xor(a, b), which torch-mlir compares wrongly with a broadcast operand."""
    return torch.bitwise_xor(a, b) if a.dtype == b.dtype == torch.bool else NotImplemented


@_replaces(aten.eq.Tensor)
def eq(a: Tensor, b: Tensor) -> Tensor:
    """eq(a, b) of bools → not xor(a, b)."""
    return torch.logical_not(torch.bitwise_xor(a, b)) if a.dtype == b.dtype == torch.bool else NotImplemented


@_replaces(aten.mul.Tensor, aten.mul.Scalar)
def mul(a: Tensor, b: Any) -> Tensor:
    """mul(x: bool, number) → mul(x as the result's dtype, number), on which torch-mlir crashes."""
    dtype = torch.result_type(a, b)
    if a.dtype != torch.bool or dtype == torch.bool:
        return NotImplemented
    return a.to(dtype) * b


@_replaces(aten.isfinite.default)
def isfinite(x: Tensor) -> Tensor:
    """isfinite(x) → abs(x) is neither infinity nor NaN; true for integers."""
    return x.abs() < math.inf if _is_float(x) else torch.ones_like(x, dtype=torch.bool)


@_replaces(aten.hardtanh.default)
def hardtanh(x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    """hardtanh(x, low, high) → clamp(x, low, high): torch-mlir's makes a number of NaN."""
    return x.clamp(low, high)


@_replaces(aten.gelu.default)
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x, tanh) → x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x³))), which torch-mlir's is not."""
    return NotImplemented if approximate == "none" else _in_float32(_gelu_tanh)(x)


def _gelu_tanh(x: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + inner.tanh())


# Bits


def _bitwise(op: Any) -> Decomposition:
    def decomposed(a: Any, b: Any) -> Tensor:
        return op(*_promoted(a, b))

    decomposed.__doc__ = f"{op}(a, number) → {op}(a, tensor)."
    return decomposed


for _name in ("and", "or", "xor"):
    _op = getattr(aten, f"bitwise_{_name}")
    _replaces(_op.Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))
for _old, _new in ((aten.__lshift__, aten.bitwise_left_shift), (aten.__rshift__, aten.bitwise_right_shift)):
    _replaces(_old.Tensor, _old.Scalar)(_bitwise(_new.Tensor))
for _op in (aten.bitwise_left_shift, aten.bitwise_right_shift):
    _replaces(_op.Tensor_Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))


# Division


@_replaces(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div(a: Tensor, b: Any, rounding_mode: str | None = None) -> Tensor:
    """div(a, b, mode): see `_floor_divide` for `floor`; `trunc` in floating point → trunc(a / b)."""
    if rounding_mode is None:
        return a / b
    first, second = _promoted(a, b)
    if first.dtype == torch.bool:
        return NotImplemented
    if rounding_mode == "floor":
        return _floor_divide(first, second)
    if _is_float(first):
        return (first / second).trunc()
    return (
        NotImplemented
        if isinstance(b, Tensor) and a.dtype == b.dtype
        else aten.div.Tensor_mode(first, second, rounding_mode="trunc")
    )


@_replaces(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(a: Any, b: Any) -> Tensor:
    """floor_divide(a, b) → see `_floor_divide`."""
    return _floor_divide(*_promoted(a, b))


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
    return _in_float32(_floor_divide_floats)(a, b) if _is_float(a) else _floor_divide_integers(a, b)


def _floor_divide_integers(a: Tensor, b: Tensor) -> Tensor:
    """A // b → trunc(a / b) - (it does not divide and the signs differ); torch-mlir divides in floating point."""
    quotient = aten.div.Tensor_mode(a, b, rounding_mode="trunc")
    if not a.dtype.is_signed:
        return quotient
    rest = a - quotient * b
    return quotient - _is_rounded_up(rest, b).to(a.dtype)


def _is_rounded_up(rest: Tensor, b: Tensor) -> Tensor:
    """Whether truncating a quotient with this rest went up: its sign differs from the divisor's."""
    return torch.bitwise_and(rest != 0, torch.bitwise_xor(rest < 0, b < 0))


def _floor_divide_floats(a: Tensor, b: Tensor) -> Tensor:
    """A // b as torch computes it (div_floor_floating): (a - fmod(a, b)) / b, moved to a whole number."""
    rest = aten.fmod.Tensor(a, b)
    quotient = (a - rest) / b
    quotient = torch.where(_is_rounded_up(rest, b), quotient - 1, quotient)
    whole = quotient.floor()
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, torch.copysign(torch.zeros_like(a), a / b), whole)
    return torch.where(b == 0, a / b, whole)


@_replaces(aten.remainder.Scalar_Tensor)
def remainder(a: Any, b: Tensor) -> Tensor:
    """remainder(number, b) → remainder(tensor, b)."""
    return aten.remainder.Tensor(*_promoted(a, b))


@_replaces(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(a: Tensor, b: Any) -> Tensor:
    """fmod(a, b) → copysign(remainder(abs(a), abs(b)), a), which is exact; integers: a - trunc(a / b) * b."""
    first, second = _promoted(a, b)
    if not _is_float(first):
        return first - aten.div.Tensor_mode(first, second, rounding_mode="trunc") * second
    return torch.copysign(aten.remainder.Tensor(first.abs(), second.abs()), first)


# Powers


@_replaces(aten.pow.Tensor_Scalar)
def pow_scalar(x: Tensor, exponent: Any) -> Tensor:
    """pow(x, n) → x * x * .. for a small whole n; integers to any whole n by squaring; x ** ±0.5 → (r)sqrt(x).

    torch-mlir has a form of its own for n = -2, which is -inf at 0.
    """
    if not _is_float(x, exponent):  # a negative exponent is an error in eager
        return _whole_power(x.to(torch.result_type(x, exponent)), exponent)
    if not _is_float(x):
        return x.to(torch.result_type(x, exponent)) ** exponent
    if exponent in (2, 3):
        return _whole_power(x, int(exponent))
    if exponent == -2:
        return torch.reciprocal(x * x)
    special = {0.5: torch.sqrt, -0.5: torch.rsqrt, -1: torch.reciprocal}.get(exponent)
    return NotImplemented if special is None else special(x)


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    if exponent == 0:
        return torch.ones_like(x)
    power, square = None, x
    while exponent:
        if exponent & 1:
            power = square if power is None else power * square
        exponent >>= 1
        square = square * square if exponent else square
    assert power is not None
    return power.clone() if power is x else power


@_replaces(aten.pow.Scalar)
def pow_of_scalar(base: Any, exponent: Tensor) -> Tensor:
    """pow(number, e) → pow(tensor, e)."""
    return aten.pow.Tensor_Tensor(*_promoted(base, exponent))


@_replaces(aten.pow.Tensor_Tensor)
def pow_tensor(base: Tensor, exponent: Tensor) -> Tensor:
    """pow(x, e) of integers → the product of x ** (2 ** k) over the bits of e; for e < 0 see below."""
    base, exponent = _promoted(base, exponent)
    if _is_float(base) or base.dtype == torch.bool:
        return NotImplemented
    bits = torch.iinfo(exponent.dtype).bits - int(exponent.dtype.is_signed)
    power, square = torch.ones_like(base), base
    for bit in range(bits):
        power = torch.where((exponent >> bit) & 1 != 0, power * square, power)
        square = square * square
    if not exponent.dtype.is_signed:
        return power
    odd = torch.where(exponent & 1 != 0, base, torch.ones_like(base))
    whole = torch.where((base == 1) | (base == -1), odd, torch.zeros_like(base))
    return torch.where(exponent < 0, whole, power)


# Functions


@_replaces(aten.hypot.default)
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """hypot(a, b) → m * sqrt(1 + (n / m)²), where m and n are the greater and the lesser magnitude."""
    return _in_float32(_hypot)(*_promoted(a, b))


def _hypot(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.abs(), b.abs()
    great, less = torch.maximum(a, b), torch.minimum(a, b)
    ratio = less / great
    exact = (great == 0) | (great == math.inf)
    infinite = (a == math.inf) | (b == math.inf)
    scaled = torch.where(exact, great, great * (1 + ratio * ratio).sqrt())
    return torch.where(infinite, torch.full_like(a, math.inf), scaled)


@_replaces(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    """erfc(x) → 1 - erf(x) in float64."""
    dtype = x.dtype if _is_float(x) else torch.get_default_dtype()
    return (1 - x.double().erf()).to(dtype)


# Reductions and order


@_replaces(aten.any.default, aten.any.dim, aten.any.dims)
def any_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """any(x: numbers) → any(x != 0); in uint8 for uint8."""
    return NotImplemented if x.dtype == torch.bool else _quantified(torch.any, x, dim, keepdim)


@_replaces(aten.all.default, aten.all.dim, aten.all.dims)
def all_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """all(x: numbers) → all(x != 0); in uint8 for uint8."""
    return NotImplemented if x.dtype == torch.bool else _quantified(torch.all, x, dim, keepdim)


def _quantified(quantifier: Decomposition, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    holds = x != 0
    result = quantifier(holds) if dim is None else quantifier(holds, dim, keepdim)
    return result.to(torch.uint8) if x.dtype == torch.uint8 else result


@_replaces(aten.mean.dim)
def mean(x: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """mean(x, dtype=f64) → mean(x in f64)."""
    return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).mean(dim, keepdim)


@_replaces(aten._cdist_forward.default)
def cdist(a: Tensor, b: Tensor, p: float, mode: int | None) -> Tensor:
    """cdist(a, b, p) → the p-norms of the differences of all rows."""
    return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)


@_replaces(aten.max.dim)
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """max(x: float, dim) → (amax(x, dim), argmax(x, dim)): torch-mlir's index misses a NaN."""
    if not _is_float(x):
        return NotImplemented
    return x.amax(dim, keepdim), x.argmax(dim, keepdim)


@_replaces(aten.min.dim)
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """min(x: float, dim) → (amin(x, dim), argmin(x, dim))."""
    if not _is_float(x):
        return NotImplemented
    return x.amin(dim, keepdim), x.argmin(dim, keepdim)


@_replaces(aten.argmax.default)
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmax(x: float) → see `_first_extreme`."""
    return _first_extreme(x, dim, keepdim, torch.amax) if _is_float(x) else NotImplemented


@_replaces(aten.argmin.default)
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmin(x: float) → see `_first_extreme`."""
    return _first_extreme(x, dim, keepdim, torch.amin) if _is_float(x) else NotImplemented


def _first_extreme(x: Tensor, dim: int | None, keepdim: bool, extreme: Decomposition) -> Tensor:
    """The first place that holds the extreme or a NaN: argmax of an int32 that is 1 there."""
    at_extreme = (x == (extreme(x) if dim is None else extreme(x, dim, True))) | (x != x)
    return torch.argmax(at_extreme.to(torch.int32), dim, keepdim)


@_replaces(aten.sort.stable)
def sort_stable(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """sort(x, stable=..) → sort(x), which is always stable here."""
    return aten.sort.default(x, dim, descending)


@_replaces(aten.sort.default)
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    """sort(x: bool) → sort(x as integers) as bools."""
    if x.dtype != torch.bool:
        return NotImplemented
    values, indices = aten.sort.default(x.to(torch.int32), dim, descending)
    return values.to(torch.bool), indices


@_replaces(aten.kthvalue.default)
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """kthvalue(x, k) → element k - 1 of sort(x)."""
    values, indices = torch.sort(x, dim=dim)
    kth = (part.select(dim, k - 1) for part in (values, indices))
    first, second = (part.unsqueeze(dim) if keepdim else part for part in kth)
    return first, second


@_replaces(aten.median.default)
def median(x: Tensor) -> Tensor:
    """median(x) → the middle element of sort(x), the lower of two; NaN if there is one."""
    line = x.flatten()
    middle = torch.sort(line)[0][(line.numel() - 1) // 2]
    return torch.where((line != line).any(), torch.full_like(middle, math.nan), middle) if _is_float(x) else middle


@_replaces(aten.cummax.default)
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """cummax(x) → see `_running_extreme`."""
    return _running_extreme(x, dim, torch.ge)


@_replaces(aten.cummin.default)
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """cummin(x) → see `_running_extreme`."""
    return _running_extreme(x, dim, torch.le)


def _running_extreme(x: Tensor, dim: int, wins: Decomposition) -> tuple[Tensor, Tensor]:
    """The extreme so far and its last place, by doubling: after step k each element knows the 2 ** k before it."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    size = x.size(dim)
    shape = [size if index == dim % x.dim() else 1 for index in range(x.dim())]
    values, places = x, torch.arange(size).view(shape).expand(x.shape)
    reach = 1
    while reach < size:
        earlier, earlier_places = (part.narrow(dim, 0, size - reach) for part in (values, places))
        later, later_places = (part.narrow(dim, reach, size - reach) for part in (values, places))
        takes_later = wins(later, earlier)
        if _is_float(x):
            takes_later = takes_later | (later != later)
        values, places = (
            torch.cat([whole.narrow(dim, 0, reach), torch.where(takes_later, after, before)], dim)
            for whole, after, before in ((values, later, earlier), (places, later_places, earlier_places))
        )
        reach *= 2
    return values.clone(), places.clone()


# Indexing


@_replaces(aten.index.Tensor)
def index(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """index(x, i32) → index(x, i64)."""
    wide = _wide_indices(indices)
    return NotImplemented if wide is indices else aten.index.Tensor(x, wide)


@_replaces(aten.index_put.default)
def index_put(x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """index_put(x, mask, value) → where(mask, value, x); else the values get the shape of what the indices select.

    Torch-mlir broadcasts the values wrongly where they lack a dimension or have a size of 1.
    """
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == torch.bool and values.numel() == 1 and not accumulate:
        return torch.where(mask.view(mask.shape + (1,) * (x.dim() - mask.dim())), values.view(()), x)
    if any(one is not None and one.dtype == torch.bool for one in indices):
        return NotImplemented
    if accumulate and x.dtype == torch.bool:
        return aten.index_put.default(x.to(torch.int32), indices, values.to(torch.int32), True) != 0
    wide = _wide_indices(indices)
    selected = aten.index.Tensor(x, wide).shape
    if wide is indices and values.shape == selected:
        return NotImplemented
    return aten.index_put.default(x, wide, values.expand(selected), accumulate)


@_replaces(aten.diagonal_scatter.default)
def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal_scatter(x, s) → index_put(x, (0, 1, ..), (0, 1, ..), s) with the two dimensions in front."""
    front = x.movedim((dim1, dim2), (0, 1))
    count = torch.arange(source.size(-1))
    places = [count + max(0, -offset), count + max(0, offset)]
    return aten.index_put.default(front, places, source.movedim(-1, 0)).movedim((0, 1), (dim1, dim2))


@_replaces(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, places: Tensor, value: Any) -> Tensor:
    """scatter(x, places, number) → scatter(x, places, tensor), which torch-mlir lowers without crashing."""
    return aten.scatter.src(x, dim, places, torch.full(places.shape, value, dtype=x.dtype))


@_replaces(aten.scatter_add.default)
def scatter_add(x: Tensor, dim: int, places: Tensor, source: Tensor) -> Tensor:
    """scatter_add(x: bool) → scatter_add(x as integers) != 0."""
    if x.dtype != torch.bool:
        return NotImplemented
    return aten.scatter_add.default(x.to(torch.int32), dim, places, source.to(torch.int32)) != 0


@_replaces(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, dim: int, places: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """scatter_reduce(x: bool) → scatter_reduce(x as integers) != 0; see `_scatter_mean` for the mean of integers."""
    if x.dtype == torch.bool:
        wide = (x.to(torch.int32), dim, places, source.to(torch.int32), reduce)
        return aten.scatter_reduce.two(*wide, include_self=include_self) != 0
    if _is_float(x) or reduce != "mean":
        return NotImplemented
    return _scatter_mean(x, dim, places, source, include_self)


def _scatter_mean(x: Tensor, dim: int, places: Tensor, source: Tensor, include_self: bool) -> Tensor:
    """The sum of what is scattered to a place, divided by how much it is."""
    added = torch.zeros_like(x).scatter_add(dim, places, torch.ones_like(source))
    kept = added == 0
    start = x if include_self else torch.where(kept, x, torch.zeros_like(x))
    total = start.scatter_add(dim, places, source)
    return _floor_divide_integers(total, added + 1 if include_self else torch.where(kept, torch.ones_like(x), added))


@_replaces(aten.searchsorted.Tensor)
def searchsorted(
    line: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """searchsorted(line, v) → how many elements of the line are less than v, or not greater if `right`."""
    if sorter is not None:
        line = line.gather(-1, sorter)
    elements = line.unsqueeze(-2) if line.dim() > 1 else line
    before = torch.le if right or side == "right" else torch.lt
    return before(elements, values.unsqueeze(-1)).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@_replaces(aten.bucketize.Tensor)
def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """bucketize(x, line) → searchsorted(line, x)."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def _wide_indices(indices: list[Tensor | None]) -> list[Tensor | None]:
    """The indices in int64; the same list if they are already."""
    if all(one is None or one.dtype in (torch.int64, torch.bool, torch.uint8) for one in indices):
        return indices
    return [one.long() if one is not None else None for one in indices]


# Shapes


@_replaces(aten.constant_pad_nd.default)
def pad(x: Tensor, padding: list[int], value: Any = 0) -> Tensor:
    """pad(x, (-1, 2)) → pad(slice(x, 1, ..), (0, 2))."""
    if not any(isinstance(amount, int) and amount < 0 for amount in padding):
        return NotImplemented
    for number in range(len(padding) // 2):
        dim = x.dim() - 1 - number
        first, last = (max(0, -amount) for amount in padding[2 * number : 2 * number + 2])
        x = x.narrow(dim, first, x.size(dim) - first - last)
    return aten.constant_pad_nd.default(x, [max(0, amount) for amount in padding], value)


@_replaces(aten.roll.default)
def roll(x: Tensor, shifts: list[int], dims: list[int] = ()) -> Tensor:  # type: ignore[assignment]
    """roll(x, n) → roll(flatten(x), n, 0) in the shape of x."""
    return NotImplemented if dims or x.dim() == 0 else aten.roll.default(x.flatten(), shifts, [0]).view(x.shape)


@_replaces(aten.empty_strided.default)
def empty_strided(size: list[int], stride: list[int], **kwargs: Any) -> Tensor:
    """empty_strided(size, ..) → empty(size): strides mean nothing in functional code."""
    return torch.empty(size, dtype=kwargs.get("dtype"), device=kwargs.get("device"))


# Pooling


def _pool_integers(op: Any) -> Decomposition:
    def decomposed(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _is_float(x) or x.dtype == torch.int64:
            return NotImplemented
        values, indices = op(x.double(), *args, **kwargs)
        return values.to(x.dtype), indices

    decomposed.__doc__ = f"{op}(x: integers) → {op}(x in float64), which holds them exactly."
    return decomposed


for _op in (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default):
    _replaces(_op)(_pool_integers(_op))


@_replaces(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d(x, (h, w)) → the maxima of h * w slices, where windows differ in size."""
    if all(size % wanted == 0 for size, wanted in zip(x.shape[-2:], output_size, strict=True)):
        return NotImplemented
    rows, columns = (_windows(x.size(dim), output_size[dim]) for dim in (-2, -1))
    pools = [[_window_max(x, row, column) for column in columns] for row in rows]
    values, places = (torch.stack([torch.stack([pool[n] for pool in line], -1) for line in pools], -2) for n in (0, 1))
    return values, places


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    """[first, last) of each of `count` windows over `size` elements."""
    return [(number * size // count, -(-(number + 1) * size // count)) for number in range(count)]


def _window_max(x: Tensor, row: tuple[int, int], column: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The maximum of x[.., row, column] and its place in the plane."""
    width = column[1] - column[0]
    values, place = x[..., row[0] : row[1], column[0] : column[1]].flatten(-2).max(-1)
    down = torch.div(place, width, rounding_mode="floor")
    return values, (down + row[0]) * x.size(-1) + (place - down * width + column[0])
