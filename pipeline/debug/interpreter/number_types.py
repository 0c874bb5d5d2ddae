"""How numbers of IR are held in arrays: the dtype of each element type, and rounding to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from pipeline.errors import PipelineError
from pipeline.mlir import ir

BF16, F16, F32, F64 = (np.dtype(kind) for kind in (ml_dtypes.bfloat16, np.float16, np.float32, np.float64))

_OWN = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "bf16": BF16,
    "f16": F16,
    "f32": F32,
    "f64": F64,
}


@dataclass(frozen=True)
class Precision:
    """In which dtypes floats are held: `exact`, those that the IR says; else float64, and roundings are left out.

    Two programs that are equal for real numbers differ by roundings of float64 then, whatever their order of sums.
    """

    exact: bool

    def dtype(self, kind: ir.Type) -> np.dtype:
        """The dtype that numbers of a type, or the elements of a tensor type, are held in."""
        name = element_name(kind)
        own = _OWN.get(name)
        if own is None:
            raise PipelineError(f"the interpreter has no numbers of type {name}")
        return F64 if not self.exact and is_float(own) else own

    def held(self, array: Any, kind: ir.Type) -> np.ndarray:
        """Numbers that come from outside as they are held for a type."""
        return np.asarray(array).astype(self.dtype(kind))


def own_dtype(kind: ir.Type) -> np.dtype:
    """The dtype that a type has in memory."""
    return Precision(exact=True).dtype(kind)


def element_name(kind: ir.Type) -> str:
    """The name of a type, or of the element type of a tensor or buffer."""
    return str(kind.element_type if isinstance(kind, ir.ShapedType) else kind)


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype has floats."""
    return dtype == BF16 or dtype.kind == "f"


def is_bool(dtype: np.dtype) -> bool:
    """Whether a dtype has bools."""
    return dtype.kind == "b"


def computed(dtype: np.dtype) -> np.dtype:
    """The dtype that ops on a dtype compute in before they round."""
    return F32 if dtype in (BF16, F16) else dtype


def unsigned(array: np.ndarray) -> np.ndarray:
    """The bits of integers as numbers without sign."""
    return array if is_bool(array.dtype) else array.view(f"u{array.dtype}")
