"""Arrays in .npy files, bfloat16 among them, which the format does not know: it stores it as words of two bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.errors import PipelineError
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.interface.bfloat16 import BFLOAT16


def read_array(path: str, dtype: str) -> np.ndarray:
    """The array in a file; two-byte words are bfloat16 if `dtype` is. Nothing in the file is executed."""
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise PipelineError(f"{path}: not a .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise PipelineError(f"{path}: an archive of arrays; expected the .npy file of one")
    if dtype == "bfloat16" and array.dtype in (np.dtype("V2"), np.dtype("uint16")):
        return array.view(BFLOAT16)
    return array


def write_array(path: str, array: np.ndarray) -> None:
    """Writes a file, whole or not at all."""
    words = array.view("V2") if array.dtype == BFLOAT16 else array
    try:
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.save(file, words, allow_pickle=False)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None
