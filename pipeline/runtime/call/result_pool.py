"""The memory of large results: what no tensor holds any more takes the next call's.

Fresh memory costs page faults, which for results of elementwise models take more time than the arithmetic. So the
memory of a result that has died is kept for the next call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.interface.aligned_memory import byte_size
from pipeline.runtime.interface.recycled_memory import RecycledMemory
from pipeline.runtime.interface.signature import TensorType

#: Smaller results, in bytes: `malloc` has memory for them that was used before.
SMALL = 1 << 18


class ResultMemory(RecycledMemory):
    """Hands out tensors for results.

    What is kept while no result lives is never more than the results of one call take.
    """

    def tensor(self, library: ArrayLibrary, shape: Sequence[int], dtype: str) -> Any:
        """A row-major tensor with undefined elements, which nothing else that is alive shares memory with."""
        if is_small(shape, dtype):
            return library.empty(shape, dtype)
        lease = self.lease(_bytes(shape, dtype))
        return library.adopt(lease, lease.address, shape, dtype)


def is_small(shape: Sequence[int], dtype: str) -> bool:
    """Whether a result gets its memory from its library."""
    return _bytes(shape, dtype) < SMALL


def _bytes(shape: Sequence[int], dtype: str) -> int:
    return byte_size(TensorType(dtype, tuple(shape)))
