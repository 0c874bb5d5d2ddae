"""Constants, and numbers of one type as numbers of another."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import Frame, UnknownOp
from pipeline.debug.interpreter.handlers import interprets
from pipeline.debug.interpreter.integers import as_integer
from pipeline.debug.interpreter.number_types import BF16, F16, is_bool, own_dtype, unsigned
from pipeline.mlir import ir


@interprets("arith.constant")
def _constant(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        return [frame.precision.held(_elements(frame, op, ir.RankedTensorType(kind)), kind)]
    number = attribute.value if isinstance(attribute, (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr)) else None
    if number is None:
        raise UnknownOp(f"the interpreter does not know the constant {attribute}")
    return [np.asarray(number).astype(frame.precision.dtype(kind))]


_DENSE = (ir.DenseIntElementsAttr, ir.DenseFPElementsAttr)


def _elements(frame: Frame, op: ir.Operation, kind: ir.RankedTensorType) -> np.ndarray:
    """The elements of a dense constant, in their own dtype."""
    dtype, shape, attribute = own_dtype(kind), tuple(kind.shape), op.attributes["value"]
    resource = re.match(r"dense_resource<([\w.]+)>", str(attribute)) if not isinstance(attribute, _DENSE) else None
    if resource:
        return np.frombuffer(frame.interpretation.resources(op)[resource[1]], dtype).reshape(shape)
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        return np.full(shape, np.asarray(dense.get_splat_value().value).astype(dtype))
    if dtype in (BF16, F16):
        return np.frombuffer(bytes(memoryview(dense).cast("B")), dtype).reshape(shape)
    return np.array(dense).astype(dtype).reshape(shape)


@interprets("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast", "arith.trunci", "arith.extsi")
def _convert(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    dtype = frame.precision.dtype(op.results[0].type)
    if is_bool(dtype):
        return [(operands[0] & 1).astype(bool)]
    return [as_integer(operands[0]).astype(dtype)]


@interprets("arith.extui", "arith.uitofp", "arith.index_castui")
def _convert_bits(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [unsigned(operands[0]).astype(frame.precision.dtype(op.results[0].type))]


@interprets("arith.fptosi", "arith.fptoui")
def _truncate(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    """Towards zero; what does not fit is the nearest that does, and NaN is 0, where MLIR says nothing."""
    dtype, number = frame.precision.dtype(op.results[0].type), operands[0].astype(np.float64)
    held = np.dtype(np.uint8) if is_bool(dtype) else np.dtype(f"u{dtype}") if op.name == "arith.fptoui" else dtype
    low, high = (0, 1) if is_bool(dtype) else (np.iinfo(held).min, np.iinfo(held).max)
    whole = np.trunc(np.nan_to_num(number, nan=0.0))
    inside = np.clip(whole, float(low), np.nextafter(float(high), 0) if held.itemsize == 8 else float(high))
    fitting = np.where(whole >= float(high), np.asarray(high, held), inside.astype(held))
    return [np.asarray(fitting).astype(held).view(dtype)]


@interprets("arith.bitcast", "tensor.bitcast")
def _bitcast(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    before, after = op.operands[0].type, op.results[0].type
    bits = np.ascontiguousarray(operands[0].astype(own_dtype(before)))
    return [frame.precision.held(bits.view(own_dtype(after)).reshape(operands[0].shape), after)]
