"""Floats that NumPy has not: those of ml_dtypes where it is installed, else their bits as a field of that name."""

from __future__ import annotations

import numpy as np

try:
    import ml_dtypes
except ImportError:
    SMALL_FLOATS = {
        name: np.dtype([(name, bits)])
        for name, bits in (("bfloat16", "<u2"), ("float8_e4m3fn", "u1"), ("float8_e5m2", "u1"))
    }
else:
    SMALL_FLOATS = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}

BFLOAT16 = SMALL_FLOATS["bfloat16"]
FLOAT8 = (SMALL_FLOATS["float8_e4m3fn"], SMALL_FLOATS["float8_e5m2"])


def as_doubles(array: np.ndarray) -> np.ndarray:
    """Real numbers of any dtype as float64."""
    if array.dtype not in SMALL_FLOATS.values():
        return array.astype(np.float64)
    array = np.ascontiguousarray(array)
    if array.dtype == BFLOAT16:
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    codes = array.view(np.uint8).astype(np.uint16)
    if array.dtype == SMALL_FLOATS["float8_e5m2"]:
        return (codes << 8).view(np.float16).astype(np.float64)
    magnitude = codes & 0x7F
    halves = ((codes & 0x80) << 8 | magnitude << 7).view(np.float16)  # of which the exponents are 8 too small
    return np.where(magnitude == 0x7F, np.nan, halves.astype(np.float64) * 2**8)
