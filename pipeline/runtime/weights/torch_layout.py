"""Where torch and CPython keep what tells that a weight is not what it was: words whose addresses can be watched.

None of it is documented, so that the offsets are found by looking at tensors whose values are known; where that fails,
as it may with another torch or CPython, `words_of` has none and `pipeline.runtime.weights.watch` asks torch itself.

    TensorImpl (`tensor._cdata`):
      storage     the StorageImpl that the tensor's elements lie in: another after `.data = `, `set_` and `module.to`
      version     the VersionCounter, which autograd counts writes in place with; null in inference tensors
    StorageImpl (`storage._cdata`):
      data        where the memory is: another after `share_memory`
    VersionCounter:
      count       how many writes there were
    dict:
      tag         changes with every write to the dictionary: CPython 3.11 and 3.12 have it
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: The bytes of a word.
WORD = 8

#: How many words of a structure may be looked at: less than the smallest of them has.
_TENSOR_WORDS, _STORAGE_WORDS, _VERSION_WORDS, _DICT_WORDS = 20, 6, 3, 6

#: Numbers of writes that no other word is likely to hold.
_VERSIONS = (77, 191)


@dataclass(frozen=True)
class TorchLayout:
    """Offsets in bytes; see the module's docstring."""

    storage: int
    version: int
    data: int
    count: int

    def storage_word(self, tensor: Any) -> int:
        """The address of the word that says in which storage a tensor lies."""
        return tensor._cdata + self.storage

    def data_word(self, tensor: Any) -> int:
        """The address of the word that says where a tensor's storage has its memory."""
        return tensor.untyped_storage()._cdata + self.data

    def version_word(self, tensor: Any) -> int | None:
        """The address of the number of writes to a tensor; None for inference tensors, which do not count them."""
        if tensor.is_inference():
            return None
        return _read(tensor._cdata + self.version) + self.count


@functools.cache
def torch_layout() -> TorchLayout | None:
    """The layout of this process's torch; None if it cannot be told."""
    torch = sys.modules["torch"]
    with torch.inference_mode(False):
        return calibrated(_samples(torch))


def calibrated(samples: Sequence[Any]) -> TorchLayout | None:
    """The layout that holds for all of these tensors, the numbers of whose writes differ."""
    storage = one_in_common(
        offsets_of(sample._cdata, _TENSOR_WORDS, sample.untyped_storage()._cdata) for sample in samples
    )
    data = one_in_common(
        offsets_of(sample.untyped_storage()._cdata, _STORAGE_WORDS, _start(sample)) for sample in samples
    )
    counts = [
        (offset, count)
        for offset in range(0, _TENSOR_WORDS * WORD, WORD)
        for count in range(0, _VERSION_WORDS * WORD, WORD)
        if all(_counts(sample, offset, count) for sample in samples)
    ]
    if storage is None or data is None or len(counts) != 1:
        return None
    return TorchLayout(storage, counts[0][0], data, counts[0][1])


def _samples(torch: Any) -> list[Any]:
    """Tensors of several kinds, whose numbers of writes are `_VERSIONS`."""
    zeros = functools.partial(torch.zeros, device="cpu")  # whatever device is the usual one
    kinds = [
        zeros(9),
        torch.nn.Parameter(zeros(3, 5)),
        torch.from_numpy(np.zeros(8, np.int64)),  # its memory is not the allocator's
        zeros(4, 6)[1:],
    ]
    for number, tensor in enumerate(kinds):
        while tensor._version < _VERSIONS[number % len(_VERSIONS)]:
            torch.autograd.graph.increment_version(tensor)
    return kinds


def _start(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()


def _counts(tensor: Any, offset: int, count: int) -> bool:
    """Whether the 32 bits that the tensor's word at `offset` points to are its number of writes."""
    words = peek(tensor._cdata + offset, 1)
    held = peek(words[0] + count, 1) if words else []
    return bool(held) and held[0] % 2**32 == tensor._version


@functools.cache
def dict_tag() -> int | None:
    """The offset of the word of a dictionary that changes with every write to it; None if there is none."""
    if sys.implementation.name != "cpython":
        return None
    sample: dict[str, Any] = {"weight": 0, "bias": 0}
    changing = _changing(id(sample), lambda number: sample.update(weight=number + 1000))
    reading = _changing(id(sample), lambda number: sample.get("weight"))
    deleting = _changing(id(sample), lambda number: (sample.pop("bias"), sample.update(bias=number)))
    tags = (changing & deleting) - reading
    return tags.pop() if len(tags) == 1 else None


def _changing(address: int, work: Callable[[int], Any]) -> set[int]:
    """The offsets of the words of a dictionary that are another each time that `work` has run."""
    seen = [peek(address, _DICT_WORDS)]
    for number in range(4):
        work(number)
        seen.append(peek(address, _DICT_WORDS))
    columns = list(zip(*seen, strict=True))
    return {WORD * place for place, column in enumerate(columns) if len(set(column)) == len(seen)}


def one_in_common(found: Iterable[set[int]]) -> int | None:
    """The one offset that all have; None if they have none or several."""
    offsets = set.intersection(*found)
    return min(offsets) if len(offsets) == 1 else None


def offsets_of(address: int, words: int, wanted: int) -> set[int]:
    """Where in a structure of so many words a word is `wanted`."""
    return {WORD * place for place, word in enumerate(peek(address, words)) if word == wanted}


def peek(address: int, words: int) -> list[int]:
    """The words from an address on; none where no memory is, which a look through the kernel finds out safely."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(words * WORD)
    except (OSError, ValueError, OverflowError):
        return []
    return [int.from_bytes(data[start : start + WORD], sys.byteorder) for start in range(0, len(data), WORD)]


def _read(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
