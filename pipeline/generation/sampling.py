"""Draws of tokens by their probabilities.

Draws are torch's where the caller has torch's tensors, from its default generator, as eager mode's; else those of
NumPy, seeded by `pipeline.manual_seed` or the operating system.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

import numpy as np

from pipeline.runtime.call import generator
from pipeline.runtime.call.array_library import ArrayLibrary


class Draw(ABC):
    """Where random numbers come from."""

    @abstractmethod
    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """A token for each row, int64[rows], by probabilities, f32[rows, vocabulary]."""

    @abstractmethod
    def several(self, likely: np.ndarray, count: int) -> np.ndarray:
        """Of each row of `likely`, f32[rows, places], `count` places, none of them twice, int64[rows, count]."""

    @abstractmethod
    def shares(self, count: int) -> np.ndarray:
        """Numbers from 0 up to 1, all alike likely, f32[count]."""


class TorchDraw(Draw):
    """Draws from torch's default generator."""

    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """See `Draw`."""
        torch = sys.modules["torch"]
        return torch.multinomial(torch.from_numpy(likely), 1)[:, 0].numpy()

    def several(self, likely: np.ndarray, count: int) -> np.ndarray:
        """See `Draw`."""
        torch = sys.modules["torch"]
        return torch.multinomial(torch.from_numpy(likely), count).numpy()

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

    def several(self, likely: np.ndarray, count: int) -> np.ndarray:
        """See `Draw`."""
        with np.errstate(divide="ignore"):
            waits = -np.log(likely.astype(np.float64))
        waits += np.log(self._random.standard_exponential(likely.shape))  # the least of such is each as it is likely
        return waits.argsort(-1)[:, :count]

    def shares(self, count: int) -> np.ndarray:
        """See `Draw`."""
        return self._random.random(count, np.float32)


def draw_for(library: ArrayLibrary | None) -> Draw:
    """What draws tokens for prompts of a library."""
    return NumpyDraw() if library is None or library.name == "numpy" else TorchDraw()
