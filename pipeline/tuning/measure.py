"""Times calls of variants in turn, and compares what they return."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

#: How long calls are repeated to find the shortest time of each, in seconds, and how often at least.
_SECONDS, _LEAST = 0.04, 4

#: How far the results of two variants may be apart, relative to the largest one: they add up in another order.
_TOLERANCES = {
    np.dtype(np.float64): 1e-11,
    np.dtype(np.float32): 1e-4,
    np.dtype(np.float16): 1e-2,
    np.dtype(ml_dtypes.bfloat16): 2e-2,
}


def best_times(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """The shortest time of each call, in seconds. They take turns, since a machine's speed changes with time."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    end, rounds = time.perf_counter() + _SECONDS * len(calls), 0
    while rounds < _LEAST or time.perf_counter() < end:
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - start)
        rounds += 1
    return best


def agree(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Whether two variants return the same up to rounding; infinities and NaN at the same places."""
    return all(_close(*pair) for pair in zip(results, expected, strict=True))


def _close(result: np.ndarray, expected: np.ndarray) -> bool:
    if result.dtype != expected.dtype or result.shape != expected.shape:
        return False
    tolerance = _TOLERANCES[expected.dtype]
    one, other = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(one[finite]).all():
        return False
    largest = np.abs(other[finite]).max(initial=0.0)
    return bool((np.abs(one[finite] - other[finite]) <= tolerance * largest).all())
