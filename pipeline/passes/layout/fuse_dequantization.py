"""fuse-dequantization: products read quantized weights, and dequantize them as they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.op_naming import is_product
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.ir.rewriting import before, build_generic, copy_body, empty_like, iterator_types, replace
from pipeline.mlir import ir, linalg
from pipeline.passes.layout.dequantization import Dequantized, Source, read_dequantized
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.reshape_splits import Splits
from pipeline.passmanager.patterns import PatternPass, pattern

#: Indices that are a loop, or the same everywhere, as along a dim of size 1.
_ALONG_LOOPS = (ir.AffineDimExpr, ir.AffineConstantExpr)


@dataclass(frozen=True)
class FuseDequantization(PatternPass):
    """Let matrix products read quantized weights, whose elements their bodies dequantize.

    A dequantized weight has four times the bytes: to have @prepare compute it would give away what it was quantized
    for, and to have each call compute it takes longer than the product. All is rounded as before. Weights are small
    integers, in groups with a scale and perhaps a zero point each, of products in f32.
    """

    name: ClassVar[str] = "fuse-dequantization"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def fuse(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul(x, (float(q) - zero) * scale)   ->   generic(x, q, zero, scale) { out + x * ((q - zero) * scale) }"""
        product = _read_product(op)
        if product is None:
            return False
        for number in (1, 0):
            dequantized = read_dequantized(product.operands[number], product.maps[number], weights)
            if dequantized is not None:
                return self._fuse(product, number, dequantized)
        return False

    def _fuse(self, product: LinalgOp, number: int, dequantized: Dequantized) -> bool:
        kind = ir.RankedTensorType(dequantized.quantized.value.type).element_type
        if not all(isinstance(place, _ALONG_LOOPS) for place in dequantized.quantized.places):
            self.missed(product.op, f"its weight of {kind} is dequantized apart: it does not lie along the loops")
            return False
        self.passed(product.op, f"dequantizes its weight of {kind} as it reads it")
        column = product.maps[2].results[len(product.maps[2].results) - 1]
        with before(product.op):
            sources = [_columns_last(source, column) for source in dequantized.sources]
            made = _with_sources(product, number, sources, dequantized)
        groups = _groups(product, sources)
        replace(product.op, list(made.results))
        if groups is not None:
            view = structured(made)
            assert view is not None
            SplitLoops(view, groups).run()
        return True


def _read_product(op: ir.Operation) -> LinalgOp | None:
    """A matrix product all in f32; None if the op is something else."""
    view = any_structured(op) if _is_f32(op) and is_product(op) else None
    return view if view is not None and all(map(_is_plain, view.maps)) else None


def _is_f32(op: ir.Operation) -> bool:
    kinds = [value.type for value in op.operands]
    tensors = all(isinstance(kind, ir.RankedTensorType) for kind in kinds)
    return tensors and len(kinds) == 3 and all(isinstance(kind.element_type, ir.F32Type) for kind in kinds)


def _is_plain(indexing: ir.AffineMap) -> bool:
    """Whether each index is a loop, as in all products but convolutions."""
    loops = [loop_of(expression) for expression in indexing.results]
    return None not in loops and len(set(loops)) == len(loops)


def _columns_last(source: Source, column: ir.AffineExpr) -> Source:
    """A source whose innermost dim is the one of the columns of the result, if it has one."""
    if column not in source.places[:-1]:
        return source
    moved = source.places.index(column)
    order = [*(dim for dim in range(len(source.places)) if dim != moved), moved]
    output = empty_like(source.value, ir.RankedTensorType(source.value.type).element_type, order)
    transposed = linalg.transpose(source.value, outs=[output], permutation=order).results[0]
    return Source(transposed, tuple(source.places[dim] for dim in order))


def _with_sources(product: LinalgOp, number: int, sources: list[Source], dequantized: Dequantized) -> ir.Operation:
    """The product with its factor `number` built from sources; the quantized one takes its place."""
    data, output = product.operands[1 - number], product.operands[2]
    maps = [ir.AffineMap.get(product.loops, 0, list(source.places)) for source in sources]
    first, *others = [source.value for source in sources]

    def body(elements: Sequence[ir.Value]) -> list[ir.Value]:
        pair, rest, total = list(elements[:2]), list(elements[2:-1]), elements[-1]
        factor = dequantized.build([pair[number], *rest])
        pair[number] = factor
        return copy_body(product, [*pair, total])

    pair, pair_maps = [data, data], [product.maps[1 - number]] * 2
    pair[number], pair_maps[number] = first, maps[0]
    iterators = iterator_types(product.reductions)
    return build_generic([*pair, *others], [output], [*pair_maps, *maps[1:], product.maps[2]], iterators, body)


def _groups(product: LinalgOp, sources: Sequence[Source]) -> Splits | None:
    """How the loop of the sum becomes one over groups and one over what shares a scale; None if all shares one."""
    for source in sources:
        for place in source.places:
            if isinstance(place, ir.AffineFloorDivExpr):
                loop, group = loop_of(ir.AffineBinaryExpr(place).lhs), ir.AffineBinaryExpr(place).rhs
                size = product.sizes[loop] if loop is not None else None
                length = ir.AffineConstantExpr(group).value
                if loop is not None and size is not None and size % length == 0:
                    return Splits({loop: (size // length, length)})
    return None
