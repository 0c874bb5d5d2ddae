"""Random numbers: every op of torch's that draws some, in terms of `pipeline.random`.

Distributions are those of torch's, the numbers are not. Generators that a model is given are not looked at: a call
draws its seed from torch's default one.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.random_op import random
from pipeline.frontend.decompositions.replacements.table import aten, replaces

#: Bits in the mantissas of dtypes that are drawn in float32.
_MANTISSA = {torch.float16: 11, torch.bfloat16: 8}


def _uniform(like: Tensor) -> Tensor:
    """Numbers in [0, 1) in the shape of `like`, in its dtype; those of 16 bits are rounded down, so that 1 is none."""
    if like.dtype not in _MANTISSA:
        return random(torch.empty_like(like))
    steps = 2.0 ** _MANTISSA[like.dtype]
    return ((random(torch.empty_like(like, dtype=torch.float32)) * steps).floor() / steps).to(like.dtype)


def _positive_uniform(like: Tensor) -> Tensor:
    """Numbers in (0, 1], in float64 for float64 and in float32 for the others."""
    return 1 - random(torch.empty_like(like, dtype=_wide(like.dtype)))


def _normal(like: Tensor) -> Tensor:
    """Numbers of the standard normal distribution in the shape and dtype of `like`, by Box and Muller."""
    radius, angle = _positive_uniform(like), random(torch.empty_like(like, dtype=_wide(like.dtype)))
    if like.dtype != torch.float64:
        bits = random(torch.empty_like(like, dtype=torch.int64))
        radius = ((bits & 0xFFFFFFFF).float() + 1) * 2.0**-32
        angle = ((bits >> 32) & 0xFFFFFFFF).float() * 2.0**-32
    return ((-2 * radius.log()).sqrt() * (2 * math.pi * angle).cos()).to(like.dtype)


def _exponential(like: Tensor) -> Tensor:
    """Numbers of the exponential distribution of rate 1, none of which is 0, in `_wide` dtype."""
    return (-_positive_uniform(like).log()).clamp(min=torch.finfo(_wide(like.dtype)).eps / 2)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _integers(like: Tensor, low: int, high: int) -> Tensor:
    """Whole numbers in [low, high) in the shape of `like`, in int64; a limit may be a number of the program."""
    torch._check(high > low, lambda: "random numbers are drawn from `low` to before `high`, which is greater")
    bits = random(torch.empty_like(like, dtype=torch.int64))
    return (bits & (2**63 - 1)) % (high - low) + low


def _new(size: Any, dtype: torch.dtype | None, device: Any) -> Tensor:
    return torch.empty(size, dtype=dtype, device=device)


@replaces(aten.rand.default, aten.rand.generator)
def rand(size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """rand(size) → uniform numbers in [0, 1)."""
    return _uniform(_new(size, dtype, device))


@replaces(aten.rand_like.default)
def rand_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    """rand_like(x) → uniform numbers in [0, 1)."""
    return _uniform(torch.empty_like(x, dtype=dtype))


@replaces(aten.randn.default, aten.randn.generator)
def randn(size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """randn(size) → standard normal numbers."""
    return _normal(_new(size, dtype, device))


@replaces(aten.randn_like.default)
def randn_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    """randn_like(x) → standard normal numbers."""
    return _normal(torch.empty_like(x, dtype=dtype))


@replaces(aten.randint.default, aten.randint.generator)
def randint(high: int, size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """randint(high, size) → random bits % high."""
    return _integers(_new(size, torch.int64, device), 0, high).to(dtype or torch.int64)


@replaces(aten.randint.low, aten.randint.low_generator)
def randint_low(low: int, high: int, size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """randint(low, high, size) → low + random bits % (high - low)."""
    return _integers(_new(size, torch.int64, device), low, high).to(dtype or torch.int64)


@replaces(aten.randint_like.default)
def randint_like(x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    """randint_like(x, high) → random bits % high."""
    return _integers(x, 0, high).to(dtype or x.dtype)


@replaces(aten.randint_like.low_dtype)
def randint_like_low(x: Tensor, low: int, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    """randint_like(x, low, high) → low + random bits % (high - low)."""
    return _integers(x, low, high).to(dtype or x.dtype)


@replaces(aten.bernoulli.default)
def bernoulli(x: Tensor, *, generator: Any = None) -> Tensor:
    """bernoulli(x) → uniform < x."""
    wide = x.to(_wide(x.dtype))
    aten._assert_async.msg(((wide >= 0) & (wide <= 1)).all(), "bernoulli: a probability below 0 or above 1")
    return (random(torch.empty_like(wide)) < wide).to(x.dtype)


@replaces(aten.bernoulli.p)
def bernoulli_p(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    """bernoulli(x, p) → uniform < p."""
    return _bernoulli(x, p).to(x.dtype)


def _bernoulli(like: Tensor, p: float) -> Tensor:
    return random(torch.empty_like(like, dtype=torch.float32)) < p


@replaces(aten.dropout.default)
def dropout(x: Tensor, p: float, train: bool | None) -> Tensor:
    """dropout(x, p, False), dropout(x, 0, ..) → x.

    For torch.compile, where torch's own function copies `x` and loses what is written to the result. Exported programs
    have `functionalize/idle_dropouts.py`.
    """
    return x if p == 0 or not train else NotImplemented


@replaces(aten.native_dropout.default)
def native_dropout(x: Tensor, p: float, train: bool | None = None) -> tuple[Tensor, Tensor]:
    """native_dropout(x, p, True) → x * (mask / (1 - p)), mask."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = _bernoulli(x, 1 - p)
    return x * (mask.to(x.dtype) * (1 / (1 - p) if p < 1 else 0.0)), mask


