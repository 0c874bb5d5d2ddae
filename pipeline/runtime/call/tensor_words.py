"""Which words of a tensor's structure say what it is: dtype, sizes, strides, layout, device and dispatch keys.

None of it is documented, so that it is found by looking at tensors: words that are the same in all that are of one
kind, however they came to be, and not in one of another kind. `tensor_words` is None where that fails, as it may with
another torch; calls go the way of Python then.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.runtime.weights.torch_layout import WORD, offsets_of, one_in_common, peek, torch_layout

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
    """

    cdata: int
    storage: int
    start: int
    data: int
    compared: tuple[int, ...]

    def of(self, tensor: Any) -> list[int]:
        """The words of a tensor that are compared."""
        words = peek(tensor._cdata, _WORDS)
        return [_signed(words[offset // WORD]) for offset in self.compared]


@functools.cache
def tensor_words() -> TensorWords | None:
    """Those of this process's torch; None if they cannot be told."""
    torch, layout = sys.modules["torch"], torch_layout()
    if layout is None or sys.implementation.name != "cpython" or bytes.__basicsize__ != 33:
        return None
    with torch.inference_mode(False), torch.no_grad():
        zeros = functools.partial(torch.zeros, dtype=torch.float32, device="cpu")  # whatever the usual ones are
        alike, held = _alike(torch, zeros)
        seen = [peek(tensor._cdata, _WORDS) for tensor in alike]
        same = [place for place, column in enumerate(zip(*seen, strict=True)) if len(set(column)) == 1]
        telling = [[place for place in same if words[place] != seen[0][place]] for words in _others(torch, zeros)]
        if not all(telling):
            return None
        compared = [place for place in same if place <= max(map(max, telling))]  # behind them is other memory
        cdata = one_in_common(offsets_of(id(tensor), _object_words(tensor), tensor._cdata) for tensor in alike)
        rows = [zeros(9, 6)[row : row + 4] for row in (3, 5)]
        start = one_in_common(offsets_of(row._cdata, _WORDS, row.storage_offset()) for row in rows)
    del held
    if cdata is None or start is None or start // WORD in compared:
        return None
    return TensorWords(cdata, layout.storage, start, layout.data, tuple(place * WORD for place in compared))


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
    return word - (1 << 64) if word >> 63 else word
