"""Which words of a tensor's structure say what it is: dtype, sizes, strides, layout, device and dispatch keys.

None of it is documented, so that it is found by looking at tensors: bits that are the same in all that are of one
kind, however they came to be and whatever the memory held before, and not in one of another kind. `tensor_words` is
None where that fails, as it may with another torch; calls go the way of Python then.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.runtime.interface.call_record import RECORD_START
from pipeline.runtime.weights.torch_layout import WORD, TorchLayout, offsets_of, one_in_common, peek, torch_layout

#: How many bits of a word may be gaps.
_MOST_GAPS = 8

#: How many words are looked at to find those of a tensor's structure: more than it has.
_WORDS = 24


@dataclass(frozen=True)
class TensorWords:
    """Offsets in bytes.

    Attributes:
        cdata: of the structure's address, in the object of Python.
        storage, start: of the storage's address, and of the number of the first element in it.
        data: of the memory's address, in the storage's structure.
        compared: of the words that say what a tensor is.
        masks: the bits of each of them that do; others are whatever was in memory.
    """

    cdata: int
    storage: int
    start: int
    data: int
    compared: tuple[int, ...]
    masks: tuple[int, ...]

    def of(self, tensor: Any) -> list[int]:
        """The words of a tensor that are compared."""
        words = peek(tensor._cdata, _WORDS)
        return [_signed(words[offset // WORD]) for offset in self.compared]


def tensor_words() -> TensorWords | None:
    """Those of this process's torch; None if they cannot be told, or not inside of a transformation of torch.func."""
    try:
        return calibrated_words()
    except (RuntimeError, AttributeError):  # what is made there has no memory; the system's library is another one
        return None


@functools.cache
def calibrated_words() -> TensorWords | None:
    """The words that hold for all of some tensors, and tell them from all others; None if there are none."""
    torch, layout = sys.modules["torch"], torch_layout()
    if layout is None or sys.implementation.name != "cpython" or bytes.__basicsize__ != RECORD_START + 1:
        return None
    with torch.inference_mode(False), torch.no_grad():
        return _words_of(torch, layout)


def _words_of(torch: Any, layout: TorchLayout) -> TensorWords | None:
    """The words that are found by looking at tensors."""
    zeros = functools.partial(torch.zeros, dtype=torch.float32, device="cpu")  # whatever the usual ones are
    masks = _initialized_bits(list(_in_used_memory(zeros)), _words_there(zeros(4, 6)))
    alike, held = _alike(torch, zeros)
    first, *seen = [peek(tensor._cdata, _WORDS) for tensor in alike]

    def differing(words: list[int]) -> set[int]:
        return {place for place, mask in masks.items() if (words[place] ^ first[place]) & mask}

    same = set(masks).difference(*map(differing, seen))
    telling = [differing(words) & same for words in _others(torch, zeros)]
    if not all(telling):
        return None
    compared = sorted(place for place in same if place <= max(map(max, telling)))  # behind them is other memory
    cdata = one_in_common(offsets_of(id(tensor), _object_words(tensor), tensor._cdata) for tensor in alike)
    rows = [zeros(9, 6)[row : row + 4] for row in (3, 5)]
    start = one_in_common(offsets_of(row._cdata, _WORDS, row.storage_offset()) for row in rows)
    del held
    if cdata is None or start is None or start // WORD in compared:
        return None
    offsets, of_each = tuple(place * WORD for place in compared), tuple(_signed(masks[place]) for place in compared)
    return TensorWords(cdata, layout.storage, start, layout.data, offsets, of_each)


def _words_there(tensor: Any) -> int:
    """How many words the piece of memory has that a tensor's structure lies in."""
    library = ctypes.CDLL(None)
    library.malloc_usable_size.restype, library.malloc_usable_size.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
    return min(_WORDS, int(library.malloc_usable_size(tensor._cdata)) // WORD)


def _initialized_bits(seen: list[list[int]], count: int) -> dict[int, int]:
    """The bits of words that do not go by what was in memory before; without words that differ by more than a few."""
    columns = list(zip(*seen, strict=True))[:count]
    gaps = [functools.reduce(operator.or_, (word ^ column[0] for word in column)) for column in columns]
    return {place: ~gap % (1 << 64) for place, gap in enumerate(gaps) if gap.bit_count() <= _MOST_GAPS}


def _in_used_memory(zeros: Callable[..., Any]) -> Iterator[list[int]]:
    """The words of tensors in memory whose bits were set, or not, before."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    for byte in (0xFF, 0x00):
        for size in range(WORD * 16, WORD * 40, WORD):
            places = [library.malloc(size) for _ in range(4)]
            for place in places:
                ctypes.memset(place, byte, size)
            for place in places:
                library.free(place)
        yield from (peek(tensor._cdata, _WORDS) for tensor in [zeros(4, 6) for _ in range(3)])


def _object_words(tensor: Any) -> int:
    """How many words the object of Python has."""
    return int(type(tensor).__basicsize__) // WORD


def _alike(torch: Any, zeros: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """Tensors that a call need not tell apart, and what else refers to some of them."""
    variable = zeros(4, 6, requires_grad=True)
    with torch.enable_grad():
        computed = variable * 2
    written = zeros(4, 6).add_(1)
    shared, referred = zeros(4, 6), zeros(4, 6)
    alike = [
        zeros(4, 6),
        zeros(9, 6)[3:7],
        zeros(9, 6)[5:9],
        torch.nn.Parameter(zeros(4, 6)),
        zeros(24).view(4, 6),
        torch.from_numpy(np.zeros((4, 6), np.float32)),
        zeros(6, 4).t().contiguous(),
        variable,
        computed,
        written,
        shared,
        referred,
    ]
    return alike, [torch.utils.dlpack.to_dlpack(shared), torch._C._WeakTensorRef(referred), computed.grad_fn]


def _others(torch: Any, zeros: Callable[..., Any]) -> Iterator[list[int]]:
    """The words of tensors that are something else, each in a way of its own."""
    float_of = functools.partial(zeros, 4, 6)
    dtypes = ("float64", "float16", "bfloat16", "int32", "uint8", "bool", "complex64")
    for tensor in (
        *(float_of(dtype=getattr(torch, name)) for name in dtypes),
        *(zeros(shape) for shape in ((6, 4), (24,), (1, 4, 6), (4, 7), (5, 6), (0, 6), ())),
        zeros(6, 4).t(),
        zeros(8, 6)[::2],
        zeros(4, 12)[:, ::2],
        zeros(1, 6).expand(4, 6),
        torch._neg_view(float_of()),
        zeros(4, 6, dtype=torch.complex64).conj(),
        float_of(device="meta"),
        float_of().to_sparse(),
        torch._to_functional_tensor(float_of()),
    ):
        yield peek(tensor._cdata, _WORDS)
    with torch.inference_mode():
        yield peek(float_of()._cdata, _WORDS)
    batched: list[list[int]] = []

    def look(tensor: Any) -> Any:
        batched.append(peek(tensor._cdata, _WORDS))
        return tensor

    torch.func.vmap(look)(zeros(3, 4, 6))
    yield from batched


def _signed(word: int) -> int:
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)
