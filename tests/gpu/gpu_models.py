"""Models that every GPU target has to run, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class TransformerBlock(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs))
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.skip: nn.Module = nn.Identity()
        if stride != 1:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        sizes = [(width, width, 1), *((width * n, width * n * 2, 2) for n in (1, 2, 4))]
        self.body = nn.Sequential(*(b for i, o, s in sizes for b in (Residual(i, o, s), Residual(o, o, 1))))
        self.head = nn.Linear(8 * width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(F.max_pool2d(self.stem(x), 3, 2, 1)).mean((2, 3)))


class WeeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.exp() + 1, lambda x: torch.softmax(x, -1), (x,))


class Loop(nn.Module):
    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> Any:
        def condition(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (i < steps) & (x.sum() < 1000)

        return torch._higher_order_ops.while_loop(
            condition, lambda i, x: (i + 1, x * 2), (torch.zeros((), dtype=torch.int64), x)
        )


class CountedLoop(nn.Module):
    """As many rounds as the number says: it becomes a for loop."""

    def forward(self, xs: torch.Tensor, steps: torch.Tensor) -> Any:
        def body(i: torch.Tensor, h: torch.Tensor) -> Any:
            return i + 1, torch.tanh(h * 0.5 + xs.index_select(0, i.reshape(1)).squeeze(0))

        first = torch.zeros((), dtype=torch.int64)
        return torch._higher_order_ops.while_loop(lambda i, h: i < steps, body, (first, xs[0] * 1))


@dataclass
class Case:
    model: nn.Module
    args: tuple[Any, ...]
    tolerance: float = 1e-5
    dynamic: Any = None
    others: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)


def _function(function: Callable[..., Any], *args: Any, tolerance: float = 1e-5) -> Callable[[], Case]:
    return lambda: Case(Function(function), args, tolerance)


def integer_chain(x: torch.Tensor) -> torch.Tensor:
    return (x.to(torch.int64) * 3 + 1).clamp(max=40) - 2


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_generator())


def _integers(low: int, high: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=_generator()).to(dtype)


#: What is to run on every target, and in the same groups.
SHOWN = (
    *("int32 to int64 chain", "weenet", "softmax", "layernorm", "mlp", "resnet18", "transformer block"),
    *("cond, taken", "while"),
)

MODELS: dict[str, Callable[[], Case]] = {
    "int32 to int64 chain": _function(integer_chain, _integers(-100, 100, (33,), torch.int32)),
    "weenet": lambda: Case(WeeNet(), (_randn(2, 8, 9, 7),)),
    "softmax": _function(lambda x: torch.softmax(x, -1), _randn(9, 33)),
    "layernorm": lambda: Case(nn.LayerNorm(33), (_randn(5, 33),)),
    "mlp": lambda: Case(nn.Sequential(nn.Linear(20, 33), nn.GELU(), nn.Linear(33, 7), nn.Tanh()), (_randn(5, 20),)),
    "resnet18": lambda: Case(ResNet18(), (_randn(1, 3, 32, 32),), 1e-3),
    "transformer block": lambda: Case(TransformerBlock(), (_randn(2, 10, 32),)),
    "cond, taken": lambda: Case(Branch(), (_randn(4, 4).abs(),), others=[(-_randn(4, 4).abs(),)]),
    "while": lambda: Case(
        Loop(), (_randn(3, 3).abs(), torch.tensor(4)), others=[(_randn(3, 3).abs() * 200, torch.tensor(9))]
    ),
    "counted loop": lambda: Case(
        CountedLoop(), (_randn(5, 3), torch.tensor(4)), others=[(_randn(5, 3), torch.tensor(0))]
    ),
    "rows": _function(
        lambda x: (x.sum(1), x.amax(1), x.amin(), x.argmax(1), x.sum((0, 2)), torch.softmax(x, -1)),
        _randn(3, 5, 130),
        tolerance=1e-4,
    ),
    "rows of integers": _function(
        lambda x: (x.sum(1), x.amax(1), x.amin(1), (x > -50).all(1), (x > 49).any(1)),
        _integers(-50, 50, (5, 130), torch.int64),
    ),
    "rows with NaN": _function(lambda x: (x.amax(1), x.sum(1)), torch.full((3, 70), torch.nan)),
    "products": _function(
        lambda a, b: (a @ b, b.t() @ a.t(), torch.stack([a, a]) @ torch.stack([b, b])),
        _randn(71, 37),
        _randn(37, 90),
        tolerance=1e-4,
    ),
    "strided convolution": lambda: Case(nn.Conv2d(7, 40, 3, stride=2, padding=1), (_randn(2, 7, 17, 19),), 1e-4),
    "grouped convolution": lambda: Case(nn.Conv2d(8, 64, 3, groups=2), (_randn(2, 8, 17, 9),), 1e-4),
    "transpose": _function(lambda x: x.permute(2, 0, 1).contiguous() + 1, _randn(3, 4, 5)),
    "pools": lambda: Case(nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2)), (_randn(2, 3, 8, 8),)),
    "gather": lambda: Case(nn.Embedding(10, 5), (_integers(0, 10, (3, 4), torch.int64),)),
    "scatter": _function(lambda x, y: x.index_add(0, torch.tensor([0, 2, 0]), y), _randn(5, 3), _randn(3, 3)),
    "scans": _function(lambda x: (torch.cumsum(x, 0), torch.cumsum(x, 1), torch.cumsum(x[0], 0)), _randn(40, 9)),
    "sort": _function(lambda x: torch.sort(x, 1), _randn(4, 9)),
    "topk": _function(lambda x: torch.topk(x, 3), _randn(4, 9)),
    "argmax": _function(lambda x: (x.argmax(1), x.max(1)), _randn(4, 9)),
    "slices": _function(lambda x: (x[1:, ::2], torch.cat([x, x[:1] * 2]), F.pad(x, (1, 2)), x[-1]), _randn(5, 6)),
    "size 0": _function(lambda x: (x + 1, x.sum(0), x.sum(1)), _randn(0, 3)),
    "size 1": _function(lambda x: (x + 1, torch.softmax(x, -1), x.sum()), _randn(1, 1)),
    "scalar": _function(lambda x: x * 2 + 1, torch.tensor(3.0)),
    "more threads than a block": _function(lambda x: x * 2, _randn(1000, 3)),
    "bool": _function(
        lambda a, b: (a & b, a | b, ~a, a ^ b, a.sum(), a.any(), torch.where(a, 1.0, 2.0)),
        _randn(33) > 0,
        _randn(33) > 1,
    ),
    "float64": _function(lambda x: (x * 2 + 1, x.sum(1), x @ x.t(), x.exp()), _randn(5, 6).double(), tolerance=1e-12),
    "dynamic batch": lambda: Case(
        nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)),
        (_randn(5, 8),),
        dynamic=({0: torch.export.Dim("batch", min=2)},),
        others=[(_randn(2, 8),), (_randn(300, 8),)],
    ),
}
