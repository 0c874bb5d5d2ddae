"""Rows: softmax and norms of 7 to 100,000 elements, reductions along any dims, scans, sorts and what selects."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from shapes.case import Case, Made, distinct, drawn, log_uniform, of_function, sizes, spread

#: Rows of published networks: attention's scores, classes, vocabularies, features.
_ROWS = (
    (1536, 128),
    (4096, 1024),
    (12 * 197, 197),
    (3136, 49),
    (1, 1000),
    (64, 1000),
    (32, 50257),
    (8, 128256),
    (128, 768),
    (4096, 768),
    (1, 4096),
    (3136, 96),
    (50000, 7),
    (16, 100000),
    (100000, 32),
    (512, 3),
)


def cases() -> Iterator[Case]:
    yield from distinct(_rows("softmax", lambda draw: _along("softmax", draw)))
    yield from distinct(_rows("log_softmax", lambda draw: _along("log_softmax", draw)), 24)
    yield from distinct(_rows("layer_norm", _layer_norm))
    yield from distinct(_rows("rms_norm", _rms_norm))
    yield from distinct(_image_norms("group_norm"))
    yield from distinct(_image_norms("instance_norm"), 24)
    yield from distinct(_reductions())
    yield from distinct(_rows("argmax", _argmax), 24)
    yield from distinct(_rows("cumsum", _cumsum), 24)
    yield from distinct(_rows("sort", _sort, most=1 << 21), 24)
    yield from distinct(_rows("topk", _topk, most=1 << 23), 32)


#: A word, and what makes the module for a shape.
_Form = tuple[str, Callable[[tuple[int, ...]], nn.Module]]


class _Call(nn.Module):
    """A function of one tensor."""

    def __init__(self, function: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _random_rows(draw: random.Random, most: int) -> tuple[int, int]:
    length = spread(draw, 7, 100_000)
    return max(1, log_uniform(draw, 1, most) // length), length


def _rows(kind: str, form: Callable[[random.Random], _Form], most: int = 1 << 24) -> Iterator[Case]:
    draw = drawn(kind)
    shapes = iter(one for one in _ROWS if one[0] * one[1] <= most)
    while True:
        shape = next(shapes, None) or _random_rows(draw, most)
        word, make = form(draw)

        def create(shape: tuple[int, ...] = shape, make: Callable[..., nn.Module] = make) -> Made:
            return make(shape), (torch.randn(shape),)

        yield Case(kind, f"{sizes(*shape)}{f'_{word}' if word else ''}", create)


def _along(name: str, draw: random.Random) -> _Form:
    """Along the rows, or, one time out of four, along the columns."""
    dim = draw.choice((-1, -1, -1, 0))
    return f"dim{dim}", lambda shape: _Call(lambda x: getattr(torch, name)(x, dim))


def _with_affine(norm: nn.Module) -> nn.Module:
    for name, parameter in norm.named_parameters():
        nn.init.uniform_(parameter, 0.5, 1.5) if name == "weight" else nn.init.normal_(parameter)
    return norm


class _AddedNorm(nn.Module):
    """A norm of a sum, as transformers have it."""

    def __init__(self, norm: nn.Module, length: int):
        super().__init__()
        self.norm = norm
        self.other = nn.Parameter(torch.randn(length))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        added = x + self.other
        return self.norm(added), added


def _layer_norm(draw: random.Random) -> _Form:
    form = draw.choice(("affine", "affine", "plain", "added"))

    def make(shape: tuple[int, ...]) -> nn.Module:
        norm = _with_affine(nn.LayerNorm(shape[-1], elementwise_affine=form != "plain"))
        return _AddedNorm(norm, shape[-1]) if form == "added" else norm

    return form, make


class _LlamaNorm(nn.Module):
    """The norm of a Llama as it is written there."""

    def __init__(self, length: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * scaled.to(x.dtype)


def _rms_norm(draw: random.Random) -> _Form:
    form = draw.choice(("module", "llama", "added"))

    def make(shape: tuple[int, ...]) -> nn.Module:
        norm = _with_affine(_LlamaNorm(shape[-1]) if form == "llama" else nn.RMSNorm(shape[-1], eps=1e-6))
        return _AddedNorm(norm, shape[-1]) if form == "added" else norm

    return form, make


_IMAGES = (
    (1, 32, 32, 32),
    (1, 320, 64, 64),  # Stable Diffusion
    (1, 1280, 8, 8),
    (1, 640, 32, 32),
    (1, 256, 128, 128),
    (2, 64, 7, 7),
    (8, 512, 1000),
    (1, 64, 256, 256),
)


def _image_norms(kind: str) -> Iterator[Case]:
    draw = drawn(kind)
    shapes = iter(_IMAGES)
    while True:
        shape = next(shapes, None) or (
            draw.choice((1, 2, 8)),
            8 * spread(draw, 1, 64),
            side := log_uniform(draw, 4, 160),
            side,
        )
        groups, after = draw.choice((1, 2, 4, 8)), draw.choice(("", "silu"))

        def create(shape: tuple[int, ...] = shape, groups: int = groups, after: str = after) -> Made:
            if kind == "group_norm":
                norm = nn.GroupNorm(groups, shape[1])
            else:
                norm = (nn.InstanceNorm1d if len(shape) == 3 else nn.InstanceNorm2d)(shape[1], affine=True)
            model = nn.Sequential(_with_affine(norm), nn.SiLU()) if after else _with_affine(norm)
            return model, (torch.randn(shape),)

        words = [f"g{groups}" if kind == "group_norm" else "", after]
        yield Case(kind, "_".join(filter(None, [sizes(*shape), *words])), create)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "var": torch.var,
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "logsumexp": torch.logsumexp,
    "squares": lambda x, dim: (x * x).sum(dim),
    "any": lambda x, dim: (x > 3).any(dim),
    "std_mean": lambda x, dim: torch.std_mean(x, dim),
}


def _reductions() -> Iterator[Case]:
    """Along rows, columns, the middle of three, and all of it."""
    draw = drawn("reduction")
    while True:
        count, length = _random_rows(draw, 1 << 24)
        where, name = draw.choice(("rows", "columns", "middle", "ends", "all")), draw.choice(list(_REDUCTIONS))
        outer = draw.choice((1, 2, 8, 16))
        shape = (outer, max(1, count // outer), length) if where in ("middle", "ends") else (count, length)
        dims = {"rows": (-1,), "columns": (0,), "middle": (1,), "ends": (0, 2), "all": tuple(range(len(shape)))}[where]
        if name == "any" and len(dims) > 1:
            continue
        if name in ("var", "std_mean") and max(shape[dim] for dim in dims) < 2:
            continue

        def create(shape: Any = shape, name: str = name, dims: Any = dims) -> Made:
            chosen = dims[0] if name == "any" else dims
            return of_function(lambda x: _REDUCTIONS[name](x, chosen), torch.randn(shape))

        yield Case("reduction", f"{name}_{where}_{sizes(*shape)}", create)


def _argmax(draw: random.Random) -> _Form:
    name, dim = draw.choice(("argmax", "argmin", "max")), draw.choice((-1, -1, 0))
    return f"{name}_dim{dim}", lambda shape: _Call(lambda x: _leaves(getattr(torch, name)(x, dim)))


def _leaves(result: Any) -> Any:
    return tuple(result) if isinstance(result, tuple) else result


def _cumsum(draw: random.Random) -> _Form:
    name, dim = draw.choice(("cumsum", "cumsum", "cumprod")), draw.choice((-1, -1, 0))
    if name == "cumprod":
        return f"{name}_dim{dim}", lambda shape: _Call(lambda x: torch.cumprod(1 + x / 100, dim))
    return f"{name}_dim{dim}", lambda shape: _Call(lambda x: torch.cumsum(x, dim))


def _sort(draw: random.Random) -> _Form:
    name = draw.choice(("sort", "argsort", "descending"))
    if name == "argsort":
        return name, lambda shape: _Call(lambda x: torch.argsort(x, dim=-1, stable=True))
    return name, lambda shape: _Call(
        lambda x: tuple(torch.sort(x, dim=-1, descending=name == "descending", stable=True))
    )


def _topk(draw: random.Random) -> _Form:
    k = draw.choice((1, 2, 5, 8, 50, 100))
    return f"k{k}", lambda shape: _Call(lambda x: torch.topk(x, min(k, x.shape[-1]), -1).values)
