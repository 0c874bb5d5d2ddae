"""Values that are known while a graph is traced: constants, and sizes, which may be symbols.

ONNX computes sizes by tensors: Shape, Gather, Concat, Reshape. What is computed of known values is computed here, with
Python's numbers and torch's symbols, so that sizes stay what torch can prove things about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

#: Known values of more elements are computed with as tensors.
MOST_ELEMENTS = 512


@dataclass(frozen=True)
class Known:
    """An array of Python's numbers and torch's symbols.

    Attributes:
        values: an array of objects.
        dtype: what it is as a tensor.
        weight: the same as a tensor of the module's, where it is one.
    """

    values: np.ndarray
    dtype: torch.dtype
    weight: torch.Tensor | None = None

    @staticmethod
    def of(values: Any, dtype: torch.dtype = torch.int64) -> Known:
        """A number, or nested lists of numbers."""
        return Known(as_objects(values), dtype)

    def shaped(self, shape: Sequence[int]) -> Known:
        """The same elements in another shape."""
        return Known(self.values.reshape(tuple(shape)), self.dtype)

    def numbers(self) -> list[Any]:
        """The elements, in order."""
        return list(self.values.reshape(-1))

    def tensor(self) -> torch.Tensor:
        """As a tensor; symbols become elements of it."""
        if self.weight is not None:
            return self.weight
        numbers = self.numbers()
        if not any(isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)) for number in numbers):
            return torch.tensor(self.values.tolist(), dtype=self.dtype).reshape(self.values.shape)
        elements = [torch.scalar_tensor(number, dtype=self.dtype) for number in numbers]
        return torch.stack(elements).reshape(self.values.shape)


def as_objects(values: Any) -> np.ndarray:
    """Nested lists of numbers as an array of objects."""
    if isinstance(values, np.ndarray):
        return values.astype(object)
    if not isinstance(values, (list, tuple)):
        single = np.empty((), dtype=object)
        single[()] = values
        return single
    if any(isinstance(value, (list, tuple)) for value in values):
        return np.stack([as_objects(value) for value in values])
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def sizes_of(tensor: torch.Tensor) -> Known:
    """The shape of a tensor."""
    return Known.of(list(tensor.shape))


def as_tensor_value(value: Any) -> Any:
    """A known value as a tensor, lists likewise; anything else as it is."""
    if isinstance(value, Known):
        return value.tensor()
    return [as_tensor_value(item) for item in value] if isinstance(value, list) else value


def all_known(values: Sequence[Any]) -> bool:
    """Whether all values that are given are known, and so few that they are computed with here."""
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(value, Known) and value.values.size <= MOST_ELEMENTS for value in given)
