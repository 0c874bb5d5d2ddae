"""Products of matrices as a plan hands them to a library: sizes, strides, element types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Matrix:
    """A stack of matrices in a buffer.

    Attributes:
        argument: which of the step's arguments is the buffer.
        offset: of the first element, in elements, like the strides.
        rows, columns, batch: how far apart neighbours in a column, in a row and in the stack are.
    """

    argument: int
    offset: int
    rows: int
    columns: int
    batch: int


@dataclass(frozen=True)
class Gemm:
    """`out = left @ right`, for each matrix of a stack.

    Attributes:
        rows, columns, sum, batch: `left` is [batch, rows, sum], `right` [batch, sum, columns].
        left, right, out: where they are.
        element, out_element: dtypes of the operands and of the result.
        tf32: whether float32 may be multiplied with 10 bits of mantissa.
    """

    rows: int
    columns: int
    sum: int
    batch: int
    left: Matrix
    right: Matrix
    out: Matrix
    element: str
    out_element: str
    tf32: bool

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Gemm:
        """The inverse of `to_json`."""
        return Gemm(**{**data, **{name: Matrix(**data[name]) for name in ("left", "right", "out")}})
