"""How models with branches and loops are listed, each with arguments that take every way through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Arguments = tuple[Any, ...]
Cases = dict[str, tuple[Callable[[], nn.Module], list[Arguments]]]


def case(cases: Cases, *arguments: Arguments) -> Callable[[type[nn.Module]], type[nn.Module]]:
    """Lists a class of models by its name."""

    def register(kind: type[nn.Module]) -> type[nn.Module]:
        cases[kind.__name__] = (kind, list(arguments))
        return kind

    return register


def numbers(*shape: int, seed: int = 0, shift: float = 0.0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + shift


def shifted(*shape: int, shifts: tuple[float, ...] = (-2, 2)) -> list[Arguments]:
    return [(numbers(*shape, seed=number, shift=shift),) for number, shift in enumerate(shifts)]


def zero() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)
