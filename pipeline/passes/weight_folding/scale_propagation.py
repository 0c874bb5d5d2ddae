"""Through which ops an affine of data passes, and what it is on their other side: reshapes, padding, slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.analysis.channel_vectors import Sliced, Vector, merge_dims, split_dims
from pipeline.analysis.scale_shift import Affine
from pipeline.ir.matchers import is_zero
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import ir


class NotScalableError(Exception):
    """Why an affine cannot go any further."""


def or_refuse(vector: Vector | None) -> Vector:
    """The vector; raises `NotScalableError` if there is none."""
    if vector is None:
        raise NotScalableError("the factors run along dims that cannot be told apart at this place")
    return vector


def each(affine: Affine, change: Callable[[Vector], Vector | None]) -> Affine:
    """The affine with each of its vectors changed; refused where one cannot be."""
    changed = affine.each(change)
    if changed is None:
        raise NotScalableError("the factors run along dims that cannot be told apart at this place")
    return changed


def slice_vector(vector: Vector, dim: int, offset: int, size: int) -> Vector | None:
    """The part of the vector for a slice of the data along `dim`; None for a size that is unknown or 1."""
    if dim not in vector.dims:
        return vector
    axis = vector.dims.index(dim)
    if size < 0:
        return None
    shape = (*vector.shape[:axis], size, *vector.shape[axis + 1 :])
    if size == 1:
        return None
    return Sliced(vector.dims, shape, vector, axis, offset)


def _shape(value: ir.Value) -> Sequence[int]:
    return ir.RankedTensorType(value.type).shape


def _split(op: ir.Operation, affine: Affine, finer: ir.Value) -> Affine:
    return each(affine, lambda vector: split_dims(vector, reassociation(op), _shape(finer)))


def _merge(op: ir.Operation, affine: Affine, finer: ir.Value) -> Affine:
    return each(affine, lambda vector: merge_dims(vector, reassociation(op), _shape(finer)))


def _through_padding(op: ir.Operation, affine: Affine) -> Affine:
    """pad(x) * s -> pad(x * s), if it pads with zeros, in dims that s does not run along."""
    if affine.shift is not None:
        raise NotScalableError("its shift would not reach the padding")
    yielded = op.regions[0].blocks[0].operations[0].operation
    if yielded.name != "tensor.yield" or not is_zero(yielded.operands[0]):
        raise NotScalableError("the padding is not zero")
    return _of_same_size(op.operands[0], op.results[0], affine)


def _through_cut(op: ir.Operation, affine: Affine) -> Affine:
    """cut(x) * s -> cut(x * s), if it leaves the dims that s runs along whole."""
    return _of_same_size(op.operands[0], op.results[0], affine)


def _of_same_size(before: ir.Value, after: ir.Value, affine: Affine) -> Affine:
    if len(_shape(before)) != len(_shape(after)):
        raise NotScalableError("a slice that drops dims stands between")
    vectors = [vector for vector in (affine.scale, affine.shift) if vector is not None]
    sizes = [(_shape(before)[dim], _shape(after)[dim]) for vector in vectors for dim in vector.dims]
    if any(first != last or first < 0 for first, last in sizes):
        raise NotScalableError("a slice or padding of the channels stands between")
    return affine


def _below_insert(op: ir.Operation, affine: Affine) -> Affine:
    """insert(x * s, zeros) -> insert(x, zeros) * s, as padding and the stride of a transposed convolution come."""
    if affine.shift is not None:
        raise NotScalableError("its shift would not reach the padding")
    if not is_zero(op.operands[1]):
        raise NotScalableError("the padding is not zero")
    return _of_same_size(op.operands[0], op.results[0], affine)


_Through = Callable[[ir.Operation, Affine], Affine]

#: From the result of an op to its operand.
UPWARDS: dict[str, _Through] = {
    "tensor.expand_shape": lambda op, affine: _merge(op, affine, op.results[0]),
    "tensor.collapse_shape": lambda op, affine: _split(op, affine, op.operands[0]),
    "tensor.cast": lambda op, affine: affine,
    "tensor.pad": _through_padding,
    "tensor.extract_slice": _through_cut,
}

#: From the first operand of an op to its result.
DOWNWARDS: dict[str, _Through] = {
    "tensor.expand_shape": lambda op, affine: _split(op, affine, op.results[0]),
    "tensor.collapse_shape": lambda op, affine: _merge(op, affine, op.operands[0]),
    "tensor.cast": lambda op, affine: affine,
    "tensor.pad": _through_padding,
    "tensor.extract_slice": _through_cut,
    "tensor.insert_slice": _below_insert,
}
