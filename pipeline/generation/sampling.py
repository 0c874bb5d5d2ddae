"""Draws of tokens by their probabilities.

Draws are torch's where the caller has torch's tensors, from its default generator, as eager mode's; else those of
NumPy, seeded by `pipeline.manual_seed` or the operating system.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

import numpy as np

from pipeline.runtime.call import generator


class Draw(ABC):
    """Where random numbers come from."""

    @abstractmethod
    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """A token for each row, int64[rows], by probabilities, f32[rows, vocabulary]."""

    @abstractmethod
    def shares(self, count: int) -> np.ndarray:
        """Numbers from 0 up to 1, all alike likely, f32[count]."""


class TorchDraw(Draw):
    """Draws from torch's default generator."""

    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """See `Draw`."""
        torch = sys.modules["torch"]
        return torch.multinomial(torch.from_numpy(likely), 1)[:, 0].numpy()

    def shares(self, count: int) -> np.ndarray:
        """See `Draw`."""
        return sys.modules["torch"].rand(count).numpy()


class NumpyDraw(Draw):
    """Draws from a generator of its own, seeded by the package's."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(generator.draw() % 2**64)

    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """See `Draw`."""
        summed = likely.astype(np.float64).cumsum(-1)
        places = self._random.random((len(likely), 1)) * summed[:, -1:]
        return (summed <= places).sum(-1).clip(max=likely.shape[-1] - 1)

    def shares(self, count: int) -> np.ndarray:
        """See `Draw`."""
        return self._random.random(count, np.float32)
