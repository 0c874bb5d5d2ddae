"""Whether two forms of a model agree: their results are the same up to rounding; and by how much they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.runtime.interface.small_floats import BFLOAT16, SMALL_FLOATS, as_doubles

#: The largest error that rounding explains, relative to the largest number, by dtype.
_ROUNDING = {
    np.dtype(np.float64): 1e-11,
    np.dtype(np.float32): 1e-4,
    np.dtype(np.float16): 1e-2,
    BFLOAT16: 5e-2,
    SMALL_FLOATS["float8_e4m3fn"]: 0.13,
    SMALL_FLOATS["float8_e5m2"]: 0.26,
}


def difference(results: Mapping[str, Any], others: Mapping[str, Any]) -> str | None:
    """How two sets of results by name differ by more than rounding, in words; None if they do not."""
    if list(results) != list(others):
        return f"its results are {', '.join(others)}, expected {', '.join(results)}"
    texts = ((name, _between(value, others[name])) for name, value in results.items())
    return next((f"{name} differs: {text}" for name, text in texts if text is not None), None)


def errors(results: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """How far each result of one form is from that of another, as lines; results of the same model."""
    return "".join(f"{name}: {_error(value, others[name])}\n" for name, value in results.items())


def _in_parts(value: Any) -> Any:
    """An array of complex numbers as one of their parts; anything else as it is."""
    return np.stack([value.real, value.imag], -1) if np.iscomplexobj(value) else value


def _error(value: Any, other: Any) -> str:
    value, other = _in_parts(value), _in_parts(other)
    if not isinstance(value, np.ndarray) or value.dtype not in _ROUNDING:
        same = np.array_equal(value, other)
        return "the same" if same else "differs"
    first, second = as_doubles(value), as_doubles(other)
    finite = np.isfinite(first) & np.isfinite(second)
    others = int(
        (first[~finite] != second[~finite]).sum() - (np.isnan(first[~finite]) & np.isnan(second[~finite])).sum()
    )
    note = f"; {others} infinities or NaN differ" if others else ""
    if not finite.any():
        return f"no finite number{note}"
    off = np.abs(first[finite] - second[finite])
    largest = np.abs(first[finite]).max()
    return f"error {off.max():.3g} at most, {off.mean():.3g} on average; the largest number is {largest:.3g}{note}"


def _between(value: Any, other: Any) -> str | None:
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return None if type(value) is type(other) and value == other else f"{other!r}, expected {value!r}"
    if value.dtype != other.dtype or value.shape != other.shape:
        return f"{other.dtype}{list(other.shape)}, expected {value.dtype}{list(value.shape)}"
    value, other = _in_parts(value), _in_parts(other)
    tolerance = _ROUNDING.get(value.dtype)
    if tolerance is None:
        wrong = int((value != other).sum())
        return f"{wrong} of {value.size} elements" if wrong else None
    first, second = as_doubles(value), as_doubles(other)
    finite = np.isfinite(first)
    if not np.array_equal(np.where(finite, 0, first), np.where(np.isfinite(second), 0, second), equal_nan=True):
        return "an infinity or NaN stands at other places"
    if not finite.any():
        return None
    largest, error = np.abs(first[finite]).max(), np.abs(first[finite] - second[finite]).max()
    return f"error {error:.3g}, where the largest number is {largest:.3g}" if error > tolerance * largest else None
