"""torch's tensors, behind the interface of `ArrayLibrary`; torch is imported when the first library is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pipeline.runtime.call.array_library import OVERLAP, overlaps_itself, raw_bytes
from pipeline.runtime.interface.signature import DTYPE_BYTES


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
        return OVERLAP if overlaps_itself(array.shape, array.stride()) else None

    def mark_written(self, array: Any) -> None:
        """Has autograd know that what it may have saved of the tensor is gone."""
        self._torch.autograd.graph.increment_version(array)

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> Any:
        """A tensor over memory that `memory` keeps as it is for as long as it lives."""
        raw = raw_bytes(memory, address, math.prod(shape) * DTYPE_BYTES[dtype])
        if not len(raw):
            return self.empty(shape, dtype)
        line = self._torch.frombuffer(raw, dtype=self._dtypes[dtype])
        return line if len(shape) == 1 else line.resize_(shape)  # a view would not be a leaf

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
