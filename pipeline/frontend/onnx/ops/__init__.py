"""ONNX's ops on torch's functions, by subject; `table` has them by name."""

from pipeline.frontend.onnx.ops import (
    control_flow,
    convolutions,
    elementwise,
    images,
    indexing,
    microsoft,
    movement,
    normalization,
    pooling,
    products,
    quantized,
    random,
    recurrent,
    reductions,
    resize,
    sequences,
    signal,
    sizes,
)
from pipeline.frontend.onnx.ops.table import ON_KNOWN, OPS

__all__ = ["ON_KNOWN", "OPS"]
