"""Times calls of variants in turn, and compares what they return."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

#: How long two calls take turns, in seconds, and how often at least.
_SECONDS, _LEAST = 0.08, 5

#: How far the results of two variants may be apart, relative to the largest one: they add up in another order.
_TOLERANCES = {
    np.dtype(np.float64): 1e-11,
    np.dtype(np.float32): 1e-4,
    np.dtype(np.float16): 1e-2,
    np.dtype(ml_dtypes.bfloat16): 2e-2,
}


def gain(old: Callable[[], Any], new: Callable[[], Any]) -> float:
    """How many times as fast one call is as another, at least.

    They take turns, since a machine's speed changes with time. The smaller counts of two ratios: of the shortest times,
    and of times one after the other, of which the median is taken; another process disturbs one of them at most.
    """
    times: list[tuple[float, float]] = []
    old()
    new()
    end = time.perf_counter() + _SECONDS
    while len(times) < _LEAST or time.perf_counter() < end:
        times.append((_time(old), _time(new)))
    shortest = min(one for one, _ in times) / min(other for _, other in times)
    return min(shortest, statistics.median(one / other for one, other in times))


def _time(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return max(time.perf_counter() - start, 1e-9)


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
