"""Which token comes next: scores as transformers' processors make them of logits, and a draw.

Draws are torch's where the caller has torch's tensors, from its default generator, as eager mode's; else those of
NumPy, seeded by `pipeline.manual_seed` or the operating system.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

import numpy as np

from pipeline.generation.settings import Settings
from pipeline.runtime.call import generator


class Draw(ABC):
    """Where random numbers come from."""

    @abstractmethod
    def tokens(self, likely: np.ndarray) -> np.ndarray:
        """A token for each row, int64[rows], by probabilities, f32[rows, vocabulary]."""

    @abstractmethod
    def shares(self, count: int) -> np.ndarray:
        """Numbers from 0 up to 1, all alike likely, f32[count]."""


def next_tokens(logits: np.ndarray, before: np.ndarray, settings: Settings, draw: Draw) -> np.ndarray:
    """A token for each row, int64[rows], from f32[rows, vocabulary]; `before` are those so far, [rows, count]."""
    if not settings.do_sample:
        return likeliest(logits, before, settings)
    return draw.tokens(probabilities(logits, before, settings))


def probabilities(logits: np.ndarray, before: np.ndarray, settings: Settings, times: int = 1) -> np.ndarray:
    """How likely tokens are drawn, f32[rows, vocabulary]; arguments as of `next_tokens`.

    Args:
        times: how often temperature, `top_k`, `top_p` and `min_p` are applied.
    """
    scores = _penalized(logits, before, settings)
    for _ in range(times):
        scores = _warped(scores, settings)
    return _softmax(scores)


def _warped(scores: np.ndarray, settings: Settings) -> np.ndarray:
    """Scores at a temperature, -inf for tokens that are not drawn."""
    if settings.temperature != 1:
        scores = scores / np.float32(settings.temperature)
    if settings.top_k:
        scores = _best(scores, settings.top_k)
    if settings.top_p < 1:
        scores = _nucleus(scores, settings.top_p)
    if settings.min_p:
        likely = _softmax(scores)
        scores = np.where(likely < settings.min_p * likely.max(-1, keepdims=True), -np.inf, scores)
    return scores


def likeliest(logits: np.ndarray, before: np.ndarray, settings: Settings) -> np.ndarray:
    """The token of the highest score for each row, int64[rows]; arguments as of `next_tokens`."""
    return _penalized(logits, before, settings).argmax(-1)


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


def _penalized(logits: np.ndarray, before: np.ndarray, settings: Settings) -> np.ndarray:
    penalty = settings.repetition_penalty
    return logits if penalty == 1 else without_repetition(logits, before, penalty)


def without_repetition(scores: np.ndarray, before: np.ndarray, penalty: float) -> np.ndarray:
    """Scores of tokens that there are already divided by the penalty, negative ones multiplied."""
    found = np.take_along_axis(scores, before, -1)
    changed = scores.copy()
    np.put_along_axis(changed, before, np.where(found < 0, found * penalty, found / penalty).astype(found.dtype), -1)
    return changed


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    """The `count` highest scores and their equals; -inf for the rest."""
    if count >= scores.shape[-1]:
        return scores
    least = np.partition(scores, -count, -1)[:, -count, None]
    return np.where(scores < least, -np.inf, scores)


def _nucleus(scores: np.ndarray, share: float) -> np.ndarray:
    """The most likely tokens, as many as have `share` of the probability; -inf for the rest."""
    order = scores.argsort(-1, kind="stable")
    rising = _softmax(np.take_along_axis(scores, order, -1)).cumsum(-1)
    drop = rising <= np.float32(1 - share)
    drop[:, -1] = False
    dropped = np.empty_like(drop)
    np.put_along_axis(dropped, order, drop, -1)
    return np.where(dropped, -np.inf, scores)


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
