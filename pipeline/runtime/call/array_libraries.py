"""Tensors of torch and arrays of NumPy behind one small interface, with neither imported before it is needed.

A library knows how to look at its tensors, make new ones and copy; the executable asks the one that its arguments
belong to. Dtypes are the names of `pipeline.runtime.interface.signature.DTYPE_BYTES`.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from pipeline.runtime.call import generator
from pipeline.runtime.interface.signature import DTYPE_BYTES, PAIRS_OF

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]

#: [first, last) of the bytes that something lies in, with a name for messages.
Extent = tuple[str, int, int]


class ArrayLibrary(Protocol):
    """What the executable needs to know of a kind of tensor."""

    name: str

    def dtype(self, array: Any) -> str:
        """The dtype's name."""
        ...

    def shape(self, array: Any) -> tuple[int, ...]:
        """The sizes."""
        ...

    def device(self, array: Any) -> str:
        """The device's name, `cpu` for what code can read."""
        ...

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        ...

    def is_row_major(self, array: Any) -> bool:
        """Whether code can read and write the array where it is."""
        ...

    def contiguous(self, array: Any) -> Any:
        """The array itself if it is row-major, else a copy that is."""
        ...

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """A new array with undefined elements."""
        ...

    def copy(self, target: Any, source: Any) -> None:
        """Copies elements."""
        ...

    def extent(self, array: Any) -> tuple[int, int]:
        """[first, last) of the bytes that the elements lie in."""
        ...

    def obstacle(self, array: Any) -> str | None:
        """Why nothing can be written to the array; None if it can."""
        ...

    def mark_written(self, array: Any) -> None:
        """Tells the library that code has written to the array."""
        ...

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> Any:
        """An array over memory that `memory` keeps as it is for as long as it lives."""
        ...

    def permuted(self, array: Any, permutation: Sequence[int]) -> Any:
        """A view with its dims in another order."""
        ...

    def relabelled(self, array: Any, permutation: Sequence[int]) -> Any:
        """The same of an array that nothing else holds, which is no view where the library makes a difference."""
        ...

    def seed(self) -> int:
        """A signed number of 64 random bits from the generator of the library's random functions, which advances."""
        ...


class Allocation:
    """Memory that compiled code allocated; freed when the last array over it goes."""

    def __init__(self, address: int):
        self._address = address

    def __del__(self, free: Callable[[int], None] = _libc.free) -> None:  # as Python ends, modules are empty
        free(self._address)


_OVERLAP = "has elements that share memory"


