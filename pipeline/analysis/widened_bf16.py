"""Tensors in f32 whose elements were bf16: products of them are dot products of bf16 where a processor has those."""

from __future__ import annotations

from pipeline.analysis.zero_insertion import puts_among_zeros
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import defining_op, ir, terminator


def was_bf16(value: ir.Value) -> bool:
    """Whether a tensor in f32 has elements that were bf16, moved at most."""
    producer = defining_op(value)
    if producer is None:
        return False
    if producer.name in TENSOR_VIEWS or producer.name == "linalg.transpose":
        return was_bf16(producer.operands[0])
    if producer.name == "tensor.pad":
        return padding_of(producer) == 0 and was_bf16(producer.operands[0])
    if puts_among_zeros(producer):
        return was_bf16(producer.operands[0])
    return widened(producer) is not None


def widened(op: ir.Operation) -> ir.Value | None:
    """x of an elementwise extf(x: bf16); None for any other op."""
    view = structured(op)
    if view is None or op.name != "linalg.generic" or view.inputs != 1 or not view.is_elementwise:
        return None
    plain = len(view.body_ops) == 1 and view.body_ops[0].name == "arith.extf" and view.maps[0] == view.maps[1]
    source = op.operands[0]
    is_small = isinstance(source.type, ir.RankedTensorType) and isinstance(source.type.element_type, ir.BF16Type)
    return source if plain and is_small else None


def padding_of(pad: ir.Operation) -> float | None:
    """The number that a tensor.pad adds; None if it is not known."""
    block = pad.regions[0].blocks[0]
    number = defining_op(terminator(block).operands[0])
    if number is None or number.name != "arith.constant":
        return None
    return ir.FloatAttr(number.attributes["value"]).value
