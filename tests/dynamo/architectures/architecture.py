"""What a test knows of an architecture: how to make it, and how its documentation calls it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from random_weights import randomize
from torchvision_ops import define_missing_operators

# Before any module of this package imports torchvision, or timm, which does.
define_missing_operators()

#: Positional or keyword arguments.
Given = tuple[Any, ...] | dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """A model in a small configuration with random weights.

    Attributes:
        build: makes the model; weights are drawn from torch's global generator.
        inputs: makes the arguments of a call from two sizes: rows, and the length of text or the side of images.
        sizes: what it is called with: twice the first, then two of other batches, lengths or sides.
        graphs: how often torch.compile compiles: once for the first size and once for any other; None where the model's
            own code branches on sizes or values, so that torch says how often.
    """

    build: Callable[[], torch.nn.Module]
    inputs: Callable[[int, int], Given]
    sizes: tuple[tuple[int, int], ...] = ((2, 7), (2, 7), (3, 9), (4, 11))
    graphs: int | None = 2

    def create(self) -> torch.nn.Module:
        """The model in eval mode, the same weights each time."""
        torch.manual_seed(0)
        return randomize(self.build()).eval()


def call(model: Callable[..., Any], given: Given) -> Any:
    """The model's outputs."""
    return model(**given) if isinstance(given, dict) else model(*given)


def ids(rows: int, length: int) -> torch.Tensor:
    """Token ids [rows, length] of a vocabulary of 61, without the special ones at its start."""
    return torch.randint(3, 60, (rows, length))


def text(rows: int, length: int) -> Given:
    """What language models take."""
    return {"input_ids": ids(rows, length)}


def pixels(rows: int, side: int) -> Given:
    """What image models of transformers take."""
    return {"pixel_values": torch.randn(rows, 3, side, side)}


def images(rows: int, side: int) -> Given:
    """What image models of torchvision and timm take."""
    return (torch.randn(rows, 3, side, side),)
