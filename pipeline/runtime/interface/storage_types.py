"""How devices store elements: the dtypes in device memory, by name; their sizes are `signature.DTYPE_BYTES`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.runtime.interface.small_floats import BFLOAT16

_MLIR = {"i1": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}

#: What Vulkan stores in 32 bits instead: it may not have smaller elements.
_WORDS = {"bool": "int32", "int8": "int32", "int16": "int32", "float16": "float32", "bfloat16": "float32"}

Stored = Callable[[str], str]


def as_is(element: str) -> str:
    """The dtype of an MLIR element type."""
    return _MLIR.get(element) or f"int{element[1:]}"


def in_words(element: str) -> str:
    """The dtype of an MLIR element type where elements have at least 32 bits."""
    dtype = as_is(element)
    return _WORDS.get(dtype, dtype)


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a stored element."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)
