"""ONNX's element types as torch's, and arrays of them as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx import TensorProto

from pipeline.errors import CaptureError

_TORCH: dict[int, torch.dtype] = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.DOUBLE: torch.float64,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.BOOL: torch.bool,
    TensorProto.INT8: torch.int8,
    TensorProto.INT16: torch.int16,
    TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64,
    TensorProto.UINT8: torch.uint8,
    TensorProto.UINT16: torch.uint16,
    TensorProto.UINT32: torch.uint32,
    TensorProto.UINT64: torch.uint64,
    TensorProto.COMPLEX64: torch.complex64,
    TensorProto.COMPLEX128: torch.complex128,
    TensorProto.FLOAT8E4M3FN: torch.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: torch.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
}

#: Types of four bits, a value a byte.
_IN_BYTES: dict[int, torch.dtype] = {TensorProto.INT4: torch.int8, TensorProto.UINT4: torch.uint8}

#: Bounds of the types of four bits, for casts.
FOUR_BITS: dict[int, tuple[int, int]] = {TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15)}


def torch_type(element_type: int, what: str) -> torch.dtype:
    """torch's type; raises `CaptureError` where it has none, with `what` has the type."""
    found = _TORCH.get(element_type) or _IN_BYTES.get(element_type)
    if found is None:
        name = TensorProto.DataType.Name(element_type).lower()
        raise CaptureError(f"{what}: elements of type {name} are not supported; use a type of numbers that torch has")
    return found


def onnx_type(dtype: torch.dtype) -> int:
    """The inverse of `torch_type`."""
    return next(number for number, known in _TORCH.items() if known == dtype)


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """An array as ONNX's helpers give it, those of types that NumPy lacks in ml_dtypes' types."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    name = array.dtype.name
    if name in ("int4", "uint4"):
        return torch.from_numpy(array.astype(name.replace("4", "8")))
    if array.dtype.kind in "biufc":
        return torch.from_numpy(array.copy())
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise CaptureError(f"a constant: elements of type {name} are not supported; use a type of numbers")
    raw = torch.from_numpy(array.view(f"uint{8 * array.dtype.itemsize}").copy())
    return raw.view(dtype)


def is_float(value: Any) -> bool:
    """Whether a tensor is one of floating point numbers."""
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point
