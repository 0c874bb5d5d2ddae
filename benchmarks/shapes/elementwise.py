"""Chains of elementwise ops: 1 to 12 of them on 1 to 6 operands, broadcast, transposed, of several dtypes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

from shapes.case import Case, Made, distinct, drawn, log_uniform, of_function, sizes, spread

_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": lambda x: torch.exp(x.clamp(max=3)),
    "log": lambda x: torch.log(x.abs() + 1),
    "sqrt": lambda x: torch.sqrt(x.abs()),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.5),
    "erf": torch.erf,
    "sin": torch.sin,
    "softplus": F.softplus,
    "abs": torch.abs,
    "neg": torch.neg,
    "clamp": lambda x: x.clamp(-1, 1),
    "square": lambda x: x * x,
    "pow": lambda x: x.abs() ** 1.7,
    "elu": F.elu,
    "hardsigmoid": F.hardsigmoid,
    "log1p": lambda x: torch.log1p(x.abs()),
    "atan": torch.atan,
}
_BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda x, y: x / (y.abs() + 1),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda x, y: torch.where(x > y, x, y * 0.5),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "hypot": lambda x, y: torch.sqrt(x * x + y * y),
    "atan2": torch.atan2,
}
_FORMS = ("same", "same", "same", "row", "column", "scalar", "transposed", "int", "bool")


def cases() -> Iterator[Case]:
    yield from distinct(_published())
    yield from distinct(_single("unary"), 44)
    yield from distinct(_chains(), 60)
    yield from distinct(_movements())


def _published() -> Iterator[Case]:
    chains: dict[str, tuple[Callable[..., torch.Tensor], int]] = {
        "gelu_gate": (lambda x, y, z: F.gelu(x * y + z) * torch.sigmoid(x), 3),
        "adam": (
            lambda p, g, m, v: p - 1e-3 * (0.9 * m + 0.1 * g) / (torch.sqrt(0.999 * v.abs() + 1e-3 * g * g) + 1e-8),
            4,
        ),
        "rotary": (_rotary, 3),
        "dropout": (lambda x, y: x * (y > 0.1) / 0.9, 2),
        "normalize": (lambda x: ((x + 1) * 127.5 - 120.0) / 58.0, 1),
        "focal": (lambda x, y: -((1 - torch.sigmoid(x)) ** 2) * F.logsigmoid(x) * y, 2),
        "gru": (
            lambda r, z, n, h: (1 - torch.sigmoid(z)) * torch.tanh(n + torch.sigmoid(r) * n) + torch.sigmoid(z) * h,
            4,
        ),
        "copy": (torch.clone, 1),
    }
    for shape in ((128, 768), (64, 1), (1024, 1024), (4000, 4000), (1, 64, 112, 112)):
        for name, (function, count) in chains.items():

            def create(shape: Any = shape, function: Any = function, count: int = count) -> Made:
                return of_function(function, *(torch.randn(shape) for _ in range(count)))

            yield Case("elementwise", f"{name}_{sizes(*shape)}", create)


def _rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def _random_shape(draw: random.Random, most: int = 1 << 24) -> tuple[int, ...]:
    elements, rank = log_uniform(draw, 1 << 10, most), draw.choice((1, 2, 2, 3, 4))
    shape = []
    for _ in range(rank - 1):
        shape.append(spread(draw, 1, max(2, round(elements ** (1 / rank)) * 2)))
        elements = max(1, elements // shape[-1])
    shape.append(elements)
    draw.shuffle(shape)
    return tuple(shape)


def _single(kind: str) -> Iterator[Case]:
    """Each function by itself, on small or large data."""
    draw = drawn(kind)
    for name, function in _UNARY.items():
        for most in (1 << 14, 1 << 24):
            shape = _random_shape(draw, most)

            def create(shape: Any = shape, function: Any = function) -> Made:
                return of_function(function, torch.randn(shape))

            yield Case(kind, f"{name}_{sizes(*shape)}", create)


def _chains() -> Iterator[Case]:
    draw = drawn("chains")
    while True:
        shape, forms = _random_shape(draw), [draw.choice(_FORMS) for _ in range(draw.randrange(6))]
        steps = [
            (draw.choice(list(_UNARY)), None) if not forms or draw.random() < 0.5 else _binary(draw, len(forms))
            for _ in range(draw.randint(1, 12))
        ]

        def create(shape: Any = shape, forms: Any = forms, steps: Any = steps) -> Made:
            return of_function(_chain(steps), torch.randn(shape), *(_operand(shape, form) for form in forms))

        words = "_".join(forms) or "alone"
        yield Case("chain", f"{sizes(*shape)}_{words}_{'-'.join(name for name, _ in steps)}", create)


def _binary(draw: random.Random, operands: int) -> tuple[str, int]:
    return draw.choice(list(_BINARY)), draw.randrange(operands)


def _chain(steps: list[tuple[str, int | None]]) -> Callable[..., torch.Tensor]:
    def run(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        for name, other in steps:
            if other is None:
                x = _UNARY[name](x)
                continue
            operand = others[other]
            x = _BINARY[name](x, operand if operand.is_floating_point() else operand.to(x.dtype))
        return x

    return run


def _operand(shape: tuple[int, ...], form: str) -> torch.Tensor:
    if form == "row":
        return torch.randn(shape[-1])
    if form == "column":
        return torch.randn(*shape[:-1], 1)
    if form == "scalar":
        return torch.randn(())
    if form == "transposed":
        return torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))
    if form == "int":
        return torch.randint(-9, 10, shape, dtype=torch.int32)
    return torch.rand(shape) > 0.5 if form == "bool" else torch.randn(shape)


_MOVES: dict[str, Callable[[torch.Tensor], Any]] = {
    "transpose": lambda x: x.transpose(-1, -2).contiguous(),
    "transpose_add": lambda x: x.transpose(-1, -2) + 1,
    "permute": lambda x: x[None].permute(2, 0, 1).contiguous(),
    "cat": lambda x: torch.cat((x, x * 2, x + 1), -1),
    "cat_rows": lambda x: torch.cat((x, torch.relu(x)), 0),
    "stack": lambda x: torch.stack((x, -x), -1),
    "flip": lambda x: x.flip(-1),
    "roll": lambda x: torch.roll(x, 3, -1),
    "pad": lambda x: F.pad(x, (1, 2, 3, 1)),
    "pad_reflect": lambda x: F.pad(x[None], (1, 1), mode="reflect"),
    "slice_add": lambda x: x[..., 1:] + x[..., :-1],
    "repeat": lambda x: x.repeat(2, 3),
    "expand": lambda x: x[:, None, :].expand(-1, 3, -1) * 2,
    "tril": torch.tril,
    "even": lambda x: torch.relu(x[..., ::2]) * 2,
    "pixel_shuffle": lambda x: F.pixel_shuffle(x[: x.shape[0] // 4 * 4, None], 2),
    "fill": lambda x: torch.zeros_like(x) + x[:1],
}


def _movements() -> Iterator[Case]:
    draw = drawn("movement")
    while True:
        for name, function in _MOVES.items():
            rows, columns = spread(draw, 8, 4096), spread(draw, 8, 4096)
            if rows * columns > 1 << 23:
                rows = max(8, (1 << 23) // columns)

            def create(rows: int = rows, columns: int = columns, function: Any = function) -> Made:
                return of_function(function, torch.randn(rows, columns))

            yield Case("movement", f"{name}_{sizes(rows, columns)}", create)
