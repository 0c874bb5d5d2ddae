"""The ops of random programs on tensors: what each takes, when it makes sense, and what becomes of rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from drawing import Draw
from numerics import ALL


@dataclass(frozen=True)
class Op:
    """An op of random programs.

    Attributes:
        run: the op on its operands and options.
        operands: how many tensors it takes.
        options: draws its options for given operands.
        when: whether it makes sense on the operands.
        exact: whether it keeps exact values exact (`kept`), makes exact ones of any (`made`), or rounds (`lost`).
        needs_exact: whether a last bit of an operand would decide over the result.
    """

    run: Callable[..., Any]
    operands: int = 1
    options: Callable[..., tuple[Any, ...]] = lambda draw, *operands: ()
    when: Callable[..., bool] = lambda *operands: True
    exact: str = "kept"
    needs_exact: bool = False


def _dim(draw: Draw, x: torch.Tensor, *_: Any) -> tuple[int]:
    return (draw.integer(-x.dim(), x.dim() - 1),)


def _has_dims(x: torch.Tensor, *_: Any) -> bool:
    return x.dim() > 0


def _has_elements(x: torch.Tensor, *_: Any) -> bool:
    return x.dim() > 0 and x.numel() > 0


def _is_number(x: torch.Tensor, *_: Any) -> bool:
    return x.dtype != torch.bool


def _is_float(x: torch.Tensor, *_: Any) -> bool:
    return x.dtype.is_floating_point


def _divides(x: torch.Tensor, y: torch.Tensor) -> bool:
    return _is_number(x) and _is_number(y) and bool((y != 0).all())


def _permutation(draw: Draw, x: torch.Tensor) -> tuple[tuple[int, ...]]:
    return (tuple(draw.shuffled(range(x.dim()))),)


def _bounds(draw: Draw, x: torch.Tensor) -> tuple[int, int, int, int]:
    (dim,) = _dim(draw, x)
    return dim, draw.integer(-3, 3), draw.integer(-2, 6), draw.integer(1, 2)


def _sliced(x: torch.Tensor, dim: int, start: int, stop: int, step: int) -> torch.Tensor:
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, stop, step),)]


def _dtype(draw: Draw, x: torch.Tensor) -> tuple[torch.dtype]:
    signed = bool(x.numel()) and bool((x < 0).any())
    return (draw.choice([dtype for dtype in ALL if not (signed and dtype == torch.uint8)]),)


def _places(draw: Draw, x: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    (dim,) = _dim(draw, x)
    size = x.size(dim)
    return dim, tuple(draw.several(lambda: draw.integer(-size, size - 1), 4))


def _indexed(x: torch.Tensor, dim: int, places: tuple[int, ...]) -> torch.Tensor:
    return x[(slice(None),) * (dim % x.dim()) + (torch.tensor(places, dtype=torch.int64),)]


def _put(x: torch.Tensor, y: torch.Tensor, dim: int, places: tuple[int, ...], accumulate: bool) -> torch.Tensor:
    indices = [None] * (dim % x.dim()) + [torch.tensor(places, dtype=torch.int64)]
    return torch.ops.aten.index_put(x, indices, y, accumulate)


def _flat_or_dim(function: Callable[..., Any]) -> Op:
    return Op(
        lambda x, dim: function(x) if dim is None else function(x, dim),
        options=lambda draw, x: (draw.choice([None, *range(-x.dim(), x.dim())]),),
        when=_is_number,
    )


def _masked_fill_(x: torch.Tensor, y: torch.Tensor) -> None:
    x[y > 1] = 3


def _assign_(x: torch.Tensor, y: torch.Tensor) -> None:
    x[::2] = y


def _view_mul_(x: torch.Tensor) -> None:
    x[..., ::2].mul_(2)


def _diagonal_zero_(x: torch.Tensor) -> None:
    x.diagonal(0, -2, -1).zero_()


def _quietly(function: Callable[..., Any]) -> Callable[..., None]:
    def run(*operands: Any) -> None:
        function(*operands)

    return run


OPS: dict[str, Op] = {
    "add": Op(torch.add, 2),
    "sub": Op(torch.sub, 2, when=lambda x, y: _is_number(x) and _is_number(y)),
    "mul": Op(torch.mul, 2),
    "maximum": Op(torch.maximum, 2, needs_exact=True),
    "minimum": Op(torch.minimum, 2, needs_exact=True),
    "add_scalar": Op(lambda x, n: x + n, options=lambda draw, x: (draw.integer(-3, 3),), when=_is_number),
    "mul_scalar": Op(lambda x, n: x * n, options=lambda draw, x: (draw.choice([2, -1, 0.5, 3]),)),
    "neg": Op(torch.neg, when=_is_number),
    "abs": Op(torch.abs, when=_is_number),
    "square": Op(torch.square, when=_is_number),
    "relu": Op(torch.relu, when=_is_number),
    "clamp": Op(lambda x: x.clamp(-1, 2), when=lambda x: _is_number(x) and x.dtype != torch.uint8),
    "div": Op(torch.div, 2, when=_divides, exact="lost"),
    "floor_divide": Op(torch.floor_divide, 2, when=_divides, needs_exact=True),
    "trunc_divide": Op(lambda x, y: torch.div(x, y, rounding_mode="trunc"), 2, when=_divides, needs_exact=True),
    "remainder": Op(torch.remainder, 2, when=_divides, needs_exact=True),
    "sigmoid": Op(torch.sigmoid, exact="lost"),
    "tanh": Op(torch.tanh, exact="lost"),
    "exp": Op(lambda x: torch.exp(-x.abs()), when=_is_float, exact="lost"),
    "sin": Op(torch.sin, exact="lost", when=lambda x: x.numel() == 0 or bool((x.double().abs() < 50).all())),
    "gelu": Op(torch.nn.functional.gelu, when=_is_float, exact="lost"),
    "softmax": Op(torch.softmax, options=_dim, when=lambda x: _is_float(x) and x.dim() > 0, exact="lost"),
    "lt": Op(torch.lt, 2, exact="made", needs_exact=True),
    "eq": Op(torch.eq, 2, exact="made", needs_exact=True),
    "ge_scalar": Op(lambda x: x >= 1, exact="made", needs_exact=True),
    "logical_and": Op(torch.logical_and, 2, exact="made", needs_exact=True),
    "bitwise_xor": Op(torch.bitwise_xor, 2),
    "bitwise_not": Op(torch.bitwise_not),
    "where": Op(lambda x, y: torch.where(x > y, x, y), 2, needs_exact=True),
    "masked_fill": Op(lambda x: x.masked_fill(x > 1, 1), needs_exact=True),
    "cast": Op(
        lambda x, dtype: x.to(dtype),
        options=_dtype,
        when=lambda x: x.numel() == 0 or bool((x.abs() < 100).all() if _is_number(x) else True),
        needs_exact=True,
    ),
    "round": Op(torch.round, when=_is_number, needs_exact=True),
    "floor": Op(torch.floor, when=_is_number, needs_exact=True),
    "sum": _flat_or_dim(torch.sum),
    "cumsum": Op(torch.cumsum, options=_dim, when=lambda x: _has_dims(x) and _is_number(x)),
    "mean": Op(torch.mean, options=_dim, when=lambda x: _is_float(x) and _has_elements(x), exact="lost"),
    "amax": Op(torch.amax, options=_dim, when=_has_elements, needs_exact=True),
    "amin": Op(lambda x: x.amin(), when=_has_elements, needs_exact=True),
    "argmax": Op(torch.argmax, options=_dim, when=lambda x: _has_elements(x) and _is_number(x), needs_exact=True),
    "any": Op(torch.any, options=_dim, when=_has_dims, needs_exact=True),
    "all": Op(torch.all, needs_exact=True),
    "var": Op(
        lambda x, dim: x.var(dim, correction=0),
        options=_dim,
        when=lambda x: _is_float(x) and _has_elements(x),
        exact="lost",
    ),
    "prod": Op(torch.prod, options=_dim, when=lambda x: _has_dims(x) and not _is_float(x)),
    "matmul": Op(torch.matmul, 2, when=lambda x, y: _is_number(x)),
    "gram": Op(lambda x: x @ x.mT, when=lambda x: x.dim() >= 2 and _is_number(x)),
    "cat": Op(lambda x, y, dim: torch.cat([x, y], dim), 2, options=_dim, when=_has_dims),
    "stack": Op(lambda x, y: torch.stack([x, y, x]), 2),
    "split": Op(
        lambda x, size, dim: x.split(size, dim),
        options=lambda draw, x: (draw.integer(1, 2), *_dim(draw, x)),
        when=_has_dims,
    ),
    "chunk": Op(lambda x, dim: x.chunk(2, dim), options=_dim, when=_has_dims),
    "unbind": Op(torch.unbind, options=lambda draw, x: (-1,), when=lambda x: _has_dims(x) and 0 < x.size(-1) < 4),
    "permute": Op(torch.permute, options=_permutation),
    "unsqueeze": Op(torch.unsqueeze, options=lambda draw, x: (draw.integer(-1, x.dim()),), when=lambda x: x.dim() < 4),
    "squeeze": Op(torch.squeeze),
    "flatten": Op(torch.flatten),
    "reshape": Op(lambda x: x.reshape(-1, 1), when=_has_elements),
    "expand": Op(lambda x: x.expand(2, *x.shape), when=lambda x: x.dim() < 4),
    "slice": Op(_sliced, options=_bounds, when=_has_dims),
    "select": Op(
        lambda x, n: x.select(0, n),
        options=lambda draw, x: (draw.integer(-x.size(0), x.size(0) - 1),),
        when=lambda x: x.dim() > 0 and x.size(0) > 0,
    ),
    "diagonal": Op(lambda x: x.diagonal(0, -2, -1), when=lambda x: x.dim() >= 2),
    "tril": Op(torch.tril, when=lambda x: x.dim() >= 2),
    "flip": Op(lambda x, dim: x.flip(dim), options=_dim, when=_has_dims),
    "roll": Op(
        lambda x, n, dim: x.roll(n, dim),
        options=lambda draw, x: (draw.integer(-2, 2), *_dim(draw, x)),
        when=_has_dims,
    ),
    "pad": Op(lambda x: torch.nn.functional.pad(x, (1, 2)), when=_has_dims),
    "repeat": Op(lambda x: x.repeat(2, *[1] * x.dim()), when=lambda x: x.dim() < 4),
    "unfold": Op(lambda x: x.unfold(-1, 2, 1), when=lambda x: x.dim() > 0 and x.size(-1) >= 2),
    "clone": Op(torch.clone),
    "index": Op(_indexed, options=_places, when=_has_elements),
    "index_put": Op(
        _put,
        2,
        options=lambda draw, x, y: (*_places(draw, x), draw.boolean() and x.dtype != torch.bool),
        when=_has_elements,
    ),
    "sort": Op(
        lambda x, dim: tuple(torch.sort(x, dim=dim, stable=True)), options=_dim, when=_has_dims, needs_exact=True
    ),
    "topk": Op(lambda x: x.topk(1)[0], when=lambda x: x.dim() > 0 and x.size(-1) > 0, needs_exact=True),
    "one_hot": Op(
        lambda x: torch.nn.functional.one_hot(x % 3, 3), when=lambda x: x.dtype == torch.int64 and x.numel() > 0
    ),
    "add_": Op(_quietly(torch.Tensor.add_), 2),
    "mul_": Op(_quietly(lambda x: x.mul_(2))),
    "copy_": Op(_quietly(torch.Tensor.copy_), 2, when=lambda x, y: x.dtype == y.dtype),
    "fill_": Op(_quietly(lambda x: x.fill_(1))),
    "ones_like": Op(torch.ones_like, exact="made"),
    "zeros_like": Op(torch.zeros_like, exact="made"),
    "full_like": Op(lambda x: torch.full_like(x, 2), exact="made"),
    "new_full": Op(lambda x: x.new_full((2, 3), 1), exact="made"),
    "relu_": Op(_quietly(torch.relu_), when=_is_number),
    "masked_fill_": Op(_masked_fill_, 2, needs_exact=True),
    "assign_": Op(_assign_, 2, when=lambda x, y: _has_dims(x) and x.dtype == y.dtype),
    "view_mul_": Op(_view_mul_, when=_has_dims),
    "diagonal_zero_": Op(_diagonal_zero_, when=lambda x: x.dim() >= 2),
}
