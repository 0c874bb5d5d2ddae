"""fuse-dequantization: products read quantized weights, and dequantize them as they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, build_generic, copy_body, iterator_types, replace
from pipeline.mlir import ir
from pipeline.passes.layout.dequantization import (
    QUANTIZED_GROWTH,
    Dequantized,
    Source,
    columns_last,
    has_quantized_tensors,
    joined,
    read_dequantized,
    read_loops,
    read_quantized_data,
    squeezed,
    widens,
)
from pipeline.passes.layout.exact_integers import build_exact, without_casts
from pipeline.passes.layout.scale_groups import groups_of
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FuseDequantization(PatternPass):
    """Let matrix products read quantized weights, whose elements their bodies dequantize.

    A dequantized weight has four times the bytes: to have @prepare compute it would give away what it was quantized
    for, and to have each call compute it takes longer than the product. All is rounded as before. Weights are small
    integers, in groups with a scale and perhaps a zero point each, of products in f32. Data that is merely converted,
    for one product, is read likewise where vectors run along its rows: keys and values that a cache keeps as bytes.
    """

    name: ClassVar[str] = "fuse-dequantization"
    anchor: ClassVar[str] = "func.func"

    def concerns(self, op: ir.Operation) -> bool:
        """Nothing is dequantized where there are no quantized tensors."""
        return has_quantized_tensors(op)

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op, QUANTIZED_GROWTH)

    @pattern("linalg.*", outermost=True)
    def fuse(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul(x, (float(q) - zero) * scale)   ->   generic(x, q, zero, scale) { out + x * ((q - zero) * scale) }"""
        product = read_matrix_product(op, ir.F32Type)
        if product is None:
            return False
        for number in (1, 0):
            dequantized = read_dequantized(product.operands[number], product.maps[number], weights)
            if dequantized is not None:
                return self._fuse(product, number, dequantized)
        return False

    @pattern("linalg.*", outermost=True)
    def fuse_data(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul(x, float(q))   ->   generic(x, q) { out + x * float(q) }, for q with the columns of the result"""
        product = read_matrix_product(op, ir.F32Type)
        if product is None:
            return False
        column = product.maps[2].results[len(product.maps[2].results) - 1]
        for number in (1, 0):
            rows = product.maps[number].results
            operand = product.operands[number]
            if operand in weights or len(list(operand.uses)) > 1 or rows[len(rows) - 1] != column:
                continue
            found = read_quantized_data(operand, product.maps[number])
            if found is None or not widens(found) or found.quantized.places != tuple(rows):
                continue
            kind = ir.RankedTensorType(found.quantized.value.type).element_type
            self.passed(op, f"converts its operand of {kind} as it reads it")
            with before(op):
                made = _reading(product, number, found.sources, found)
            replace(op, list(made.results))
            return True
        return False

    @pattern("linalg.generic")
    def fuse_sum(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """sum(float(q))   ->   generic(q) { out + float(q) }, which @prepare can compute"""
        view = structured(op)
        if view is None or view.inputs != 1 or not any(view.reductions):
            return False
        dequantized = read_dequantized(view.operands[0], view.maps[0], weights)
        if dequantized is None or not all(source.lies_along_loops for source in dequantized.sources):
            return False
        if len(read_loops(dequantized.sources)) != view.loops:
            return False
        self.passed(op, "reads the quantized weight that it sums up")
        with before(op):
            made = _reading(view, 0, dequantized.sources, dequantized)
        replace(op, list(made.results))
        return True

    def _fuse(self, product: LinalgOp, number: int, dequantized: Dequantized) -> bool:
        kind = ir.RankedTensorType(dequantized.quantized.value.type).element_type
        with before(product.op):
            quantized = joined(dequantized.quantized, product.loops)
        if not quantized.lies_along_loops:
            self.missed(product.op, f"its weight of {kind} is dequantized apart: it does not lie along the loops")
            return False
        self.passed(product.op, f"dequantizes its weight of {kind} as it reads it")
        column = product.maps[2].results[len(product.maps[2].results) - 1]
        with before(product.op):
            read = [quantized, *dequantized.sources[1:]]
            sources = [columns_last(squeezed(source), column) for source in read]
            made = _reading(product, number, sources, dequantized)
        groups = groups_of(product, sources)
        replace(product.op, list(made.results))
        if groups is not None:
            view = structured(made)
            assert view is not None
            SplitLoops(view, groups).run()
        return True


def _reading(view: LinalgOp, number: int, sources: Sequence[Source], dequantized: Dequantized) -> ir.Operation:
    """The op with its input `number` computed from sources; the quantized one takes its place."""
    element = without_casts(dequantized.element, dequantized.sources)
    maps = [ir.AffineMap.get(view.loops, 0, list(source.places)) for source in sources]
    first, *others = [source.value for source in sources]
    inputs, outputs = list(view.operands)[: view.inputs], list(view.operands)[view.inputs :]

    def body(elements: Sequence[ir.Value]) -> list[ir.Value]:
        own, rest = list(elements[: view.inputs]), elements[view.inputs : len(elements) - len(outputs)]
        own[number] = build_exact(element, dequantized.sources, [own[number], *rest])
        return copy_body(view, [*own, *elements[len(elements) - len(outputs) :]])

    inputs[number] = first
    read = [*view.maps[: view.inputs]]
    read[number] = maps[0]
    loops = iterator_types(view.reductions)
    return build_generic([*inputs, *others], outputs, [*read, *maps[1:], *view.maps[view.inputs :]], loops, body)
