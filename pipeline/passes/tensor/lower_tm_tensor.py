"""lower-tm-tensor: torch-mlir's scan, scatter and sort become loops on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pipeline.analysis.trip_count import trip_count
from pipeline.dialects.fusion import hide
from pipeline.ir.attributes import KERNEL, LINES
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, build_generic, copy_block, iterator_types, replace
from pipeline.mlir import arith, defining_op, ir, linalg, refusal, scf, tensor
from pipeline.passes.tensor.scan_lowering import scan_lines
from pipeline.passes.tensor.sort_lowering import sort_lines
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of
from pipeline.passmanager.patterns import PatternPass, pattern

#: A scan of one line of fewer elements is no kernel of its own.
_LONG_LINE = 256

#: Shorter rows are scattered element by element.
_SHORTEST_ROW = 8


@dataclass(frozen=True)
class LowerTmTensor(PatternPass):
    """Rewrite tm_tensor.scan, scatter and sort as scf.for nests on tensors, each to become one kernel.

    A sort of which only the first few elements are read, as in `topk`, is a selection of these; one by numbers in lines
    of known length goes by the digits of their bits; others merge.
    The dialect's own lowering works on buffers and its bufferization does not mix with one-shot-bufferize.
    """

    name: ClassVar[str] = "lower-tm-tensor"
    mandatory: ClassVar[bool] = True

    @pattern("tm_tensor.scan")
    def lower_scan(self, scan: ir.Operation) -> bool:
        """tm_tensor.scan   ->   for lines { for i { out[i] = running = combine(in[i], running) } }"""
        return _lower(scan, scan_lines)

    @pattern("tm_tensor.scatter")
    def lower_scatter(self, scatter: ir.Operation) -> bool:
        """tm_tensor.scatter   ->   for updates { out[place] = combine(update, out[place]) }"""
        return _lower(scatter, _scatter)

    @pattern("tm_tensor.sort")
    def lower_sort(self, sort: ir.Operation) -> bool:
        """tm_tensor.sort   ->   for lines { a radix sort, a merge sort or a selection }"""
        return _lower(sort, sort_lines)

    @pattern("tm_tensor.attention", "tm_tensor.topk")
    def refuse(self, op: ir.Operation) -> bool:
        """tm_tensor.attention, tm_tensor.topk   ->   an error"""
        raise refusal(op, f"{op.name} is not supported")


def _lower(op: ir.Operation, build: Callable[[ir.Operation], list[ir.Value]]) -> bool:
    """Puts the loops that `build` makes in the place of an op, marked as one kernel."""
    kind = op.name.removeprefix("tm_tensor.")
    with before(op):
        results = build(op)
    loop = results[0].owner.operation
    if kind != "scan" or not _is_short_line(op):
        _keep(loop)
    if kind in _BY_LINE:
        _mark_lines(loop, ir.RankedTensorType(op.operands[0].type).rank - 1)
    loop.attributes[KERNEL] = ir.StringAttr.get(kind, op.context)
    replace(op, results)
    return True


def _is_short_line(scan: ir.Operation) -> bool:
    """Whether a scan takes so few steps that a kernel would be dearer than they are."""
    source = ir.RankedTensorType(scan.operands[0].type)
    return bool(source.has_static_shape) and prod(source.shape) < _LONG_LINE


def _keep(loop: ir.Operation) -> None:
    """for 0 to 1   ->   for 0 to barrier(1): what simplifies loops of one iteration would drop the kernel's mark.

    Inside of another loop or a branch that goes: an element that is written is a step of that, not a kernel.
    """
    if trip_count(loop) == 1 and _is_outside_of_loops(loop):
        with before(loop):
            loop.operands[1] = hide(loop.operands[1])


def _is_outside_of_loops(op: ir.Operation) -> bool:
    """Whether an op is right in a function, in no loop or branch."""
    return bool(op.parent.name == "func.func")


def _scatter(op: ir.Operation) -> list[ir.Value]:
    """original[indices[u] + w] = combine(updates[u, w], original[..]), one update after the other.

    `indices[u]` are offsets in the dims of `dimension_map`, `w` runs over a window of the last dims of `original`.
    Where that has whole rows, a row is written at a time. What is outside writes the old element in loops, which update
    a tensor in place where no branch does, and nothing elsewhere.
    """
    updates, indices, original = op.operands
    original = _filled(original)
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dimension_map"]))
    sizes, around = sizes_of(original), sizes_of(updates)
    width = _width_of_rows(updates, original, dims)
    if width is not None:
        around = around[:-1]

    def one_update(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        (target,) = carried
        update, *window = at if width is None else [*at, as_index(0)]
        place = [as_index(0)] * (len(sizes) - len(window)) + window
        for number, dim in enumerate(dims):
            raw = tensor.ExtractOp(indices, [update, as_index(number)]).result
            offset = _wrap(arith.IndexCastOp(ir.IndexType.get(), raw).result, sizes[dim])
            place[dim] = arith.AddIOp(offset, place[dim]).result
        inside = _inside(place, sizes)
        if width is not None or not _is_outside_of_loops(op):
            safe = [arith.SelectOp(inside, coordinate, as_index(0)).result for coordinate in place]
            if width is not None:
                return [_write_row(op, target, safe[:-1], updates, at, inside, width)]
            old = tensor.ExtractOp(target, safe).result
            (new,) = copy_block(op.regions[0].blocks[0], [tensor.ExtractOp(updates, at).result, old])
            return [tensor.InsertOp(arith.SelectOp(inside, new, old).result, target, safe).result]
        branch = scf.IfOp(inside, [target.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            elements = [tensor.ExtractOp(updates, at).result, tensor.ExtractOp(target, place).result]
            (new,) = copy_block(op.regions[0].blocks[0], elements)
            scf.YieldOp([tensor.InsertOp(new, target, place).result])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([target])
        return list(branch.results)

    return loops(around, [original], one_update)


def _filled(value: ir.Value) -> ir.Value:
    """dense<c> : tensor   ->   fill(c): what is written to is made where it is wanted, not copied from the code."""
    constant = defining_op(value)
    if constant is None or constant.name != "arith.constant":
        return value
    elements = constant.attributes["value"]
    if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return value
    kind = ir.RankedTensorType(value.type)
    number = arith.ConstantOp(kind.element_type, elements.get_splat_value()).result
    return linalg.fill(number, outs=[tensor.EmptyOp(kind.shape, kind.element_type).result])


def _width_of_rows(updates: ir.Value, original: ir.Value, dims: list[int]) -> int | None:
    """How long the rows are that a scatter writes as a whole; None if it writes parts of rows."""
    rank = ir.RankedTensorType(original.type).rank
    sizes = [ir.RankedTensorType(value.type).shape[-1] for value in (updates, original)]
    has_window = ir.RankedTensorType(updates.type).rank > 1 and rank > 1 and rank - 1 not in dims
    return sizes[0] if has_window and sizes[0] == sizes[1] and sizes[0] >= _SHORTEST_ROW else None


def _write_row(
    op: ir.Operation,
    target: ir.Value,
    place: list[ir.Value],
    updates: ir.Value,
    at: list[ir.Value],
    inside: ir.Value,
    width: int,
) -> ir.Value:
    """target[place, :] = combine(updates[at, :], target[place, :]), unless that is not `inside`."""
    row = ir.RankedTensorType.get([width], ir.RankedTensorType(target.type).element_type)
    update = ir.RankedTensorType.get([width], ir.RankedTensorType(updates.type).element_type)
    there, here = _row_at(place, width), _row_at(at, width)
    old = tensor.ExtractSliceOp(row, target, place, [], [], *there).result
    new = tensor.ExtractSliceOp(update, updates, at, [], [], *here).result
    along, single = ir.AffineMap.get_identity(1), ir.AffineMap.get(1, 0, [])

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        added, taken, kept = elements
        return [arith.SelectOp(taken, copy_block(op.regions[0].blocks[0], [added, kept])[0], kept).result]

    written = build_generic([new, inside], [old], [along, single, along], iterator_types([False]), body).results[0]
    return tensor.InsertSliceOp(written, target, place, [], [], *there).result


def _row_at(place: list[ir.Value], width: int) -> tuple[list[int], list[int], list[int]]:
    """The static offsets, sizes and strides of a row."""
    ones = [1] * len(place)
    return [*([ir.ShapedType.get_dynamic_size()] * len(place)), 0], [*ones, width], [*ones, 1]


def _wrap(given: ir.Value, size: ir.Value) -> ir.Value:
    """Index + size where the given index is negative, as torch counts from the end."""
    negative = arith.CmpIOp(arith.CmpIPredicate.slt, given, as_index(0)).result
    return arith.SelectOp(negative, arith.AddIOp(given, size).result, given).result


def _inside(place: list[ir.Value], sizes: list[ir.Value]) -> ir.Value:
    """Whether an index lies in a tensor of these sizes; unsigned comparison covers negative ones."""
    inside = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    for value, size in zip(place, sizes, strict=True):
        below = arith.CmpIOp(arith.CmpIPredicate.ult, value, size).result
        inside = arith.AndIOp(inside, below).result
    return inside


#: Work on each line along a dimension on its own: the loops around are parallel.
_BY_LINE = ("scan", "sort")


def _mark_lines(loop: ir.Operation, depth: int) -> None:
    """Marks `depth` nested loops, from the outermost one on."""
    for _ in range(depth):
        loop.attributes[LINES] = ir.UnitAttr.get(loop.context)
        loop = next(op.operation for op in loop.regions[0].blocks[0].operations if op.operation.name == "scf.for")
