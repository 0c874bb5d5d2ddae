"""Models that write to their buffers and inputs, and outputs that are inputs or the same twice: as in eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from compare import TOLERANCE, relative_error
from torch import nn

import pipeline


class BatchNormInTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class CacheByIndexCopy(nn.Module):
    """Appends a key to a cache at a position that it counts itself."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.randn(2, 8, 4))
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    def forward(self, key: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(1, self.position.reshape(1), key)
        self.position += 1
        return self.cache.sum(1)


class CacheBySliceAssignment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.randn(2, 8, 4))

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        self.cache[:, 2:5] = keys
        return self.cache.cumsum(1)


class CacheByIndexAssignment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.randn(2, 8, 4))

    def forward(self, keys: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.cache[:, positions] = keys
        return self.cache * 2


class CacheAsArgument(nn.Module):
    """One step of attention over a cache that the caller keeps."""

    def forward(self, query: torch.Tensor, cache: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        cache.index_copy_(1, position, query)
        visible = torch.arange(cache.shape[1]) <= position
        return nn.functional.scaled_dot_product_attention(query, cache, cache, attn_mask=visible)


class AddToInput(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y).mul_(x)
        return x + 1


class WriteSlicesOfInput(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[:, 0] = y
        x[1:3, 1:] += 1
        return x.sum()


class WriteThroughViews(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = x.clone()
        flat, transposed = z.view(-1), z.t()
        flat[0] = 7
        transposed[1].mul_(2)
        return z, flat, transposed


class ReturnWrittenInput(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x.add_(y)
        return x, y


class ReturnRepeatedly(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        y = x.exp()
        return {"first": y, "again": [y, y], "input": x, "nothing": None, "number": 3}


class ReturnViewsOfInput(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.view(-1), x.t(), x


class WriteOnly(nn.Module):
    """Returns nothing."""

    def forward(self, x: torch.Tensor) -> None:
        x.mul_(2)


def _rows() -> tuple[Any, ...]:
    return torch.randn(4, 4), torch.randn(4, 4)


Make = Callable[[], tuple[Any, ...]]
CASES: list[tuple[type[nn.Module], Make]] = [
    (BatchNormInTraining, lambda: (torch.randn(4, 3, 5, 5),)),
    (CacheByIndexCopy, lambda: (torch.randn(2, 1, 4),)),
    (CacheBySliceAssignment, lambda: (torch.randn(2, 3, 4),)),
    (CacheByIndexAssignment, lambda: (torch.randn(2, 2, 4), torch.randperm(8)[:2])),
    (CacheAsArgument, lambda: (torch.randn(2, 1, 4), torch.randn(2, 8, 4), torch.randint(0, 8, (1,)))),
    (AddToInput, _rows),
    (WriteSlicesOfInput, lambda: (torch.randn(4, 4), torch.randn(4))),
    (WriteThroughViews, lambda: (torch.randn(3, 4),)),
    (ReturnWrittenInput, _rows),
    (ReturnRepeatedly, lambda: (torch.randn(3, 4),)),
    (ReturnViewsOfInput, lambda: (torch.randn(3, 4),)),
    (WriteOnly, lambda: (torch.randn(3, 4),)),
]


@pytest.mark.parametrize(("cls", "make"), CASES, ids=[cls.__name__ for cls, _ in CASES])
def test_two_steps_leave_what_eager_leaves(cls: type[nn.Module], make: Make) -> None:
    """Outputs, arguments and buffers after each of two calls."""
    torch.manual_seed(0)
    model = cls().train()
    eager = copy.deepcopy(model)
    executable = pipeline.compile(model, make())
    for _ in range(2):
        args = make()
        eager_args = copy.deepcopy(args)
        got, want = executable(*args), eager(*eager_args)
        assert relative_error(got, want) <= TOLERANCE
        assert relative_error(args, eager_args) <= TOLERANCE
        assert relative_error(dict(model.named_buffers()), dict(eager.named_buffers())) <= TOLERANCE


@pytest.mark.parametrize(("cls", "make"), CASES, ids=[cls.__name__ for cls, _ in CASES])
def test_compiling_writes_to_nothing(cls: type[nn.Module], make: Make) -> None:
    model, args = cls().train(), make()
    state, before = copy.deepcopy(model.state_dict()), copy.deepcopy(args)
    pipeline.compile(model, args)
    assert relative_error(model.state_dict(), state) == 0
    assert relative_error(args, before) == 0


def test_an_argument_that_is_returned_is_the_callers_own() -> None:
    x, y = _rows()
    executable = pipeline.compile(ReturnWrittenInput(), (x.clone(), y.clone()))
    first, second = executable(x, y)
    assert first is x
    assert second is y


def test_a_result_that_is_returned_twice_is_one_tensor() -> None:
    x = torch.randn(3, 4)
    executable = pipeline.compile(ReturnRepeatedly(), (x,))
    got = executable(x)
    assert got["first"] is got["again"][0] is got["again"][1]
    assert got["input"] is x


def test_a_written_argument_need_not_be_contiguous() -> None:
    executable = pipeline.compile(AddToInput(), _rows())
    x, y = _rows()
    storage = torch.zeros(4, 8)
    strided = storage[:, ::2]
    strided.copy_(x)
    got = executable(strided, y)
    assert relative_error(strided, (x + y) ** 2) <= TOLERANCE
    assert relative_error(got, (x + y) ** 2 + 1) <= TOLERANCE
    assert not storage[:, 1::2].any()
