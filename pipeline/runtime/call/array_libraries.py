"""Tensors of torch and arrays of NumPy: which library one belongs to, and what is done with any of them.

A library knows how to look at its tensors, make new ones and copy; the executable asks the one that its arguments
belong to. Dtypes are the names of `pipeline.runtime.interface.signature.DTYPE_BYTES`.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.runtime.call.array_library import ArrayLibrary, raw_bytes
from pipeline.runtime.call.numpy_arrays import NumpyArrays
from pipeline.runtime.call.torch_tensors import TorchTensors
from pipeline.runtime.interface.signature import PAIRS_OF
from pipeline.runtime.interface.small_floats import FLOAT8

#: [first, last) of the bytes that something lies in, with a name for messages.
Extent = tuple[str, int, int]

_numpy = NumpyArrays()
_torch: TorchTensors | None = None


def library_of(value: Any) -> ArrayLibrary | None:
    """The library that `value` is a tensor of; None if it is no tensor."""
    if isinstance(value, np.ndarray):
        return _numpy
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return torch_library()
    return None


def shared(value: Any) -> Any:
    """A tensor of another library that has DLPack, such as CuPy or JAX, as one of torch over the same memory.

    Of NumPy where torch isn't loaded; anything else as it is. Raises `BufferError` where that cannot be.
    """
    if library_of(value) is not None or not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
        return value
    torch = sys.modules.get("torch")
    try:
        return np.from_dlpack(value) if torch is None else torch.from_dlpack(value)
    except Exception as error:  # torch and NumPy raise many types here
        raise BufferError(f"{type(value).__name__} cannot be shared by DLPack: {error}") from error


def torch_library() -> ArrayLibrary:
    """The library for torch's tensors; imports torch."""
    global _torch
    if _torch is None:
        _torch = TorchTensors()
    return _torch


def numpy_library() -> ArrayLibrary:
    """The library for NumPy's arrays."""
    return _numpy


def as_numpy(value: Any) -> np.ndarray:
    """A row-major tensor of any library as an array over the same memory; one that isn't row-major is copied."""
    owner = _owner(value)
    contiguous = owner.contiguous(value)
    shape, kind = owner.shape(contiguous), NumpyArrays.dtypes[owner.dtype(contiguous)]
    raw = raw_bytes(contiguous, owner.pointer(contiguous), math.prod(shape) * kind.itemsize)
    return np.frombuffer(raw, np.uint8).view(kind).reshape(shape) if len(raw) else np.empty(shape, kind)


def as_pairs(array: np.ndarray) -> np.ndarray:
    """A row-major array of complex numbers as pairs of real ones, [.., 2], in the same memory; others as is."""
    if not np.iscomplexobj(array):
        return array
    return array.reshape(*array.shape, 1).view(PAIRS_OF[str(array.dtype)])


def as_seen_by_code(array: np.ndarray) -> np.ndarray:
    """A row-major array in the same memory: complex numbers as pairs, floats of 8 bits as bytes, others as is."""
    return array.view(np.uint8) if array.dtype in FLOAT8 else as_pairs(array)


def from_pairs(array: np.ndarray, dtype: str | None) -> np.ndarray:
    """The inverse of `as_pairs`, where `dtype` is a complex one; any other array as it is."""
    return array.view(dtype).reshape(array.shape[:-1]) if dtype in PAIRS_OF else array


def dtype_and_shape(tensor: Any) -> tuple[str, tuple[int, ...]]:
    """Of a tensor of any library."""
    owner = _owner(tensor)
    return owner.dtype(tensor), owner.shape(tensor)


def place_of(tensor: Any) -> str:
    """The device of a tensor of any library, or what it is instead of dense, see `ArrayLibrary.device`."""
    return _owner(tensor).device(tensor)


def pointer(tensor: Any) -> int:
    """The address of the first element of a tensor of any library."""
    return _owner(tensor).pointer(tensor)


def extent(name: str, tensor: Any) -> Extent:
    """Where the elements of a tensor of any library lie."""
    return (name, *_owner(tensor).extent(tensor))


def overlap(one: Extent, other: Extent) -> bool:
    """Whether the two share memory."""
    return one[1] < other[2] and other[1] < one[2]


def mark_written(tensor: Any) -> None:
    """Tells the library of a tensor that code has written to it."""
    _owner(tensor).mark_written(tensor)


def permuted(tensor: Any, permutation: Sequence[int]) -> Any:
    """A view with the dims in another order."""
    return _owner(tensor).permuted(tensor, permutation)


def relabelled(tensor: Any, permutation: Sequence[int]) -> Any:
    """A tensor that nothing else holds, with its dims in another order."""
    return _owner(tensor).relabelled(tensor, permutation)


def copy(target: Any, source: Any) -> None:
    """Copies elements; the tensors may be of different libraries."""
    owner = _owner(target)
    owner.copy(target, converted(source, owner))


def converted(source: Any, owner: ArrayLibrary) -> Any:
    """A tensor of `owner`'s library with the elements of another's; one of its own, and what is no tensor, as it is."""
    other = library_of(source)
    if other is None or other is owner:
        return source
    fresh = owner.empty(other.shape(source), other.dtype(source))
    contiguous = other.contiguous(source)
    first, last = other.extent(contiguous)
    ctypes.memmove(owner.pointer(fresh), first, last - first)
    return fresh


def _owner(tensor: Any) -> ArrayLibrary:
    owner = library_of(tensor)
    assert owner is not None
    return owner
