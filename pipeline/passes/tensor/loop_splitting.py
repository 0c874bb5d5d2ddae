"""Splits loops of linalg ops, and the dims that they write and read; what propagate-reshapes and pack-weights do."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.transposed_conv import renumber_taps
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.reshapes import reassociation
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, replace
from pipeline.mlir import affine, defining_op, ir, linalg, tensor
from pipeline.passes.tensor.reshape_splits import Splits

_DYNAMIC = ir.ShapedType.get_dynamic_size()


class SplitLoops:
    """Builds an op anew with some of its loops split."""

    def __init__(self, view: LinalgOp, splits: Splits):
        self._view = view
        self._splits = splits
        self._first = [sum(splits.parts(before) for before in range(loop)) for loop in range(view.loops)]
        self._loops = sum(splits.parts(loop) for loop in range(view.loops))

    def run(self) -> ir.Operation:
        """Puts the new op in the place of the old one; its results are collapsed for those that read the old ones."""
        view = self._view
        iterators = [
            iterator
            for loop, iterator in enumerate(view.op.attributes["iterator_types"])
            for _ in range(self._splits.parts(loop))
        ]
        with before(view.op):
            operands = [
                self._expanded(operand, indexing) for operand, indexing in zip(view.op.operands, view.maps, strict=True)
            ]
            new = build_generic(
                operands[: view.inputs],
                operands[view.inputs :],
                [self._map(indexing) for indexing in view.maps],
                iterators,
                lambda elements: copy_body(view, elements, self._index),
            )
        copy_attributes(view.op, new)
        if view.inputs > 1:
            renumber_taps(new, [dims[0] if len(dims) == 1 else None for dims in self._groups(view.maps[1])])
        with view.op.location, ir.InsertionPoint.after(new):
            results = [self._collapsed(*pair) for pair in zip(view.op.results, new.results, strict=True)]
        replace(view.op, results)
        return new

    def _map(self, indexing: ir.AffineMap) -> ir.AffineMap:
        """An indexing map with all dims that its operand has then."""
        moved = ir.AffineMap.get(self._loops, 0, [self._counter(loop) for loop in range(self._view.loops)])
        results: list[ir.AffineExpr] = []
        for expression in indexing.results:
            if isinstance(expression, ir.AffineDimExpr):
                first = self._first[ir.AffineDimExpr(expression).position]
                parts = self._splits.parts(ir.AffineDimExpr(expression).position)
                results += [ir.AffineDimExpr.get(first + part) for part in range(parts)]
            else:
                block = self._block(expression)
                results.append(expression.compose(moved) if block is None else block)
        return ir.AffineMap.get(self._loops, 0, results)

    def _counter(self, loop: int) -> ir.AffineExpr:
        """The counter of a loop as it was."""
        counter = ir.AffineDimExpr.get(self._first[loop])
        for part, size in enumerate(self._splits.sizes.get(loop, ())[1:], self._first[loop] + 1):
            counter = counter * size + ir.AffineDimExpr.get(part)
        return counter

    def _block(self, expression: ir.AffineExpr) -> ir.AffineExpr | None:
        """`loop floordiv b` of a loop that is split into blocks of b: the loop over blocks."""
        if not isinstance(expression, ir.AffineFloorDivExpr):
            return None
        quotient = ir.AffineBinaryExpr(expression)
        loop = loop_of(quotient.lhs)
        if loop is None or self._splits.parts(loop) != 2:
            return None
        block = self._splits.sizes[loop][1]
        return ir.AffineDimExpr.get(self._first[loop]) if quotient.rhs == ir.AffineConstantExpr.get(block) else None

    def _groups(self, indexing: ir.AffineMap) -> list[list[int]]:
        """For each dim of an operand the dims that it becomes."""
        groups: list[list[int]] = []
        count = 0
        for expression in indexing.results:
            is_loop = isinstance(expression, ir.AffineDimExpr)
            parts = self._splits.parts(ir.AffineDimExpr(expression).position) if is_loop else 1
            groups.append(list(range(count, count + parts)))
            count += parts
        return groups

    def _expanded(self, value: ir.Value, indexing: ir.AffineMap) -> ir.Value:
        """An operand with more dims."""
        if not isinstance(value.type, ir.RankedTensorType):
            return value
        groups = self._groups(indexing)
        if len(groups) == sum(map(len, groups)):
            return value
        producer = defining_op(value)
        if producer is not None and producer.name == "tensor.collapse_shape":
            source = producer.operands[0]
            if reassociation(producer) == groups and list(ir.RankedTensorType(source.type).shape) == self._shape(
                value, indexing
            ):
                return source
        sizes = self._sizes(value, indexing)
        if producer is not None and producer.name == "tensor.empty":
            return tensor.EmptyOp(sizes, ir.RankedTensorType(value.type).element_type).result
        if producer is not None and producer.name == "linalg.fill":
            init = self._expanded(producer.operands[1], indexing)
            return linalg.fill(producer.operands[0], outs=[init])
        return _expand(value, groups, sizes)

    def _shape(self, value: ir.Value, indexing: ir.AffineMap) -> list[int]:
        return [size if isinstance(size, int) else _DYNAMIC for size in self._sizes(value, indexing)]

    def _sizes(self, value: ir.Value, indexing: ir.AffineMap) -> list[int | ir.Value]:
        sizes: list[int | ir.Value] = []
        kind = ir.RankedTensorType(value.type)
        for dim, expression in enumerate(indexing.results):
            loop = ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None
            if loop not in self._splits.sizes:
                sizes.append(_dim(value, dim) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim))
                continue
            sizes += self._splits.sizes[loop]
        return sizes

    def _collapsed(self, old: ir.Value, new: ir.Value) -> ir.Value:
        """What users of a result read; those that only expanded it read the new one."""
        indexing = self._view.maps[self._view.inputs + ir.OpResult(old).result_number]
        groups = self._groups(indexing)
        if len(groups) == sum(map(len, groups)):
            return new
        for user in {use.owner.operation for use in old.uses}:
            if user.name == "tensor.expand_shape" and user.results[0].type == new.type:
                replace(user, [new])
        return tensor.CollapseShapeOp(old.type, new, groups).result

    def _index(self, loop: int) -> ir.Value:
        """The counter of a loop as it was, from those that it has become."""
        first = self._first[loop]
        value = linalg.IndexOp(first).result
        for part, size in enumerate(self._splits.sizes.get(loop, ())[1:], first + 1):
            d0, d1 = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
            linear = ir.AffineMap.get(2, 0, [d0 * size + d1])
            value = affine.AffineApplyOp(linear, [value, linalg.IndexOp(part).result]).result
        return value


def _dim(value: ir.Value, dim: int) -> ir.Value:
    return tensor.DimOp(value, as_index(dim)).result


def _expand(value: ir.Value, groups: Sequence[Sequence[int]], sizes: Sequence[int | ir.Value]) -> ir.Value:
    shape = [size if isinstance(size, int) else _DYNAMIC for size in sizes]
    kind = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    known = [size for size in sizes if not isinstance(size, int)]
    return tensor.ExpandShapeOp(kind, value, groups, known, shape).result
