"""The tensors of a safetensors file where they lie: mapped into memory, page by page as they are read."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterable
from pathlib import Path

import ml_dtypes
import numpy as np

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": ml_dtypes.bfloat16,
    "F32": "float32",
    "F64": "float64",
}

_WORD, _BLOCK = 8, 1 << 15


class MappedFile:
    """A file that safetensors has read before, so that its header is known to be sound.

    What is written to the arrays stays in this process. Nobody may cut the file while they are used.

    Attributes:
        tensors: NumPy arrays by name.
    """

    def __init__(self, path: Path):
        """Maps the file; raises `OSError` if it cannot be read."""
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        start = _WORD + int.from_bytes(self._map[:_WORD], "little")
        header = json.loads(self._map[_WORD:start])
        header.pop("__metadata__", None)
        self._places = {name: [start + end for end in entry["data_offsets"]] for name, entry in header.items()}
        data = np.frombuffer(self._map, np.uint8)
        self.tensors = {
            name: data[slice(*self._places[name])].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()
        }

    def release(self, names: Iterable[str]) -> None:
        """Gives back the memory of tensors that nothing was written to; whoever reads them reads the file again."""
        for name in names:
            first, last = self._places[name]
            first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, last // mmap.PAGESIZE * mmap.PAGESIZE
            if first < last:
                self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


def checksum(array: np.ndarray) -> str:
    """Of the bytes of a row-major array: as fast as they can be read, to notice damage, not forgery.

    The sums of the words of each block of 32 KB, and of the words at the same place of all blocks.
    """
    data = array.reshape(-1).view(np.uint8)
    whole = data.size // _BLOCK * _BLOCK
    blocks = data[:whole].view(np.uint64).reshape(-1, _BLOCK // _WORD)
    digest = hashlib.sha256(data.size.to_bytes(_WORD, "little"))
    for part in (blocks.sum(1), blocks.sum(0), data[whole:]):
        digest.update(part.tobytes())
    return digest.hexdigest()
