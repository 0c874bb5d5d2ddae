"""The tensor dialect: slices, reshapes, pads, elements. A value is never written to: what changes is a copy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import FailedCheck, Frame
from pipeline.debug.interpreter.handlers import interprets
from pipeline.debug.interpreter.number_types import is_float
from pipeline.mlir import ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()

#: What integers hold that nobody has written; floats are NaN.
_UNWRITTEN = 0x55


def unwritten(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array of which no element has been computed: who reads one finds something that stands out."""
    return np.full(tuple(shape), np.nan if is_float(dtype) else _UNWRITTEN, dtype)


def shape_of(kind: ir.Type, dynamic: Sequence[Any]) -> list[int]:
    """The sizes of a shaped type, those that are not known taken from values in order."""
    sizes, given = ir.ShapedType(kind), iter(dynamic)
    return [int(next(given)) if sizes.is_dynamic_dim(dim) else sizes.get_dim_size(dim) for dim in range(sizes.rank)]


def _mixed(op: ir.Operation, name: str, dynamic: Sequence[Any]) -> list[int]:
    """The numbers of an attribute such as `static_offsets`, those that are not known taken from values in order."""
    given = iter(dynamic)
    return [int(next(given)) if number == _DYNAMIC else number for number in ir.DenseI64ArrayAttr(op.attributes[name])]


def _segments(op: ir.Operation, operands: list[Any]) -> list[list[Any]]:
    """The operands by the groups that `operandSegmentSizes` names."""
    groups, start = [], 0
    for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]):
        groups.append(operands[start : start + size])
        start += size
    return groups


@interprets("tensor.empty", "bufferization.alloc_tensor")
def _empty(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    kind = op.results[0].type
    if op.name == "bufferization.alloc_tensor":
        sizes, copied, _ = _segments(op, operands)
        return [copied[0]] if copied else [unwritten(shape_of(kind, sizes), frame.precision.dtype(kind))]
    return [unwritten(shape_of(kind, operands), frame.precision.dtype(kind))]


@interprets("tensor.cast", "fusion.barrier")
def _same(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [operands[0]]


@interprets("tensor.dim", "memref.dim")
def _dim(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [np.asarray(operands[0].shape[int(operands[1])])]


@interprets("tensor.rank")
def _rank(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [np.asarray(operands[0].ndim)]


@interprets("tensor.from_elements")
def _from_elements(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    kind = ir.RankedTensorType(op.results[0].type)
    return [np.array(operands, frame.precision.dtype(kind)).reshape(tuple(kind.shape))]


@interprets("tensor.splat")
def _splat(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [np.full(tuple(shape_of(op.results[0].type, operands[1:])), operands[0])]


@interprets("tensor.extract")
def _extract(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source, *at = operands
    for dim, index in enumerate(at):
        if np.size(index) and (np.min(index) < 0 or np.max(index) >= source.shape[dim]):
            raise FailedCheck(f"tensor.extract reads outside of a dimension of size {source.shape[dim]}")
    return [np.asarray(source[tuple(at)])]


@interprets("tensor.insert")
def _insert(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    element, destination, *at = operands
    for dim, index in enumerate(at):
        if not 0 <= index < destination.shape[dim]:
            raise FailedCheck(f"tensor.insert writes outside of a dimension of size {destination.shape[dim]}")
    changed = destination.copy()
    changed[tuple(at)] = element
    return [changed]


def _slices(op: ir.Operation, groups: list[list[Any]], shape: Sequence[int]) -> tuple[slice, ...]:
    """The part of a tensor that a slice op takes; raises `FailedCheck` where it is not inside."""
    names = ("static_offsets", "static_sizes", "static_strides")
    taken = []
    numbers = (_mixed(op, name, group) for name, group in zip(names, groups, strict=True))
    for dim, (offset, size, stride) in enumerate(zip(*numbers, strict=True)):
        last = offset + (size - 1) * stride
        if size and not (0 <= offset < shape[dim] and 0 <= last < shape[dim]):
            raise FailedCheck(f"{op.name} of elements {offset} to {last} of a dimension of size {shape[dim]}")
        taken.append(slice(offset, offset + size * stride, stride) if size else slice(0, 0))
    return tuple(taken)


@interprets("tensor.extract_slice")
def _extract_slice(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    (source,), *groups = _segments(op, operands)
    part = source[_slices(op, groups, source.shape)]
    return [part.reshape(_without_units(part.shape, ir.RankedTensorType(op.results[0].type)))]


def _without_units(shape: Sequence[int], kind: ir.RankedTensorType) -> list[int]:
    """The sizes of a slice as its type has them: dims of size 1 may be left out."""
    left, sizes = list(shape), []
    for dim in range(kind.rank):
        wanted = None if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim)
        while len(left) > kind.rank - dim and left[0] == 1 and (wanted != 1 or len(left) > kind.rank - dim):
            left.pop(0)
        sizes.append(left.pop(0))
    return sizes


@interprets("tensor.insert_slice", "tensor.parallel_insert_slice")
def _insert_slice(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    (source,), (destination,), *groups = _segments(op, operands)
    changed = destination.copy()
    part = changed[_slices(op, groups, destination.shape)]
    part[...] = source.reshape(part.shape)
    return [changed]


@interprets("tensor.collapse_shape")
def _collapse_shape(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source = operands[0]
    return [source.reshape([prod(source.shape[dim] for dim in group) for group in reassociation(op)])]


@interprets("tensor.expand_shape")
def _expand_shape(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source, *dynamic = operands
    shape = _mixed(op, "static_output_shape", dynamic)
    if prod(shape) != source.size:
        raise FailedCheck(f"tensor.expand_shape of {list(source.shape)} to {shape}")
    return [source.reshape(shape)]


def reassociation(op: ir.Operation) -> list[list[int]]:
    """Which dims of one shape are each dim of the other."""
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in groups]


@interprets("tensor.reshape")
def _reshape(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [operands[0].reshape([int(size) for size in operands[1]])]


@interprets("tensor.concat")
def _concat(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [np.concatenate(operands, ir.IntegerAttr(op.attributes["dim"]).value)]


@interprets("tensor.pad")
def _pad(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    (source,), lows, highs = _segments(op, operands)
    low, high = _mixed(op, "static_low", lows), _mixed(op, "static_high", highs)
    shape = [size + before + after for size, before, after in zip(source.shape, low, high, strict=True)]
    _, (value,) = frame.run(op, 0, _indices(shape))
    padded = np.array(np.broadcast_to(value, shape))
    inner, kept = [], []
    for size, before, after in zip(source.shape, low, high, strict=True):  # a pad below zero cuts off something
        left = max(size + min(before, 0) + min(after, 0), 0)
        inner.append(slice(max(before, 0), max(before, 0) + left))
        kept.append(slice(max(-before, 0), max(-before, 0) + left))
    padded[tuple(inner)] = source[tuple(kept)]
    return [padded]


@interprets("tensor.generate")
def _generate(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    shape = shape_of(op.results[0].type, operands)
    _, (value,) = frame.run(op, 0, _indices(shape))
    return [np.array(np.broadcast_to(value, shape))]


def _indices(shape: Sequence[int]) -> list[np.ndarray]:
    """For each dim its indices, as arrays that broadcast to the shape."""
    rank = len(shape)
    return [
        np.arange(size).reshape([-1 if other == dim else 1 for other in range(rank)]) for dim, size in enumerate(shape)
    ]
