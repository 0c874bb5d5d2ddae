"""Rows of a table that an index tells: how they are read off, and the order in which they are sorted by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.product_body import arguments_behind, values_behind
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import build_generic, copy_value, empty_like, iterator_types
from pipeline.mlir import arith, defining_op, ir, linalg, tensor
from pipeline.passes.layout.dequantization import Source
from pipeline.passes.tensor.all_of_check import hold_for


@dataclass(frozen=True)
class GatheredRows:
    """table[f(index[k]), n].

    Attributes:
        table: two dims, the first of them that of rows; it comes from weights.
        index: a line of integers.
        place: f of an element of the index, a value in the body that gathers.
        form: what f computes, in words that tell different functions apart.
    """

    table: ir.Value
    index: ir.Value
    place: ir.Value
    form: str

    @property
    def groups(self) -> int:
        """How many rows the table has."""
        return int(ir.RankedTensorType(self.table.type).shape[0])


def gathered_rows_of(source: Source, loop: int, weights: ConstExprs) -> GatheredRows | None:
    """A source as rows of a table of weights, those along `loop`; None if it is something else."""
    op = defining_op(source.value)
    view = structured(op) if op is not None and op.name == "linalg.generic" else None
    if view is None or not view.is_elementwise or view.inputs != 1 or len(view.loops_read(0)) != 1:
        return None
    extract = defining_op(view.yielded[0])
    if extract is None or extract.name != "tensor.extract" or len(extract.operands) != 3:
        return None
    table, row, column = extract.operands
    rows, counter = view.loops_read(0)[0], defining_op(column)
    if counter is None or counter.name != "linalg.index" or arguments_behind(row) != {view.body.arguments[0]}:
        return None
    if any((known := defining_op(value)) is not None and known.name == "linalg.index" for value in values_behind(row)):
        return None
    dims = view.loops_read(view.inputs)
    last = ir.IntegerAttr(counter.attributes["dim"]).value
    if len(dims) != 2 or dims != [rows, last] or loop_of(source.places[0]) != loop or not _is_line(view.operands[0]):
        return None
    known = weights.knows(table) and view.operands[0] in weights and ir.RankedTensorType(table.type).has_static_shape
    return GatheredRows(table, view.operands[0], row, _form(row)) if known else None


def _is_line(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank == 1


def _form(value: ir.Value) -> str:
    """What a value of a body is computed by."""
    op = defining_op(value)
    if op is None:
        return "argument"
    attributes = {name: str(op.attributes[name]) for name in op.attributes}
    return f"{op.name}{attributes}({', '.join(map(_form, op.operands))}) : {op.results[0].type}"


def permutation_of(rows: GatheredRows, size: int) -> tuple[ir.Value, ir.Value]:
    """The order of rows in which groups follow each other, rows of a group as before; and whether all are as large.

    An i32 for each row; the number of rows that come before one is where it goes.
    """
    i32 = ir.IntegerType.get_signless(32)
    line, one = tensor.EmptyOp([size], i32).result, ir.AffineMap.get_identity(1)
    zeros = linalg.fill(arith.ConstantOp(i32, 0).result, outs=[line])
    outer, inner = (ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(loop)]) for loop in range(2))
    sums, (argument,) = iterator_types([False, True]), arguments_behind(rows.place)

    def group(elements: Sequence[ir.Value]) -> list[ir.Value]:
        return [arith.IndexCastOp(i32, copy_value(rows.place, {argument: elements[0]})).result]

    groups = build_generic([rows.index], [line], [one, one], iterator_types([False]), group).results[0]

    def comes_before(elements: Sequence[ir.Value]) -> list[ir.Value]:
        own, other, count = elements
        earlier = arith.CmpIOp(arith.CmpIPredicate.slt, linalg.IndexOp(1).result, linalg.IndexOp(0).result).result
        equal = arith.CmpIOp(arith.CmpIPredicate.eq, other, own).result
        less = arith.CmpIOp(arith.CmpIPredicate.slt, other, own).result
        found = arith.OrIOp(less, arith.AndIOp(equal, earlier).result).result
        return [arith.AddIOp(count, arith.ExtUIOp(i32, found).result).result]

    places = build_generic([groups, groups], [zeros], [outer, inner, outer], sums, comes_before).results[0]

    def goes_there(elements: Sequence[ir.Value]) -> list[ir.Value]:
        place, total = elements
        here = arith.IndexCastOp(i32, linalg.IndexOp(0).result).result
        row = arith.IndexCastOp(i32, linalg.IndexOp(1).result).result
        found = arith.CmpIOp(arith.CmpIPredicate.eq, place, here).result
        return [arith.AddIOp(total, arith.SelectOp(found, row, arith.ConstantOp(i32, 0).result).result).result]

    order = build_generic([places], [zeros], [inner, outer], sums, goes_there).results[0]

    def is_in_its_group(elements: Sequence[ir.Value]) -> list[ir.Value]:
        row = arith.IndexCastOp(ir.IndexType.get(), elements[0]).result
        here = arith.IndexCastOp(i32, linalg.IndexOp(0).result).result
        wanted = arith.DivUIOp(here, arith.ConstantOp(i32, size // rows.groups).result).result
        return [arith.CmpIOp(arith.CmpIPredicate.eq, tensor.ExtractOp(groups, [row]).result, wanted).result]

    return order, hold_for([order], [one], 1, is_in_its_group)


def picked(value: ir.Value, order: ir.Value, dim: int) -> ir.Value:
    """A tensor whose elements along a dim are in another order."""
    rank = ir.RankedTensorType(value.type).rank
    along, identity = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(dim)]), ir.AffineMap.get_identity(rank)

    def element(elements: Sequence[ir.Value]) -> list[ir.Value]:
        indices = [linalg.IndexOp(other).result for other in range(rank)]
        indices[dim] = arith.IndexCastOp(ir.IndexType.get(), elements[0]).result
        return [tensor.ExtractOp(value, indices).result]

    empty = empty_like(value, ir.RankedTensorType(value.type).element_type)
    return build_generic([order], [empty], [along, identity], iterator_types([False] * rank), element).results[0]
