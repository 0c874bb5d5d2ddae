"""What an element weighs in a resized image, by its distance from where the result's element is."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pipeline.errors import PipelineError

#: From distances, 0 or above, to weights.
Kernel = Callable[[Tensor], Tensor]


def linear(distance: Tensor) -> Tensor:
    """1 - distance below 1."""
    return (1 - distance).clamp(min=0)


def keys(a: float) -> Kernel:
    """The cubic kernel of Keys: torch has a = -0.5 where it resizes with antialias, and -0.75 elsewhere."""

    def kernel(distance: Tensor) -> Tensor:
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))

    return kernel


def lanczos(distance: Tensor) -> Tensor:
    """sinc(distance) sinc(distance / 3) below 3."""
    return torch.where(distance < 3, torch.sinc(distance) * torch.sinc(distance / 3), 0.0)


def known_sizes_of_bytes(*sizes: object) -> None:
    """Raises `PipelineError` unless all sizes of images of uint8, and of what they become, are numbers."""
    if not all(isinstance(size, int) for size in sizes):
        raise PipelineError("interpolation of uint8 needs sizes known in advance; make it float32 and round after")
