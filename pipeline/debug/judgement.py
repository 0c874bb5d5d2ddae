"""Whether two runs of a program give the same numbers up to rounding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.debug.interpreter.number_types import is_float
from pipeline.mlir import ir, text

#: The largest error, relative to the largest number of a result, that is rounding: where all ops of two programs are
#: computed in float64, and constants that were folded have the IR's own type.
FOLDED = {"bf16": 1e-2, "f16": 2e-3, "f32": 1e-5, "f64": 1e-11}

#: Likewise, where one of them is computed in the IR's types.
ROUNDED = {"bf16": 5e-2, "f16": 1e-2, "f32": 1e-4, "f64": 1e-10}


@dataclass(frozen=True)
class RunResults:
    """What became of a run: its results, or why it gave none."""

    results: tuple[np.ndarray, ...] = ()
    failure: str | None = None

    def chosen(self, numbers: Sequence[int]) -> RunResults:
        """The results with these numbers alone."""
        return RunResults(tuple(self.results[number] for number in numbers), self.failure)

    def __str__(self) -> str:
        if self.failure is not None:
            return self.failure
        return "; ".join(map(_brief, self.results)) or "nothing"


def _brief(result: np.ndarray) -> str:
    first = ", ".join(f"{value:.6g}" for value in result.reshape(-1)[:4].astype(float).tolist())
    return f"[{first}{', ..' if result.size > 4 else ''}] of {'x'.join(map(str, result.shape)) or 'one number'}"


def tolerance_of(module: ir.Module, table: Mapping[str, float]) -> float:
    """What a table says of the float type of the least precision in a module; of f64 where it has none."""
    found = set(re.findall(r"(?:\b|x)(bf16|f16|f32|f64)\b", text(module.operation)))
    return next((tolerance for name, tolerance in table.items() if name in found), table["f64"])


def difference(expected: RunResults, got: RunResults, tolerance: float) -> str | None:
    """How two outcomes differ by more than rounding, in words; None if they do not.

    Runs that fail a check are equal whatever it says: passes make checks of what would trap.
    """
    if expected.failure is not None or got.failure is not None:
        both = expected.failure is not None and got.failure is not None
        return None if both else f"{got}, expected {expected}"
    if len(expected.results) != len(got.results):
        return f"{len(got.results)} results, expected {len(expected.results)}"
    for number, (one, other) in enumerate(zip(expected.results, got.results, strict=True)):
        words = _between(one, other, tolerance)
        if words is not None:
            return f"result {number}: {words}"
    return None


def largest_error(expected: RunResults, got: RunResults) -> float:
    """The largest error of a float, relative to the largest number of its result; 0 where no number is finite."""
    pairs = zip(expected.results, got.results, strict=False)
    return max(
        (_error(one, other) for one, other in pairs if one.shape == other.shape and is_float(one.dtype)), default=0.0
    )


def _error(one: np.ndarray, other: np.ndarray) -> float:
    first, second = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(first) & np.isfinite(second)
    if not finite.any():
        return 0.0
    largest = np.abs(first[finite]).max()
    error = np.abs(first[finite] - second[finite]).max()
    return float(error / largest) if largest else float(error)


def _between(one: np.ndarray, other: np.ndarray, tolerance: float) -> str | None:
    if one.shape != other.shape:
        return f"shape {list(other.shape)}, expected {list(one.shape)}"
    if not is_float(one.dtype):
        wrong = int((one != other).sum())
        return f"{wrong} of {one.size} elements differ" if wrong else None
    first, second = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(first)
    if not np.array_equal(np.where(finite, 0, first), np.where(np.isfinite(second), 0, second), equal_nan=True):
        return "an infinity or NaN stands at other places"
    error = _error(one, other)
    if error <= tolerance:
        return None
    scale = np.abs(first[finite]).max()
    wrong = int((np.abs(first - second)[finite] > tolerance * scale).sum())
    return f"{wrong} of {one.size} elements differ, by {error:.3g} of the largest"
