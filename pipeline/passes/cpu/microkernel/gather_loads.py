"""Vectors of a body that computes places: counters of loops, and what is loaded at an index for each lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, defining_op, ir, memref, vector
from pipeline.passes.cpu.microkernel import narrow_elements
from pipeline.passes.cpu.microkernel.vector_builders import zeros

#: What indices are converted by.
_CONVERSIONS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui")

#: More elements than there are.
_ENDLESS = 1 << 40


def counting(first: ir.Value, lanes: int) -> ir.Value:
    """The indices from `first` on."""
    kind = ir.VectorType.get([lanes], ir.IndexType.get())
    steps = arith.ConstantOp(kind, ir.DenseElementsAttr.get(np.arange(lanes, dtype=np.int64), type=kind)).result
    return arith.AddIOp(vector.BroadcastOp(kind, first).result, steps).result


def all_known(values: Sequence[ir.Value | None]) -> list[ir.Value] | None:
    """The values, if there are all of them."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def load_number(table: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """An element of a buffer, as it is held in vectors."""
    loaded = memref.LoadOp(narrow_elements.stored_view(table), list(indices)).result
    return narrow_elements.after_load(loaded, ir.MemRefType(table.type).element_type)


def load_line(table: ir.Value, first: Sequence[ir.Value], lanes: int, mask: ir.Value | None) -> ir.Value:
    """The elements of a buffer from `first` on, along its innermost dim; zeros where a mask lets none through."""
    element = ir.MemRefType(table.type).element_type
    kind, buffer = ir.VectorType.get([lanes], narrow_elements.stored(element)), narrow_elements.stored_view(table)
    if mask is None:
        loaded = vector.LoadOp(kind, buffer, list(first)).result
    else:
        loaded = vector.MaskedLoadOp(kind, buffer, list(first), mask, zeros(kind)).result
    return narrow_elements.after_load(loaded, element)


def load_line_backwards(table: ir.Value, first: Sequence[ir.Value], lanes: int) -> ir.Value:
    """The elements of a buffer from `first` on, towards the beginning of its innermost dim."""
    last = arith.SubIOp(first[-1], as_index(lanes - 1)).result
    line = load_line(table, [*first[:-1], last], lanes, None)
    return vector.ShuffleOp(line, line, list(range(lanes - 1, -1, -1))).result


def gather(
    table: ir.Value,
    indices: Sequence[ir.Value],
    number: Callable[[ir.Value], ir.Value | None],
    lanes_of: Callable[[ir.Value], ir.Value],
    mask: ir.Value | None,
    count: int | None,
) -> ir.Value:
    """An element of a buffer for each lane; zeros where a mask lets none through.

    `number` gives an index that is the same for all lanes, None for others; `lanes_of` the index of each lane; `count`
    how many lanes, the first ones, the mask lets through, None if that is not known. Processors' own gathers take
    longer than a load for each lane, and as long for few lanes as for all of them; so they are used only there.
    """
    outer = all_known([number(index) for index in indices[:-1]])
    offsets = lanes_of(indices[-1])
    if outer is None:
        outer, table, offsets = [], _as_line(table), _from_the_start(table, [*map(lanes_of, indices[:-1]), offsets])
    element, lanes = ir.MemRefType(table.type).element_type, ir.VectorType(offsets.type).shape[0]
    buffer, kind = narrow_elements.stored_view(table), ir.VectorType.get([lanes], narrow_elements.stored(element))
    if mask is not None and count is None:
        start = [*outer, as_index(0)]
        return narrow_elements.after_load(
            vector.GatherOp(kind, buffer, start, offsets, mask, zeros(kind)).result, element
        )
    places = [_lane(offsets, lane) for lane in range(lanes if count is None else count)]
    loaded = [memref.LoadOp(buffer, [*outer, place]).result for place in places]
    if len(loaded) < lanes:
        loaded += [vector.ExtractOp(zeros(kind), [], [0]).result] * (lanes - len(loaded))
    return narrow_elements.after_load(vector.FromElementsOp(kind, loaded).result, element)


def _lane(offsets: ir.Value, lane: int) -> ir.Value:
    """The index of one lane, converted on its own: narrow integers are fewer vectors, or never become one."""
    op = defining_op(offsets)
    if op is None or op.name not in _CONVERSIONS:
        return vector.ExtractOp(offsets, [], [lane]).result
    kind = ir.VectorType(offsets.type).element_type
    return ir.Operation.create(op.name, results=[kind], operands=[_lane(op.operands[0], lane)]).result


def _as_line(table: ir.Value) -> ir.Value:
    """A buffer as one of one dim that begins at its first element, and has no end."""
    base, offset, *_ = memref.ExtractStridedMetadataOp(table).results
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(dynamic, [1])
    kind = ir.MemRefType.get([_ENDLESS], ir.MemRefType(table.type).element_type, layout)
    return memref.ReinterpretCastOp(kind, base, [offset], [], [], [dynamic], [_ENDLESS], [1]).result


def _from_the_start(table: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """How many elements lie between the first one of a buffer and those at some indices."""
    kind = ir.MemRefType(table.type)
    strides, _ = kind.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    measured = list(memref.ExtractStridedMetadataOp(table).results)[-kind.rank :] if dynamic in strides else []
    total = indices[-1]
    for dim, index in enumerate(indices[:-1]):
        step = measured[dim] if strides[dim] == dynamic else as_index(strides[dim])
        steps = vector.BroadcastOp(index.type, step).result
        total = arith.AddIOp(total, arith.MulIOp(index, steps).result).result
    return total
