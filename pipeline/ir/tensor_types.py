"""MLIR's tensor types as the runtime knows them."""

from __future__ import annotations

from pipeline.errors import PipelineError
from pipeline.mlir import ir
from pipeline.runtime.interface.signature import TensorType

#: MLIR's element types. Integers have no sign in MLIR; a signature that knows better (uint8) says so itself.
_DTYPES = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}


def tensor_type(kind: ir.Type, symbol: str = "d") -> TensorType:
    """An MLIR tensor type as the runtime knows it; unknown sizes are called `symbol` and their dimension."""
    element = str(kind.element_type) if isinstance(kind, ir.RankedTensorType) else ""
    if element not in _DTYPES:
        raise PipelineError(f"{kind} is not supported; expected a ranked tensor of {', '.join(_DTYPES)}")
    kind = ir.RankedTensorType(kind)
    sizes = [f"{symbol}{dim}" if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
    return TensorType(_DTYPES[element], tuple(sizes))
