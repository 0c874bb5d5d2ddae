"""A case of the sweep: a module with its inputs, drawn the same way in every process."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]

#: Elements of the largest tensors that random cases may have: four times a last-level cache of 32 MB, in f32.
MOST_ELEMENTS = 32 << 20

#: Floating-point operations of the largest random case.
MOST_FLOPS = 4e9


@dataclass(frozen=True)
class Case:
    """A module and its inputs.

    Attributes:
        kind: what it is one of, as in tables.
        shape: what tells it from others of its kind.
        create: makes module and inputs in f32, after the random numbers have been seeded.
        inductor: whether Inductor writes code for it, rather than calling what eager calls.
        dtypes: the dtypes that it is run in.
    """

    kind: str
    shape: str
    create: Callable[[], Made]
    inductor: bool = True
    dtypes: tuple[str, ...] = ("f32", "bf16")

    @property
    def name(self) -> str:
        """The name that requests go by."""
        return f"{self.kind}/{self.shape}"

    def make(self, dtype: str = "f32") -> Made:
        """The module, for inference, and its inputs, floats of them in `dtype`."""
        torch.manual_seed(0)
        model, inputs = self.create()
        model = model.eval().requires_grad_(False)
        if dtype == "f32":
            return model, inputs
        return model.to(DTYPES[dtype]), tuple(_cast(one, DTYPES[dtype]) for one in inputs)


DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor in another float type; strides stay."""
    return tensor.to(dtype) if tensor.dtype == torch.float32 else tensor


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def of_function(function: Callable[..., Any], *inputs: torch.Tensor) -> Made:
    """A function and its inputs."""
    return Function(function), inputs


def sizes(*numbers: int) -> str:
    """Sizes as text: 128x768."""
    return "x".join(map(str, numbers))


def drawn(seed: str) -> random.Random:
    """Random numbers of a kind."""
    return random.Random(f"shapes of {seed}")


def log_uniform(draw: random.Random, low: int, high: int) -> int:
    """A size: each octave is as likely as the others, and powers of two no likelier than their neighbours."""
    return min(high, max(low, round(math.exp(draw.uniform(math.log(low), math.log(high + 1))))))


def spread(draw: random.Random, low: int, high: int) -> int:
    """A size, half of the time a multiple of 16 as networks have it."""
    size = log_uniform(draw, low, high)
    return max(16, size // 16 * 16) if high >= 16 and draw.random() < 0.5 else size


def distinct(cases: Iterable[Case], most: int = 40) -> Iterator[Case]:
    """The first cases of different names."""
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(case.name, case)
        if len(found) == most:
            break
    yield from found.values()
