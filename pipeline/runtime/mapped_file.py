"""The tensors of a safetensors file where they lie: mapped into memory page by page, or in memory already."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeline.runtime.safetensors_file import DTYPES, read_header

_WORD, _BLOCK = 8, 1 << 15


class TensorFile(Protocol):
    """A file of which memory has what is read.

    Attributes:
        tensors: NumPy arrays by name.
        metadata: text by name.
    """

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]

    def release(self, names: Iterable[str]) -> None:
        """Gives back the memory of tensors that nothing was written to; whoever reads them reads the file again."""
        ...


class MappedFile:
    """A file of the disk.

    What is written to the arrays stays in this process. Nobody may cut the file while they are used.
    """

    def __init__(self, path: Path):
        """Maps the file; raises `OSError` if it cannot be read, `ValueError` if it is no whole safetensors file."""
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self.tensors, self.metadata, self._places = _contents(self._map)

    def release(self, names: Iterable[str]) -> None:
        """See `TensorFile`."""
        for name in names:
            first, last = self._places[name]
            first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, last // mmap.PAGESIZE * mmap.PAGESIZE
            if first < last:
                self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


class FileInMemory:
    """A file that lies in memory which others may share, such as an object store's: its arrays can be read alone."""

    def __init__(self, data: Any):
        """Takes what has a buffer; raises `ValueError` if it is no whole safetensors file."""
        view = memoryview(data).toreadonly()
        self.tensors, self.metadata, _ = _contents(view)

    def release(self, names: Iterable[str]) -> None:
        """Nothing: the memory is its owner's."""


def _contents(data: Any) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, list[int]]]:
    """(tensors, metadata, the first and the last byte of each tensor) of a file."""
    header, metadata, start = read_header(data)
    places = {name: [start + end for end in entry["data_offsets"]] for name, entry in header.items()}
    elements = np.frombuffer(data, np.uint8)
    tensors = {
        name: elements[slice(*places[name])].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }
    return tensors, metadata, places


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
