"""What stands for memory before there are buffers: the caller's arrays that @main reads and writes in place."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import Frame
from pipeline.debug.interpreter.handlers import interprets
from pipeline.debug.interpreter.tensors import reassociation, shape_of, unwritten
from pipeline.mlir import ir


@interprets("bufferization.to_tensor")
def _to_tensor(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [operands[0].copy()]


@interprets("bufferization.materialize_in_destination")
def _materialize(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source, destination = operands
    if len(op.results):
        return [source]
    destination[...] = source
    return []


@interprets("memref.store")
def _store(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    value, memory, *at = operands
    memory[tuple(at)] = value
    return []


@interprets("memref.load")
def _load(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    memory, *at = operands
    return [np.array(memory[tuple(at)])]


@interprets("memref.alloc")
def _alloc(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    kind = op.results[0].type
    return [unwritten(shape_of(kind, operands), frame.precision.dtype(kind))]


@interprets("memref.view")
def _view(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    """Numbers in a buffer of bytes: floats may be held in other dtypes, so each place has an array of its own."""
    source, shift, *sizes = operands
    kind = op.results[0].type
    key = id(source), int(shift), str(kind)
    if key not in frame.interpretation.places:
        made = unwritten(shape_of(kind, sizes), frame.precision.dtype(kind))
        frame.interpretation.places[key] = (
            source,
            made,
        )  # with the buffer, whose identity is its own as long as it is there
    return [frame.interpretation.places[key][1]]


@interprets("memref.collapse_shape")
def _collapse(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source = operands[0]
    seen = source.view()
    seen.shape = tuple(prod(source.shape[dim] for dim in group) for group in reassociation(op))
    return [seen]


@interprets("memref.expand_shape")
def _expand(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    seen = operands[0].view()
    seen.shape = tuple(ir.MemRefType(op.results[0].type).shape)
    return [seen]