def _overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory, as those of an expanded tensor do."""
    return any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True))


class NumpyArrays:
    """NumPy's arrays; bfloat16 is ml_dtypes'."""

    name = "numpy"
    dtypes = {name: np.dtype(name if name != "bfloat16" else ml_dtypes.bfloat16) for name in DTYPE_BYTES}

    def dtype(self, array: np.ndarray) -> str:
        """The dtype's name."""
        return str(array.dtype)

    def shape(self, array: np.ndarray) -> tuple[int, ...]:
        """The sizes."""
        return array.shape

    def device(self, array: np.ndarray) -> str:
        """Always `cpu`."""
        return "cpu"

    def pointer(self, array: np.ndarray) -> int:
        """The address of the first element."""
        return array.ctypes.data

    def is_row_major(self, array: np.ndarray) -> bool:
        """Whether code can read and write the array where it is."""
        return array.flags.c_contiguous and array.flags.aligned

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        """The array itself if it is row-major, else a copy that is."""
        return array if self.is_row_major(array) else array.copy("C")

    def empty(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """A new array with undefined elements."""
        return np.empty(shape, self.dtypes[dtype])

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copies elements."""
        np.copyto(target, source)

    def extent(self, array: np.ndarray) -> tuple[int, int]:
        """[first, last) of the bytes that the array's elements lie in."""
        return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)

    def obstacle(self, array: np.ndarray) -> str | None:
        """Why nothing can be written to the array; None if it can."""
        if not array.flags.writeable:
            return "is read-only"
        return _OVERLAP if _overlaps_itself(array.shape, array.strides) else None

    def mark_written(self, array: np.ndarray) -> None:
        """NumPy does not keep track of it."""

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        """An array over memory that `memory` keeps as it is for as long as it lives."""
        kind = self.dtypes[dtype]
        raw = _raw_bytes(memory, address, math.prod(shape) * kind.itemsize)
        return np.frombuffer(raw, np.uint8).view(kind).reshape(shape) if len(raw) else self.empty(shape, dtype)

    def permuted(self, array: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
        """A view with its dims in another order."""
        return array.transpose(permutation)

    def relabelled(self, array: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
        """The same."""
        return array.transpose(permutation)

    def seed(self) -> int:
        """From this package's own generator: see `pipeline.manual_seed`."""
        return generator.draw()


class TorchTensors:
    """torch's tensors."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._dtypes = {name: getattr(torch, name) for name in DTYPE_BYTES}
        self._names = {dtype: name for name, dtype in self._dtypes.items()}

    def dtype(self, array: Any) -> str:
        """The dtype's name."""
        return self._names.get(array.dtype) or str(array.dtype).removeprefix("torch.")

    def shape(self, array: Any) -> tuple[int, ...]:
        """The sizes."""
        return tuple(array.shape)

    def device(self, array: Any) -> str:
        """The device's name; of a tensor that has no elements in memory, such as a sparse one, what it is instead."""
        if array.layout != self._torch.strided:
            return str(array.layout)
        return self._without_memory(array) or str(array.device)

    def _without_memory(self, array: Any) -> str | None:
        """What a dense tensor is whose elements do not lie in one piece of memory: nested, wrapped, fake, freed."""
        torch = self._torch
        if array.is_nested:
            return "a nested tensor"
        if torch._C._functorch.is_functorch_wrapped_tensor(array) or torch._is_functional_tensor(array):
            return "one that torch.func or torch.vmap stands in for: compile the function that they give"
        if type(array).__torch_dispatch__ != torch.Tensor.__torch_dispatch__:
            return f"a {type(array).__name__}, which has no memory of its own"
        if array.device.type == "cpu" and array.numel() and not array.untyped_storage().nbytes():
            return "a tensor whose memory was freed"
        return None

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        return array.data_ptr()

    def is_row_major(self, array: Any) -> bool:
        """Whether code can read and write the tensor where it is."""
        return array.is_contiguous() and not array.is_neg() and not array.is_conj()

    def contiguous(self, array: Any) -> Any:
        """The tensor itself if it is row-major, else a copy that is."""
        return array.detach().resolve_conj().resolve_neg().contiguous()

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """A new tensor with undefined elements."""
        return self._torch.empty(shape, dtype=self._dtypes[dtype])

    def copy(self, target: Any, source: Any) -> None:
        """Copies elements."""
        with self._torch.no_grad():
            target.copy_(source)

    def extent(self, array: Any) -> tuple[int, int]:
        """[first, last) of the bytes that the tensor's elements lie in."""
        if array.numel() == 0:
            return 0, 0
        reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.stride(), strict=True))
        first = array.data_ptr()
        return first, first + (reach + 1) * array.element_size()

    def obstacle(self, array: Any) -> str | None:
        """Why nothing can be written to the tensor; None if it can."""
        return _OVERLAP if _overlaps_itself(array.shape, array.stride()) else None

    def mark_written(self, array: Any) -> None:
        """Has autograd know that what it may have saved of the tensor is gone."""
        self._torch.autograd.graph.increment_version(array)

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> Any:
        """A tensor over memory that `memory` keeps as it is for as long as it lives."""
        raw = _raw_bytes(memory, address, math.prod(shape) * DTYPE_BYTES[dtype])
        if not len(raw):
            return self.empty(shape, dtype)
        return self._torch.frombuffer(raw, dtype=self._dtypes[dtype]).resize_(shape)  # a view would not be a leaf

    def permuted(self, array: Any, permutation: Sequence[int]) -> Any:
        """A view with its dims in another order."""
        return array.permute(permutation)

    def relabelled(self, array: Any, permutation: Sequence[int]) -> Any:
        """The tensor itself: autograd would not let a view that a function returns be written to."""
        shape, strides = array.shape, array.stride()
        return array.as_strided_([shape[dim] for dim in permutation], [strides[dim] for dim in permutation])

    def seed(self) -> int:
        """From torch's default generator on the CPU, which `torch.manual_seed` sets."""
        return int(self._torch.empty((), dtype=self._torch.int64).random_(-(2**63), None))


def _raw_bytes(memory: Any, address: int, size: int) -> Any:
    """A buffer over memory that `memory` owns."""
    raw: Any = (ctypes.c_char * size).from_address(address or 1)
    raw._memory = memory  # keeps it alive
    return raw


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
    raw = _raw_bytes(contiguous, owner.pointer(contiguous), math.prod(shape) * kind.itemsize)
    return np.frombuffer(raw, np.uint8).view(kind).reshape(shape) if len(raw) else np.empty(shape, kind)


def as_pairs(array: np.ndarray) -> np.ndarray:
    """A row-major array of complex numbers as pairs of real ones, [.., 2], in the same memory; others as is."""
    if not np.iscomplexobj(array):
        return array
    return array.reshape(*array.shape, 1).view(PAIRS_OF[str(array.dtype)])


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
