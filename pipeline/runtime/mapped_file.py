"""The tensors of a safetensors file where they lie: mapped into memory, page by page as they are read."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pipeline.runtime.safetensors_file import DTYPES, read_header

_WORD, _BLOCK = 8, 1 << 15


class MappedFile:
    """A file in memory.

    What is written to the arrays stays in this process. Nobody may cut the file while they are used.

    Attributes:
        tensors: NumPy arrays by name.
        metadata: text by name.
    """

    def __init__(self, path: Path):
        """Maps the file; raises `OSError` if it cannot be read, `ValueError` if it is no whole safetensors file."""
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        header, self.metadata, start = read_header(self._map)
        self._places = {name: [start + end for end in entry["data_offsets"]] for name, entry in header.items()}
        data = np.frombuffer(self._map, np.uint8)
        self.tensors = {
            name: data[slice(*self._places[name])].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
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
