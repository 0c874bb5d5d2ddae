"""order-weight-groups: rows of quantized weights whose groups an index tells are put into the order of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs, weight_arguments
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.attributes import UNEVEN
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import argument_marks, before, build_generic, empty_like, iterator_types, replace
from pipeline.mlir import function, ir, walk_where
from pipeline.passes.layout.dequantization import QUANTIZED_GROWTH, Dequantized, Source, read_known
from pipeline.passes.layout.gathered_rows import GatheredRows, gathered_rows_of, permutation_of, picked
from pipeline.passes.tensor.guard_traps import Checks
from pipeline.passmanager.base import Pass

_MESSAGE = "the groups of a weight's rows have not the same number of rows each; disable order-weight-groups for that"


@dataclass(frozen=True)
class OrderWeightGroups(Pass):
    """Let products whose weights have scales by an index of groups read their rows group by group.

    x @ ((q - zeros[g]) * scales[g])   ->   x[:, p] @ ((q[p] - zeros[k / size]) * scales[k / size])

    g has the group of each row, as with GPTQ's order of activations, and p sorts it: @prepare computes that, and puts
    the weight into its order; each call does so with the data. All groups have the same number of rows then, or a call
    is an error; an index that is `pipeline.uneven` is left alone. Scales that are gathered would be as many as weights.
    """

    name: ClassVar[str] = "order-weight-groups"

    def run(self, op: ir.Operation) -> None:
        """Orders the weights of all products of @main."""
        main = function(op, "main")
        if not any(map(_is_index, weight_arguments(main))):
            return
        weights, checks = ConstExprs(main, QUANTIZED_GROWTH), Checks.reopened(op)
        for candidate in walk_where(main, lambda op: op.name.startswith("linalg."), in_bodies=False):
            product = read_matrix_product(candidate, ir.F32Type)
            if product is not None and len(product.summed) == 1:
                self._order(product, weights, checks)
        checks.finish(op)

    def _order(self, product: LinalgOp, weights: ConstExprs, checks: Checks) -> None:
        for number in (1, 0):
            read = read_known(product.operands[number], weights, product.maps[number])
            gathers = {} if read is None else _gathers(read, product.summed[0], weights)
            if read is None or not gathers:
                continue
            reason = _why_not(product, read, gathers, weights)
            if reason is not None:
                self.missed(product.op, f"the rows of its weight stay in their order: {reason}")
                return
            self.passed(product.op, "reads the rows of its weight group by group")
            _Ordering(product, number, read, gathers).run(checks)
            return


def _is_index(argument: ir.Value) -> bool:
    """Whether a weight is a line of integers, as an index of groups is."""
    kind = argument.type
    return isinstance(kind, ir.RankedTensorType) and kind.rank == 1 and isinstance(kind.element_type, ir.IntegerType)


def _gathers(read: Dequantized, loop: int, weights: ConstExprs) -> dict[int, GatheredRows]:
    """The sources that are rows of tables, one for each iteration of the loop of a sum; by their numbers."""
    found = {number: gathered_rows_of(source, loop, weights) for number, source in enumerate(read.sources)}
    return {number: rows for number, rows in found.items() if rows is not None}


def _why_not(product: LinalgOp, read: Dequantized, gathers: dict[int, GatheredRows], weights: ConstExprs) -> str | None:
    loop = product.summed[0]
    size = product.sizes[loop]
    others = [source for number, source in enumerate(read.sources) if number not in gathers]
    if not any(is_quantized(element_type(source.value)) and loop in _loops(source) for source in others):
        return "none of its factors are bytes"
    if not all(source.value in weights and source.lies_along_loops for source in others):
        return "it does not come from weights along the loops"
    if len({(rows.index, rows.groups, rows.form) for rows in gathers.values()}) > 1:
        return "scales and zero points have different groups"
    groups = next(iter(gathers.values())).groups
    if size is None or size % groups or size == groups:
        return f"{groups} groups do not divide its {size} rows"
    if any(_is_uneven(argument) for rows in gathers.values() for argument in weights.sources[rows.index]):
        return "its groups have not the same number of rows each"
    return None


def _is_uneven(argument: ir.Value) -> bool:
    """Whether a weight is known to have some numbers more often than others."""
    return UNEVEN in argument_marks(argument.owner.owner)[argument.arg_number]


def _loops(source: Source) -> list[int | None]:
    return [loop_of(place) for place in source.places]


class _Ordering:
    """Builds a product anew, with its rows in the order of groups."""

    def __init__(self, product: LinalgOp, number: int, read: Dequantized, gathers: dict[int, GatheredRows]):
        self._product = product
        self._number = number
        self._read = read
        self._gathers = gathers
        self._loop = product.summed[0]

    def run(self, checks: Checks) -> None:
        """Puts the new product in the place of the old one."""
        product, data = self._product, 1 - self._number
        rows = next(iter(self._gathers.values()))
        size = product.sizes[self._loop]
        assert size is not None
        with before(product.op):
            order, even = permutation_of(rows, size)
            checks.add(even, _MESSAGE, product.op)
            operands = list(product.operands)
            places = [loop_of(place) for place in product.maps[data].results]
            operands[data] = picked(operands[data], order, places.index(self._loop))
            operands[self._number] = self._weight(order, size // rows.groups)
            copy = product.op.clone()
        for number, operand in enumerate(operands):
            copy.operands[number] = operand
        replace(product.op, list(copy.results))

    def _weight(self, order: ir.Value, group: int) -> ir.Value:
        """The dequantized weight, whose rows are in the order of groups."""
        old = self._product.operands[self._number]
        indexing = self._product.maps[self._number]
        rank = len(indexing.results)
        dims = {loop_of(place): ir.AffineDimExpr.get(dim) for dim, place in enumerate(indexing.results)}
        inputs, maps = [], []
        for number, source in enumerate(self._read.sources):
            places = [dims.get(loop_of(place), place) for place in source.places]
            gather = self._gathers.get(number)
            if gather is not None:
                row = _loops(source).index(self._loop)
                places[row] = ir.AffineExpr.get_floor_div(places[row], group)
                inputs.append(gather.table)
            elif self._loop in _loops(source):
                inputs.append(picked(source.value, order, _loops(source).index(self._loop)))
            else:
                inputs.append(source.value)
            maps.append(ir.AffineMap.get(rank, 0, places))

        def computed(elements: Sequence[ir.Value]) -> list[ir.Value]:
            return [self._read.build(elements)]

        empty, identity = empty_like(old, element_type(old)), ir.AffineMap.get_identity(rank)
        loops = iterator_types([False] * rank)
        return build_generic(inputs, [empty], [*maps, identity], loops, computed).results[0]
