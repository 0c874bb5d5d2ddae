"""fold-batch-broadcasts: a product of many matrices with one is one product of all their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import before, replace, sizes_of
from pipeline.mlir import defining_op, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern

#: [batch, rows, columns] as [batch * rows, columns].
_ROWS = [[0, 1], [2]]


@dataclass(frozen=True)
class FoldBatchBroadcasts(PatternPass):
    """Have products whose second factor is the same matrix for the whole batch read that matrix.

    torch takes a linear layer apart to that where its input does not lie row by row, such as the last token of each
    text, and copies of a weight would be kept for the batch.
    """

    name: ClassVar[str] = "fold-batch-broadcasts"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.batch_matmul")
    def fold(self, product: ir.Operation) -> bool:
        """batch_matmul(x, broadcast(w))   ->   expand_shape(matmul(collapse_shape(x), w))"""
        x, factor = list(product.operands)[:2]
        matrix = _broadcast_matrix(factor)
        if matrix is None or ir.RankedTensorType(x.type).shape[0] == 1:
            return False
        if str(product.attributes["indexing_maps"]) != str(_plain_maps(product.context)):
            return False
        self.passed(product, "reads one matrix for the whole batch")
        with before(product):
            rows = _as_rows(x)
            out = linalg.matmul(rows, matrix, outs=[_as_rows(product.operands[2])])
            kind = ir.RankedTensorType(product.results[0].type)
            sizes = sizes_of(product.operands[2])
            moving = [size for size in sizes if isinstance(size, ir.Value)]
            static = [ir.ShapedType.get_dynamic_size() if isinstance(size, ir.Value) else size for size in sizes]
            replace(product, [tensor.ExpandShapeOp(kind, out, _ROWS, moving, static).result])
        return True


def _plain_maps(context: ir.Context) -> ir.ArrayAttr:
    """The maps of a batch_matmul that transposes nothing."""
    batch, m, n, k = (ir.AffineDimExpr.get(dim, context) for dim in range(4))
    maps = [ir.AffineMap.get(4, 0, places, context) for places in ([batch, m, k], [batch, k, n], [batch, m, n])]
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(indexing) for indexing in maps], context)


def _broadcast_matrix(factor: ir.Value) -> ir.Value | None:
    """The [k, n] that [batch, k, n] repeats; None if it is nothing of that kind."""
    op = defining_op(factor)
    view = structured(op)
    if op is None or view is None or view.inputs != 1 or view.body_ops or not view.is_elementwise:
        return None
    if view.yielded != [view.body.arguments[0]] or view.loops != 3:
        return None
    source, result = view.maps[0], view.maps[-1]
    if result != ir.AffineMap.get_identity(3) or list(source.results) != list(result.results)[1:]:
        return None
    matrix = op.operands[0]
    return matrix if list(ir.RankedTensorType(matrix.type).shape) == list(_shape(factor))[1:] else None


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _as_rows(value: ir.Value) -> ir.Value:
    """[batch, rows, columns] as [batch * rows, columns]."""
    batch, rows, columns = _shape(value)
    dynamic = ir.ShapedType.get_dynamic_size()
    count = dynamic if dynamic in (batch, rows) else batch * rows
    kind = ir.RankedTensorType.get([count, columns], ir.RankedTensorType(value.type).element_type)
    return tensor.CollapseShapeOp(kind, value, _ROWS).result
