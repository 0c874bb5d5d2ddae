"""Arrays in .npy files, bfloat16 among them, which the format does not know: it stores it as words of two bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.errors import PipelineError
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.interface.small_floats import SMALL_FLOATS


def read_array(path: str, dtype: str) -> np.ndarray:
    """The array in a file; its words are those of bfloat16 or float8 if `dtype` is. Nothing in the file is executed."""
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise PipelineError(f"{path}: not a .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise PipelineError(f"{path}: an archive of arrays; expected the .npy file of one")
    small = SMALL_FLOATS.get(dtype)
    if small is not None and array.dtype in (np.dtype(f"V{small.itemsize}"), np.dtype(f"u{small.itemsize}")):
        return array.view(small)
    return array


def write_array(path: str, array: np.ndarray) -> None:
    """Writes a file, whole or not at all."""
    words = array.view(f"V{array.itemsize}") if array.dtype in SMALL_FLOATS.values() else array
    try:
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.save(file, words, allow_pickle=False)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None