@replaces(aten.uniform.default)
def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Tensor:
    """uniform(x, low, high) → low + (high - low) * uniform."""
    return _uniform(x) * (high - low) + low


@replaces(aten.normal_functional.default)
def normal_functional(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """normal(x, mean, std) → mean + std * normal."""
    return _normal(x) * std + mean


@replaces(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    """normal(mean, std) → mean + std * normal, where one of them or both are tensors."""
    if isinstance(std, Tensor):
        aten._assert_async.msg((std >= 0).all(), "normal expects all elements of std >= 0.0")
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        mean, std = torch.broadcast_tensors(mean, std)
    return _normal(mean if isinstance(mean, Tensor) else std) * std + mean


@replaces(aten.normal.float_float)
def normal_of_size(mean: float, std: float, size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """normal(mean, std, size) → mean + std * normal."""
    return _normal(_new(size, dtype, device)) * std + mean


@replaces(aten.log_normal.default)
def log_normal(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """log_normal(x, mean, std) → exp(mean + std * normal)."""
    return (_normal(torch.empty_like(x, dtype=_wide(x.dtype))) * std + mean).exp().to(x.dtype)


@replaces(aten.exponential.default)
def exponential(x: Tensor, rate: float = 1.0, *, generator: Any = None) -> Tensor:
    """exponential(x, rate) → -log(uniform) / rate."""
    return (_exponential(x) / rate).to(x.dtype)


@replaces(aten.geometric.default)
def geometric(x: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """geometric(x, p) → ceil(log(uniform) / log(1 - p)), which is 1 at least."""
    return (_exponential(x) / -math.log1p(-p)).ceil().to(x.dtype)


@replaces(aten.cauchy.default)
def cauchy(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """cauchy(x, median, sigma) → median + sigma * tan(pi * (uniform - 1 / 2))."""
    angle = (random(torch.empty_like(x, dtype=_wide(x.dtype))) - 0.5) * math.pi
    return (angle.sin() / angle.cos() * sigma + median).to(x.dtype)


@replaces(aten.random.default)
def random_default(x: Tensor, *, generator: Any = None) -> Tensor:
    """random(x) → whole numbers from 0 up to what the dtype holds exactly."""
    most = 2 ** _MANTISSA.get(x.dtype, 24 if x.dtype == torch.float32 else 53)
    return _integers(x, 0, most + 1 if x.is_floating_point() else torch.iinfo(x.dtype).max).to(x.dtype)


@replaces(aten.random.to)
def random_to(x: Tensor, high: int, *, generator: Any = None) -> Tensor:
    """random(x, high) → random bits % high."""
    return _integers(x, 0, high).to(x.dtype)


@replaces(getattr(aten.random, "from"))
def random_from(x: Tensor, low: int, high: int, *, generator: Any = None) -> Tensor:
    """random(x, low, high) → low + random bits % (high - low)."""
    return _integers(x, low, high).to(x.dtype)


@replaces(aten.rrelu_with_noise_functional.default)
def rrelu_with_noise(
    x: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> tuple[Tensor, Tensor]:
    """rrelu(x, lower, upper, training) → where(x <= 0, x * slope, x), the slopes with 1 elsewhere."""
    slope = _uniform(x) * (upper - lower) + lower if training else torch.full_like(x, (lower + upper) / 2)
    slopes = torch.where(x <= 0, slope, 1.0)
    return x * slopes, slopes if training else noise
