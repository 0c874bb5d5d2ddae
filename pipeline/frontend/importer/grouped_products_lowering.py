"""`pipeline.grouped_product` on its way from torch to linalg: a loop over groups, with a contraction of some rows each.

torch.operator "torch.pipeline.grouped_product"(x, y, ends) → pipeline.grouped_product on torch's tensors
                                                            → scf.for on builtin tensors

The contraction reads its rows, and the matrix of its group, where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.frontend.importer.own_ops import builtin_operands, imported, lower_ops, result_type, take_over, wide
from pipeline.ir.constants import as_index, zero
from pipeline.ir.element_types import element_bytes
from pipeline.ir.rewriting import build_generic, empty_like, iterator_types, size_of, sizes_of
from pipeline.mlir import arith, ir, linalg, scf, tensor, walk

_OP = "pipeline.grouped_product"

#: So many rows pay for a copy of the matrix, of elements of 16 bits and of others.
_MANY_ROWS = (6, 12)

#: The maps of (m, n, k) for products of rows with a transposed matrix, with a copy of it, and for sums over rows.
_OF_ROWS = ((0, 2), (1, 2), (0, 1))
_OF_COPIES = ((0, 2), (2, 1), (0, 1))
_OF_SUMS = ((2, 0), (2, 1), (0, 1))


@dataclass(frozen=True)
class _LeadingSlice:
    """Some rows of a tensor, or what is in one place of its first dim."""

    begin: ir.Value
    count: ir.Value | None = None

    def of(self, whole: ir.Value) -> ir.Value:
        """The part of a tensor."""
        kind, (given, sizes) = ir.RankedTensorType(whole.type), self._sizes(whole)
        shape = sizes if self.count is not None else sizes[1:]
        cut = ir.RankedTensorType.get(shape, kind.element_type)
        return tensor.ExtractSliceOp(
            cut, whole, [self.begin], given, [], self._places(kind.rank), sizes, [1] * kind.rank
        ).result

    def put(self, part: ir.Value, whole: ir.Value) -> ir.Value:
        """The tensor with another part."""
        rank, (given, sizes) = ir.RankedTensorType(whole.type).rank, self._sizes(whole)
        return tensor.InsertSliceOp(part, whole, [self.begin], given, [], self._places(rank), sizes, [1] * rank).result

    def _places(self, rank: int) -> list[int]:
        return [ir.ShapedType.get_dynamic_stride_or_offset(), *[0] * (rank - 1)]

    def _sizes(self, whole: ir.Value) -> tuple[list[ir.Value], list[int]]:
        """Those that are computed, and all of them, where a mark stands for those."""
        sizes = [1 if self.count is None else self.count, *sizes_of(whole)[1:]]
        unknown = ir.ShapedType.get_dynamic_size()
        given = [size for size in sizes if isinstance(size, ir.Value)]
        return given, [unknown if isinstance(size, ir.Value) else size for size in sizes]


def take_over_grouped_products(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.grouped_product` ops that torch's passes leave alone."""
    for call in imported(module, _OP):
        take_over(call, _OP, list(call.operands))


def lower_grouped_products(module: ir.Module) -> None:
    """pipeline.grouped_product(x, y, ends) → scf.for, between torch-mlir's own conversions."""
    lower_ops(walk(module, _OP), _loop)


def _loop(op: ir.Operation, x: ir.Value) -> ir.Value:
    _, y, ends = builtin_operands(op, x)
    kind = result_type(op)
    of_rows = ir.RankedTensorType(y.type).rank == 3
    rows, columns = size_of(x, 0), sizes_of(y)[1]
    sizes = [sizes_of(x)[0], columns] if of_rows else [sizes_of(ends)[0], sizes_of(x)[1], columns]
    start = _zeros(tensor.EmptyOp(sizes, kind.element_type).result)
    if any(0 in ir.RankedTensorType(value.type).shape for value in (x, y, ends)):
        return start
    first, one = as_index(0), as_index(1)
    loop = scf.ForOp(first, size_of(ends, 0), one, [start, first])
    with ir.InsertionPoint(loop.body):
        group, (result, begin) = loop.induction_variable, loop.inner_iter_args
        end = _inside(tensor.ExtractOp(ends, [group]).result, begin, rows)
        count = arith.MaxSIOp(arith.SubIOp(end, begin).result, first).result
        mine = _LeadingSlice(begin, count)
        if of_rows:
            made = mine.put(_rows(mine, x, _LeadingSlice(group).of(y), result), result)
        else:
            total = _contraction(mine.of(x), mine.of(y), _zeros(_LeadingSlice(group).of(result)), _OF_SUMS)
            made = _LeadingSlice(group).put(total, result)
        scf.YieldOp([made, end])
    total = loop.results[0]
    return total if total.type == kind else tensor.CastOp(kind, total).result


def _rows(mine: _LeadingSlice, x: ir.Value, y: ir.Value, result: ir.Value) -> ir.Value:
    """Some rows of the result + those of x @ y.T; of many by a copy of y.T, in whose place panels are packed."""
    assert mine.count is not None
    least = as_index(_MANY_ROWS[element_bytes(y) > 2])
    many = arith.CmpIOp(arith.CmpIPredicate.sge, mine.count, least).result
    start, rows = mine.of(result), mine.of(x)
    branch = scf.IfOp(many, [start.type], has_else=True)
    for block, matrix, loops in ((branch.then_block, _transposed, _OF_COPIES), (branch.else_block, _same, _OF_ROWS)):
        with ir.InsertionPoint(block):
            scf.YieldOp([_contraction(rows, matrix(y), start, loops)])
    return branch.results[0]


def _same(y: ir.Value) -> ir.Value:
    return y


def _transposed(y: ir.Value) -> ir.Value:
    empty = empty_like(y, ir.RankedTensorType(y.type).element_type, [1, 0])
    maps = [ir.AffineMap.get_permutation([1, 0]), ir.AffineMap.get_identity(2)]
    return build_generic([y], [empty], maps, iterator_types([False, False]), lambda elements: [elements[0]]).results[0]


def _zeros(where: ir.Value) -> ir.Value:
    return linalg.fill(zero(ir.RankedTensorType(where.type).element_type), outs=[where])


def _inside(end: ir.Value, begin: ir.Value, rows: ir.Value) -> ir.Value:
    """The end of a group, not before its begin and not behind the last row."""
    end = arith.IndexCastOp(ir.IndexType.get(), end).result
    return arith.MinSIOp(arith.MaxSIOp(end, begin).result, rows).result


def _contraction(x: ir.Value, y: ir.Value, start: ir.Value, loops: Sequence[Sequence[int]]) -> ir.Value:
    """start + the products of elements of x and y, added up; each has these of the loops (m, n, k)."""
    kind = ir.RankedTensorType(start.type).element_type
    maps = [ir.AffineMap.get(3, 0, [ir.AffineDimExpr.get(loop) for loop in dims]) for dims in loops]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        left, right = (wide(element, kind) for element in elements[:2])
        return [arith.AddFOp(elements[2], arith.MulFOp(left, right).result).result]

    return build_generic([x, y], [start], maps, iterator_types([False, False, True]), body).results[0]
