"""Products: of matrices, of batches of them, with vectors and thin matrices; linear layers with what follows them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional as F

from shapes.case import MOST_ELEMENTS, MOST_FLOPS, Case, Made, distinct, drawn, of_function, sizes, spread

#: Rows, columns and the length of sums.
_MATRICES = (
    (128, 768, 768),  # BERT-base: projections, feed-forward; batches of sequences
    (128, 3072, 768),
    (512, 768, 3072),
    (2048, 768, 768),
    (64, 50257, 768),  # GPT-2's logits
    (197, 2304, 768),  # ViT-B/16: queries, keys and values
    (196, 512, 2048),  # MLP-Mixer-S
    (50, 384, 1536),
    (32, 11008, 4096),  # Llama: a feed-forward layer in a short prompt
    (256, 4096, 4096),
    (3136, 96, 384),  # ConvNeXt-T, Swin-T: their first stage
    (49, 768, 3072),
    (64, 1000, 2048),  # ResNet-50's classifier
    (512, 512, 784),  # a multilayer perceptron
    (16384, 64, 64),  # NeRF
    (128, 128, 128),
    (1024, 1024, 1024),
)

#: Batch, rows, columns, length of sums: attention by heads, and others.
_BATCHES = (
    (12, 128, 128, 64),
    (12, 128, 64, 128),
    (16, 1024, 1024, 64),
    (64, 49, 49, 32),
    (192, 49, 32, 49),
    (32, 197, 197, 64),
    (8, 1, 2048, 128),
    (8, 2048, 2048, 40),
    (256, 16, 16, 16),
    (1000, 3, 3, 3),
    (10000, 4, 4, 4),
    (2, 512, 512, 512),
)

_VECTORS = ((4096, 4096), (11008, 4096), (32000, 2048), (768, 768), (50257, 768), (1000, 2048), (128, 128), (10, 84))


def cases() -> Iterator[Case]:
    yield from distinct(_matmuls())
    yield from distinct(_batches())
    yield from distinct(_vectors())
    yield from distinct(_skinny())
    yield from distinct(_linears())
    yield from distinct(_gated())
    yield from distinct(_prologues(), 20)


def _operand(rows: int, columns: int, transposed: bool, *batch: int) -> torch.Tensor:
    shape = (columns, rows) if transposed else (rows, columns)
    return torch.randn(*batch, *shape) / 4


def _product(transposed: str) -> Callable[..., torch.Tensor]:
    left, right = (one == "t" for one in transposed)
    return lambda a, b: (a.mT if left else a) @ (b.mT if right else b)


def _matrix_case(kind: str, m: int, n: int, k: int, transposed: str, *batch: int) -> Case:
    def create() -> Made:
        left = _operand(m, k, transposed[0] == "t", *batch)
        return of_function(_product(transposed), left, _operand(k, n, transposed[1] == "t", *batch))

    return Case(kind, f"{sizes(*batch, m, n, k)}_{transposed}", create, inductor=False)


_TRANSPOSED = ("nn", "nt", "tn", "tt")


def _fits(m: int, n: int, k: int, batch: int = 1) -> bool:
    return 2 * batch * m * n * k <= MOST_FLOPS and batch * max(m * n, m * k, n * k) <= MOST_ELEMENTS


def _matmuls() -> Iterator[Case]:
    draw = drawn("matmul")
    for number, shape in enumerate(_MATRICES):
        yield _matrix_case("matmul", *shape, _TRANSPOSED[number % 4])
    while True:
        shape = tuple(spread(draw, 9, 4096) for _ in range(3))
        if _fits(*shape):
            yield _matrix_case("matmul", *shape, draw.choice(_TRANSPOSED))


def _batches() -> Iterator[Case]:
    draw = drawn("batch matmul")
    for number, (batch, m, n, k) in enumerate(_BATCHES):
        yield _matrix_case("batch_matmul", m, n, k, _TRANSPOSED[number % 4], batch)
    while True:
        batch, m, n, k = spread(draw, 2, 256), spread(draw, 1, 1024), spread(draw, 1, 1024), spread(draw, 1, 512)
        if _fits(m, n, k, batch):
            yield _matrix_case("batch_matmul", m, n, k, draw.choice(_TRANSPOSED), batch)


def _vectors() -> Iterator[Case]:
    """A row times a matrix, a matrix times a column, with and without a dimension of 1, weights and tensors."""
    draw = drawn("gemv")
    shapes = iter(_VECTORS)
    while True:
        n, k = next(shapes, None) or (spread(draw, 2, 16384), spread(draw, 2, 8192))
        if not _fits(1, n, k):
            continue
        form = draw.choice(("linear", "row", "column", "vector"))
        transposed = draw.choice("nt")

        def create(n: int = n, k: int = k, form: str = form, transposed: str = transposed) -> Made:
            if form == "linear":
                return nn.Linear(k, n), (torch.randn(1, k),)
            matrix = _operand(n, k, transposed == "t")
            turn = _product(f"{transposed}n")
            if form == "row":
                return of_function(lambda a, b: b @ (a if transposed == "t" else a.mT), matrix, torch.randn(1, k))
            return of_function(turn, matrix, torch.randn(k, 1) if form == "column" else torch.randn(k))

        yield Case("gemv", f"{sizes(n, k)}_{form}_{transposed}", create, inductor=False)


def _skinny() -> Iterator[Case]:
    draw = drawn("skinny")
    while True:
        shape = [spread(draw, 16, 8192), spread(draw, 16, 8192)]
        thin = draw.randrange(3)
        shape.insert(thin, draw.choice((1, 2, 3, 4, 5, 7, 8)))
        if _fits(*shape):
            yield _matrix_case("skinny", *shape, draw.choice(_TRANSPOSED))


_AFTER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bias": lambda y: y,
    "gelu": F.gelu,
    "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
    "silu": F.silu,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "hardswish": F.hardswish,
    "relu6": F.relu6,
    "mish": F.mish,
}


class _Linear(nn.Module):
    """A linear layer with a function behind it, and what was before added or not."""

    def __init__(self, k: int, n: int, after: str, residual: bool):
        super().__init__()
        self.linear, self.after, self.residual = nn.Linear(k, n), after, residual

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        y = _AFTER[self.after](self.linear(x))
        return y + other if other is not None else y


_LAYERS = ((128, 768, 768), (128, 3072, 768), (512, 768, 3072), (1, 4096, 4096), (197, 1536, 384), (64, 512, 784))


def _linears() -> Iterator[Case]:
    draw = drawn("linear")
    shapes = iter(_LAYERS)
    while True:
        m, n, k = next(shapes, None) or (spread(draw, 1, 2048), spread(draw, 8, 4096), spread(draw, 8, 4096))
        if not _fits(m, n, k):
            continue
        after, residual = draw.choice(list(_AFTER)), draw.random() < 0.4

        def create(m: int = m, n: int = n, k: int = k, after: str = after, residual: bool = residual) -> Made:
            inputs = (torch.randn(m, k), torch.randn(m, n)) if residual else (torch.randn(m, k),)
            return _Linear(k, n, after, residual), inputs

        yield Case("linear", f"{sizes(m, n, k)}_{after}{'_residual' * residual}", create)


class _Gated(nn.Module):
    """A gated unit: two products of the same rows, apart or joined, and a third one behind it or not."""

    def __init__(self, k: int, n: int, gate: str, joined: bool, down: bool):
        super().__init__()
        self.up = nn.Linear(k, 2 * n, bias=False) if joined else nn.Linear(k, n, bias=False)
        self.gate = None if joined else nn.Linear(k, n, bias=False)
        self.down = nn.Linear(n, k, bias=False) if down else None
        self.function = _AFTER[gate]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up, gate = self.up(x).chunk(2, -1) if self.gate is None else (self.up(x), self.gate(x))
        y = up * self.function(gate)
        return y if self.down is None else self.down(y)


_GATED = ((1, 2048, 5632), (128, 2048, 5632), (64, 512, 1376), (197, 384, 1024), (16, 4096, 11008))


def _gated() -> Iterator[Case]:
    draw = drawn("gated")
    shapes = iter(_GATED)
    while True:
        m, k, n = next(shapes, None) or (spread(draw, 1, 512), spread(draw, 16, 2048), spread(draw, 16, 4096))
        if not _fits(m, 3 * n, k):
            continue
        gate, joined, down = draw.choice(("silu", "gelu", "sigmoid")), draw.random() < 0.4, draw.random() < 0.5

        def create(m: int = m, k: int = k, n: int = n, rest: tuple[str, bool, bool] = (gate, joined, down)) -> Made:
            return _Gated(k, n, *rest), (torch.randn(m, k),)

        yield Case("gated", f"{sizes(m, k, n)}_{gate}{'_joined' * joined}{'_down' * down}", create)


_BEFORE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "relu_scaled": lambda x, w: torch.relu(x) @ (w * 2),
    "gelu": lambda x, w: F.gelu(x) @ w,
    "sum": lambda x, w: (x + 1) @ w,
    "masked": lambda x, w: x.masked_fill(x < 0, 0.0) @ w.mT.contiguous().mT,
    "quotient": lambda x, w: (x / x.norm(dim=-1, keepdim=True)) @ w,
    "softmax": lambda x, w: torch.softmax(x, -1) @ w,
}


def _prologues() -> Iterator[Case]:
    draw: random.Random = drawn("prologue")
    while True:
        m, n, k = (spread(draw, 4, 1024) for _ in range(3))
        before = draw.choice(list(_BEFORE))

        def create(m: int = m, n: int = n, k: int = k, before: str = before) -> Made:
            return of_function(_BEFORE[before], torch.randn(m, k), torch.randn(k, n))

        yield Case("prologue", f"{sizes(m, n, k)}_{before}", create)
