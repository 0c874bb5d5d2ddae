"""Elements at computed places: embeddings, gathers, scatters, grid_sample, resized images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from shapes.case import MOST_ELEMENTS, Case, Made, distinct, drawn, log_uniform, of_function, sizes, spread


def cases() -> Iterator[Case]:
    yield from distinct(_embeddings(), 20)
    yield from distinct(_gathers(), 32)
    yield from distinct(_scatters(), 32)
    yield from distinct(_counts(), 16)
    yield from distinct(_grids(), 24)
    yield from distinct(_small_grids(), 8)
    yield from distinct(_resized())


def _embeddings() -> Iterator[Case]:
    draw = drawn("embedding")
    shapes = iter(((30522, 768, 1, 128), (50257, 768, 1, 64), (32000, 2048, 1, 1), (1000, 64, 128, 26), (10, 4, 8, 8)))
    while True:
        rows, width, batch, length = next(shapes, None) or (
            spread(draw, 4, 50000),
            spread(draw, 1, 1024),
            log_uniform(draw, 1, 64),
            log_uniform(draw, 1, 512),
        )
        if rows * width > MOST_ELEMENTS or batch * length * width > MOST_ELEMENTS // 2:
            continue
        form = draw.choice(("plain", "plain", "bag", "positions"))

        def create(shape: Any = (rows, width, batch, length), form: str = form) -> Made:
            rows, width, batch, length = shape
            ids = torch.randint(0, rows, (batch, length))
            if form == "bag":
                return nn.EmbeddingBag(rows, width, mode="mean"), (ids,)
            return (_Positions(rows, width, length) if form == "positions" else nn.Embedding(rows, width)), (ids,)

        yield Case("embedding", f"{sizes(rows, width, batch, length)}_{form}", create)


class _Positions(nn.Module):
    """Words, positions and a norm, as BERT has them."""

    def __init__(self, rows: int, width: int, length: int):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(rows, width), nn.Embedding(length, width), nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))


def _places(count: int, limit: int) -> torch.Tensor:
    return torch.randint(0, limit, (count,))


_GATHERS: dict[str, Callable[[int, int, int], Made]] = {
    "index_select": lambda m, n, k: of_function(lambda x, i: x.index_select(0, i), torch.randn(m, n), _places(k, m)),
    "columns": lambda m, n, k: of_function(lambda x, i: x[:, i], torch.randn(m, n), _places(k, n)),
    "gather": lambda m, n, k: of_function(
        lambda x, i: x.gather(1, i), torch.randn(m, n), torch.randint(0, n, (m, min(k, n)))
    ),
    "gather_rows": lambda m, n, k: of_function(
        lambda x, i: x.gather(0, i), torch.randn(m, n), torch.randint(0, m, (min(k, m), n))
    ),
    "pairs": lambda m, n, k: of_function(lambda x, i, j: x[i, j], torch.randn(m, n), _places(k, m), _places(k, n)),
    "nll": lambda m, n, k: of_function(lambda x, i: F.nll_loss(x, i), torch.randn(m, n), _places(m, n)),
    "one_hot": lambda m, n, k: of_function(lambda i: F.one_hot(i, 64).float(), _places(m, 64)),
    "take_along": lambda m, n, k: of_function(
        lambda x: x.take_along_dim(x.argmax(-1, keepdim=True), -1), torch.randn(m, n)
    ),
}

_SCATTERS: dict[str, Callable[[int, int, int], Made]] = {
    "scatter_add": lambda m, n, k: of_function(lambda x, i, y: x.scatter_add(1, i, y), *_scattered(m, n, k)),
    "scatter": lambda m, n, k: of_function(lambda x, i: x.scatter(1, i, 1.0), *_scattered(m, n, k)[:2]),
    "index_add": lambda m, n, k: of_function(
        lambda x, i, y: x.index_add(0, i, y), torch.randn(m, n), _places(k, m), torch.randn(k, n)
    ),
    "index_put": lambda m, n, k: of_function(
        lambda x, i, j, y: x.index_put((i, j), y, accumulate=True),
        *(torch.randn(m, n), _places(k, m), _places(k, n), torch.randn(k)),
    ),
    "index_copy": lambda m, n, k: of_function(
        lambda x, i, y: x.index_copy(0, i, y),
        torch.randn(m, n),
        torch.randperm(m)[: min(k, m)],
        torch.randn(min(k, m), n),
    ),
    "histogram": lambda m, n, k: of_function(
        lambda i, y: torch.zeros(256).to(y.dtype).scatter_add(0, i, y), _places(m * 8, 256), torch.randn(m * 8)
    ),
    "masked_fill": lambda m, n, k: of_function(
        lambda x, y: x.masked_fill(y, -1.0), torch.randn(m, n), torch.rand(m, n) > 0.5
    ),
    "scatter_amax": lambda m, n, k: of_function(
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"), *_scattered(m, n, k)
    ),
}


def _scattered(m: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    k = min(k, n)
    return torch.randn(m, n), torch.randint(0, n, (m, k)), torch.randn(m, k)


def _gathers() -> Iterator[Case]:
    yield from _by_table("gather", _GATHERS)


def _scatters() -> Iterator[Case]:
    yield from _by_table("scatter", _SCATTERS)


def _by_table(kind: str, table: dict[str, Callable[[int, int, int], Made]]) -> Iterator[Case]:
    draw = drawn(kind)
    while True:
        for name, make in table.items():
            m, n, k = spread(draw, 8, 20000), spread(draw, 1, 1024), spread(draw, 1, 4096)
            if max(m, k) * n > MOST_ELEMENTS // 4:
                continue

            def create(shape: Any = (m, n, k), make: Any = make) -> Made:
                return make(*shape)

            yield Case(kind, f"{name}_{sizes(m, n, k)}", create)


def _counts() -> Iterator[Case]:
    """Into one line: bincount, and what is scattered to or added to elements of it."""
    draw = drawn("counts")
    while True:
        updates, places = log_uniform(draw, 16, 1 << 20), spread(draw, 8, 1 << 17)
        forms: dict[str, Callable[[int, int], Made]] = {
            "bincount": _bincount,
            "elements_scatter": lambda k, m: _of_line(lambda x, i, y: x.scatter(0, i, y), k, m),
            "elements_scatter_add": lambda k, m: _of_line(lambda x, i, y: x.scatter_add(0, i, y), k, m),
            "elements_index_add": lambda k, m: _of_line(lambda x, i, y: x.index_add(0, i, y), k, m),
        }
        for name, make in forms.items():

            def create(shape: Any = (updates, places), make: Any = make) -> Made:
                return make(*shape)

            yield Case("scatter", f"{name}_{sizes(updates, places)}", create, dtypes=("f32",))


def _bincount(updates: int, places: int) -> Made:
    return of_function(lambda i: torch.bincount(i, minlength=places), _places(updates, places))


def _of_line(function: Callable[..., Any], updates: int, places: int) -> Made:
    """A function of a line, of places in it that are taken once where there are enough, and of as many numbers."""
    taken = torch.randperm(places)[:updates] if updates <= places else torch.arange(updates) % places
    return of_function(function, torch.randn(places), taken, torch.randn(len(taken)))


def _small_grids() -> Iterator[Case]:
    """Small images as spatial transformers and trackers sample them."""
    shapes = ((1, 1, 28, 28), (1, 3, 32, 32), (4, 16, 28, 28), (1, 256, 20, 20), (8, 8, 7, 14), (1, 64, 64, 32))
    for n, c, side, out in shapes:

        def create(shape: Any = (n, c, side, out)) -> Made:
            n, c, side, out = shape
            grid = torch.rand(n, out, out, 2) * 2.2 - 1.1
            return of_function(
                lambda x, g: F.grid_sample(x, g, align_corners=False), torch.randn(n, c, side, side), grid
            )

        yield Case("grid_sample", f"{sizes(n, c, side, out)}_small", create, dtypes=("f32",))


def _grids() -> Iterator[Case]:
    draw = drawn("grid_sample")
    shapes = iter(((1, 3, 224, 224), (1, 256, 32, 32), (4, 64, 56, 56), (1, 1, 512, 512)))
    while True:
        n, c, side, out = next(shapes, None) or (
            draw.choice((1, 2)),
            spread(draw, 1, 128),
            log_uniform(draw, 4, 256),
            log_uniform(draw, 4, 256),
        )
        mode, pad, align = (
            draw.choice(("bilinear", "bilinear", "nearest")),
            draw.choice(("zeros", "border")),
            draw.random() < 0.5,
        )

        def create(shape: Any = (n, c, side, out), options: Any = (mode, pad, align)) -> Made:
            n, c, side, out = shape
            grid = torch.rand(n, out, out, 2) * 2.2 - 1.1
            return of_function(lambda x, g: F.grid_sample(x, g, *options), torch.randn(n, c, side, side), grid)

        name = f"{sizes(n, c, side, out)}_{mode}_{pad}{'_align' * align}"
        yield Case("grid_sample", name, create, dtypes=("f32",))


def _resized() -> Iterator[Case]:
    draw = drawn("resize")
    shapes = iter(
        ((1, 3, 224, 2.0), (1, 256, 20, 2.0), (1, 64, 64, 4.0), (1, 21, 65, 8.0), (1, 3, 512, 0.5), (8, 64, 16, 2.0))
    )
    while True:
        n, c, side, scale = next(shapes, None) or (
            draw.choice((1, 1, 4)),
            spread(draw, 1, 256),
            log_uniform(draw, 4, 200),
            draw.choice((2.0, 2.0, 0.5, 1.5, 4.0, 0.37)),
        )
        if n * c * side * side * max(1.0, scale * scale) > MOST_ELEMENTS // 4 or side * scale < 1:
            continue
        mode, align = draw.choice(("nearest", "bilinear", "bilinear", "bicubic", "area")), draw.random() < 0.4

        def create(shape: Any = (n, c, side, scale), mode: str = mode, align: bool = align) -> Made:
            n, c, side, scale = shape
            options = {"align_corners": align} if mode in ("bilinear", "bicubic") else {}
            return of_function(
                lambda x: F.interpolate(x, size=(int(side * scale),) * 2, mode=mode, **options),
                torch.randn(n, c, side, side),
            )

        yield Case("resize", f"{sizes(n, c, side)}_by{scale:g}_{mode}{'_align' * align}", create)
