"""bfloat16 for NumPy, which has none: that of ml_dtypes where it is installed, else the bits as a field `bfloat16`."""

from __future__ import annotations

import numpy as np

try:
    from ml_dtypes import bfloat16
except ImportError:
    BFLOAT16 = np.dtype([("bfloat16", "<u2")])
else:
    BFLOAT16 = np.dtype(bfloat16)


def as_doubles(array: np.ndarray) -> np.ndarray:
    """Real numbers of any dtype as float64."""
    if array.dtype != BFLOAT16:
        return array.astype(np.float64)
    return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
