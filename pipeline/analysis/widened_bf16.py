"""Tensors in f32 whose elements had 16 bits: products of them are dot products of those, where processors have such."""

from __future__ import annotations

from pipeline.analysis.zero_insertion import puts_among_zeros
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import defining_op, ir, terminator


def was_bf16(value: ir.Value) -> bool:
    """Whether a tensor in f32 has elements that were bf16, moved at most."""
    return narrow_type(value) is not None


def narrow_type(value: ir.Value, f16: bool = False) -> ir.Type | None:
    """bf16 where the elements of a tensor in f32 were bf16, moved at most; with `f16` likewise f16; None for others."""
    producer = defining_op(value)
    if producer is None:
        return None
    if producer.name in TENSOR_VIEWS or producer.name == "linalg.transpose" or puts_among_zeros(producer):
        return narrow_type(producer.operands[0], f16)
    if producer.name == "tensor.pad":
        return narrow_type(producer.operands[0], f16) if padding_of(producer) == 0 else None
    source = widened(producer, f16)
    return None if source is None else ir.RankedTensorType(source.type).element_type


def widened(op: ir.Operation, f16: bool = False) -> ir.Value | None:
    """x of an elementwise extf(x: bf16), with `f16` of extf(x: f16), too; None for any other op."""
    view = structured(op)
    if view is None or op.name != "linalg.generic" or view.inputs != 1 or not view.is_elementwise:
        return None
    plain = len(view.body_ops) == 1 and view.body_ops[0].name == "arith.extf" and view.maps[0] == view.maps[1]
    source, kinds = op.operands[0], (ir.BF16Type, ir.F16Type) if f16 else (ir.BF16Type,)
    is_narrow = isinstance(source.type, ir.RankedTensorType) and isinstance(source.type.element_type, kinds)
    return source if plain and is_narrow else None


def padding_of(pad: ir.Operation) -> float | None:
    """The number that a tensor.pad adds; None if it is not known."""
    block = pad.regions[0].blocks[0]
    number = defining_op(terminator(block).operands[0])
    if number is None or number.name != "arith.constant":
        return None
    return ir.FloatAttr(number.attributes["value"]).value
