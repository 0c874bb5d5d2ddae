"""Concatenations: tensors that a chain of tensor.insert_slice makes of parts, along one dimension."""

from __future__ import annotations

from math import prod

from pipeline.ir.element_types import element_bytes
from pipeline.ir.iteration_space import IterationSpace
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import defining_op, ir

#: What puts a part into its place.
INSERT = "tensor.insert_slice"


def insertion(op: ir.Operation) -> LinalgOp | None:
    """The loops over the result of a tensor.insert_slice of known place, of full rank and without strides.

    Where the inserted part is all of a dimension, a loop counts that of both; where not, it is at an offset.
    """
    if op.name != INSERT or len(op.operands) != 2:
        return None
    kind, part = ir.RankedTensorType(op.results[0].type), ir.RankedTensorType(op.operands[0].type)
    offsets, sizes, strides = (_numbers(op, name) for name in ("static_offsets", "static_sizes", "static_strides"))
    if not kind.has_static_shape or list(part.shape) != sizes or any(stride != 1 for stride in strides):
        return None
    identity = ir.AffineMap.get_identity(kind.rank)
    source = [
        loop if size == whole else loop - offset
        for loop, offset, size, whole in zip(identity.results, offsets, sizes, kind.shape, strict=True)
    ]
    maps = (ir.AffineMap.get(kind.rank, 0, source), identity)
    return LinalgOp(op, IterationSpace(maps, (False,) * kind.rank))


def parts_of(last: ir.Operation) -> list[ir.Operation] | None:
    """The ops that insert the parts of a concatenation, given the last one; None if it is none.

    Parts lie one behind the other along one dimension of a new tensor, and all of it is written. What is there in
    between is read by the next op alone.
    """
    chain = [last]
    while (previous := defining_op(chain[0].operands[1])) is not None and previous.name == INSERT:
        if len(list(previous.results[0].uses)) != 1:
            return None
        chain.insert(0, previous)
    if previous is None or previous.name != "tensor.empty" or any(insertion(op) is None for op in chain):
        return None
    shape = list(ir.RankedTensorType(last.results[0].type).shape)
    places = [list(zip(_numbers(op, "static_offsets"), _numbers(op, "static_sizes"), strict=True)) for op in chain]
    cut = [dim for dim, size in enumerate(shape) if any(place[dim] != (0, size) for place in places)]
    if len(cut) != 1:
        return None
    end = 0
    for offset, size in sorted(place[cut[0]] for place in places):
        if offset != end:
            return None
        end += size
    return chain if end == shape[cut[0]] else None


def row_bytes(last: ir.Operation) -> int:
    """What a concatenation has at one place of the dimensions in front of the one that its parts lie along."""
    return prod(ir.RankedTensorType(last.results[0].type).shape[cut_dim(last) :]) * element_bytes(last.results[0])


def cut_dim(last: ir.Operation) -> int:
    """The dimension that the parts of a concatenation lie along."""
    whole, part = (ir.RankedTensorType(value.type).shape for value in (last.results[0], last.operands[0]))
    return next(dim for dim, sizes in enumerate(zip(whole, part, strict=True)) if sizes[0] != sizes[1])


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))
